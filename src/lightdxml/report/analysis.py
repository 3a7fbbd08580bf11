"""What a report says, as numbers: accuracy by label frequency, confusions, phases, arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.config import PRESETS, Config, configure
from lightdxml.kernels import parallel

DEPTH = 10
TOP = 5
_DOCUMENTS = 8192
_MOST_PAIRS = 20_000_000
_FIRST_BINS = (0, 1, 2, 4)


@dataclass(frozen=True, eq=False)
class Measured:
    """What a model ranks first for some documents, next to what is true.

    Attributes
    ----------
    Y
        The true labels, 0/1, without pairs that take no part; labels that the model never saw stand behind its own.
    ranked, scores
        The first `DEPTH` labels of every document, best first, and their scores; -1 and 0 for none.
    reach
        The share of the true labels that are candidates at all, in percent.
    """

    Y: csr_matrix
    ranked: NDArray[np.int32]
    scores: NDArray[np.float32]
    reach: float


def measure(estimator: Any, X: Any, Y: csr_matrix, ignore: csr_matrix | None = None) -> Measured:
    """Rank every document.

    Parameters
    ----------
    estimator
        A trained `LightDXML`.
    X
        Texts or features.
    Y
        The true labels, in the model's columns.
    ignore
        Pairs that count neither as right nor as wrong, of the shape of Y; what is ranked below them moves up.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> from lightdxml import LightDXML
    >>> texts, labels = ["a purring cat", "a barking dog"] * 10, [["cat"], ["dog"]] * 10
    >>> trained = LightDXML(D=8, e_model=20, seed=1).fit(texts, labels)
    >>> measure(trained, ["the cat"], csr_matrix([[1, 0]])).ranked[0, :3].tolist()
    [0, 1, -1]
    """
    Y = _ones(Y)
    config = estimator.model_.config
    n_candidates = min(max(DEPTH, config.k + config.frequent_labels), estimator.model_.n_labels)
    ranked = np.full((Y.shape[0], DEPTH), -1, dtype=np.int32)
    scores = np.zeros((Y.shape[0], DEPTH), dtype=np.float32)
    if ignore is not None:
        Y = _ones(Y - Y.multiply(_ones(ignore)))
    reached = 0
    # All candidates of all documents at once would be too many to hold.
    for start, stop in parallel.fixed_chunks(Y.shape[0], _DOCUMENTS):
        labels, values = estimator.rank(X[start:stop], n_candidates)
        if ignore is not None:
            labels, values = _without(labels, values, _ones(ignore[start:stop]))
        reached += Y[start:stop].multiply(_given(labels, Y.shape[1])).nnz
        width = min(DEPTH, labels.shape[1])
        ranked[start:stop, :width], scores[start:stop, :width] = labels[:, :width], values[:, :width]
    return Measured(Y, ranked, scores, 100 * reached / max(1, Y.nnz))


def _ones(Y: csr_matrix) -> csr_matrix:
    """Return a 0/1 matrix in canonical form, of a type in which counts of its products fit."""
    Y = csr_matrix(Y, copy=True)
    Y.sum_duplicates()
    Y.eliminate_zeros()
    return csr_matrix((np.ones(Y.nnz, dtype=np.int32), Y.indices, Y.indptr), shape=Y.shape)


def _given(ranked: NDArray[np.int32], n_labels: int) -> csr_matrix:
    """Return ranked labels as a 0/1 matrix."""
    rows, places = np.nonzero(ranked >= 0)
    ones = np.ones(len(rows), dtype=np.int32)
    return csr_matrix((ones, (rows, ranked[rows, places])), shape=(len(ranked), n_labels))


def _without(
    labels: NDArray[np.int32], scores: NDArray[np.float32], ignore: csr_matrix
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Take ignored labels out; what stands below moves up."""
    kept = labels >= 0
    for row in np.flatnonzero(np.diff(ignore.indptr)):
        kept[row] &= ~np.isin(labels[row], ignore.indices[ignore.indptr[row] : ignore.indptr[row + 1]])
    order = np.argsort(~kept, axis=1, kind="stable")
    kept = np.take_along_axis(kept, order, axis=1)
    labels, scores = np.take_along_axis(labels, order, axis=1), np.take_along_axis(scores, order, axis=1)
    return np.where(kept, labels, np.int32(-1)), np.where(kept, scores, np.float32(0))


@dataclass(frozen=True)
class Bin:
    """Labels of about the same frequency in training, and what the first `TOP` predictions make of them."""

    name: str
    labels: int
    pairs: int
    predicted: int
    found: int

    @property
    def recall(self) -> float | None:
        """The share of the true pairs that was found, in percent; None where there is none to find."""
        return 100 * self.found / self.pairs if self.pairs else None

    @property
    def precision(self) -> float | None:
        """The share of the predictions that was right, in percent; None where there was none."""
        return 100 * self.found / self.predicted if self.predicted else None


@dataclass(frozen=True)
class Confusion:
    """A label that was missed in so many documents in which another one was wrongly given."""

    missed: int
    given: int
    documents: int


