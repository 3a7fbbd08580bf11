"""The metric of a study: by the names that `lightdxml evaluate` prints."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix

from lightdxml.data import registry
from lightdxml.data.own_labels import own_labels
from lightdxml.metrics import decision_measures, evaluate, r_precision
from lightdxml.metrics.compare import without_ignored
from lightdxml.model import thresholds
from lightdxml.propensity import inverse_propensity_of

if TYPE_CHECKING:
    from lightdxml.estimator import LightDXML
    from lightdxml.model.model import Model
    from lightdxml.tuning.documents import Documents

_AT = ("P", "nDCG", "PSP", "PSnDCG", "R", "RP", "coverage", "macro-F1")
# F1 of the labels whose probability reaches the threshold that training found to be best for micro-F1.
_DECISIONS = ("micro-F1", "macro-F1", "samples-F1")
_R_PRECISION = "R-precision"
_CUTS = (1, 3, 5)
_MOST = 100
# What training measures on its validation documents in place of a metric that it does not know.
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
        from lightdxml.model.model import check_tail

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

    def early(self, measured: Mapping[str, float]) -> float:
        """Return the closest measure of those that training takes of its validation documents.

        >>> Metric("PSP@10").early({"PSP@1": 1.0, "PSP@3": 2.0, "PSP@5": 3.0})
        3.0
        """
        if self.name in _EARLY:
            return measured[_EARLY[self.name]]
        cut = next((cut for cut in _CUTS if cut >= self.k), _CUTS[-1])
        return measured[f"{self.name.partition('@')[0]}@{cut}"]

    def measure(self, estimator: LightDXML, data: Documents) -> dict[str, float]:
        """Return this metric and the usual ones of a trained model, in percent, on the documents of the study."""
        model, split = estimator.model_, data.judged
        Y, ignore, frequency = _in_columns(data, model)
        is_decision = self.name in _DECISIONS
        wanted = int(np.diff(Y.indptr).max(initial=1)) if self.name == _R_PRECISION else self.k
        depth = thresholds.DEPTH if is_decision else max(wanted, *_CUTS)
        deep = depth + (0 if ignore is None else int(np.diff(ignore.indptr).max(initial=0)))
        inputs: Any = split.texts if split.X is None else split.X
        ranked, scores = estimator.rank(inputs, deep, tail=self.tail)
        ranked, scores = without_ignored(ranked, scores, ignore, Y.shape)
        ranked, scores = ranked[:, :depth], scores[:, :depth]
        weights = inverse_propensity_of(frequency, len(data.train), *registry.propensity_constants(data.name))
        found = evaluate(Y, ranked, sorted({*_CUTS, self.k}), weights, ignore)
        if self.name == _R_PRECISION:
            found[_R_PRECISION] = r_precision(Y, ranked, ignore)
        if is_decision:
            from lightdxml.model.model import label_thresholds

            found |= decision_measures(Y, ranked, scores, label_thresholds(model, "auto"), ignore=ignore)
        return {name: float(value) for name, value in found.items()}


def _named(name: str, known: tuple[str, ...]) -> str:
    return next((one for one in known if one.lower() == name.lower()), "")


def _in_columns(data: Documents, model: Model) -> tuple[csr_matrix, csr_matrix | None, np.ndarray[Any, Any]]:
    """Return labels, pairs that do not count, and training documents per label, in the columns of a model."""
    Y, ignore, train = data.judged.Y, _ignored(data, model), data.train.Y
    if data.vocabulary is not None:
        assert model.label_names is not None
        place = {name: j for j, name in enumerate(model.label_names)}
        columns = np.array([place[uri] for uri in data.vocabulary.uris(data.label_names or ())], dtype=np.int64)
        Y, train = _moved(Y, columns, model.n_labels), _moved(train, columns, model.n_labels)
    return Y, ignore, np.bincount(train.indices, minlength=model.n_labels)


def _ignored(data: Documents, model: Model) -> csr_matrix | None:
    """Return pairs of document and label that do not count: those of filter files, and documents that are the label."""
    split, pairs = data.judged, []
    if split.ignore is not None and len(split.ignore) and data.vocabulary is None:
        pairs.append(split.ignore)
    if model.never_own and split.ids is not None:
        own = own_labels(split.ids, model.label_ids)
        rows = np.flatnonzero(own >= 0)
        pairs.append(np.column_stack([rows, own[rows]]))
    found = np.concatenate(pairs) if pairs else np.empty((0, 2), dtype=np.int64)
    if not len(found):
        return None
    ones = np.ones(len(found), dtype=np.int32)
    return csr_matrix((ones, (found[:, 0], found[:, 1])), shape=(len(split), model.n_labels))


def _moved(Y: csr_matrix, columns: np.ndarray[Any, Any], n_labels: int) -> csr_matrix:
    pairs = Y.tocoo()
    moved = csr_matrix((pairs.data, (pairs.row, columns[pairs.col])), shape=(Y.shape[0], n_labels))
    # Labels that are the same concept count once.
    moved.data[:] = 1
    return moved
