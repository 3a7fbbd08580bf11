"""Predictions next to true labels."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml import LightDXML
from lightdxml.metrics import decision_measures, threshold_counts
from lightdxml.model.candidates import find_candidates
from lightdxml.report import analysis
from lightdxml.report.analysis import DEPTH, THRESHOLDS, Measured, Outcome, by_frequency, measure, outcome
from lightdxml.validation import check_features
from lightdxml.views.base import Batch
from tests.support.configs import SMALL
from tests.support.data import noisy_topics


def measured_of(Y: csr_matrix, ranked: NDArray[np.int32]) -> Measured:
    """Return predictions without scores."""
    scores = np.zeros(ranked.shape, dtype=np.float32)
    return Measured(Y, ranked, scores, 0.0, threshold_counts(Y, ranked, scores, THRESHOLDS))


def test_the_first_labels_are_those_of_predictions(
    four_views: LightDXML, documents: tuple[csr_matrix, csr_matrix]
) -> None:
    X, Y = documents
    measured = measure(four_views.model_, X, Y)
    ranked, scores = four_views.rank(X, DEPTH)
    np.testing.assert_array_equal(measured.ranked, ranked)
    np.testing.assert_array_equal(measured.scores, scores)


def test_candidates_that_the_linear_view_proposes_are_counted() -> None:
    """Only those among the first `shortlist_size` predictions, or the first 10, were counted."""
    X, Y = noisy_topics(300, labels=40)
    settings = SMALL | {"shortlist_size": 2, "linear.proposals": 40, "blend.fit": False}
    model = LightDXML(options=settings).fit(X, Y).model_
    measured = measure(model, X, Y)
    truth = Y.toarray() > 0
    counts = [
        np.count_nonzero(np.take_along_axis(truth, labels, axis=1) & (labels >= 0))
        for labels in (find_candidates(model.views, Batch(check_features(X))).labels, measured.ranked)
    ]
    assert measured.reach == 100 * counts[0] / Y.nnz
    assert counts[0] > counts[1]


def test_counts_at_thresholds_are_those_of_all_candidates(
    four_views: LightDXML, documents: tuple[csr_matrix, csr_matrix], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis, "_DOCUMENTS", 7)  # several chunks
    X, Y = documents
    found = measure(four_views.model_, X, Y).at_thresholds
    deep = measure(four_views.model_, X, Y, depth=Y.shape[1])
    for i in (0, 30, 90):
        expected = decision_measures(Y, deep.ranked, deep.scores, THRESHOLDS[i])
        assert (found.precision[i], found.recall[i]) == pytest.approx((expected["micro-P"], expected["micro-R"]))


def test_ignored_pairs_leave_the_ranking_and_the_truth(
    four_views: LightDXML, documents: tuple[csr_matrix, csr_matrix]
) -> None:
    X, Y = documents
    plain = measure(four_views.model_, X, Y)
    rows = np.flatnonzero(plain.ranked[:, 0] >= 0)
    first = plain.ranked[rows, 0]
    ignore = csr_matrix((np.ones(len(first)), (rows, first)), shape=Y.shape)
    left = measure(four_views.model_, X, Y, ignore)
    np.testing.assert_array_equal(left.ranked[rows, :-1], plain.ranked[rows, 1:])
    assert left.Y[rows, first].sum() == 0


def test_a_document_without_features_has_no_candidates(four_views: LightDXML) -> None:
    empty, Y = csr_matrix((2, 42), dtype=np.float32), csr_matrix(np.eye(2, 12))
    measured = measure(four_views.model_, empty, Y)
    assert (measured.ranked == -1).all()
    assert measured.reach == 0


def test_labels_are_counted_as_by_hand() -> None:
    Y = csr_matrix([[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]])
    ranked = np.array([[0, 2], [2, 1], [2, -1]], dtype=np.int32)
    counted = outcome(measured_of(Y, ranked))
    assert counted.wrong.tolist() == [0, 0, 3, 0]
    assert counted.missed.tolist() == [0, 1, 0, 1]
    assert counted.confusions == [(1, 2, 1), (3, 2, 1)]


def test_many_confusions_are_counted_on_every_nth_document(monkeypatch: pytest.MonkeyPatch) -> None:
    """They took several GB for millions of documents."""
    monkeypatch.setattr(analysis, "_MAX_PAIRS", 4)
    Y, ranked = csr_matrix([[1, 0]] * 9), np.ones((9, 1), dtype=np.int32)
    counted = outcome(measured_of(Y, ranked))
    assert counted.step == 3
    assert counted.confusions == [(0, 1, 3)]
    assert counted.missed.tolist() == [9, 0]


def test_bins_reach_from_unseen_labels_to_the_most_frequent() -> None:
    frequency = np.array([0, 1, 3, 10, 11, 1000, 1001])
    ones = np.ones(len(frequency), dtype=np.int64)
    bins = by_frequency(Outcome(ones, ones, ones, []), frequency)
    assert [part.name for part in bins] == ["0", "1", "2–3", "4–10", "11–30", "301–1,000", "1,001–3,000"]
    assert all(part.labels == 1 and part.recall == part.precision == 100 for part in bins)
