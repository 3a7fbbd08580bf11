"""The probability that a label is right, given how its name occurs in a document: one small model for all labels.

It is a logistic regression on piecewise linear functions. As it knows labels only by their names and frequencies, it
speaks for labels without training documents too.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lightdxml import newton
from lightdxml.persistence.arrays import Arrays
from lightdxml.views.base import FREQUENCY, expect

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# Where the functions of coverage and weight bend. Weights are on a logarithmic scale.
COVERAGE = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0], dtype=np.float32)
WEIGHT = np.log(np.array([0.003, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.6], dtype=np.float32))
# The same of the logarithm of a name's rate of hits.
RATE = np.array([-10.0, -8.0, -6.0, -5.0, -4.0, -3.0, -2.0, -1.0, 0.0], dtype=np.float32)
_SMALLEST = np.float32(1e-4)
# A name whose terms all occur, although shares are rounded to 16 bits.
_WHOLE = np.float32(0.998)
# Upper bounds of terms per name, and of labels that share a name, per group.
TERMS, AMBIGUITY = (1, 2, 3), (1, 2)
NO_MATCH, PARTIAL, WHOLE, NAMELESS = 0, 1, 2, 3
_KINDS = 4
_RIDGE = 1.0


@dataclass(frozen=True)
class Matches:
    """How names occur in documents; all arrays have the same shape.

    Attributes
    ----------
    coverage
        The share of the name that occurs in the document; -inf where there is no name.
    weight
        The share of the document that the name explains: the TF-IDF of its terms there, weighted by their shares.
    terms, ambiguity, frequency
        Groups of the number of terms, of the labels that share the name, and of the label's training documents.
    log_rate
        How often the label is right where all of the name occurs: see `Occurrences`.
    """

    coverage: NDArray[np.float32]
    weight: NDArray[np.float32]
    terms: NDArray[np.uint8]
    ambiguity: NDArray[np.uint8]
    frequency: NDArray[np.uint8]
    log_rate: NDArray[np.float32]

    @property
    def kind(self) -> NDArray[np.uint8]:
        """Whether nothing, a part or all of the name occurs, or the label has no name."""
        kind = np.where(self.coverage >= _WHOLE, WHOLE, np.where(self.coverage > 0, PARTIAL, NO_MATCH))
        return np.where(np.isneginf(self.coverage), NAMELESS, kind).astype(np.uint8)


@dataclass(frozen=True)
class NameScorer:
    """The terms of the log-odds.

    Attributes
    ----------
    coverage
        At the bends of the coverage.
    partial, whole
        At the bends of the weight, where a part of the name occurs, and where all of it does.
    terms, ambiguity
        By group, where all of the name occurs.
    frequency
        By kind of match and group of label frequency.
    rate
        At the bends of the rate of hits, where all of the name occurs.
    """

    coverage: NDArray[np.float32]
    partial: NDArray[np.float32]
    whole: NDArray[np.float32]
    terms: NDArray[np.float32]
    ambiguity: NDArray[np.float32]
    frequency: NDArray[np.float32]
    rate: NDArray[np.float32]

    def log_odds(self, matches: Matches) -> NDArray[np.float32]:
        """Return the log-odds that the labels are right."""
        kind, weight = matches.kind, np.log(np.maximum(matches.weight, _SMALLEST))
        odds = self.frequency[kind, matches.frequency]
        found = (kind == PARTIAL) | (kind == WHOLE)
        odds += np.where(found, np.interp(matches.coverage, COVERAGE, self.coverage), 0).astype(np.float32)
        odds += np.where(kind == PARTIAL, np.interp(weight, WEIGHT, self.partial), 0).astype(np.float32)
        whole = np.interp(weight, WEIGHT, self.whole).astype(np.float32)
        whole += self.terms[matches.terms] + self.ambiguity[matches.ambiguity]
        whole += np.interp(matches.log_rate, RATE, self.rate).astype(np.float32)
        odds += np.where(kind == WHOLE, whole, 0)
        return odds

    def arrays(self, prefix: str) -> Arrays:
        """Return the terms by name."""
        return {f"{prefix}.{one.name}": getattr(self, one.name) for one in fields(self)}

    @staticmethod
    def restore(arrays: Arrays, prefix: str) -> NameScorer:
        """Return the scorer that these arrays make up; raise a `ValueError` if they cannot."""
        return NameScorer(
            *(expect(arrays[f"{prefix}.{name}"], f"{prefix}.{name}", shape, np.float32) for name, shape in _SHAPES)
        )


_SHAPES: list[tuple[str, tuple[int, ...]]] = [
    ("coverage", (len(COVERAGE),)),
    ("partial", (len(WEIGHT),)),
    ("whole", (len(WEIGHT),)),
    ("terms", (len(TERMS) + 1,)),
    ("ambiguity", (len(AMBIGUITY) + 1,)),
    ("frequency", (_KINDS, len(FREQUENCY) + 1)),
    ("rate", (len(RATE),)),
]


def undecided() -> NameScorer:
    """Return a scorer that is not fitted: all odds are even."""
    return NameScorer(*(np.zeros(shape, dtype=np.float32) for _, shape in _SHAPES))


def fit(matches: Matches, is_right: NDArray[np.bool_]) -> NameScorer:
    """Fit the scorer to matches (one-dimensional) of which it is known whether the label is right."""
    design = _design(matches)
    coefficients = _fitted(design, is_right.astype(np.float64))
    cuts = np.cumsum([int(np.prod(shape)) for _, shape in _SHAPES])[:-1]
    parts = np.split(coefficients.astype(np.float32), cuts)
    return NameScorer(*(part.reshape(shape) for part, (_, shape) in zip(parts, _SHAPES, strict=True)))


def _design(matches: Matches) -> csr_matrix:
    """Return what each coefficient is multiplied with, matches × coefficients, in the order of `_SHAPES`."""
    from scipy.sparse import csr_matrix, hstack

    kind, weight = matches.kind, np.log(np.maximum(matches.weight, _SMALLEST))
    found, is_part, is_whole = (kind == PARTIAL) | (kind == WHOLE), kind == PARTIAL, kind == WHOLE
    cell = kind.astype(np.int64) * (len(FREQUENCY) + 1) + matches.frequency
    blocks = [
        _hats(matches.coverage, COVERAGE, found),
        _hats(weight, WEIGHT, is_part),
        _hats(weight, WEIGHT, is_whole),
        _one_hot(matches.terms, len(TERMS) + 1, is_whole),
        _one_hot(matches.ambiguity, len(AMBIGUITY) + 1, is_whole),
        _one_hot(cell, _KINDS * (len(FREQUENCY) + 1), np.ones(len(kind), dtype=np.bool_)),
        _hats(matches.log_rate, RATE, is_whole),
    ]
    return csr_matrix(hstack(blocks))


def _one_hot(group: NDArray[np.integer], n: int, rows: NDArray[np.bool_]) -> csr_matrix:
    from scipy.sparse import csr_matrix

    return csr_matrix((rows.astype(np.float64), (np.arange(len(group)), group)), shape=(len(group), n))


def _hats(values: NDArray[np.float32], knots: NDArray[np.float32], rows: NDArray[np.bool_]) -> csr_matrix:
    """Return the weights of the two knots around each value."""
    from scipy.sparse import csr_matrix

    clipped = np.clip(np.where(rows, values, knots[0]), knots[0], knots[-1])
    left = np.clip(np.searchsorted(knots, clipped, side="right") - 1, 0, len(knots) - 2)
    upper = (clipped - knots[left]) / (knots[left + 1] - knots[left])
    at = np.arange(len(values))
    entries = np.concatenate([np.where(rows, 1 - upper, 0), np.where(rows, upper, 0)]).astype(np.float64)
    return csr_matrix((entries, (np.tile(at, 2), np.concatenate([left, left + 1]))), shape=(len(at), len(knots)))


def _fitted(X: csr_matrix, y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the coefficients of a logistic regression with a small ridge penalty."""
    from scipy.sparse import diags

    def loss(coefficients: NDArray[np.float64]) -> float:
        odds = X @ coefficients
        return float((np.logaddexp(0, odds) - y * odds).sum() + 0.5 * _RIDGE * np.square(coefficients).sum())

    def slopes(coefficients: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        p = 1 / (1 + np.exp(-np.clip(X @ coefficients, -30, 30)))
        hessian = (X.T @ diags(p * (1 - p)) @ X).toarray() + _RIDGE * np.eye(X.shape[1])
        return X.T @ (p - y) + _RIDGE * coefficients, hessian

    return newton.minimize(loss, slopes, np.zeros(X.shape[1]))
