"""Lessons: models learn documents that clients send, on one thread, one lesson after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lightdxml.model.model import Model
from lightdxml.serve.batching import Batcher
from lightdxml.serve.labels import name_of
from lightdxml.serve.problems import Problem
from lightdxml.serve.queries import Document, texts_of
from lightdxml.serve.registry import ModelRegistry, ServedModel

# Learning needs SciPy, which a service that only predicts never loads: so it is imported where a lesson begins.
if TYPE_CHECKING:
    from lightdxml.learning.drift import Drift
    from lightdxml.learning.folder import ModelFolder
    from lightdxml.learning.journal import Entry

# The most lessons that wait.
_MAX_LESSONS = 16
# The niceness of the thread that learns: predictions go first.
_NICE = 10


class LabeledDocument(NamedTuple):
    """A document with its correct labels, by name or URI, and labels that were suggested wrongly."""

    document: Document
    labels: list[str]
    rejected: Sequence[str] = ()


class Taught(NamedTuple):
    """What came of a lesson: the version that is served now, the entry of the journal, and how far the model is."""

    served: ServedModel
    entry: Entry
    seconds: float
    drift: Drift


class History(NamedTuple):
    """The journal of a model as it is on the disk, and how far the model has moved since training."""

    entries: Sequence[Entry]
    drift: Drift


class Teacher:
    """Lets models learn. Lessons never run on the event loop or on a thread that predicts.

    A lesson that waits too long gets 503. One that has begun is finished, even if its client is gone.

    Parameters
    ----------
    models
        The served models.
    timeout
        Seconds that a lesson may wait.
    on_lesson
        Called after each lesson with the id of the model and the number of documents.
    """

    def __init__(self, models: ModelRegistry, timeout: float, on_lesson: Callable[[str, int], None]) -> None:
        self.models, self.on_lesson = models, on_lesson
        self._queue = Batcher(1, _MAX_LESSONS, timeout, nice=_NICE, what="lessons")
        self._folders: dict[str, ModelFolder] = {}

    def check_room(self) -> None:
        """Raise a `Problem` if too many lessons are waiting."""
        self._queue.check_room()

    async def teach(self, name: str, documents: Sequence[LabeledDocument]) -> Taught:
        """Let a model learn documents, and serve it afterwards; raise a `Problem` if it cannot learn them."""
        # With a key of its own, a lesson shares no batch.
        found = await self._queue.run(object(), lambda some: [self._taught(name, one) for one in some], [documents])
        taught: Taught = found[0]
        return taught

    def close(self) -> None:
        """Finish the lesson that has begun, and drop the others."""
        self._queue.close(wait=True)

    def _taught(self, name: str, documents: Sequence[LabeledDocument]) -> Taught:
        from lightdxml.kernels.parallel import use_threads
        from lightdxml.learning.drift import drift

        folder = self._folder(name)
        # One compute thread leaves the other cores to predictions. Meanwhile, nobody loads what is just being written.
        with use_threads(1), self.models.changing(name):
            model = folder.model
            texts, ids = texts_of([one.document for one in documents]), [one.document.id for one in documents]
            try:
                labels = [_labels_for(model, one.labels) for one in documents]
                rejected = [name_of(label) for one in documents for label in one.rejected]
                changed = folder.learn(texts, labels, ids if any(ids) else None, rejected=rejected)
            except ValueError as error:
                raise Problem(400, str(error)) from error
            served = self.models.swap(name, changed.model, changed.manifest, changed.stamp)
        self.on_lesson(name, len(documents))
        return Taught(served, changed.entry, changed.seconds, drift(changed.model, folder.journal.entries))

    def _folder(self, name: str) -> ModelFolder:
        from lightdxml.learning.folder import ModelFolder

        if name not in self._folders:
            self._folders[name] = ModelFolder(self.models.folders[name])
        return self._folders[name]


def history_of(served: ServedModel, folder: Path) -> History:
    """Return the journal of a model, and how far the model has moved."""
    from lightdxml.learning.drift import drift
    from lightdxml.learning.stored import read_journal
    from lightdxml.model.store import LEARNING

    entries = read_journal(folder / LEARNING)[0].entries
    return History(entries, drift(served.model, entries))


def _labels_for(model: Model, labels: Sequence[str]) -> list[str | int]:
    """Return labels as a model takes them, each once; raise a `ValueError` if it cannot have one of them.

    >>> from lightdxml import LightDXML
    >>> trained = LightDXML("fast").fit(["a cat", "a dog"] * 20, [[1], [2]] * 20)
    >>> _labels_for(trained.model_, ["1", "urn:lightdxml:label:2", "1"])
    [1, 2]
    """
    names = list(dict.fromkeys(name_of(label) for label in labels))
    if model.label_names is not None and not model.integer_labels:
        return [*names]
    if wrong := [name for name in names if not (name.isascii() and name.isdecimal() and len(name) < 20)]:
        raise ValueError(f"the label {wrong[0][:100]!r} is not a number: the labels of this model are")
    numbers = [int(name) for name in names]
    # Columns without names are counted: a large number would be as many new labels.
    if model.label_names is None and max(numbers) >= model.n_labels:
        raise ValueError(f"there is no label {max(numbers)}: the model has {model.n_labels}, and they have no names")
    return [*numbers]
