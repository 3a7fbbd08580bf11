"""A model folder that learns: every change is all or nothing, is written into the journal, and can be taken back.

The folder `learning` within that of a model holds the journal with one file per entry, the training data if they were
kept, and the model as it was before the first entry. No file in it ever changes, so a new version of the model shares
them with the old one by hard links.
"""

from __future__ import annotations

import logging
import math
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from lightdxml import __version__
from lightdxml.kernels.stopwatch import stopwatch
from lightdxml.learning import journal
from lightdxml.learning import stored as learning
from lightdxml.learning.figures import MAX_SOURCE
from lightdxml.learning.journal import Entry, Operation
from lightdxml.learning.learn import Learner
from lightdxml.learning.lessons import Lessons, lessons_of
from lightdxml.learning.stored import Journal, Opened, file_of, inside_of, read
from lightdxml.learning.summary import summary
from lightdxml.model import store
from lightdxml.model.model import Model
from lightdxml.model.store import stamp
from lightdxml.persistence import arrays as stored
from lightdxml.persistence.files import map_file, sha256
from lightdxml.persistence.lock import writing

__all__ = [
    "Changed", "Journal", "ModelFolder", "Opened", "RefusedError", "ReplacedError",
    "changed", "read", "save",
]  # fmt: skip

_logger = logging.getLogger("lightdxml")


class RefusedError(ValueError):
    """A change that a model cannot make, because of the labels or documents that it was given."""


class ReplacedError(ValueError):
    """A model folder that someone has replaced while a change of the model was made."""


@dataclass(frozen=True, repr=False)
class Changed:
    """A change that is on the disk.

    Attributes
    ----------
    model
        The model after it.
    journal
        The journal, whose last entry is this change.
    seconds
        The seconds that it took, without those of waiting for another process and of compilation.
    manifest
        What the model says about itself.
    stamp
        The stamp of its folder; another one means that someone has changed it again.
    """

    model: Model
    journal: Journal
    seconds: float
    manifest: dict[str, Any]
    stamp: tuple[int, int]

    @property
    def entry(self) -> Entry:
        """Its entry in the journal."""
        return self.journal.entries[-1]

    def __repr__(self) -> str:
        return f"<Changed: step {self.entry.step}, {self.entry.kind}: {summary(self.entry)} in {self.seconds:.1f} s>"


