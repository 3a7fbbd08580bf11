"""A model folder that learns: every change is all or nothing, is written into the journal, and can be taken back.

The folder `learning` within that of a model holds the journal with one file per entry, the training data if they were
kept, and the model as it was before the first entry. No file in it ever changes, so a new version of the model shares
them with the old one by hard links.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from lightdxml import __version__
from lightdxml.learning import journal
from lightdxml.learning.journal import Entry, Operation
from lightdxml.learning.kept import KeptData, restore_kept
from lightdxml.learning.learn import Learner
from lightdxml.learning.measured import Recent
from lightdxml.model import store
from lightdxml.model.model import Model
from lightdxml.persistence import arrays as stored
from lightdxml.persistence import lock
from lightdxml.persistence.files import map_file, sha256

_FORMAT = 1
_JOURNAL, _BASE = "journal.json", "base"
_KEPT, _KEPT_FACTS, _RECENT = "kept.safetensors", "kept.json", "recent.safetensors"
_POLL = 0.05


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


@dataclass(frozen=True, eq=False)
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
    """

    learner: Learner
    journal: Journal
    history: list[dict[str, Any]]
    manifest: dict[str, Any]


@dataclass(frozen=True)
class Changed:
    """A change that is on the disk: the model after it, its entry in the journal, and the seconds that it took."""

    model: Model
    entry: Entry
    seconds: float


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Wait until no other process changes this model, and keep others waiting meanwhile."""
    folder = folder.resolve()
    path = folder.with_name(f".{folder.name}.lock")
    while True:
        with lock.held(path) as mine:
            if mine:
                try:
                    yield
                finally:
                    # Whoever waits for it sees that it is gone, and makes a new one.
                    with suppress(OSError):
                        path.unlink()
                return
        time.sleep(_POLL)


class ModelFolder:
    """A model folder that is changed step by step; what was read or written last stays in memory.

    Parameters
    ----------
    folder
        The model.

    Examples
    --------
    >>> import tempfile
    >>> from lightdxml import LightDXML
    >>> texts, labels = ["a purring cat", "a barking dog"] * 20, [["cat"], ["dog"]] * 20
    >>> with tempfile.TemporaryDirectory() as place:
    ...     LightDXML("fast").fit(texts, labels, keep_training_data=True).save(f"{place}/pets")
    ...     pets = ModelFolder(f"{place}/pets")
    ...     _ = pets.learn(["a neighing horse"] * 3, [["horse"]] * 3)
    ...     print([entry.kind for entry in pets.journal.entries], pets.model.label_names)
    ['learn'] ['cat', 'dog', 'horse']
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._opened: Opened | None = None
        self._stamp: tuple[int, int] | None = None

    def learn(
        self, X: Any, y: Any, ids: Sequence[str] | None = None, out: Path | None = None, **options: Any
    ) -> Changed:
        """Learn documents, in any form that training takes."""
        from lightdxml.learning.documents import documents_for

        return self._change(lambda model: Operation("learn", documents_for(model, X, y, ids, **options)), out)

    def retire(self, labels: Sequence[str], out: Path | None = None) -> Changed:
        """Never suggest these labels again."""
        return self._change(lambda _: Operation("retire", names=tuple(labels)), out)

    def merge(self, gone: str, stays: str, out: Path | None = None) -> Changed:
        """Give documents and names of one label to another one, and retire the first."""
        return self._change(lambda _: Operation("merge", names=(gone, stays)), out)

    def forget(self, ids: Sequence[str], out: Path | None = None) -> Changed:
        """Forget the documents with these ids."""
        return self._change(lambda _: Operation("forget", names=tuple(ids)), out)

    @property
    def model(self) -> Model:
        """The model as it is on the disk."""
        return self._current().learner.model

    @property
    def journal(self) -> Journal:
        """The journal as it is on the disk."""
        return self._current().journal

    @property
    def keeps_training_data(self) -> bool:
        """Whether the model keeps its training data."""
        return self._current().learner.kept is not None

    def _change(self, operation_for: Callable[[Model], Operation], out: Path | None) -> Changed:
        start = time.perf_counter()
        with writing(self.folder):
            before = self._current()
            operation = operation_for(before.learner.model)
            learner, entry = changed(before.learner, before.journal, operation)
            history = [*before.history, _phase(entry)]
            after = Opened(learner, before.journal.with_entry(entry), history, before.manifest)
            written = _save(self.folder, out or self.folder, after, operation=operation)
            if out is None:
                self._opened, self._stamp = written, _stamp(self.folder)
        return Changed(learner.model, written.journal.entries[-1], time.perf_counter() - start)

    def _current(self) -> Opened:
        """Return the model, read again if another process has changed it."""
        stamp = _stamp(self.folder)
        if self._opened is None or stamp != self._stamp:
            self._opened, self._stamp = read(self.folder), stamp
        return self._opened

    def rollback(self, step: int, out: Path | None = None) -> tuple[Opened, bool]:
        """Go back to where the model was after a step; return it, and whether it has the same bits as then.

        Later entries are removed from the journal.
        """
        with writing(self.folder):
            opened = self._current()
            entries, first = opened.journal.entries, opened.journal.base_step
            if not first <= step < len(entries):
                last = f"{first} to {len(entries) - 1}" if len(entries) > first else "none: nothing was learned"
                raise ValueError(f"the model cannot go back to step {step} (possible: {last}): see lightdxml history")
            base = self.folder / store.LEARNING / _BASE
            start = read(base)
            learner = start.learner
            for entry in entries[first:step]:
                learner, _ = journal.apply(learner, _operation(self.folder, entry))
            kept = replace(opened.journal, entries=entries[:step])
            before = Opened(learner, kept, _until(opened.history, entries[step].time), start.manifest)
            found = _save(self.folder, out or self.folder, before, is_base=step == first)
            expected = start.manifest if step == first else None
            version = _version(expected) if expected is not None else entries[step - 1].version
            if out is None:
                self._opened, self._stamp = found, _stamp(self.folder)
            return found, _version(found.manifest) == version


