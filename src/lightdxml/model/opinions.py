"""A second opinion: the scores of another system, blended with those of a model.

The blended score is (1 − w) · ours + w · theirs, of scores as both systems give them. So the weight w, which
`weight_curve` measures on labelled documents, also brings both to the same scale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.data import scores as score_files
from lightdxml.data.scores import ScoredDocument, ScoredLabel
from lightdxml.model.blend import top_k
from lightdxml.model.model import Model

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# Labels of a document, best first, and their scores: documents × labels, -1 and 0 for none.
Ranking = tuple[NDArray[np.int32], NDArray[np.float32]]

# The first labels of each system that count for a document.
DEPTH = 100
_CUTS = (1, 3, 5)
_LONGEST_ID = 10
# Weights that are tried, if both systems had the same scale.
_SHARES = tuple(i / 20 for i in range(21))


@dataclass(frozen=True)
class Opinions:
    """Scores of another system.

    Attributes
    ----------
    path
        The file that they were read from.
    labels, scores
        The best labels of each document, in the columns of the model; -1 and 0 for none.
    rows
        The row of each document by its id; None if documents have no ids, and are in the order of the file.
    unknown
        Labels that the model does not know.
    """

    path: Path
    labels: NDArray[np.int32]
    scores: NDArray[np.float32]
    rows: Mapping[str, int] | None
    unknown: Sequence[str]

    def places(self, ids: Sequence[Any] | None, n_documents: int, first: int = 0) -> NDArray[np.int64]:
        """Return the rows of documents, -1 for those that are missing.

        Parameters
        ----------
        ids
            The ids of the documents, or None.
        n_documents
            How many they are.
        first
            How many came before them: without ids in the file, the order counts.
        """
        if self.rows is None:
            if first + n_documents > len(self.labels):
                self.check_count(first + n_documents)
            return np.arange(first, first + n_documents)
        if ids is None or all(one is None for one in ids):
            raise ValueError(f"{self.path} has ids of documents, but the documents have none: give them ids, too")
        return np.array([-1 if one is None else self.rows.get(str(one), -1) for one in ids], dtype=np.int64)

    def check_count(self, n_documents: int) -> None:
        """Raise a `ValueError` if the order of documents counts, and there are more or fewer of them."""
        if self.rows is None and n_documents != len(self.labels):
            raise ValueError(
                f"{self.path} has {len(self.labels):,} documents without ids, and not {n_documents:,}: give one line"
                " per document, in the same order, or give ids"
            )

    def of(self, places: NDArray[np.int64]) -> Ranking:
        """Return the labels and scores of documents in these rows."""
        labels, scores = self.labels[places], self.scores[places]
        labels[places < 0], scores[places < 0] = -1, 0
        return labels, scores


def load(path: Path, model: Model, allowed: NDArray[np.bool_] | None = None) -> Opinions:
    """Read the scores that another system gave to the labels of a model: see `lightdxml.data.scores`.

    Parameters
    ----------
    path
        The file.
    model
        A trained model.
    allowed
        Which labels may be suggested, as `lightdxml.model.rules` gives it; None for all that are not retired.
    """
    labels, scores = [], []
    ids: list[str | None] = []
    columns: dict[tuple[str, str], int | None] = {}
    allowed = model.allowed if allowed is None else allowed
    for document in score_files.read(path):
        row, values = _row(document, model, allowed, columns)
        ids.append(document.id)
        labels.append(row)
        scores.append(values)
    unknown = list(dict.fromkeys(uri or name for (uri, name), column in columns.items() if column is None))
    if unknown and all(column is None for column in columns.values()):
        raise ValueError(
            f"the model knows none of the labels in {path}, such as {unknown[0]!r}: check its URIs or names"
        )
    rows = None if ids[0] is None else {str(one): i for i, one in enumerate(ids)}
    return Opinions(path, np.stack(labels), np.stack(scores), rows, unknown)


def _row(
    document: ScoredDocument,
    model: Model,
    allowed: NDArray[np.bool_] | None,
    columns: dict[tuple[str, str], int | None],
) -> Ranking:
    """Return the best allowed labels of a document, each once; `columns` takes those that were looked up."""
    found: dict[int, float] = {}
    own = model.label_ids.get(document.id) if model.never_own and document.id is not None else None
    for label in document.labels:
        key = label.uri, label.name
        if key not in columns:
            columns[key] = _column(label, model)
        column = columns[key]
        if column is None or column == own or (allowed is not None and not allowed[column]):
            continue
        if label.score > 0:
            found[column] = max(found.get(column, 0.0), label.score)
    best = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[:DEPTH]
    labels, scores = np.full(DEPTH, -1, dtype=np.int32), np.zeros(DEPTH, dtype=np.float32)
    labels[: len(best)], scores[: len(best)] = [column for column, _ in best], [score for _, score in best]
    return labels, scores


def _column(label: ScoredLabel, model: Model) -> int | None:
    """Return the column of a label, None if the model does not know it. With a vocabulary, a URI settles it."""
    if model.label_names is None:
        is_id = label.name.isdecimal() and len(label.name) <= _LONGEST_ID
        return int(label.name) if is_id and int(label.name) < model.n_labels else None
    if model.vocabulary is not None:
        return model.label_ids.get(model.vocabulary.uris([label.uri or label.name])[0])
    return model.label_ids.get(label.uri, model.label_ids.get(label.name))


def combine(ours: Ranking, theirs: Ranking, weight: float, k: int) -> Ranking:
    """Return the k best labels by (1 − weight) · ours + weight · theirs; a label of one system has 0 in the other.

    A document on which the other system says nothing keeps the scores of the model. Scores are at most 1.

    Examples
    --------
    >>> ours = np.array([[3, 5]], dtype=np.int32), np.array([[0.8, 0.4]], dtype=np.float32)
    >>> theirs = np.array([[5, -1]], dtype=np.int32), np.array([[0.9, 0]], dtype=np.float32)
    >>> labels, scores = combine(ours, theirs, 0.5, 2)
    >>> labels.tolist(), scores.round(2).tolist()
    ([[5, 3]], [[0.6499999761581421, 0.4000000059604645]])
    """
    check_weight(weight)
    own = np.full_like(ours[0], -1) if weight == 1 else ours[0]
    labels = np.concatenate([own, theirs[0]], axis=1)
    scores = np.concatenate([(1 - weight) * ours[1], weight * theirs[1]], axis=1)
    # Next to each other, the two scores of a label can be added.
    order = np.argsort(labels, axis=1, kind="stable")
    labels, scores = np.take_along_axis(labels, order, axis=1), np.take_along_axis(scores, order, axis=1)
    is_second = labels[:, 1:] == labels[:, :-1]
    scores[:, :-1] += np.where(is_second, scores[:, 1:], 0)
    labels[:, 1:][is_second] = -1
    best, values = top_k(labels, scores, k)
    silent = (theirs[0] < 0).all(axis=1) | (weight == 0)
    # As the model ranks them: by `tail`, rare labels may come before likelier ones.
    best[silent], values[silent] = _first(ours[0][silent], k, -1), _first(ours[1][silent], k, 0)
    return best, np.minimum(values, np.float32(1))


def _first(values: NDArray[Any], k: int, missing: int) -> NDArray[Any]:
    """Return the first k columns, as many as there are and then a value for missing ones."""
    found = np.full((len(values), k), missing, dtype=values.dtype)
    found[:, : values.shape[1]] = values[:, :k]
    return found


def check_weight(weight: float) -> None:
    """Raise a `ValueError` if a weight is not a number from 0 to 1.

    >>> check_weight(2)
    Traceback (most recent call last):
    ValueError: the weight is 2: it must be from 0, for the model alone, to 1, for the other system alone
    """
    if not 0 <= weight <= 1:
        raise ValueError(
            f"the weight is {weight!r}: it must be from 0, for the model alone, to 1, for the other system alone"
        )


@dataclass(frozen=True)
class WeightPoint:
    """What a weight of the other system gives on labelled documents, in percent.

    Attributes
    ----------
    weight
        The weight.
    precision
        P@1, P@3 and P@5.
    gain, error
        What it adds to the mean of these three over the model alone, and the standard error of that.
    """

    weight: float
    precision: dict[str, float]
    gain: float
    error: float


def weight_curve(Y: csr_matrix, ours: Ranking, theirs: Ranking, ignore: csr_matrix | None = None) -> list[WeightPoint]:
    """Return what weights from 0 to 1 give on documents with these labels.

    The weights are denser where a blend of equal parts would be, given the scales of both systems.
    """
    from lightdxml.metrics import document_precision

    # Ignored labels are removed from the ranking: enough labels must follow them.
    depth = max(_CUTS) + (0 if ignore is None else int(np.diff(ignore.indptr).max(initial=0)))
    points: list[WeightPoint] = []
    alone: NDArray[np.float64] | None = None
    for weight in _weights(ours[1], theirs[1]):
        ranked = combine(ours, theirs, weight, depth)[0]
        by_cut = {f"P@{k}": document_precision(Y, ranked, (k,), ignore) for k in _CUTS}
        mean = np.mean(list(by_cut.values()), axis=0)
        alone = mean if alone is None else alone
        difference = mean - alone
        error = float(difference.std() / np.sqrt(len(difference)))
        precision = {name: float(values.mean()) for name, values in by_cut.items()}
        points.append(WeightPoint(weight, precision, float(difference.mean()), error))
    return points


def _weights(ours: NDArray[np.float32], theirs: NDArray[np.float32]) -> list[float]:
    """Return the weights of scores as they are that correspond to shares of scores on one scale."""
    both = (ours.max(axis=1, initial=0) > 0) & (theirs.max(axis=1, initial=0) > 0)
    if not both.any():
        return list(_SHARES)
    a, b = (float(scores[both].max(axis=1).mean()) for scores in (ours, theirs))
    return sorted({_rounded(share * a / (share * a + (1 - share) * b)) for share in _SHARES})


def _rounded(weight: float) -> float:
    """Return a weight that people can type: two digits of it or, if it is the smaller one, of the rest.

    >>> _rounded(0.012993), _rounded(0.97217)
    (0.013, 0.972)
    """
    return float(f"{weight:.2g}") if weight <= 0.5 else round(1 - float(f"{1 - weight:.2g}"), 12)


def best_weight(points: Sequence[WeightPoint]) -> WeightPoint:
    """Return the point of the highest gain among those above their standard error; without any, that of weight 0.

    >>> points = [WeightPoint(0.0, {}, 0.0, 0.0), WeightPoint(0.1, {}, 0.9, 1.0), WeightPoint(0.2, {}, 0.8, 0.5)]
    >>> best_weight(points).weight, best_weight(points[:2]).weight
    (0.2, 0.0)
    """
    sure = [point for point in points if point.gain > point.error]
    return max(sure, key=lambda point: (point.gain, -point.weight), default=points[0])
