"""Metrics of decisions: equal to scikit-learn's on the matrix of kept labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.metrics import decision_measures, first_labels, label_counts, threshold_counts, threshold_grid

sklearn = pytest.importorskip("sklearn.metrics")

N, L, DEPTH = 60, 20, 12


def drawn(seed: int) -> tuple[csr_matrix, NDArray[np.int32], NDArray[np.float32]]:
    """Return labels and predictions: some documents have neither, some rankings are short, label 3 is never right."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((N, L)) < 0.15).astype(np.int8)
    Y[:3], Y[:, 3] = 0, 0
    ranked = rng.permuted(np.tile(np.arange(L, dtype=np.int32), (N, 1)), axis=1)[:, :DEPTH]
    scores = -np.sort(-rng.random((N, DEPTH)), axis=1).round(2).astype(np.float32)
    ends = rng.integers(0, DEPTH + 1, N)
    is_end = np.arange(DEPTH) >= ends[:, None]
    ranked[is_end], scores[is_end] = -1, 0
    return csr_matrix(Y), ranked, scores


def kept(
    ranked: NDArray[np.int32], scores: NDArray[np.float32], threshold: Any, k: int | None = None
) -> NDArray[np.int8]:
    """Return the labels that are kept as a matrix, worked out label by label."""
    found = np.zeros((len(ranked), L), dtype=np.int8)
    limits = np.broadcast_to(np.float32(threshold), (L,))
    for i, (labels, values) in enumerate(zip(ranked.tolist(), scores, strict=True)):
        for label, score in list(zip(labels, values, strict=True))[:k]:
            found[i, label] |= label >= 0 and score >= limits[label]
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("threshold", "k"), [(0.0, None), (0.5, None), (0.0, 3), (0.3, 5), (2.0, None), (np.linspace(0, 1, L), None)]
)
def test_averages_are_those_of_scikit_learn(seed: int, threshold: Any, k: int | None) -> None:
    Y, ranked, scores = drawn(seed)
    ours = decision_measures(Y, ranked, scores, threshold, k)
    predicted = kept(ranked, scores, threshold, k)
    for average in ("micro", "macro", "samples"):
        *theirs, _ = sklearn.precision_recall_fscore_support(Y.toarray(), predicted, average=average, zero_division=0)
        got = [ours[f"{average}-{name}"] for name in ("P", "R", "F1")]
        np.testing.assert_allclose(got, 100 * np.array(theirs), atol=1e-9, err_msg=average)


def test_counts_of_labels_are_those_of_scikit_learn() -> None:
    Y, ranked, scores = drawn(5)
    found = label_counts(Y, ranked, scores, threshold=0.4, k=6)
    theirs = sklearn.precision_recall_fscore_support(Y.toarray(), kept(ranked, scores, 0.4, 6), zero_division=0)
    for ours, values in zip((found.precision, found.recall, found.f1), theirs, strict=False):
        np.testing.assert_allclose(ours, 100 * values)
    np.testing.assert_array_equal(found.true, theirs[3])


def test_counts_by_threshold_are_the_micro_averages_at_each_threshold() -> None:
    Y, ranked, scores = drawn(1)
    thresholds = np.arange(0, 1.01, 0.01)  # scores have two digits: they hit the thresholds
    found = threshold_counts(Y, ranked, scores, thresholds)
    for i in (0, 5, 30, 55, 99, 100):
        at = decision_measures(Y, ranked, scores, thresholds[i])
        assert found.precision[i] == pytest.approx(at["micro-P"])
        assert found.recall[i] == pytest.approx(at["micro-R"])
        assert found.f1[i] == pytest.approx(at["micro-F1"])


def test_counts_by_threshold_of_two_halves_add_up() -> None:
    Y, ranked, scores = drawn(2)
    whole, first, second = (threshold_counts(Y[s], ranked[s], scores[s]) for s in (slice(N), slice(9), slice(9, N)))
    for name in ("true", "predicted", "right"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(first, name) + getattr(second, name))


def test_every_cell_of_the_grid_is_the_f1_at_its_threshold_and_limit() -> None:
    Y, ranked, scores = drawn(3)
    thresholds, limits = (0.0, 0.25, 0.5, 0.99), (1, 4, 50, None)
    found = threshold_grid(Y, ranked, scores, thresholds, limits)
    for i, threshold in enumerate(thresholds):
        for j, limit in enumerate(limits):
            at = decision_measures(Y, ranked, scores, threshold, limit)
            for name, values in found.items():
                assert values[i, j] == pytest.approx(at[name]), (name, threshold, limit)


