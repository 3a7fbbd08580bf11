"""The metric of a study: by the names that `lightdxml evaluate` prints."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.data import registry
from lightdxml.data.dataset import Split
from lightdxml.data.own_labels import own_labels
from lightdxml.metrics import decision_measures, evaluate, r_precision
from lightdxml.metrics.compare import without_ignored
from lightdxml.model import thresholds
from lightdxml.model.model import check_tail, label_thresholds
from lightdxml.propensity import inverse_propensity_of

if TYPE_CHECKING:
    from lightdxml.estimator import LightDXML
    from lightdxml.tuning.documents import Documents

_AT = ("P", "nDCG", "PSP", "PSnDCG", "R", "RP", "coverage", "macro-F1")
# F1 of the labels whose probability reaches the threshold that training found to be best for micro-F1.
_DECISIONS = ("micro-F1", "macro-F1", "samples-F1")
_R_PRECISION = "R-precision"
_CUTS = (1, 3, 5)
_MOST = 100
# What early values are in place of metrics that need more than a ranking.
_EARLY = {_R_PRECISION: "RP@5", "micro-F1": "nDCG@5", "samples-F1": "nDCG@5", "macro-F1": "macro-F1@5"}


@dataclass(frozen=True)
class Metric:
    """What is maximized.

    Attributes
    ----------
    name
        Its name, such as `PSP@5`.
    tail
        The preference for rare labels with which trials are measured.
    """

    name: str
    tail: float = 0.0

    @staticmethod
    def of(name: str, tail: float = 0.0) -> Metric:
        """Return a metric by its name, in any case.

        >>> Metric.of("psp@5").name
        'PSP@5'
        >>> Metric.of("accuracy")
        Traceback (most recent call last):
        ValueError: there is no metric accuracy: choose P@k, nDCG@k, PSP@k, PSnDCG@k, R@k, RP@k, coverage@k or \