@dataclass(frozen=True, eq=False)
class Outcome:
    """For every label, what the first `TOP` predictions make of it; and which labels are taken for which."""

    true: NDArray[np.int64]
    predicted: NDArray[np.int64]
    found: NDArray[np.int64]
    confusions: list[Confusion]
    every: int

    @property
    def wrong(self) -> NDArray[np.int64]:
        """How often each label is given without being true."""
        return self.predicted - self.found

    @property
    def missed(self) -> NDArray[np.int64]:
        """How often each label is true without being given."""
        return self.true - self.found


def outcome(measured: Measured, limit: int = 20) -> Outcome:
    """Count per label, and list the pairs most often confused; of very many documents only every n-th is asked.

    Examples
    --------
    >>> ranked = np.array([[1], [1]], dtype=np.int32)
    >>> counted = outcome(Measured(csr_matrix([[1, 0], [0, 1]]), ranked, np.ones((2, 1), dtype=np.float32), 100.0))
    >>> counted.confusions, counted.found.tolist()
    ([Confusion(missed=0, given=1, documents=1)], [0, 1])
    """
    Y = _ones(measured.Y)
    given = _given(measured.ranked[:, :TOP], Y.shape[1])
    found = _ones(Y.multiply(given))
    missed, wrong = _ones(Y - found), _ones(given - found)
    n_pairs = int(np.sum(np.diff(missed.indptr).astype(np.int64) * np.diff(wrong.indptr)))
    every = max(1, math.ceil(n_pairs / _MOST_PAIRS))
    together = csr_matrix(missed[::every].T @ wrong[::every])
    together.sort_indices()
    first = np.argsort(-together.data, kind="stable")[:limit]
    rows = np.searchsorted(together.indptr, first, side="right") - 1
    triples = zip(rows.tolist(), together.indices[first].tolist(), together.data[first].tolist(), strict=True)
    true, predicted, right = (np.bincount(M.indices, minlength=Y.shape[1]) for M in (Y, given, found))
    return Outcome(true, predicted, right, [Confusion(*triple) for triple in triples], every)


def most(counts: NDArray[np.int64], limit: int = 10) -> list[int]:
    """Return the labels of the highest counts, the lower label of equals first; none of count 0.

    >>> most(np.array([2, 0, 5, 2]))
    [2, 0, 3]
    """
    order = np.argsort(-counts, kind="stable")[:limit]
    return [j for j in order.tolist() if counts[j] > 0]


def by_frequency(counted: Outcome, frequency: NDArray[np.int64]) -> list[Bin]:
    """Return accuracy from the rarest labels to the most frequent ones.

    Examples
    --------
    >>> counts = np.array([4, 2, 1])
    >>> [part] = by_frequency(Outcome(counts, counts, np.array([2, 1, 0]), [], 1), np.array([5, 6, 7]))
    >>> part.name, part.labels, round(part.recall or 0)
    ('4–10', 3, 43)
    """
    bounds = _bounds(int(frequency.max(initial=0)))
    bin_of = np.searchsorted(bounds, frequency, side="right") - 1
    sums = [
        np.bincount(bin_of, weights=values, minlength=len(bounds)).astype(np.int64).tolist()
        for values in (np.ones(len(frequency)), counted.true, counted.predicted, counted.found)
    ]
    last = [bound - 1 for bound in bounds[1:]] + [bounds[-1]]
    names = [f"{a:,}" if a >= b else f"{a:,}–{b:,}" for a, b in zip(bounds, last, strict=True)]
    bins = [Bin(name, *numbers) for name, *numbers in zip(names, *sums, strict=True)]
    # Labels never seen in training matter only where documents have them.
    return [part for i, part in enumerate(bins) if part.labels and (i > 0 or part.pairs)]


def _bounds(largest: int) -> list[int]:
    """Return where bins begin: 0, 1, 2, 4, 11, 31, 101, 301 … and what ends the last one."""
    bounds = list(_FIRST_BINS)
    step = 10
    while bounds[-1] <= largest:
        bounds += [step + 1, 3 * step + 1]
        step *= 10
    return bounds


@dataclass(frozen=True)
class Array:
    """One array of a model."""

    name: str
    shape: tuple[int, ...]
    kind: str
    bytes: int


_PLAIN_NAMES = {
    "encoder.vectors": "word vectors",
    "encoder.residual.R": "residual layer",
    "encoder.residual.bias": "residual layer, bias",
    "classifier": "classifier",
    "shortlist.labels": "labels in the index",
    "shortlist.vectors": "label embeddings",
    "everywhere": "labels that are candidates everywhere",
    "vectorizer.idf": "idf of words",
    "label_frequency": "label frequencies",
}


def arrays(model: Any) -> list[Array]:
    """Return the arrays of a model, largest first."""
    found = [
        Array(_PLAIN_NAMES.get(name, name), array.shape, str(array.dtype), array.nbytes)
        for name, array in _walk(model, "")
        if array.nbytes
    ]
    return sorted(found, key=lambda array: -array.bytes)


def _walk(value: Any, name: str) -> Iterator[tuple[str, NDArray[Any]]]:
    if isinstance(value, np.ndarray):
        yield name, value
    elif is_dataclass(value):
        for field in fields(value):
            yield from _walk(getattr(value, field.name), f"{name}.{field.name}" if name else field.name)


