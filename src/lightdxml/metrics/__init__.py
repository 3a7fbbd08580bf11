"""Metrics of rankings, of decisions (which labels to keep) and of probabilities."""

from __future__ import annotations

from lightdxml.metrics.calibration import Reliability, expected_calibration_error, reliability
from lightdxml.metrics.compare import binary_labels
from lightdxml.metrics.decisions import (
    Counts,
    decision_measures,
    first_labels,
    label_counts,
    threshold_counts,
    threshold_grid,
)
from lightdxml.metrics.ranked import (
    FrequencyGroup,
    confidence_interval,
    document_precision,
    evaluate,
    inverse_propensity,
    r_precision,
    recall_by_frequency,
)

__all__ = [
    "Counts",
    "FrequencyGroup",
    "Reliability",
    "binary_labels",
    "confidence_interval",
    "decision_measures",
    "document_precision",
    "evaluate",
    "expected_calibration_error",
    "first_labels",
    "inverse_propensity",
    "label_counts",
    "r_precision",
    "recall_by_frequency",
    "reliability",
    "threshold_counts",
    "threshold_grid",
]
