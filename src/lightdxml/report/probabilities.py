"""The section about scores as probabilities: how often labels of a score are right, and what a threshold keeps."""

from __future__ import annotations

from lightdxml.metrics import first_labels, reliability
from lightdxml.report import figures
from lightdxml.report.analysis import THRESHOLDS, Measured
from lightdxml.report.markup import figure, note, side_by_side


def probabilities(measured: Measured, k: int) -> str:
    """Return a reliability diagram of the first k labels, and precision, recall and F1 by threshold."""
    found = reliability(*first_labels(measured.Y, measured.ranked, measured.scores, k))
    if not found.count.any():
        return note("There are none: no document has predictions.")
    first, verb = ("first label", "is") if k == 1 else (f"first {k} labels", "are")
    calibration = (
        f"How often the {first} of a document {verb} right, by score. On the dotted line, a score is the probability"
        " that the label is right. Below: how many labels have such a score. The expected calibration error (ECE), the"
        f" mean distance from the line, is {found.error:.3f}."
    )
    counts = measured.at_thresholds
    best = int(counts.f1.argmax())
    decisions = (
        "Precision, recall and F1 over all pairs of document and label, if all labels with at least this score are"
        f" kept. F1 is highest at {THRESHOLDS[best]:.2f}, with {counts.f1[best]:.2f}%. Test documents should not"
        " choose a threshold."
    )
    return side_by_side(
        figure(figures.reliability(found), calibration),
        figure(figures.thresholds(THRESHOLDS.tolist(), counts), decisions),
    )