@dataclass(frozen=True)
class Phase:
    """All of one kind of work in a training; `peak_mb` is None where it was not noted."""

    name: str
    times: int
    seconds: float
    peak_mb: float | None


def phases(history: Sequence[dict[str, Any]]) -> list[Phase]:
    """Return what training was spent on, in the order of its beginning.

    >>> phases([{"phase": "index", "seconds": 1.0}, {"phase": "index", "seconds": 2.5}])
    [Phase(name='index', times=2, seconds=3.5, peak_mb=None)]
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for entry in history:
        found.setdefault(str(entry.get("phase", "?")), []).append(entry)
    return [
        Phase(
            name,
            len(entries),
            sum(number(entry, "seconds") or 0.0 for entry in entries),
            max((peak for entry in entries if (peak := number(entry, "peak_mb")) is not None), default=None),
        )
        for name, entries in found.items()
    ]


def number(entry: dict[str, Any], name: str) -> float | None:
    """Return a number of a history entry, None where there is none or it is not finite."""
    value = entry.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def series(history: Sequence[dict[str, Any]], phase: str, name: str) -> tuple[list[int], list[float]]:
    """Return a figure of every entry of a phase, with the classifier epochs done by then.

    >>> series([{"phase": "classifier", "loss": 2.0}, {"phase": "validation", "P@1": 50.0}], "validation", "P@1")
    ([1], [50.0])
    """
    epochs, values, done = [], [], 0
    for entry in history:
        done += entry.get("phase") == "classifier"
        value = number(entry, name)
        if entry.get("phase") == phase and value is not None:
            epochs.append(done)
            values.append(value)
    return epochs, values


def kept_validation(history: Sequence[dict[str, Any]]) -> tuple[int, dict[str, Any]] | None:
    """Return the validation whose model was kept, with the classifier epochs done by then; None where none says so.

    >>> old, new = {"phase": "validation", "kept": True}, {"phase": "validation", "kept": False}
    >>> kept_validation([old, {"phase": "classifier"}, new])
    (0, {'phase': 'validation', 'kept': True})
    """
    kept, done = None, 0
    for entry in history:
        done += entry.get("phase") == "classifier"
        if entry.get("phase") == "validation" and entry.get("kept") is True:
            kept = done, entry
    return kept


def beta_curve(validation: dict[str, Any]) -> list[tuple[float, dict[str, float]]]:
    """Return β and what was measured with it; empty where the history does not say."""
    curve: Any = validation.get("curve")
    try:
        return [(float(beta), {str(name): float(value) for name, value in figures.items()}) for beta, figures in curve]
    except (TypeError, ValueError, AttributeError):
        return []


def gamma_curve(history: Sequence[dict[str, Any]], beta: float) -> list[tuple[float, dict[str, float]]]:
    """Return γ and what was measured with it and this β; empty where the history does not say.

    >>> history = [{"phase": "blend", "surface": [[[0.1, 0.5], {"P@1": 60}], [[0.2, 0.5], {"P@1": 61}]]}]
    >>> gamma_curve(history, 0.2)
    [(0.5, {'P@1': 61.0})]
    """
    surface: Any = next((entry.get("surface") for entry in reversed(history) if entry.get("phase") == "blend"), ())
    try:
        return beta_curve({"curve": [(shares[1], figures) for shares, figures in surface if shares[0] == beta]})
    except (TypeError, ValueError, IndexError, KeyError):
        return []


def tail_curve(history: Sequence[dict[str, Any]]) -> list[tuple[float, dict[str, float]]]:
    """Return `tail` and what was measured with it; empty where the history does not say.

    >>> tail_curve([{"phase": "tail", "curve": [[0.0, {"P@1": 60}]]}])
    []
    """
    curve = beta_curve(next((entry for entry in history if entry.get("phase") == "tail"), {}))
    complete = all(f"{name}@{k}" in figures for _, figures in curve for name in ("P", "PSP") for k in (1, 3, 5))
    return curve if complete else []


def nearest_preset(config: Config, documents: int | None) -> tuple[str, dict[str, Any]]:
    """Return the preset that a configuration is nearest to, and in what it differs from that.

    >>> nearest_preset(configure("default", 100, k=7), 100)
    ('default', {'k': 7})
    """
    sizes = (documents,) if documents is not None else (None, 1)
    bases = [("default", configure("default", size)) for size in sizes]
    bases += [(name, base) for name, base in PRESETS.items() if name != "default"]
    found = [(name, _differences(config, base)) for name, base in bases]
    return min(found, key=lambda one: len(one[1]))


def plain(value: Any) -> str:
    """Return a setting as the command line takes it.

    >>> plain(0.005), plain(True), plain(None)
    ('0.005', 'true', 'none')
    """
    return str(value).lower()


def _differences(config: Config, base: Config) -> dict[str, Any]:
    names = [field.name for field in fields(Config)]
    return {name: getattr(config, name) for name in names if getattr(config, name) != getattr(base, name)}
