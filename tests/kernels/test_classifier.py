"""The sampled one-vs-all step against dense NumPy and finite differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.kernels import adam, classifier
from lightdxml.kernels.precision import as_bits, dequantize_classifier, quantize_int8
from lightdxml.kernels.sparse import Groups, Pattern


def dense_loss(X: NDArray[Any], W: NDArray[Any], Y: NDArray[Any], weight: NDArray[Any]) -> float:
    """Binary cross-entropy with logits of all pairs, in float64."""
    scores = X.astype(np.float64) @ W[:, :-1].T.astype(np.float64) + W[:, -1]
    return float((weight * (np.logaddexp(0, scores) - scores * Y)).sum())


def batch(rng: np.random.Generator, B: int = 6, L: int = 5, D: int = 7) -> tuple[Any, Any, Any]:
    X = rng.normal(size=(B, D)).astype(np.float32)
    W = rng.normal(size=(L, D + 1)).astype(np.float32)
    Y = csr_matrix((rng.random((B, L)) < 0.4).astype(np.float32))
    return X, W, Y


@dataclass
class Step:
    """The result of one training step."""

    loss: float
    gradient: NDArray[np.float32]
    W: NDArray[np.float32]
    mean: NDArray[np.uint16]


NO_NEGATIVES = classifier.RandomNegatives(0.0, 1.0, 0)


def collect(
    Y: csr_matrix,
    shortlists: NDArray[np.int32],
    negatives: classifier.RandomNegatives = NO_NEGATIVES,
    labels: tuple[int, int] | None = None,
    room: int | None = None,
) -> tuple[classifier.Pairs, int]:
    """List the pairs of all documents with some labels; return them, and how many there are."""
    first, last = labels or (0, Y.shape[1])
    n = Y.nnz + shortlists.size + Y.shape[0] * int(negatives.share + 1) if room is None else room
    pairs = classifier.Pairs(
        np.empty(Y.shape[0] + 1, dtype=np.int64), np.empty(n, dtype=np.int32), np.empty(n, dtype=np.float32),
        np.empty(n, dtype=np.float32),
    )  # fmt: skip
    near = Pattern(np.arange(len(shortlists) + 1) * shortlists.shape[1], shortlists.ravel())
    found = classifier.collect_pairs(
        np.arange(Y.shape[0], dtype=np.int32), Pattern.of(Y), near, first, negatives,
        np.zeros(last - first, dtype=np.int64), 1, pairs,
    )  # fmt: skip
    return pairs, found


def empty_groups(n_columns: int, n_entries: int) -> Groups:
    return Groups(
        np.empty(n_columns, dtype=np.int32), np.empty(n_columns + 1, dtype=np.int64),
        np.empty(n_entries, dtype=np.int32), np.empty(n_entries, dtype=np.int64),
    )  # fmt: skip


def run_step(
    X: NDArray[Any],
    W: NDArray[Any],
    Y: csr_matrix,
    shortlists: NDArray[Any],
    rate: float = 0.0,
    square: NDArray[np.float32] | None = None,
    min_gradient: float = 0.0,
) -> Step:
    """Train the labels of one batch."""
    (pairs, _), (B, L) = collect(Y, shortlists), Y.shape
    groups = empty_groups(L, pairs.indptr[-1])
    n = classifier.group_by_column(Pattern(pairs.indptr, pairs.labels), np.zeros(L, dtype=np.int32), groups)
    step = Step(0.0, np.zeros_like(X), W.copy(), adam.zero_means(W))
    step.loss = classifier.train_step(
        0, n, groups, pairs, X, np.einsum("ij,ij->i", X, X) + np.float32(1),
        adam.AdamRows(step.W, step.mean, np.zeros(L, dtype=np.float32) if square is None else square.copy()),
        np.float32(1 / B), np.float32(rate), np.float32(min_gradient), step.gradient,
    )  # fmt: skip
    return step


def all_labels(B: int, L: int) -> NDArray[np.int32]:
    return np.tile(np.arange(L, dtype=np.int32), (B, 1))


@pytest.mark.parametrize("seed", range(3))
def test_loss_with_all_labels_is_the_full_one_vs_all_loss(seed: int) -> None:
    X, W, Y = batch(np.random.default_rng(seed))
    loss = run_step(X, W, Y, all_labels(*Y.shape)).loss
    assert loss == pytest.approx(dense_loss(X, W, Y.toarray(), np.ones(Y.shape)), rel=1e-5)


def test_only_positives_and_shortlisted_labels_count() -> None:
    X, W, Y = batch(np.random.default_rng(4))
    shortlists = np.array([[0, -1], [1, 2], [2, 0], [-1, -1], [4, 3], [0, 4]], dtype=np.int32)
    weight = Y.toarray().copy()
    for i, row in enumerate(shortlists):
        weight[i, row[row >= 0]] = 1
    loss = run_step(X, W, Y, shortlists).loss
    assert loss == pytest.approx(dense_loss(X, W, Y.toarray(), weight), rel=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_gradient_to_the_documents_agrees_with_finite_differences(seed: int) -> None:
    X, W, Y = batch(np.random.default_rng(seed))
    gradient = run_step(X, W, Y, all_labels(*Y.shape)).gradient
    numeric = np.empty_like(X, dtype=np.float64)
    step = 1e-4
    for i in np.ndindex(X.shape):
        up, down = X.astype(np.float64), X.astype(np.float64)
        up[i] += step
        down[i] -= step
        ones = np.ones(Y.shape)
        numeric[i] = (dense_loss(up, W, Y.toarray(), ones) - dense_loss(down, W, Y.toarray(), ones)) / (2 * step)
    # The step averages over the batch.
    np.testing.assert_allclose(gradient * len(X), numeric, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("documents", [6, 1])
def test_weights_move_as_adam_with_one_step_size_per_row_moves_them(documents: int) -> None:
    X, W, Y = batch(np.random.default_rng(1), B=documents)
    state = run_step(X, W, Y, all_labels(*Y.shape), rate=float(adam.bias_corrected_rate(0.1, 1)))
    scores = X @ W[:, :-1].T + W[:, -1]
    error = (1 / (1 + np.exp(-scores)) - Y.toarray()) / len(X)
    gradient = np.concatenate([error.T @ X, error.sum(axis=0)[:, None]], axis=1)
    means = (state.mean.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_allclose(means, 0.1 * gradient, rtol=2**-8, atol=1e-6)
    # The first step is the learning rate, times the gradient over its root mean square.
    size = np.sqrt((gradient**2).mean(axis=1, keepdims=True))
    np.testing.assert_allclose(state.W, W - 0.1 * gradient / size, rtol=1e-3, atol=1e-4)


def test_labels_with_a_gradient_far_below_their_running_mean_are_skipped() -> None:
    X, W, Y = batch(np.random.default_rng(1))
    square = np.array([0, 1e5, 0, 1e5, 0], dtype=np.float32)
    full, sparing = (run_step(X, W, Y, all_labels(*Y.shape), 0.1, square, share) for share in (0.0, 0.01))
    assert full.loss == sparing.loss
    assert (full.W != W).any(axis=1).tolist() == [True] * 5
    assert (sparing.W != W).any(axis=1).tolist() == [True, False, True, False, True]
    assert not np.allclose(full.gradient, sparing.gradient)


def test_labels_outside_the_batch_are_not_touched() -> None:
    X, W, Y = batch(np.random.default_rng(2), L=6)
    Y = Y.tolil()
    Y[:, 5] = 0
    shortlists = np.zeros((len(X), 1), dtype=np.int32)
    state = run_step(X, W, csr_matrix(Y), shortlists, rate=0.1)
    np.testing.assert_array_equal(state.W[5], W[5])


def test_huge_scores_give_a_finite_loss() -> None:
    X, W, Y = batch(np.random.default_rng(0))
    step = run_step(X * 1e4, W * 1e4, Y, all_labels(*Y.shape))
    assert np.isfinite(step.loss)
    assert np.isfinite(step.gradient).all()


def test_random_negatives_are_weighted_and_never_positives() -> None:
    Y = csr_matrix(np.eye(200, 50, dtype=np.float32))
    pairs, n = collect(Y, np.empty((200, 0), dtype=np.int32), classifier.RandomNegatives(10.5, 7.0, 1))
    drawn = np.zeros(50)
    for b in range(200):
        own = slice(pairs.indptr[b], pairs.indptr[b + 1])
        labels, positives = pairs.labels[own].tolist(), Y[b].nnz
        assert labels[:positives] == Y[b].indices.tolist()
        assert len(set(labels)) == len(labels)
        assert pairs.weights[own].tolist() == [1.0] * positives + [7.0] * (len(labels) - positives)
        assert pairs.targets[own].tolist() == [1.0] * positives + [0.0] * (len(labels) - positives)
        drawn[labels[positives:]] += 1
    assert n == pairs.indptr[-1]
    # 10.5 labels per document, less those that are drawn twice: 50 (1 − (1 − 1 / 50) ** 10.5) = 9.6.
    assert drawn.sum() / 200 == pytest.approx(9.6, abs=0.3)
    assert drawn.min() > 15


def test_parts_of_the_labels_have_the_pairs_of_all_labels() -> None:
    rng = np.random.default_rng(3)
    Y = csr_matrix((rng.random((20, 40)) < 0.1).astype(np.float32))
    shortlists = rng.integers(-1, 40, (20, 6)).astype(np.int32)
    whole, _ = collect(Y, shortlists)
    parts = [(bounds, collect(Y, shortlists, labels=bounds)[0]) for bounds in ((0, 13), (13, 13), (13, 40))]
    for b in range(20):
        found = {
            (first + pairs.labels[i], pairs.targets[i])
            for (first, _), pairs in parts
            for i in range(pairs.indptr[b], pairs.indptr[b + 1])
        }
        expected = slice(whole.indptr[b], whole.indptr[b + 1])
        assert found == set(zip(whole.labels[expected].tolist(), whole.targets[expected].tolist(), strict=True))


def test_pairs_without_room_are_counted() -> None:
    Y = csr_matrix(np.eye(4, 50, dtype=np.float32))
    shortlists, negatives = np.full((4, 3), 49, dtype=np.int32), classifier.RandomNegatives(5.0, 1.0, 2)
    _, needed = collect(Y, shortlists, negatives)
    assert collect(Y, shortlists, negatives, room=2)[1] == needed > 8


def test_entries_grouped_by_column_are_the_transpose() -> None:
    matrix = csr_matrix((np.random.default_rng(0).random((20, 9)) < 0.3).astype(np.float32))
    counts = np.zeros(9, dtype=np.int32)
    columns, indptr, rows, positions = groups = empty_groups(9, matrix.nnz)
    n = classifier.group_by_column(Pattern.of(matrix), counts, groups)
    transposed = csr_matrix(matrix.T)
    assert not counts.any()
    for c in range(n):
        expected = transposed.indices[transposed.indptr[columns[c]] : transposed.indptr[columns[c] + 1]]
        assert rows[indptr[c] : indptr[c + 1]].tolist() == expected.tolist()
        assert (matrix.indices[positions[indptr[c] : indptr[c + 1]]] == columns[c]).all()


@pytest.mark.parametrize("precision", ["float32", "float16", "int8"])
def test_logits_are_those_of_the_dense_product(precision: str) -> None:
    X, W, _ = batch(np.random.default_rng(5), L=9, D=33)
    stored = quantize_int8(W[:, :-1].copy(), W[:, -1]) if precision == "int8" else W.astype(precision)
    candidates = np.tile(np.array([8, -1, 3, 0, 1, 7, 7, 2, 6, 5, 4], dtype=np.int32), (6, 1))
    out = np.empty(candidates.shape, dtype=np.float32)
    classifier.logits(0, 6, X, as_bits(stored), candidates, out)
    weights = dequantize_classifier(stored)
    expected = (X @ weights[:, :-1].T + weights[:, -1])[:, candidates[0]]
    expected[:, 1] = -np.inf
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)
