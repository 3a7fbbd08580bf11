"""Lessons: models learn documents that clients send, on one thread, one lesson after the other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from lightdxml.model.model import Model
from lightdxml.serve.batching import Batcher
from lightdxml.serve.labels import name_of
from lightdxml.serve.problems import RETRY_AFTER, Problem
from lightdxml.serve.queries import Document, texts_of
from lightdxml.serve.registry import ModelRegistry, ServedModel

# Learning needs SciPy, which a service that only predicts never loads: so it is imported where a lesson begins.
if TYPE_CHECKING:
    from lightdxml.learning.drift import Drift
    from lightdxml.learning.folder import ModelFolder
    from lightdxml.learning.journal import Entry

# The most lessons that wait, and the most requests for histories.
_MAX_LESSONS, _MAX_HISTORIES = 16, 32
# Seconds that a lesson waits for another process that changes the model. Lessons of other models, and a server that
# stops, wait for it meanwhile.
_PATIENCE = 5.0
# The niceness of the thread that learns: predictions go first.
_NICE = 10
_log = logging.getLogger("lightdxml")


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
        # A journal of many thousand entries takes a while to read: neither predictions nor lessons wait for it.
        self._readers = Batcher(1, _MAX_HISTORIES, timeout, nice=_NICE, what="requests for histories")
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

    async def history(self, served: ServedModel) -> History:
        """Return the journal of a model, and how far the model has moved; raise a `Problem` if it cannot be read."""
        found = await self._readers.run(object(), lambda some: [self._history(one) for one in some], [served])
        history: History = found[0]
        return history

    def close(self) -> None:
        """Finish the lesson that has begun, and drop the others."""
        self._readers.close()
        self._queue.close(wait=True)

    def _taught(self, name: str, documents: Sequence[LabeledDocument]) -> Taught:
        from lightdxml.kernels.parallel import use_threads
        from lightdxml.learning.drift import drift

        folder = self._folder(name)
        # One compute thread leaves the other cores to predictions. Meanwhile, nobody loads what is just being written.
        with use_threads(1), self.models.changing(name):
            texts, ids = texts_of([one.document for one in documents]), [one.document.id for one in documents]
            rejected = [name_of(label) for one in documents for label in one.rejected]
            with _as_problems(name):
                labels = [_labels_for(folder.model, one.labels) for one in documents]
                changed = folder.learn(texts, labels, ids if any(ids) else None, rejected=rejected)
            served = self.models.swap(name, changed.model, changed.manifest, changed.stamp)
        self.on_lesson(name, len(documents))
        return Taught(served, changed.entry, changed.seconds, drift(changed.model, changed.journal.entries))

    def _history(self, served: ServedModel) -> History:
        from lightdxml.learning.drift import drift
        from lightdxml.learning.stored import read_history

        with _as_problems(served.id):
            entries = read_history(self.models.folders[served.id]).entries
        return History(entries, drift(served.model, entries))

    def _folder(self, name: str) -> ModelFolder:
        from lightdxml.learning.folder import ModelFolder

        if name not in self._folders:
            self._folders[name] = ModelFolder(self.models.folders[name], _PATIENCE)
        return self._folders[name]


@contextmanager
def _as_problems(name: str) -> Iterator[None]:
    """Raise errors inside the `with` block as a `Problem`; only what is wrong with the request is told to clients."""
    from lightdxml.learning.folder import RefusedError, ReplacedError

    try:
        yield
    except RefusedError as error:
        raise Problem(400, str(error)) from error
    except ReplacedError as error:
        raise Problem(409, f"the model {name} was changed meanwhile: try again", RETRY_AFTER) from error
    except TimeoutError as error:
        raise Problem(
            503, f"the model {name} is being changed by another process: try again later", RETRY_AFTER
        ) from error
    except (OSError, ValueError) as error:
        # The message has paths in it.
        _log.error("the folder of model %s cannot be used: %s", name, error)
        reason = f" ({error.strerror})" if isinstance(error, OSError) and error.strerror else ""
        detail = f"the folder of the model {name} cannot be read or written now{reason}: the log of the server says why"
        raise Problem(503, detail, RETRY_AFTER) from error


def _labels_for(model: Model, labels: Sequence[str]) -> list[str | int]:
    """Return labels as a model takes them, each once; raise a `RefusedError` if it cannot have one of them.

    >>> from lightdxml import LightDXML
    >>> trained = LightDXML("fast").fit(["a cat", "a dog"] * 20, [[1], [2]] * 20)
    >>> _labels_for(trained.model_, ["1", "urn:lightdxml:label:2", "1"])
    [1, 2]
    """
    from lightdxml.learning.folder import RefusedError

    names = list(dict.fromkeys(name_of(label) for label in labels))
    if model.label_names is not None and not model.integer_labels:
        return [*names]
    if wrong := [name for name in names if not (name.isascii() and name.isdecimal() and len(name) < 20)]:
        raise RefusedError(f"the label {wrong[0][:100]!r} is not a number: the labels of this model are")
    numbers = [int(name) for name in names]
    # Columns without names are counted: a large number would be as many new labels.
    last = max(numbers, default=-1)
    if model.label_names is None and last >= model.n_labels:
        raise RefusedError(f"there is no label {last}: the model has {model.n_labels}, and they have no names")
    return [*numbers]