def _until(history: list[dict[str, Any]], moment: str) -> list[dict[str, Any]]:
    """Return the history before a moment."""
    return [entry for entry in history if entry.get("time", "") < moment]


def read(folder: Path) -> Opened:
    """Read a model, and what it needs to learn, if it has it."""
    found = store.load(folder)
    place = folder / store.LEARNING
    # The base of a model has its files beside it.
    inside = place if place.is_dir() else folder
    try:
        known, files = _read_journal(inside) if (inside / _JOURNAL).exists() else (Journal(), None)
        kept, recent = _read_data(inside, found.model, files)
    except (LookupError, TypeError, AttributeError, OverflowError, ValueError) as error:
        raise ValueError(f"{folder} is damaged ({error}): copy or train it again") from error
    return Opened(Learner(found.model, kept, recent), known, found.history, found.manifest)


def _read_journal(place: Path) -> tuple[Journal, dict[str, Any]]:
    content = stored.read_json(place / _JOURNAL)
    if content.get("format") != _FORMAT:
        raise ValueError(f"its journal has format {content.get('format')!r:.20} and this version reads {_FORMAT}")
    if content.pop("sha256", None) != stored.checksum(content):
        raise ValueError(f"{_JOURNAL} was changed after it was written")
    entries = tuple(Entry(**one) for one in content["entries"])
    base_step = content["base_step"]
    if type(base_step) is not int or not 0 <= base_step <= len(entries):
        raise ValueError("its journal starts after its end")
    if [entry.step for entry in entries] != list(range(1, len(entries) + 1)):
        raise ValueError("its journal lacks entries")
    return Journal(base_step, entries), content["files"]


def _read_data(place: Path, model: Model, files: dict[str, Any] | None) -> tuple[KeptData | None, Recent]:
    """Return kept training data and latest results, if they are there."""
    recent = Recent()
    if (place / _RECENT).exists():
        arrays = _arrays(place, _RECENT, files)
        recent = Recent.restore(arrays, int(arrays["recent.since"][0]), model.n_labels)
    if not (place / _KEPT).exists():
        return None, recent
    _check_file(place, _KEPT_FACTS, files)
    facts = stored.read_json(place / _KEPT_FACTS)
    return restore_kept(_arrays(place, _KEPT, files), facts, model.n_features, model.n_labels), recent


def _arrays(place: Path, name: str, files: dict[str, Any] | None) -> stored.Arrays:
    _check_file(place, name, files)
    found = stored.read(place / name)
    stored.check_finite(found, stored.MAX_VALUE)
    return found


def _check_file(place: Path, name: str, files: dict[str, Any] | None) -> None:
    """Raise a `ValueError` if a file has other content than when it was written."""
    if files is not None and sha256(map_file(place / name)) != files[name]:
        raise ValueError(f"{name} was changed after it was written")


def _operation(folder: Path, entry: Entry) -> Operation:
    return journal.unpack(map_file(folder / store.LEARNING / _file(entry)).tobytes())


def _file(entry: Entry) -> str:
    return f"{entry.step:06}.json.gz"


