from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix, random_array

from lightdxml.kernels import factorization
from lightdxml.kernels.sparse import Csr


def test_a_step_follows_the_gradient_of_the_known_entries_of_its_rows() -> None:
    rng = np.random.default_rng(0)
    known = csr_matrix(random_array((9, 7), density=0.4, rng=rng, dtype=np.float32))
    others, factors = (rng.standard_normal((n, 5)).astype(np.float32) for n in (7, 9))
    moved, errors = factors.copy(), np.zeros(9)
    factorization.descend(2, 9, Csr.of(known), np.float32(0.1), others, moved, errors)
    residuals = np.where(known.toarray() != 0, factors @ others.T - known.toarray(), 0)
    np.testing.assert_allclose(moved[2:], (factors - 0.1 * residuals @ others)[2:], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(errors[2:], (residuals**2).sum(axis=1)[2:], rtol=1e-4)
    np.testing.assert_array_equal(moved[:2], factors[:2])
