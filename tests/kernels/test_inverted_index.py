"""Search of an inverted index against dense products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, random

from lightdxml.kernels import inverted_index
from lightdxml.kernels.precision import as_bits
from lightdxml.kernels.sparse import Csr


def postings(W: NDArray[Any]) -> inverted_index.Postings:
    """Return the index of weights of one row per label, block by block."""
    firsts: list[int] = []
    labels: list[NDArray[np.uint16]] = []
    weights: list[NDArray[Any]] = []
    for start in range(0, len(W), inverted_index.BLOCK):
        for column in W[start : start + inverted_index.BLOCK].T:
            firsts.append(sum(len(part) for part in labels))
            labels.append(np.flatnonzero(column).astype(np.uint16))
            weights.append(column[column != 0])
    ends = [*firsts[1:], sum(len(part) for part in labels)]
    indptr = np.array([firsts, ends]).reshape(2, -1, W.shape[1])
    whole = np.concatenate([indptr[0], indptr[1, :, -1:]], axis=1)
    return inverted_index.Postings(whole, np.concatenate(labels), as_bits(np.concatenate(weights)))


def search(
    X: csr_matrix, W: NDArray[Any], biases: NDArray[np.float32], dense: list[int], known: NDArray[np.int32], k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32]]:
    """Search weights of one row per label, whose type is kept."""
    n = len(biases)
    found, scores = np.empty((X.shape[0], k), dtype=np.int32), np.empty((X.shape[0], k), dtype=np.float32)
    known_scores = np.empty(known.shape, dtype=np.float32)
    totals, marks = np.zeros(n, dtype=np.float32), np.zeros(n, dtype=np.uint8)
    inverted_index.search(
        0, X.shape[0], Csr.of(X), postings(W), biases, np.array(dense, dtype=np.int32), known, totals, marks, found,
        scores, known_scores,
    )  # fmt: skip
    assert not totals.any()
    assert not marks.any()
    return found, scores, known_scores


def documents(n: int, seed: int = 7) -> csr_matrix:
    return csr_matrix(random(n, 25, 0.3, format="csr", random_state=seed, dtype=np.float32), dtype=np.float32)


@pytest.mark.parametrize("precision", [np.float32, np.float16])
def test_scores_are_those_of_the_dense_product(precision: Any) -> None:
    rng = np.random.default_rng(3)
    W = np.where(rng.random((12, 25)) < 0.3, rng.normal(size=(12, 25)), 0).astype(precision)
    biases, X = rng.normal(size=12).astype(np.float32), documents(40)
    known = rng.integers(-1, 12, (40, 1)).astype(np.int32)
    found, scores, known_scores = search(X, W, biases, [1, 4], known, 4)
    truth = X.toarray().astype(np.float64) @ W.T.astype(np.float64) + biases
    reachable = ((X.toarray() != 0).astype(int) @ (W.T != 0).astype(int) > 0) | np.isin(np.arange(12), [1, 4])
    for i in range(40):
        given = known[i, 0]
        if given >= 0:
            assert known_scores[i, 0] == pytest.approx(truth[i, given], abs=1e-4)
        allowed = [j for j in range(12) if reachable[i, j] and j != given]
        expected = sorted(allowed, key=lambda j: -truth[i, j])[:4]
        chosen = found[i][found[i] >= 0]
        assert sorted(chosen.tolist()) == sorted(expected)
        np.testing.assert_allclose(scores[i][found[i] >= 0], truth[i, chosen], atol=1e-4)


@pytest.mark.parametrize("share", [0.01, 0.9])
def test_labels_are_found_in_few_short_lists_and_in_many_long_ones(share: float) -> None:
    n, k, rng = 1000, 7, np.random.default_rng(5)
    # Rounded, so that scores tie.
    W = np.where(rng.random((n, 25)) < share, rng.integers(-4, 5, (n, 25)) / 4, 0).astype(np.float32)
    X, biases = documents(30), (-rng.integers(0, 3, n) / 2).astype(np.float32)
    X.data = np.ceil(X.data * 2) / 2
    totals = X.toarray() @ W.T
    # One of the best labels of each document is known, and another one.
    known = np.stack([(totals + biases).argmax(axis=1), np.arange(30)], axis=1).astype(np.int32)
    found, scores, known_scores = search(X, W, biases, [3], known, k)
    for i in range(30):
        np.testing.assert_array_equal(known_scores[i], (totals[i] + biases)[known[i]])
        allowed = [j for j in range(n) if (totals[i, j] != 0 or j == 3) and j not in known[i]]
        expected = sorted(allowed, key=lambda j: (-totals[i, j] - biases[j], j))[:k]
        assert sorted(found[i].tolist()) == sorted(expected)
        np.testing.assert_array_equal(np.sort(scores[i]), np.sort((totals[i] + biases)[expected]))


def test_rows_are_padded_if_fewer_labels_can_be_found() -> None:
    no_weights, none = np.zeros((5, 25), dtype=np.float32), np.empty((2, 0), dtype=np.int32)
    found, scores, _ = search(documents(2), no_weights, np.zeros(5, dtype=np.float32), [2], none, 5)
    assert [sorted(row) for row in found.tolist()] == [[-1, -1, -1, -1, 2]] * 2
    assert not scores.any()


def test_ties_go_to_the_lower_label_in_any_order_of_pushes() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores = rng.integers(0, 3, 40).astype(np.float32)
        expected = sorted(range(40), key=lambda i: (-scores[i], i))[:10]
        found, heap, size = np.empty(10, dtype=np.int32), np.empty(10, dtype=np.float32), 0
        for label in rng.permutation(40):
            size = inverted_index.push(found, heap, size, label, scores[label])
        assert sorted(found.tolist()) == sorted(expected)


@pytest.mark.parametrize("n", [40, inverted_index.BLOCK + 40], ids=["one block", "two blocks"])
@pytest.mark.parametrize("density", [0.001, 0.9], ids=["short lists", "long lists"])
def test_scores_of_known_labels_are_those_of_the_search(n: int, density: float) -> None:
    """Long lists are searched for a few labels, short ones are scanned: the sums are the same."""
    rng = np.random.default_rng(4)
    W = np.where(rng.random((n, 25)) < density, 1 + rng.random((n, 25)), 0).astype(np.float32)
    X, biases = documents(10), rng.normal(size=n).astype(np.float32)
    known = rng.integers(-1, n, (10, 6)).astype(np.int32)
    # Labels at the ends of a block, and one label twice.
    known[:, 0], known[:, 1], known[:, 2] = n - 1, 0, known[:, 3]
    _, _, expected = search(X, W, biases, [], known, 0)
    scores, slots = np.empty(known.shape, dtype=np.float32), np.zeros(n, dtype=np.int32)
    inverted_index.score_known(0, 10, Csr.of(X), postings(W), biases, known, slots, scores)
    np.testing.assert_array_equal(scores, expected)
    assert not slots.any()


def test_labels_of_a_second_block_are_found() -> None:
    n = inverted_index.BLOCK + 3
    W = np.zeros((n, 25), dtype=np.float32)
    W[1], W[n - 1] = 1, 2
    found, _, _ = search(documents(5), W, np.zeros(n, dtype=np.float32), [], np.empty((5, 0), dtype=np.int32), 2)
    assert [sorted(row) for row in found.tolist()] == [[1, n - 1]] * 5
