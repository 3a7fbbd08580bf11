"""Metrics: equal to values worked out by hand and to napkinXC's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix, random_array

from lightdxml.metrics import evaluate, inverse_propensity, r_precision, recall_by_frequency

napkin = pytest.importorskip("napkinxc.metrics")

# Document 0 has two labels, 1 has one, 2 none, 3 four.
Y = csr_matrix([[1, 0, 1, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 0]])
RANKED = [[0, 1, 2], [3, 1, 4], [0, 1, 2], [4, 3, 0]]


def test_precision_divides_by_k_and_documents_without_labels_count() -> None:
    result = evaluate(Y, RANKED, k=(1, 2, 3))
    assert result["P@1"] == 25.0
    assert result["P@2"] == pytest.approx(100 * (1 / 2 + 1 / 2 + 0 + 1 / 2) / 4)
    assert result["P@3"] == pytest.approx(100 * (2 / 3 + 1 / 3 + 0 + 2 / 3) / 4)


def test_recall_divides_by_the_number_of_labels() -> None:
    assert evaluate(Y, RANKED, k=3)["R@3"] == pytest.approx(100 * (1 + 1 + 0 + 2 / 4) / 4)


def test_rp_counts_at_most_k_labels_of_a_document() -> None:
    assert evaluate(Y, RANKED, k=3)["RP@3"] == pytest.approx(100 * (1 + 1 + 0 + 2 / 3) / 4)
    assert evaluate(Y, RANKED, k=1)["RP@1"] == pytest.approx(100 * (1 + 0 + 0 + 0) / 4)


def test_r_precision_is_precision_at_the_number_of_labels() -> None:
    assert r_precision(Y, RANKED) == pytest.approx(100 * (1 / 2 + 0 + 0 + 2 / 4) / 4)
    deep = [[0, 1, 2, 3], [3, 1, 4], [0], [4, 3, 0, 1]]
    assert r_precision(Y, deep) == pytest.approx(100 * (1 / 2 + 0 + 0 + 3 / 4) / 4)
    assert r_precision(csr_matrix((2, 3)), [[0], [1]]) == 0
    assert r_precision(Y, np.array(RANKED)) == r_precision(Y, RANKED)


def test_r_precision_skips_ignored_pairs() -> None:
    # Label 1 moves up, and the document has one label left.
    assert r_precision(csr_matrix([[1, 1, 0]]), [[0, 1]], ignore=[[0, 0]]) == 100


def test_ndcg_is_divided_by_the_best_value_for_the_document() -> None:
    d = 1 / np.log2([2, 3, 4])
    by_hand = [(d[0] + d[2]) / (d[0] + d[1]), d[1] / d[0], 0.0, (d[1] + d[2]) / d.sum()]
    assert evaluate(Y, RANKED, k=3)["nDCG@3"] == pytest.approx(100 * np.mean(by_hand))


def test_psp_is_the_sum_of_gains_over_the_best_sum() -> None:
    q = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    got = (q[0] + q[2]) + q[1] + (q[3] + q[0])
    best = (q[2] + q[0]) + q[1] + (q[3] + q[2] + q[1])
    assert evaluate(Y, RANKED, k=3, inv_propensity=q)["PSP@3"] == pytest.approx(100 * got / best)


def test_psndcg_discounts_gains_and_best_gains() -> None:
    q = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    d = 1 / np.log2([2, 3, 4])
    norm = [d[:2].sum(), d[0], 1, d.sum()]
    got = [q[0] * d[0] + q[2] * d[2], q[1] * d[1], 0, q[3] * d[1] + q[0] * d[2]]
    best = [q[2] * d[0] + q[0] * d[1], q[1] * d[0], 0, q[3] * d[0] + q[2] * d[1] + q[1] * d[2]]
    expected = 100 * np.sum(np.divide(got, norm)) / np.sum(np.divide(best, norm))
    assert evaluate(Y, RANKED, k=3, inv_propensity=q)["PSnDCG@3"] == pytest.approx(expected)


def test_coverage_is_the_share_of_occurring_labels_with_a_hit() -> None:
    # Labels 0 to 3 occur. All have a hit within three ranks, only 0 within one.
    result = evaluate(Y, RANKED, k=(1, 3))
    assert result["coverage@1"] == 25.0
    assert result["coverage@3"] == 100.0


def test_macro_f1_is_the_mean_over_all_labels() -> None:
    # At k = 1, label: true, predicted, right: 0: 2 2 1, 1: 2 0 0, 2: 2 0 0, 3: 1 1 0, 4: 0 1 0.
    assert evaluate(Y, RANKED, k=1)["macro-F1@1"] == pytest.approx(100 * (2 * 1 / 4) / 5)


def test_inverse_propensity_follows_its_formula() -> None:
    counts = np.array([2.0, 2.0, 2.0, 1.0, 0.0])
    C = (np.log(4) - 1) * 2.5**0.55
    np.testing.assert_allclose(inverse_propensity(Y), 1 + C * (counts + 1.5) ** -0.55, rtol=1e-12)


def test_propensity_never_exceeds_one_on_tiny_data() -> None:
    assert (inverse_propensity(csr_matrix([[1, 0]])) >= 1).all()


def _random(rng: np.random.Generator, n: int, labels: int, density: float) -> csr_matrix:
    return csr_matrix(random_array((n, labels), density=density, rng=rng, format="csr"))


def _compare(Y: csr_matrix, scores: csr_matrix, k: int) -> None:
    q = inverse_propensity(Y)
    np.testing.assert_allclose(q, napkin.Jain_et_al_inverse_propensity(csr_matrix(Y != 0)), atol=1e-9)
    ours = evaluate(Y, scores, k=range(1, k + 1), inv_propensity=q)
    theirs = {
        "P": napkin.precision_at_k(Y, scores, k),
        "R": napkin.recall_at_k(Y, scores, k),
        "nDCG": napkin.ndcg_at_k(Y, scores, k),
        "PSP": napkin.psprecision_at_k(Y, scores, q, k),
        "PSnDCG": napkin.psndcg_at_k(Y, scores, q, k),
        "coverage": napkin.coverage_at_k(Y, scores, k),
    }
    for name, values in theirs.items():
        got = [ours[f"{name}@{i}"] for i in range(1, k + 1)]
        np.testing.assert_allclose(got, 100 * values, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("seed", range(5))
def test_equals_napkinxc_on_random_data(seed: int) -> None:
    rng = np.random.default_rng(seed)
    _compare(_random(rng, 200, 40, 0.08), _random(rng, 200, 40, 0.3), k=7)


def test_macro_f1_equals_napkinxc_where_the_last_label_occurs() -> None:
    rng = np.random.default_rng(1)
    Y, scores = _random(rng, 300, 30, 0.2), _random(rng, 300, 30, 0.5)
    ours = [evaluate(Y, scores, k=k)[f"macro-F1@{k}"] for k in range(1, 6)]
    np.testing.assert_allclose(ours, 100 * napkin.macro_f1_measure_at_k(Y, scores, k=5), atol=1e-9)


def test_equals_napkinxc_on_real_data(see_also: Any) -> None:
    train, test = see_also.train, see_also.test
    # A ranking better than chance: label frequency times noise.
    frequency = np.asarray(train.Y.sum(axis=0)).ravel() + 0.1
    rng = np.random.default_rng(0)
    dense = frequency * rng.random((len(test), test.Y.shape[1])) + 3 * test.Y.toarray() * rng.random(test.Y.shape)
    _compare(test.Y, csr_matrix(np.where(dense > 2, dense, 0)), k=5)


@given(
    st.integers(1, 8).flatmap(
        lambda labels: st.tuples(
            st.just(labels),
            st.lists(st.tuples(st.sets(st.integers(0, labels - 1)), st.permutations(range(labels))), min_size=1),
        )
    ),
    st.integers(1, 12),
)
def test_metrics_are_from_0_to_100_and_a_perfect_ranking_reaches_100(
    drawn: tuple[int, list[tuple[set[int], list[int]]]], k: int
) -> None:
    labels, rows = drawn
    Y = np.zeros((len(rows), labels))
    for i, (true, _) in enumerate(rows):
        Y[i, list(true)] = 1
    q = inverse_propensity(csr_matrix(Y))
    result = evaluate(csr_matrix(Y), [ranking for _, ranking in rows], k=k, inv_propensity=q)
    assert all(0 <= value <= 100 + 1e-9 for value in result.values())
    perfect = [sorted(true, key=lambda label: -q[label]) for true, _ in rows]
    best = evaluate(csr_matrix(Y), perfect, k=k, inv_propensity=q)
    assert best[f"PSP@{k}"] == pytest.approx(100 if Y.any() else 0)
    assert best[f"nDCG@{k}"] == pytest.approx(100 * np.mean([bool(true) for true, _ in rows]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_dense_and_ranked_predictions_agree(dtype: Any) -> None:
    rng = np.random.default_rng(3)
    Y = _random(rng, 50, 20, 0.2)
    dense = rng.permuted(np.tile(np.arange(20), (50, 1)), axis=1).astype(dtype) - 7
    ranked = np.argsort(-dense, axis=1)
    stored = csr_matrix((dense.ravel(), np.tile(np.arange(20), 50), np.arange(51) * 20), shape=(50, 20))
    expected = evaluate(Y, ranked, k=5)
    for predicted in (
        dense,
        stored,
        csr_array(stored),
        ranked.astype(np.int32),
        ranked[:, :5],
        ranked.tolist(),
    ):
        assert evaluate(Y, predicted, k=5) == expected


def test_ties_go_to_the_lower_label() -> None:
    scores = csr_matrix([[0.5, 0.5, 0.5, 0.5]])
    assert evaluate(csr_matrix([[1, 0, 0, 0]]), scores, k=1)["P@1"] == 100
    assert evaluate(csr_matrix([[0, 0, 0, 1]]), scores, k=3)["P@3"] == 0


def test_labels_that_are_not_stored_are_not_predicted() -> None:
    scores = csr_matrix(([-1.0], ([0], [1])), shape=(1, 3))
    result = evaluate(csr_matrix([[1, 1, 0]]), scores, k=2)
    assert result["P@2"] == 50.0


def test_missing_predictions_count_as_wrong() -> None:
    result = evaluate(csr_matrix([[1, 1]]), [[1, 0]], k=10)
    assert result["P@10"] == pytest.approx(20)
    assert result["R@10"] == result["nDCG@10"] == 100


def test_explicit_zeros_are_not_labels() -> None:
    Y = csr_matrix(([1.0, 0.0], ([0, 0], [0, 1])), shape=(1, 2))
    assert evaluate(Y, [[1, 0]], k=1)["P@1"] == 0


@pytest.mark.parametrize("as_matrix", [False, True])
@pytest.mark.parametrize("as_scores", [False, True])
def test_ignored_pairs_count_as_neither_right_nor_wrong(as_matrix: bool, as_scores: bool) -> None:
    Y = csr_matrix([[1, 1, 0, 0], [0, 0, 1, 0]])
    predicted: Any = [[0, 3, 1], [2, 1, 0]]
    if as_scores:
        predicted = csr_matrix([[3.0, 1.0, 0.0, 2.0], [1.0, 2.0, 3.0, 0.0]])
    pairs: Any = np.array([[0, 0], [0, 3]])
    ignore = csr_matrix((np.ones(2), (pairs[:, 0], pairs[:, 1])), shape=Y.shape) if as_matrix else pairs
    result = evaluate(Y, predicted, k=(1, 2), ignore=ignore)
    # In document 0, label 1 moves up to the first rank and is the only label left.
    assert result["P@1"] == 100
    assert result["R@1"] == 100
    assert result["nDCG@2"] == 100


def test_ignored_pair_that_is_not_ranked_changes_nothing() -> None:
    Y = csr_matrix([[1, 0, 0, 0], [0, 1, 0, 0]])
    ranked = [[-1, 0], [1]]
    assert evaluate(Y, ranked, k=(1, 2), ignore=[[0, 3]]) == evaluate(Y, ranked, k=(1, 2))


def test_duplicate_scores_are_added() -> None:
    scores = csr_matrix(([0.3, 0.3, 0.5], [0, 0, 1], [0, 3]), shape=(1, 2))
    assert evaluate(csr_matrix([[1, 0]]), scores, k=(1, 2))["P@1"] == 100


def test_very_large_k_costs_no_more_than_all_labels() -> None:
    result = evaluate(Y, RANKED, k=(5, 10**9))
    assert result["P@1000000000"] == pytest.approx(result["P@5"] * 5 / 10**9)
    assert result["nDCG@1000000000"] == result["nDCG@5"]


def test_empty_list_of_pairs_to_ignore_changes_nothing() -> None:
    assert evaluate(Y, RANKED, ignore=np.empty((0, 2), dtype=np.int64)) == evaluate(Y, RANKED)


def test_number_of_threads_does_not_change_the_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    Y, scores = _random(rng, 40_000, 50, 0.05), _random(rng, 40_000, 50, 0.1)
    results = []
    for threads in ("1", "2", "7"):
        monkeypatch.setenv("LIGHTDXML_THREADS", threads)
        results.append(evaluate(Y, scores, inv_propensity=inverse_propensity(Y)))
    assert results[0] == results[1] == results[2]


def test_inputs_are_not_changed() -> None:
    truth = csr_matrix(([1.0, 0.0], ([0, 0], [1, 0])), shape=(1, 3))
    ranked: NDArray[np.int32] = np.array([[0, 1, 2]], dtype=np.int32)
    evaluate(truth, ranked, k=3, ignore=np.array([[0, 0]]))
    assert truth.nnz == 2
    assert ranked.tolist() == [[0, 1, 2]]


@pytest.mark.parametrize(
    ("predicted", "kwargs", "message"),
    [
        ([[0], [1]], {}, "one row per document, 4"),
        ([[0], [1], [2], [5]], {}, "outside of -1 … 4"),
        ([[0, 0], [1], [2], [3]], {"k": 2}, "document 0 contains a label twice"),
        (np.zeros((4, 2)), {}, "dense scores have shape"),
        (csr_matrix((4, 9)), {}, "scores have shape"),
        (csr_matrix([[np.nan, 0, 0, 0, 0]] * 4), {}, "contain NaN"),
        (RANKED, {"k": 0}, "an integer of at least 1"),
        (RANKED, {"k": 2.5}, "an integer of at least 1"),
        (RANKED, {"k": True}, "an integer of at least 1"),
        (RANKED, {"k": []}, "an integer of at least 1"),
        (RANKED, {"inv_propensity": [1.0]}, "one entry per label, 5"),
        (RANKED, {"inv_propensity": [np.inf] * 5}, "negative or infinite"),
        (RANKED, {"ignore": [[0, 7]]}, "outside of Y_true"),
        (RANKED, {"ignore": [0, 1]}, "not a list of pairs"),
        ([["a"], [1], [2], [3]], {}, "give label ids, which are integers"),
    ],
)
def test_invalid_input_is_rejected(predicted: Any, kwargs: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        evaluate(Y, predicted, **kwargs)


def test_empty_labels_are_rejected() -> None:
    with pytest.raises(ValueError, match="nothing to evaluate"):
        evaluate(csr_matrix((0, 3)), np.empty((0, 1), dtype=int))


def test_recall_by_frequency_counts_labels_with_no_few_and_more_documents() -> None:
    Y = csr_matrix([[1, 1, 0, 0], [0, 1, 1, 1], [0, 0, 0, 1]])
    ranked = [[1, 0], [3, 1], [0, 2]]
    groups = recall_by_frequency(Y, ranked, np.array([0, 1, 5, 6]), k=(1, 2))
    assert [(one.documents, one.labels, one.pairs) for one in groups] == [
        ("0", 1, 1),
        ("1 to 5", 2, 3),
        ("more than 5", 1, 2),
    ]
    assert [one.recall["R@1"] for one in groups] == pytest.approx([0, 100 / 3, 50])
    assert [one.recall["R@2"] for one in groups] == pytest.approx([100, 200 / 3, 50])


def test_ignored_pairs_do_not_count_as_missed_in_recall_by_frequency() -> None:
    Y, frequency = csr_matrix([[1, 1]]), np.array([9, 9])
    (_, _, group) = recall_by_frequency(Y, [[0, 1]], frequency, k=1, ignore=[[0, 0]])
    assert (group.pairs, group.recall) == (1, {"R@1": 100.0})
