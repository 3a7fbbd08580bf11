"""How many labels: thresholds of probability, chosen for a measure by what validation documents show.

A model stores how precise its predictions on validation documents are at every threshold, by label frequency. So a
threshold can be chosen for any measure or precision later, without the documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml.model.blend import N_GROUPS
from lightdxml.persistence.arrays import Arrays
from lightdxml.views.base import expect

# The thresholds to choose from.
LEVELS = np.round(np.arange(0.005, 1, 0.005), 3)
_MEASURES = ("auto", "micro-f1", "macro-f1", "samples-f1")
# Predictions per document that thresholds choose among.
DEPTH = 100
# Without validation documents, and the true labels of a frequency group below which it has the threshold of all.
_EVEN, _FEW = 0.5, 20
# No probability reaches it.
_NEVER = 1.01
_PREFIX = "thresholds"


@dataclass(frozen=True)
class ThresholdTable:
    """What every threshold gives on validation documents.

    Attributes
    ----------
    predicted, right
        Predictions whose probability reaches each level, and those of them that are right: groups × levels.
    positives
        True labels per group of label frequency.
    label_f1
        The sum of the F1 of all labels of a group at each level: groups × levels.
    document_f1
        The sum of the F1 of all documents at each level.
    """

    predicted: NDArray[np.int32]
    right: NDArray[np.int32]
    positives: NDArray[np.int32]
    label_f1: NDArray[np.float32]
    document_f1: NDArray[np.float32]

    def choose(self, objective: str, by_frequency: bool = False) -> NDArray[np.float64]:
        """Return the best threshold for each group of label frequency; the same one for all, unless `by_frequency`.

        Parameters
        ----------
        objective
            `auto` (the same as `micro-f1`), `macro-f1`, `samples-f1`, or a precision such as `precision=0.9`: the
            lowest threshold that reaches it.
        by_frequency
            Choose for each group on its own. Groups with few true labels have the threshold of all.
        """
        check_threshold(objective)
        precision = _precision_of(objective)
        if precision is not None:
            return self._for_precision(precision, by_frequency)
        if objective == "samples-f1":
            if by_frequency:
                raise ValueError("samples-f1 has one threshold for all labels: choose micro-f1 or macro-f1")
            return np.full(N_GROUPS, _best(self.document_f1))
        curve = self._macro if objective == "macro-f1" else self._micro
        everything = np.full(N_GROUPS, _best(curve(slice(None))))
        if not by_frequency:
            return everything
        return np.array([_best(curve(slice(g, g + 1))) if self._is_enough(g) else everything[g] for g in _GROUPS])

    def _is_enough(self, group: int) -> bool:
        return bool(self.positives[group] >= _FEW)

    def _micro(self, groups: slice) -> NDArray[np.float64]:
        right, predicted = (one[groups].sum(axis=0, dtype=np.int64) for one in (self.right, self.predicted))
        f1: NDArray[np.float64] = 2 * right / np.maximum(predicted + self.positives[groups].sum(dtype=np.int64), 1)
        return f1

    def _macro(self, groups: slice) -> NDArray[np.float64]:
        sums: NDArray[np.float64] = self.label_f1[groups].sum(axis=0, dtype=np.float64)
        return sums

    def _for_precision(self, wanted: float, by_frequency: bool) -> NDArray[np.float64]:
        everything = self._reaching(slice(None), wanted)
        if everything is None:
            best = float(self._precision(slice(None)).max(initial=0))
            raise ValueError(
                f"no threshold has a precision of {wanted:g} on the validation documents: the best is {best:.3f}"
            )
        found = np.full(N_GROUPS, everything)
        for group in filter(self._is_enough, _GROUPS if by_frequency else ()):
            # Of a group that is never as precise, nothing is predicted.
            found[group] = self._reaching(slice(group, group + 1), wanted) or _NEVER
        return found

    def _precision(self, groups: slice) -> NDArray[np.float64]:
        right, predicted = (one[groups].sum(axis=0, dtype=np.int64) for one in (self.right, self.predicted))
        precision: NDArray[np.float64] = np.where(predicted > 0, right / np.maximum(predicted, 1), 0)
        return precision

    def _reaching(self, groups: slice, wanted: float) -> float | None:
        """Return the lowest level at which these groups have a precision; None if there is none."""
        levels = np.flatnonzero(self._precision(groups) >= wanted)
        return float(LEVELS[levels[0]]) if len(levels) else None

    def arrays(self) -> Arrays:
        """Return the table as arrays by name."""
        return {f"{_PREFIX}.{name}": getattr(self, name) for name, _, _ in _SHAPES}

    @classmethod
    def restore(cls, arrays: Arrays) -> ThresholdTable | None:
        """Return the table that these arrays make up, None if there is none; raise a `ValueError` if they cannot."""
        if f"{_PREFIX}.predicted" not in arrays:
            return None
        return cls(
            *(expect(arrays[f"{_PREFIX}.{name}"], f"{_PREFIX}.{name}", shape, kind) for name, shape, kind in _SHAPES)
        )


_GROUPS = range(N_GROUPS)
_TABLE = (N_GROUPS, len(LEVELS))
_SHAPES: list[tuple[str, tuple[int, ...], Any]] = [
    ("predicted", _TABLE, np.int32),
    ("right", _TABLE, np.int32),
    ("positives", (N_GROUPS,), np.int32),
    ("label_f1", _TABLE, np.float32),
    ("document_f1", (len(LEVELS),), np.float32),
]


def _best(curve: NDArray[Any]) -> float:
    """Return the middle of the levels at which a curve is highest, so that the choice is not on the edge."""
    highest = np.flatnonzero(curve >= curve.max() - 1e-12)
    return float(LEVELS[highest[len(highest) // 2]])


def _precision_of(objective: str) -> float | None:
    """Return the precision that an objective such as `precision=0.9` asks for; None for another objective."""
    kind, _, number = objective.partition("=")
    try:
        wanted = float(number)
    except ValueError:
        return None
    return wanted if kind == "precision" and 0 < wanted < 1 else None


def check_threshold(threshold: Any) -> None:
    """Raise a `ValueError` if a threshold is neither a probability nor an objective.

    >>> check_threshold("f1")
    Traceback (most recent call last):
    ValueError: threshold is 'f1': give a number from 0 to 1, auto, micro-f1, macro-f1, samples-f1 or precision=0.9
    """
    if isinstance(threshold, str):
        is_valid = threshold in _MEASURES or _precision_of(threshold) is not None
    else:
        is_number = isinstance(threshold, int | float | np.integer | np.floating) and not isinstance(threshold, bool)
        is_valid = is_number and 0 <= threshold <= 1
    if not is_valid:
        known = f"{', '.join(_MEASURES)} or precision=0.9"
        raise ValueError(f"threshold is {threshold!r:.40}: give a number from 0 to 1, {known}")


def thresholds_of(table: ThresholdTable | None, threshold: float | str, by_frequency: bool) -> NDArray[np.float64]:
    """Return the threshold of each group of label frequency, given a number or an objective.

    >>> thresholds_of(None, 0.3, False).tolist()[:2], thresholds_of(None, "auto", False).tolist()[:1]
    ([0.3, 0.3], [0.5])
    """
    check_threshold(threshold)
    if by_frequency and not isinstance(threshold, str):
        raise ValueError(f"threshold {threshold} is the same for all labels: by_frequency needs one such as auto")
    if isinstance(threshold, str):
        if table is not None:
            return table.choose(threshold, by_frequency)
        if threshold != "auto":
            raise ValueError(
                f"threshold {threshold} needs validation documents, and the model had none: give a number, or auto"
            )
        threshold = _EVEN
    return np.full(N_GROUPS, float(threshold))