def test_ignored_pairs_count_as_neither_kept_nor_missed_and_make_room_below_the_limit() -> None:
    Y = csr_matrix([[1, 0, 1, 0], [0, 1, 0, 0]])
    ranked = np.array([[1, 0, 2], [1, 3, 0]], dtype=np.int32)
    scores = np.array([[0.9, 0.8, 0.7], [0.6, 0.5, 0.1]], dtype=np.float32)
    found = decision_measures(Y, ranked, scores, 0.5, 1, ignore=[[0, 1], [0, 2]])
    assert found["micro-P"] == found["micro-R"] == 100
    counts = label_counts(Y, ranked, scores, 0.5, 1, ignore=[[0, 1], [0, 2]])
    assert (counts.true.tolist(), counts.predicted.tolist()) == ([1, 1, 0, 0], [1, 1, 0, 0])
    assert first_labels(Y, ranked, scores, 1, ignore=[[0, 1]])[0].tolist() == pytest.approx([0.8, 0.6])
    assert threshold_grid(Y, ranked, scores, [0.5], [1], ignore=[[0, 1], [0, 2]])["micro-F1"] == 100


def test_gaps_in_a_ranking_are_no_labels() -> None:
    Y, scores = csr_matrix([[1, 1, 0]]), np.array([[0.9, 0.8, 0.7]], dtype=np.float32)
    gap, plain = np.array([[-1, 0, 1]], dtype=np.int32), np.array([[0, 1, -1]], dtype=np.int32)
    assert decision_measures(Y, gap, scores, k=1) == decision_measures(Y, plain, scores, k=1)
    assert threshold_grid(Y, gap, scores, [0], [1])["micro-F1"] == pytest.approx(200 / 3)


def test_a_ranking_may_have_more_columns_than_there_are_labels() -> None:
    ranked, scores = np.array([[1, -1, -1]], dtype=np.int32), np.array([[0.9, 0, 0]], dtype=np.float32)
    assert decision_measures(csr_matrix([[0, 1]]), ranked, scores)["micro-F1"] == 100


def test_documents_without_any_predictions_have_measures() -> None:
    nothing = np.empty((N, 0), dtype=np.int32), np.empty((N, 0), dtype=np.float32)
    assert set(decision_measures(drawn(0)[0], *nothing).values()) == {0.0}
    assert threshold_counts(drawn(0)[0], *nothing).predicted.sum() == 0


def test_inputs_are_not_changed() -> None:
    Y, ranked, scores = drawn(4)
    before = Y.copy(), ranked.copy(), scores.copy()
    threshold_grid(Y, ranked, scores, ignore=np.column_stack([np.arange(N), np.maximum(ranked[:, 0], 0)]))
    assert (before[0] != Y).nnz == 0
    np.testing.assert_array_equal(ranked, before[1])
    np.testing.assert_array_equal(scores, before[2])


@pytest.mark.parametrize(
    ("function", "arguments", "says"),
    [
        (decision_measures, (np.zeros((N, 2), dtype=np.int32), np.zeros((N, 3))), "give a score per ranked label"),
        (decision_measures, (np.zeros((N, 1), dtype=np.int32), np.full((N, 1), np.nan)), "contain NaN"),
        (decision_measures, (np.zeros((N, 1), dtype=np.int32), np.ones((N, 1)), [0.1, 0.2]), "or one per label, 20"),
        (decision_measures, (np.zeros((N, 1), dtype=np.int32), np.ones((N, 1)), np.nan), "it must be a number"),
        (decision_measures, (np.zeros((N, 1), dtype=np.int32), np.ones((N, 1)), 0.5, 0), "k is 0"),
        (decision_measures, (np.zeros((N, 2), dtype=np.int32), np.ones((N, 2))), "contains a label twice"),
        (threshold_counts, (np.zeros((N, 1), dtype=np.int32), np.ones((N, 1)), [0.5, 0.1]), "ascending order"),
    ],
)
def test_invalid_input_is_rejected(function: Any, arguments: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        function(drawn(0)[0], *arguments)