macro-F1@k, such as PSP@5, or R-precision, micro-F1, macro-F1 or samples-F1
        """
        check_tail(tail)
        found = re.fullmatch(rf"({'|'.join(_AT)})@([0-9]{{1,3}})", name, re.IGNORECASE)
        if found and 1 <= int(found[2]) <= _MOST:
            return Metric(f"{_named(found[1], _AT)}@{int(found[2])}", tail)
        if single := _named(name, (*_DECISIONS, _R_PRECISION)):
            return Metric(single, tail)
        *first, last = _AT
        at = f"{', '.join(f'{one}@k' for one in first)} or {last}@k, such as PSP@5"
        raise ValueError(f"there is no metric {name}: choose {at}, or {_R_PRECISION}, micro-F1, macro-F1 or samples-F1")

    @property
    def k(self) -> int:
        """The number of labels that count."""
        return int(self.name.partition("@")[2] or _CUTS[-1])

    def measure(self, estimator: LightDXML, truth: Truth) -> dict[str, float]:
        """Return this metric and the usual ones of a trained model, in percent."""
        model, Y = estimator.model_, truth.Y
        ignore = truth.ignored(model.never_own)
        is_decision = self.name in _DECISIONS
        wanted = int(np.diff(Y.indptr).max(initial=1)) if self.name == _R_PRECISION else self.k
        depth = thresholds.DEPTH if is_decision else max(wanted, *_CUTS)
        ranked, scores = estimator.rank(truth.inputs, depth + deepest(ignore), tail=self.tail)
        ranked, scores = without_ignored(ranked, scores, ignore, Y.shape)
        ranked, scores = ranked[:, :depth], scores[:, :depth]
        found = evaluate(Y, ranked, sorted({*_CUTS, self.k}), truth.inv_propensity, ignore)
        if self.name == _R_PRECISION:
            found[_R_PRECISION] = r_precision(Y, ranked, ignore)
        if is_decision:
            found |= decision_measures(Y, ranked, scores, label_thresholds(model, "auto"), ignore=ignore)
        return {name: float(value) for name, value in found.items()}

    def early(self, ranked: NDArray[np.int32], truth: Truth, ignore: csr_matrix | None) -> float:
        """Return this metric of ranked labels, or the closest one that needs no more than a ranking."""
        name = _EARLY.get(self.name, self.name)
        return evaluate(truth.Y, ranked, int(name.partition("@")[2]), truth.inv_propensity, ignore)[name]


def deepest(ignore: csr_matrix | None) -> int:
    """Return how many labels of a document do not count, at most: as many more must be ranked."""
    return 0 if ignore is None else int(np.diff(ignore.indptr).max(initial=0))


@dataclass(frozen=True, eq=False)
class Truth:
    """Documents to measure on, and what is true of them, in the columns of a model.

    Attributes
    ----------
    split
        The documents.
    Y
        Their labels.
    inv_propensity
        1/p per label, of the documents that trials train on.
    label_of
        The label of each name.
    filtered
        Pairs of document and label that do not count, in the same columns.
    """

    split: Split
    Y: csr_matrix
    inv_propensity: NDArray[np.float64]
    label_of: Mapping[str, int]
    filtered: NDArray[np.int64]

    @staticmethod
    def of(data: Documents) -> Truth:
        """Return the truth about the documents of a study. With a vocabulary, columns are concepts."""
        names, n_labels = data.label_names, data.train.Y.shape[1]
        columns = np.arange(n_labels)
        if data.vocabulary is not None:
            names, places = data.vocabulary.all_labels(list(data.label_names or ()))
            columns, n_labels = np.array(places, dtype=np.int64), len(names)
        frequency = np.bincount(_moved(data.train.Y, columns, n_labels).indices, minlength=n_labels)
        weights = inverse_propensity_of(frequency, len(data.train), *registry.propensity_constants(data.name))
        pairs = data.judged.ignore
        filtered = np.empty((0, 2), np.int64) if pairs is None else np.column_stack([pairs[:, 0], columns[pairs[:, 1]]])
        label_of = {name: j for j, name in enumerate(names or ())}
        return Truth(data.judged, _moved(data.judged.Y, columns, n_labels), weights, label_of, filtered)

    @property
    def inputs(self) -> Any:
        """The documents as a model takes them."""
        return self.split.texts if self.split.X is None else self.split.X

    def some(self, most: int) -> Truth:
        """Return evenly spaced documents, so many at most."""
        n = len(self.split)
        rows = np.arange(0, n, max(1, -(-n // most)))
        place = np.full(n, -1, dtype=np.int64)
        place[rows] = np.arange(len(rows))
        kept = self.filtered[place[self.filtered[:, 0]] >= 0]
        filtered = np.column_stack([place[kept[:, 0]], kept[:, 1]])
        return replace(self, split=self.split.take(rows), Y=self.Y[rows], filtered=filtered)

    def ignored(self, never_own: bool) -> csr_matrix | None:
        """Return pairs that do not count: those of filter files and, with `never_own`, documents that are the label."""
        pairs = [self.filtered]
        if never_own and self.split.ids is not None:
            own = own_labels(self.split.ids, self.label_of)
            rows = np.flatnonzero(own >= 0)
            pairs.append(np.column_stack([rows, own[rows]]))
        found = np.concatenate(pairs)
        if not len(found):
            return None
        return csr_matrix((np.ones(len(found), dtype=np.int32), (found[:, 0], found[:, 1])), shape=self.Y.shape)


def _named(name: str, known: tuple[str, ...]) -> str:
    return next((one for one in known if one.lower() == name.lower()), "")


def _moved(Y: csr_matrix, columns: NDArray[np.int64], n_labels: int) -> csr_matrix:
    """Return labels in other columns. Labels that are the same concept count once."""
    pairs = Y.tocoo()
    moved = csr_matrix((pairs.data, (pairs.row, columns[pairs.col])), shape=(Y.shape[0], n_labels))
    moved.data[:] = 1
    return moved
