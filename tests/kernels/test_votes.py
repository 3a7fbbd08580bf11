from __future__ import annotations

import numpy as np

from lightdxml.kernels import votes
from lightdxml.kernels.sparse import Pattern


def test_votes_are_those_of_a_plain_count() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random((20, 9)) < 0.3
    indptr = np.concatenate([[0], np.cumsum(truth.sum(axis=1))]).astype(np.int64)
    labels = np.nonzero(truth)[1].astype(np.int32)
    neighbors = rng.integers(-1, 20, (6, 4)).astype(np.int32)
    cosines = rng.random((6, 4)).astype(np.float32)
    best, counted = np.empty((6, 12), dtype=np.int32), np.empty((6, 12), dtype=np.float32)
    totals = np.zeros(9, dtype=np.float32)
    votes.count(0, 6, neighbors, cosines, Pattern(indptr, labels), totals, best, counted)
    assert not totals.any()
    for b in range(6):
        expected = np.zeros(9)
        for document, cosine in zip(neighbors[b], cosines[b], strict=True):
            if document >= 0:
                expected += cosine * truth[document]
        n = int((expected > 0).sum())
        assert (best[b, n:] == -1).all()
        np.testing.assert_allclose(counted[b, :n], np.sort(expected)[::-1][:n], rtol=1e-5)
        np.testing.assert_allclose(expected[best[b, :n]], counted[b, :n], rtol=1e-5)


def test_ties_go_to_the_lower_label() -> None:
    neighbors, cosines = np.array([[1, 0]], dtype=np.int32), np.ones((1, 2), dtype=np.float32)
    indptr, labels = np.array([0, 1, 2], dtype=np.int64), np.array([2, 5], dtype=np.int32)
    best, counted = np.empty((1, 2), dtype=np.int32), np.empty((1, 2), dtype=np.float32)
    votes.count(0, 1, neighbors, cosines, Pattern(indptr, labels), np.zeros(6, dtype=np.float32), best, counted)
    assert best.tolist() == [[2, 5]]
