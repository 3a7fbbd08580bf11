"""What a model achieves on documents, as its card shows it: with confidence intervals, and by frequency of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.metrics import confidence_interval, document_precision, first_labels, label_counts, reliability
from lightdxml.model.blend import GROUP_NAMES, frequency_groups

_Z = 1.959964
# Labels per document that recall by frequency and calibration are about.
DEPTH = 5


@dataclass(frozen=True)
class Group:
    """Labels with about as many training documents: how many are true, and found, among the first predictions."""

    name: str
    true: int
    predicted: int
    right: int

    @property
    def recall(self) -> float | None:
        """The percentage of true labels that are predicted; None if there are none."""
        return 100 * self.right / self.true if self.true else None

    @property
    def precision(self) -> float | None:
        """The percentage of predictions that are right; None if there are none."""
        return 100 * self.right / self.predicted if self.predicted else None


@dataclass(frozen=True)
class Evaluation:
    """Measures of a model.

    Attributes
    ----------
    data
        What the documents are called; empty for the model's own validation documents.
    documents
        Their number.
    metrics
        Measures in percent, such as `P@1`.
    intervals
        The 95% confidence intervals of some of them.
    groups
        Accuracy by frequency of labels.
    calibration_error
        The expected calibration error, from 0 to 1; None if it was not measured.
    milliseconds
        Prediction time per document; None if it was not measured.
    unknown_labels
        Labels of the documents that the model does not know.
    trained_on_share
        The share of documents that the model was trained on; None if it is not known.
    """

    data: str
    documents: int
    metrics: dict[str, float]
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    groups: Sequence[Group] = ()
    calibration_error: float | None = None
    milliseconds: float | None = None
    unknown_labels: int = 0
    trained_on_share: float | None = None


def intervals_of(
    Y: csr_matrix, ranked: NDArray[np.int32], cuts: Sequence[int], ignore: csr_matrix | None = None
) -> dict[str, tuple[float, float]]:
    """Return the 95% confidence interval of P@k: Wilson's at 1, and the normal approximation above.

    >>> Y, ranked = csr_matrix(np.eye(2)), np.array([[0, 1], [1, 0]], dtype=np.int32)
    >>> {name: (round(low, 1), round(high, 1)) for name, (low, high) in intervals_of(Y, ranked, (1, 2)).items()}
    {'P@1': (34.2, 100.0), 'P@2': (50.0, 50.0)}
    """
    found, n = {}, Y.shape[0]
    for cut in cuts:
        each = document_precision(Y, ranked, (cut,), ignore)
        mean = float(each.mean())
        half = _Z * float(each.std(ddof=1)) / n**0.5 if n > 1 else 100.0
        normal = max(0.0, mean - half), min(100.0, mean + half)
        found[f"P@{cut}"] = confidence_interval(mean, n) if cut == 1 else normal
    return found


def groups_of(
    Y: csr_matrix,
    ranked: NDArray[np.int32],
    scores: NDArray[np.float32],
    frequency: NDArray[np.integer],
    ignore: csr_matrix | None = None,
) -> list[Group]:
    """Return the accuracy of the first labels by their number of training documents, rarest first.

    >>> Y, ranked = csr_matrix(np.eye(2)), np.array([[0], [0]], dtype=np.int32)
    >>> [(one.name, one.recall) for one in groups_of(Y, ranked, np.ones((2, 1), np.float32), np.array([5, 1]))]
    [('1', 0.0), ('4–8', 100.0)]
    """
    counts = label_counts(Y, ranked, scores, k=DEPTH, ignore=ignore)
    group = frequency_groups(frequency)
    sums = [
        np.bincount(group, weights=one, minlength=len(GROUP_NAMES)).astype(np.int64).tolist()
        for one in (counts.true, counts.predicted, counts.right)
    ]
    groups = [Group(name, *numbers) for name, *numbers in zip(GROUP_NAMES, *sums, strict=True)]
    return [one for one in groups if one.true or one.predicted]


def calibration_error_of(
    Y: csr_matrix, ranked: NDArray[np.int32], scores: NDArray[np.float32], ignore: csr_matrix | None = None
) -> float:
    """Return the expected calibration error of the scores of the first labels.

    >>> Y, ranked = csr_matrix(np.eye(2)), np.array([[0], [1]], dtype=np.int32)
    >>> calibration_error_of(Y, ranked, np.full((2, 1), 0.75, np.float32))
    0.25
    """
    return reliability(*first_labels(Y, ranked, scores, DEPTH, ignore)).error


def stored_evaluation(metrics: dict[str, float], n_validation: int) -> Evaluation:
    """Return what a model says of itself: its measures on validation documents.

    >>> stored_evaluation({"P@1": 60.0}, 100).intervals["P@1"][0].__round__(1)
    50.2
    """
    known = "P@1" in metrics and n_validation
    return Evaluation(
        "", n_validation, metrics, {"P@1": confidence_interval(metrics["P@1"], n_validation)} if known else {}
    )