def changed(learner: Learner, known: Journal, operation: Operation) -> tuple[Learner, Entry]:
    """Return a learner after an operation, and the next entry of its journal."""
    start = time.perf_counter()
    after, figures = journal.apply(learner, operation)
    figures["seconds"] = round(time.perf_counter() - start, 3)
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    return after, Entry(known.step + 1, now, operation.kind, figures)


def _phase(entry: Entry) -> dict[str, Any]:
    """Return an entry as a phase of the model's history."""
    figures = {key: value for key, value in entry.figures.items() if isinstance(value, int | float)}
    return {"refresh": 0, "phase": entry.kind, "time": entry.time, **figures}


def save(folder: Path, learner: Learner, known: Journal, history: list[dict[str, Any]]) -> None:
    """Write a model that is in memory, with what it needs to learn; earlier changes cannot be taken back."""
    if learner.kept is None and not known.entries:
        store.save(learner.model, folder, __version__, history)
        return
    base = replace(known, base_step=known.step)
    _save(None, folder, Opened(learner, base, history, {}), is_base=True)


def _save(
    source: Path | None, target: Path, opened: Opened, *, is_base: bool = False, operation: Operation | None = None
) -> Opened:
    """Write a model and what it needs to learn.

    Parameters
    ----------
    source
        Where journal and base are so far; None if there are none.
    target
        Where the model goes.
    opened
        What is written.
    is_base
        Whether the model is the base of its journal itself.
    operation
        The operation of the last entry, if it is not in a file yet.
    """
    written: dict[str, Any] = {}

    def write_more(place: Path) -> None:
        inside = place / store.LEARNING
        inside.mkdir()
        manifest = stored.read_json(place / "manifest.json")
        entries = opened.journal.entries
        if operation is not None:
            (inside / _file(entries[-1])).write_bytes(journal.pack(operation))
            entries = (*entries[:-1], replace(entries[-1], version=_version(manifest)))
        if source is not None:
            _link_journal(source, inside, entries if operation is None else entries[:-1], is_base)
        _write_data(inside, opened.learner)
        files = {path.name: sha256(map_file(path)) for path in sorted(inside.iterdir()) if path.is_file()}
        content = {
            "format": _FORMAT,
            "base_step": opened.journal.base_step,
            "entries": [asdict(entry) for entry in entries],
            "files": files,
        }
        stored.write_json(inside / _JOURNAL, {**content, "sha256": stored.checksum(content)})
        written["opened"] = replace(opened, journal=replace(opened.journal, entries=entries), manifest=manifest)

    store.save(opened.learner.model, target, __version__, opened.history, write_more)
    found: Opened = written["opened"]
    return found


def _link_journal(source: Path, inside: Path, entries: Sequence[Entry], is_base: bool) -> None:
    """Link the files of earlier entries and the base into a new version of the folder `learning`."""
    before = source / store.LEARNING
    for entry in entries:
        _link(before / _file(entry), inside / _file(entry))
    if is_base:
        return
    base = inside / _BASE
    base.mkdir()
    if (before / _BASE).is_dir():
        for path in (before / _BASE).iterdir():
            _link(path, base / path.name)
        return
    # So far, the model is its own base.
    for name in store.FILES:
        _link(source / name, base / name)
    for name in (_KEPT, _KEPT_FACTS):
        _link(before / name, base / name)


def _link(path: Path, target: Path) -> None:
    """Link a file, or copy it where the system cannot; nothing if it does not exist."""
    if not path.exists():
        return
    try:
        os.link(path, target)
    except OSError:
        shutil.copy2(path, target)


def _write_data(place: Path, learner: Learner) -> None:
    if learner.kept is not None:
        stored.write(place / _KEPT, learner.kept.arrays())
        stored.write_json(place / _KEPT_FACTS, learner.kept.facts())
    since = np.array([learner.recent.since], dtype=np.int64)
    stored.write(place / _RECENT, {**learner.recent.arrays(), "recent.since": since})


def _version(manifest: dict[str, Any]) -> str:
    """Return the checksum of a model without its history, which has times in it."""
    files = {name: entry for name, entry in manifest["files"].items() if name != "history.json"}
    return stored.checksum({**{key: manifest[key] for key in manifest if key != "sha256"}, "files": files})


def _stamp(folder: Path) -> tuple[int, int]:
    """Return the inode and modification time of the manifest, which change when a model is replaced."""
    try:
        found = (folder / "manifest.json").stat()
    except OSError as error:
        raise ValueError(f"{folder} is not a model: it has no manifest.json") from error
    return found.st_ino, found.st_mtime_ns
