"""What a model needs to learn, on disk: its journal, the training data that were kept, and its latest results.

They are in the folder `learning` within that of the model. Nothing in it is trusted: the journal has the checksum of
every file, and its own.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from lightdxml.learning import journal
from lightdxml.learning.figures import check_figures, is_count
from lightdxml.learning.journal import Entry, Operation
from lightdxml.learning.kept import KeptData, restore_kept
from lightdxml.learning.learn import Learner
from lightdxml.learning.measured import Recent
from lightdxml.model import store
from lightdxml.model.model import Model
from lightdxml.persistence import arrays as stored
from lightdxml.persistence.atomic_dir import locate
from lightdxml.persistence.files import map_file, sha256

FORMAT = 1
JOURNAL, BASE, MANIFEST = "journal.json", "base", "manifest.json"
_KEPT, _KEPT_FACTS, _RECENT = "kept.safetensors", "kept.json", "recent.safetensors"
# What the base of a model has beside its own files.
DATA = (_KEPT, _KEPT_FACTS, _RECENT)
_DAMAGED = (LookupError, TypeError, AttributeError, RecursionError, OverflowError, ValueError, zlib.error)
_ATTEMPTS = 100
# Bytes of an id or a word, which has up to 1,000 characters, in JSON.
_MAX_STRING, _SPARE_STRINGS = 1 << 14, 1 << 8
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Journal:
    """The journal of a model.

    Attributes
    ----------
    base_step
        The last entry that the base contains. Later ones can be taken back.
    entries
        All entries.
    """

    base_step: int = 0
    entries: tuple[Entry, ...] = ()

    @property
    def step(self) -> int:
        """The number of the last entry."""
        return len(self.entries)

    def with_entry(self, entry: Entry) -> Journal:
        """Return the journal with a further entry."""
        return replace(self, entries=(*self.entries, entry))


@dataclass(frozen=True, eq=False, repr=False)
class Opened:
    """A model folder as it was read.

    Attributes
    ----------
    learner
        The model and what it needs to learn.
    journal
        What was changed since training.
    history
        The history of the model.
    manifest
        What the model says about itself.
    files
        The checksums of the files in the folder `learning`, by their path in it.
    """

    learner: Learner
    journal: Journal
    history: list[dict[str, Any]]
    manifest: dict[str, Any]
    files: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Opened: {self.learner.model.n_labels:,} labels, after step {self.journal.step}>"


@dataclass(frozen=True, eq=False)
class Overview:
    """A model and its journal, without the training data, of which it has only the bytes on disk; 0 if not kept.

    `files` are the checksums of the files in the folder `learning`.
    """

    stored: store.Stored
    journal: Journal
    kept_bytes: int
    files: Mapping[str, str]


def read(folder: Path) -> Opened:
    """Read a model, and what it needs to learn, if it has it."""
    return at_one_moment(folder, _read)


def overview(folder: Path) -> Overview:
    """Read a model and its journal."""
    return at_one_moment(folder, _overview)


def read_history(folder: Path) -> Journal:
    """Read the journal of a model, and nothing else."""
    return at_one_moment(folder, _history)


def at_one_moment(folder: Path, read: Callable[[Path], T]) -> T:
    """Return what is read of a model; it is read again if the model was replaced meanwhile."""
    for _ in range(_ATTEMPTS):
        before = store.stamp(folder)
        try:
            found = read(folder)
        except (OSError, ValueError):
            if store.stamp(folder) == before:
                raise
            continue
        if store.stamp(folder) == before:
            return found
    raise OSError(f"{folder} is being replaced all the time: try again later")


def inside_of(folder: Path) -> Path:
    """Return the folder `learning` of a model, wherever a process that was killed has left the model."""
    return locate(folder, store.is_model) / store.LEARNING


def _read(folder: Path) -> Opened:
    found, inside = store.load(folder), inside_of(folder)
    try:
        known, files = read_journal(inside)
        _check_documents(found.model, known)
        kept, recent = _read_data(inside, found.model, files)
    except (*_DAMAGED, FileNotFoundError) as error:
        raise _damaged(folder, error) from error
    return Opened(Learner(found.model, kept, recent), known, found.history, found.manifest, files)


def _overview(folder: Path) -> Overview:
    found, inside = store.load(folder), inside_of(folder)
    try:
        known, files = read_journal(inside)
        _check_documents(found.model, known)
        kept = [inside / name for name in (_KEPT, _KEPT_FACTS) if (inside / name).is_file()]
        return Overview(found, known, sum(path.stat().st_size for path in kept), files)
    except _DAMAGED as error:
        raise _damaged(folder, error) from error


def _history(folder: Path) -> Journal:
    try:
        return read_journal(inside_of(folder))[0]
    except (*_DAMAGED, FileNotFoundError) as error:
        raise _damaged(folder, error) from error


def read_base(folder: Path, files: Mapping[str, str]) -> Opened:
    """Read the model as it was before the first entry that can be taken back, given the checksums of `folder`."""
    base = inside_of(folder) / BASE
    try:
        expected = {name.removeprefix(f"{BASE}/"): digest for name, digest in files.items() if name.startswith(BASE)}
        _check_file(base, MANIFEST, expected)
    except (*_DAMAGED, FileNotFoundError) as error:
        raise _damaged(folder, error) from error
    found = store.load(base)
    try:
        kept, recent = _read_data(base, found.model, expected)
    except (*_DAMAGED, FileNotFoundError) as error:
        raise _damaged(folder, error) from error
    return Opened(Learner(found.model, kept, recent), Journal(), found.history, found.manifest)


def read_operation(folder: Path, entry: Entry, opened: Opened) -> Operation:
    """Read what an entry of the journal has changed."""
    inside, name = inside_of(folder), file_of(entry)
    try:
        _check_file(inside, name, opened.files)
        found = journal.unpack(map_file(inside / name).tobytes())
        journal.check_fits(opened.learner.model, found)
    except (*_DAMAGED, FileNotFoundError) as error:
        raise _damaged(folder, error) from error
    return found


def file_of(entry: Entry) -> str:
    """Return the name of the file that says what an entry has changed."""
    return f"{entry.step:06}.json.gz"


def _damaged(folder: Path, error: Exception) -> ValueError:
    reason = str(error)
    if isinstance(error, KeyError):
        reason = f"its journal lacks {error}"
    elif isinstance(error, FileNotFoundError):
        reason = f"{Path(error.filename).name} is missing"
    return ValueError(f"{folder} is damaged ({reason}): copy or train it again")


def read_journal(place: Path) -> tuple[Journal, dict[str, str]]:
    """Return a journal, and the checksums of the files beside it."""
    if not place.is_dir():
        return Journal(), {}
    content = stored.read_json(place / JOURNAL)
    if content.get("format") != FORMAT:
        raise ValueError(f"its journal has format {content.get('format')!r:.20} and this version reads {FORMAT}")
    if content.pop("sha256", None) != stored.checksum(content):
        raise ValueError(f"{JOURNAL} was changed after it was written")
    entries = tuple(_entry(one) for one in content["entries"])
    base_step = content["base_step"]
    if type(base_step) is not int or not 0 <= base_step <= len(entries):
        raise ValueError("its journal starts after its end")
    if [entry.step for entry in entries] != list(range(1, len(entries) + 1)):
        raise ValueError("its journal lacks entries")
    return Journal(base_step, entries), dict(content["files"])


def _entry(found: dict[str, Any]) -> Entry:
    """Return an entry; raise a `ValueError` if its figures are none."""
    entry = Entry(**found)
    is_sound = isinstance(entry.time, str) and isinstance(entry.version, str) and isinstance(entry.figures, dict)
    if not is_sound or entry.kind not in journal.KINDS or not is_count(entry.step):
        raise ValueError("its journal has an entry of another form")
    datetime.fromisoformat(entry.time)
    check_figures(entry.kind, entry.figures)
    return entry


def _check_documents(model: Model, known: Journal) -> None:
    """Raise a `ValueError` if the model cannot have learned as many documents as its journal says."""
    n = model.n_documents
    for entry in reversed(known.entries):
        if entry.kind == "learn":
            n -= entry.figures["documents"]
            if n < 0:
                raise ValueError("its journal has more documents than the model")
            n += entry.figures["corrected"]
        elif entry.kind == "forget":
            n += entry.figures["forgotten"]


def _read_data(place: Path, model: Model, files: Mapping[str, str]) -> tuple[KeptData | None, Recent]:
    """Return kept training data and latest results, if there are any."""
    recent = Recent()
    if _RECENT in files:
        recent = Recent.restore(_arrays(place, _RECENT, files), list(model.views), model.n_labels)
    if _KEPT not in files:
        return None, recent
    _check_file(place, _KEPT_FACTS, files)
    arrays = _arrays(place, _KEPT, files)
    facts = stored.read_json(place / _KEPT_FACTS, _limit(model, arrays))
    return restore_kept(arrays, facts, model.n_features, model.n_labels), recent


def _limit(model: Model, arrays: stored.Arrays) -> int:
    """Return the most bytes that the facts of training data may have: an id per document, words and rare words."""
    return _MAX_STRING * (_SPARE_STRINGS + model.n_features + len(arrays["X.indptr"]) + len(arrays["rare"]))


def _arrays(place: Path, name: str, files: Mapping[str, str]) -> stored.Arrays:
    _check_file(place, name, files)
    found = stored.read(place / name)
    stored.check_finite(found, stored.MAX_VALUE)
    return found


def _check_file(place: Path, name: str, files: Mapping[str, str]) -> None:
    """Raise a `ValueError` if a file has other content than when it was written."""
    if sha256(map_file(place / name)) != files[name]:
        raise ValueError(f"{name} was changed after it was written")


def write_data(place: Path, learner: Learner) -> None:
    """Write training data and latest results; raise a `ValueError` if nobody could read them."""
    if learner.kept is not None:
        arrays = learner.kept.arrays()
        stored.write(place / _KEPT, arrays)
        stored.write_json(place / _KEPT_FACTS, learner.kept.facts())
        stored.check_finite(arrays, stored.MAX_VALUE)
        stored.check_size(map_file(place / _KEPT_FACTS), _KEPT_FACTS, _limit(learner.model, arrays))
    recent = learner.recent.arrays()
    stored.write(place / _RECENT, recent)
    stored.check_finite(recent, stored.MAX_VALUE)
