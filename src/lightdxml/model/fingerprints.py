"""Fingerprints of training documents: they tell whether a model has seen the documents that it is measured on."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# A model keeps so many fingerprints at most, which take 160 KB.
LIMIT = 20_000
_BYTES = 8


def of_texts(texts: Iterable[str]) -> NDArray[np.int64]:
    r"""Return a fingerprint per text that is not empty; white space counts as a single space.

    Examples
    --------
    >>> first, second, third = of_texts(["a cat", "a\ncat ", "", "a dog"]).tolist()
    >>> first == second, first == third
    (True, False)
    """
    words = (text.split() for text in texts)
    return _hashes(" ".join(one).encode("utf-8", "surrogatepass") for one in words if one)


def of_features(X: csr_matrix) -> NDArray[np.int64]:
    """Return a fingerprint per row that is not empty, of features as `lightdxml.validation.check_features` gives them.

    Examples
    --------
    >>> from lightdxml.validation import check_features
    >>> first, second, third = of_features(check_features([[3, 4], [6, 8], [0, 0], [1, 0]])).tolist()
    >>> first == second, first == third
    (True, False)
    """
    indices, values = X.indices.astype("<i4", copy=False), X.data.astype("<f4", copy=False)
    bounds = zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True)
    rows = (slice(start, stop) for start, stop in bounds if start < stop)
    return _hashes(indices[row].tobytes() + values[row].tobytes() for row in rows)


def _hashes(documents: Iterable[bytes]) -> NDArray[np.int64]:
    digests = b"".join(blake2b(one, digest_size=_BYTES).digest() for one in documents)
    return np.frombuffer(digests, dtype="<i8").astype(np.int64, copy=False)


def kept(fingerprints: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the fingerprints that a model keeps, ascending: all, or the lowest ones, which are a random sample.

    >>> kept(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    return np.unique(fingerprints)[:LIMIT]


def known_share(known: NDArray[np.int64], fingerprints: NDArray[np.int64]) -> float | None:
    """Return the share of documents that are among those of which a model keeps fingerprints.

    If the model keeps a sample, documents whose fingerprints lie in its range are counted: the share is an estimate.
    None if the model keeps no fingerprints, or no document can be counted.

    Examples
    --------
    >>> known_share(np.array([1, 3]), np.array([3, 4, 5, 6]))
    0.25
    """
    if len(known) == LIMIT:
        fingerprints = fingerprints[fingerprints <= known[-1]]
    if not len(known) or not len(fingerprints):
        return None
    return float(np.isin(fingerprints, known).mean())