class ModelFolder:
    """A model folder that is changed step by step; what was read or written last stays in memory.

    Parameters
    ----------
    folder
        The model.
    wait
        How many seconds to wait for another process that changes it, before a `TimeoutError` is raised.

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

    def __init__(self, folder: str | Path, wait: float = math.inf) -> None:
        self.folder, self.wait = Path(folder), wait
        self._opened: Opened | None = None
        self._stamp: tuple[int, int] | None = None

    def learn(
        self,
        X: Any,
        y: Any,
        ids: Sequence[str] | None = None,
        out: Path | None = None,
        source: str = "",
        **options: Any,
    ) -> Changed:
        """Learn documents, in any form that training takes; the journal says their `source`, such as a file."""
        from lightdxml.learning.documents import documents_for

        return self._change(lambda model: Operation("learn", documents_for(model, X, y, ids, **options)), out, source)

    def retire(self, labels: Sequence[str], out: Path | None = None) -> Changed:
        """Never suggest these labels again."""
        return self._change(lambda _: Operation("retire", names=tuple(labels)), out)

    def merge(self, gone: str, stays: str, out: Path | None = None) -> Changed:
        """Give documents and names of one label to another one, and retire the first."""
        return self._change(lambda _: Operation("merge", names=(gone, stays)), out)

    def forget(self, ids: Sequence[str], out: Path | None = None) -> Changed:
        """Forget the documents with these ids."""
        return self._change(lambda _: Operation("forget", names=tuple(ids)), out)

    def learned(self) -> Lessons:
        """Return the documents that the model has learned since training, as a new training takes them."""
        return lessons_of(self.folder)

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

    def _change(self, operation_for: Callable[[Model], Operation], out: Path | None, source: str = "") -> Changed:
        target = self._target(out)
        with writing(self.folder, target, wait=self.wait), stopwatch() as seconds:
            before = self._current()
            try:
                operation = operation_for(before.learner.model)
                learner, entry = changed(before.learner, before.journal, operation)
            except ValueError as error:
                raise RefusedError(str(error)) from error
            if source:
                # Names of files may have bytes that are no characters.
                readable = source.encode(errors="replace").decode()[:MAX_SOURCE]
                entry = replace(entry, figures={**entry.figures, "source": readable})
            history = [*before.history, _phase(entry)]
            after = replace(before, learner=learner, journal=before.journal.with_entry(entry), history=history)
            written, mark = self._write(target, after, operation=operation), stamp(target)
            return Changed(learner.model, written.journal, seconds(), written.manifest, mark)

    def rollback(self, step: int, out: Path | None = None) -> tuple[Opened, bool]:
        """Go back to where the model was after a step; return it, and whether it has the same bits as then.

        Later entries are removed from the journal.
        """
        target = self._target(out)
        with writing(self.folder, target, wait=self.wait):
            opened = self._current()
            _check_step(opened.journal, step)
            entries, first = opened.journal.entries, opened.journal.base_step
            start = learning.read_base(self.folder, opened.files)
            learner = start.learner
            for entry in entries[first:step]:
                operation = learning.read_operation(self.folder, entry, replace(opened, learner=learner))
                learner, _ = journal.apply(learner, operation)
                _logger.info("step %d of %d again: %s", entry.step, step, summary(entry))
            history = _until(opened.history, step)
            known = replace(opened.journal, entries=entries[:step])
            before = Opened(learner, known, history, start.manifest, opened.files)
            found = self._write(target, before, is_base=step == first)
        version = _version(start.manifest) if step == first else entries[step - 1].version
        return found, _version(found.manifest) == version

    def _target(self, out: Path | None) -> Path:
        """Return where a new version goes; raise a `ValueError` if it must not be written there."""
        stamp(self.folder)
        if out is not None:
            store.check_target(out)
        return out or self.folder

    def _current(self) -> Opened:
        """Return the model, read again if another process has changed it."""
        now = stamp(self.folder)
        if self._opened is None or now != self._stamp:
            self._opened, self._stamp = read(self.folder), now
        return self._opened

    def _write(self, target: Path, opened: Opened, **how: Any) -> Opened:
        if stamp(self.folder) != self._stamp:
            raise ReplacedError(f"{self.folder} was replaced meanwhile, by a training perhaps: try again")
        written = _save(self.folder, target, opened, **how)
        if target.resolve() == self.folder.resolve():
            self._opened, self._stamp = written, stamp(self.folder)
        return written


def _check_step(known: Journal, step: int) -> None:
    """Raise a `ValueError` if a model cannot go back to where it was after a step."""
    first, last = known.base_step, known.step - 1
    if first <= step <= last:
        return
    able = (
        "nothing can be undone" if last < first else f"possible: {first} to {last}" if last > first else f"only {first}"
    )
    if step == known.step:
        reason = "it is there"
    elif 0 <= step < first:
        reason = f"steps up to {first} stay, because the whole model was changed or saved again after them"
    else:
        reason = "see lightdxml history"
    raise ValueError(f"the model cannot go back to step {step} ({able}): {reason}")


def _until(history: list[dict[str, Any]], step: int) -> list[dict[str, Any]]:
    """Return the history up to a step of the journal."""
    return [entry for entry in history if entry.get("step", 0) <= step]


def changed(learner: Learner, known: Journal, operation: Operation) -> tuple[Learner, Entry]:
    """Return a learner after an operation, and the next entry of its journal."""
    with stopwatch() as seconds:
        after, figures = journal.apply(learner, operation)
        figures["seconds"] = round(seconds(), 3)
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    return after, Entry(known.step + 1, now, operation.kind, figures)


def _phase(entry: Entry) -> dict[str, Any]:
    """Return an entry as a phase of the model's history."""
    figures = {key: value for key, value in entry.figures.items() if isinstance(value, int | float)}
    return {"refresh": 0, "phase": entry.kind, "step": entry.step, **figures}


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
        manifest = stored.read_json(place / learning.MANIFEST)
        entries, files = opened.journal.entries, dict[str, str]()
        if source is not None:
            files = _link_journal(source, inside, opened, is_base)
        if operation is not None:
            (inside / file_of(entries[-1])).write_bytes(journal.pack(operation))
            entries = (*entries[:-1], replace(entries[-1], version=_version(manifest)))
        try:
            learning.write_data(inside, opened.learner)
        except ValueError as error:
            raise ValueError(f"{target} stays as it was, as nobody could read what would follow: {error}") from error
        # What is linked keeps its checksum: damage to it must not go unnoticed.
        files |= {path.name: _digest(path) for path in inside.iterdir() if path.is_file() and path.name not in files}
        content = {
            "format": learning.FORMAT,
            "base_step": opened.journal.base_step,
            "entries": [asdict(entry) for entry in entries],
            "files": files,
        }
        stored.write_json(inside / learning.JOURNAL, {**content, "sha256": stored.checksum(content)})
        known = replace(opened.journal, entries=entries)
        written["opened"] = replace(opened, journal=known, manifest=manifest, files=files)

    store.save(opened.learner.model, target, __version__, opened.history, write_more)
    found: Opened = written["opened"]
    return found


def _link_journal(source: Path, inside: Path, opened: Opened, is_base: bool) -> dict[str, str]:
    """Link earlier entries and the base into a new version of the folder `learning`; return their checksums."""
    before, known = inside_of(source), opened.files
    # A process that was killed may have left it under another name.
    source = before.parent
    linked = {file_of(entry): before / file_of(entry) for entry in opened.journal.entries}
    # Also of files that are missing by now.
    files = {name: known[name] for name in linked if name in known}
    if not is_base:
        base = before / learning.BASE
        (inside / learning.BASE).mkdir()
        if base.is_dir():
            linked |= {f"{learning.BASE}/{name}": base / name for name in (*store.FILES, *learning.DATA)}
            files |= {name: digest for name, digest in known.items() if name.startswith(f"{learning.BASE}/")}
        else:
            # So far, the model is its own base.
            linked |= {f"{learning.BASE}/{name}": source / name for name in store.FILES}
            linked |= {f"{learning.BASE}/{name}": before / name for name in learning.DATA}
            files |= {f"{learning.BASE}/{name}": known[name] for name in learning.DATA if name in known}
            files[f"{learning.BASE}/{learning.MANIFEST}"] = _digest(source / learning.MANIFEST)
    for name, path in linked.items():
        _link(path, inside / name)
    return files


def _digest(path: Path) -> str:
    return sha256(map_file(path))


def _link(path: Path, target: Path) -> None:
    """Link a file, or copy it where the system cannot; nothing if it does not exist."""
    if not path.exists():
        return
    try:
        os.link(path, target)
    except OSError:
        shutil.copy2(path, target)


def _version(manifest: dict[str, Any]) -> str:
    """Return the checksum of a model without its history, which has times in it."""
    files = {name: entry for name, entry in manifest["files"].items() if name != "history.json"}
    return stored.checksum({**{key: manifest[key] for key in manifest if key != "sha256"}, "files": files})
