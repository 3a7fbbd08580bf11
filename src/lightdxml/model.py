"""A trained model: arrays and how they predict; no training code."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml import label_tree, sparse_view
from lightdxml import shortlist as shortlists
from lightdxml.config import Config
from lightdxml.encoder import Encoder, encode, unit_rows
from lightdxml.kernels import ova, parallel, ranking
from lightdxml.kernels.precision import as_bits
from lightdxml.label_tree import LabelTree
from lightdxml.metrics import inverse_propensity_of
from lightdxml.shortlist import Shortlist
from lightdxml.sparse_view import SparseView
from lightdxml.text.tfidf import Vectorizer

_DOCUMENTS = 8192
_MORE = 16
FOUND_BY_WORDS = 100
# How far `tail` goes in a model that has no other, of two views and of three. Scores of two views lie close together:
# nearness alone gives every candidate about a half, and a shift that is small for three views would decide it all.
USUAL_STRENGTH, USUAL_STRENGTH_OF_THREE = 0.02, 0.2


@dataclass(frozen=True)
class Candidates:
    """The labels that a document is scored on, with all views of them.

    Attributes
    ----------
    labels
        Documents × candidates; -1 for none.
    cosines
        How near the label's embedding is.
    logits
        The classifier's score.
    margins
        The sparse view's score; None without it.
    doubts
        The label tree's Σ max(0, 1 − s)²; None without it.
    """

    labels: NDArray[np.int32]
    cosines: NDArray[np.float32]
    logits: NDArray[np.float32]
    margins: NDArray[np.float32] | None = None
    doubts: NDArray[np.float32] | None = None


@dataclass
class Model:
    """Everything that prediction needs.

    Attributes
    ----------
    encoder
        From features to embeddings.
    classifier
        w_j of every label, the bias in the last column; float32 or float16, or int8 with its scale and bias behind.
    shortlist
        The index of label embeddings.
    everywhere
        Labels that are candidates of every document.
    beta
        The classifier's share in the blended score of the two dense views.
    config
        How it was trained.
    label_names
        Their names, or None.
    vectors
        Which word vectors training began with; None for random ones.
    vectorizer
        From texts to features, or None for a model of features.
    label_frequency, n_documents
        How many training documents each label had, and how many there were: what propensities are made of.
    metrics
        What was measured on validation data when it was trained.
    sparse, gamma
        The sparse view, or None, and its share in the blended score.
    tree, tree_share
        The label tree, whose opinion adds to the sparse view's, or None, and how much it counts beside that.
    tail_strength
        The power of 1/p, the inverse propensity, that a label's score is multiplied by where `tail` is 1.
    """

    encoder: Encoder
    classifier: NDArray[Any]
    shortlist: Shortlist
    everywhere: NDArray[np.int32]
    beta: float
    config: Config
    label_frequency: NDArray[np.int32]
    n_documents: int
    label_names: list[str] | None = None
    vectors: str | None = None
    vectorizer: Vectorizer | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    sparse: SparseView | None = None
    gamma: float = 0.0
    tree: LabelTree | None = None
    tree_share: float = 0.0
    tail_strength: float = USUAL_STRENGTH

    @property
    def n_labels(self) -> int:
        """The number of labels, those without documents included."""
        return len(self.classifier)

    @property
    def n_features(self) -> int:
        """The number of features that a document may have."""
        return len(self.encoder.vectors)


def find_candidates(model: Model, X: csr_matrix) -> Candidates:
    """Return each document's candidates with all scores.

    They are its shortlist S_k, the labels that are candidates everywhere, and those that the sparse view finds besides.
    """
    embeddings = encode(model.encoder, X)
    directions = unit_rows(embeddings)
    labels, cosines = _nearest(model, directions)
    if len(model.everywhere):
        more = _everywhere_else(model, labels)
        labels = np.concatenate([labels, more], axis=1)
        cosines = np.concatenate([cosines, shortlists.cosines(model.shortlist, directions, more)], axis=1)
    margins = None
    if model.sparse is not None:
        found = sparse_view.find(model.sparse, X, FOUND_BY_WORDS, labels)
        labels = np.concatenate([labels, found.labels], axis=1)
        margins = np.concatenate([found.other_scores, found.scores], axis=1)
        cosines = np.concatenate([cosines, shortlists.cosines(model.shortlist, directions, found.labels)], axis=1)
    logits = np.empty(labels.shape, dtype=np.float32)

    weights = as_bits(model.classifier)

    def fill(rows: slice, columns: slice) -> None:
        part = embeddings[rows]
        ova.scores(0, len(part), part, weights, labels[rows, columns], logits[rows, columns])

    parallel.over_cells(fill, labels.shape)
    doubts = None if model.tree is None else label_tree.doubts(model.tree, X, labels)
    return Candidates(labels, cosines, logits, margins, doubts)


def _nearest(model: Model, directions: NDArray[np.float32]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return each document's shortlist S_k with its cosines, the same alone as in a batch.

    The index's own cosines differ in the last bits with the size of a batch, and equal ones stand in any order: some
    more labels are asked for, and these are put in order. (Where more labels than those have one embedding at the end
    of the shortlist, which of them are in it may differ.)
    """
    labels, cosines = shortlists.nearest(model.shortlist, directions, model.config.k + _MORE)
    return top(labels, cosines, min(model.config.k, labels.shape[1]))


def _everywhere_else(model: Model, labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the labels that are candidates everywhere, -1 where the shortlist has them already."""
    more = np.tile(model.everywhere, (len(labels), 1))
    place = np.full(model.n_labels + 1, -1, dtype=np.int64)
    place[model.everywhere] = np.arange(len(model.everywhere))
    found = place[labels]  # the last entry, -1, is what a label of -1 gets
    rows, columns = np.nonzero(found >= 0)
    more[rows, found[rows, columns]] = -1
    return more


def blend(candidates: Candidates, beta: float) -> NDArray[np.float32]:
    """Return β σ(classifier) + (1 − β) σ(cosine)."""
    score: NDArray[np.float32] = np.float32(beta) * sigmoid(candidates.logits)
    score += np.float32(1 - beta) * sigmoid(candidates.cosines)
    return score


@dataclass(frozen=True)
class Opinions:
    """What each view says of candidates, as the logarithm of a number from 0 to 1; the tree's None without one.

    The classifier says σ(logit), nearness exp(cosine − 1), the sparse view exp(−max(0, 1 − s)²), a label tree the
    product of such over its nodes.
    """

    classifier: NDArray[np.float32]
    nearness: NDArray[np.float32]
    words: NDArray[np.float32]
    tree: NDArray[np.float32] | None


def opinions(candidates: Candidates) -> Opinions:
    """Return what each view says of candidates of three views."""
    assert candidates.margins is not None
    there = candidates.labels >= 0
    logits = np.where(there, candidates.logits, 0)
    short = np.maximum(1 - np.where(there, candidates.margins, 1), 0)
    chances: NDArray[np.float32] = -np.logaddexp(np.float32(0), -logits)
    tree = None if candidates.doubts is None else -candidates.doubts
    return Opinions(chances, candidates.cosines - 1, -short * short, tree)


def weighed(said: Opinions, beta: float, gamma: float, tree_share: float = 0.0) -> NDArray[np.float32]:
    """Return the logarithm of the blended score.

    The sparse view has the share γ, the classifier β of what is left, nearness the rest; a label tree adds to the
    sparse view.
    """
    score: NDArray[np.float32] = np.float32((1 - gamma) * beta) * said.classifier
    score += np.float32((1 - gamma) * (1 - beta)) * said.nearness
    score += np.float32(gamma) * said.words
    if said.tree is not None and tree_share:
        score += np.float32(gamma * tree_share) * said.tree
    return score


def blend_views(candidates: Candidates, beta: float, gamma: float, tree_share: float = 0.0) -> NDArray[np.float32]:
    """Return the blended score of three views, from 0 to 1: a product of powers, as sums of logarithms."""
    blended: NDArray[np.float32] = np.exp(weighed(opinions(candidates), beta, gamma, tree_share))
    return blended


def score(model: Model, candidates: Candidates, tail: float = 0.0) -> NDArray[np.float32]:
    """Return the blended score of each candidate, the paper's of two views or that of three, shifted by `tail`."""
    if candidates.margins is None:
        blended = blend(candidates, model.beta)
    else:
        blended = blend_views(candidates, model.beta, model.gamma, model.tree_share)
    if tail == 0:
        return blended
    rare = rarity(model.label_frequency[candidates.labels], model.n_documents)
    return shifted(blended, rare, tail * model.tail_strength)


def rarity(frequency: NDArray[np.int32], n_documents: int) -> NDArray[np.float32]:
    """Return log 1/p of labels with so many training documents, less that of a label with one: 0 for such, else below.

    >>> [round(float(one), 2) for one in rarity(np.array([1, 10, 100], dtype=np.int32), 1000)]
    [0.0, -0.67, -1.36]
    """
    rarest = inverse_propensity_of(np.ones(1, dtype=np.int32), n_documents)
    inverse = inverse_propensity_of(np.maximum(frequency, 1), n_documents)
    return np.log(inverse / rarest).astype(np.float32)


def shifted(scores: NDArray[np.float32], rare: NDArray[np.float32], amount: float) -> NDArray[np.float32]:
    """Return scores that are lower the more frequent their labels are; what lay between 0 and 1 stays there.

    >>> shifted(np.array([0.5, 0.5], dtype=np.float32), np.log(np.array([1, 0.5], dtype=np.float32)), 1.0).tolist()
    [0.5, 0.25]
    """
    factors: NDArray[np.float32] = np.exp(np.float32(amount) * rare)
    factors *= scores
    return factors


def sigmoid(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return 1 / (1 + exp(-x)) without overflow.

    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0], dtype=np.float32)).tolist()
    [0.0, 0.5, 1.0]
    """
    low = np.exp(-np.abs(x))
    share: NDArray[np.float32] = np.where(x >= 0, 1 / (1 + low), low / (1 + low))
    return share


def top(
    labels: NDArray[np.int32], scores: NDArray[np.float32], k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the k labels of the highest scores, best first, the lower label of equals first; -1 for none.

    >>> labels, scores = np.array([[7, 5, -1]], dtype=np.int32), np.array([[0.5, 0.5, 0.9]], dtype=np.float32)
    >>> top(labels, scores, 3)[0].tolist()
    [[5, 7, -1]]
    """
    best_labels = np.empty((len(labels), k), dtype=np.int32)
    best_scores = np.empty((len(labels), k), dtype=np.float32)

    def fill(first: int, last: int) -> None:
        ranking.top_of_rows(first, last, labels, scores, best_labels, best_scores)

    parallel.over(fill, len(labels))
    return best_labels, best_scores


def predict(
    model: Model, X: csr_matrix, k: int = 5, tail: float = 0.0
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the k best labels of each document and their scores, best first; label -1 and score 0 for none.

    `tail` is from 0, for precision, to 1, for rare labels.
    """
    check_tail(tail)
    X = check_features(X, model.n_features)
    labels = np.empty((X.shape[0], k), dtype=np.int32)
    scores = np.empty((X.shape[0], k), dtype=np.float32)
    for start, stop in parallel.fixed_chunks(X.shape[0], _DOCUMENTS):
        # Taking rows out of a matrix takes a tenth of a millisecond, a document alone two or three.
        candidates = find_candidates(model, X if stop - start == X.shape[0] else X[start:stop])
        labels[start:stop], scores[start:stop] = top(candidates.labels, score(model, candidates, tail), k)
    # Nothing is known of a document without a known word, and a guess would look like an answer.
    unknown = np.diff(X.indptr) == 0
    labels[unknown], scores[unknown] = -1, 0
    return labels, scores


def check_tail(tail: Any) -> None:
    """Raise where `tail` is no number from 0 to 1.

    >>> check_tail(2)
    Traceback (most recent call last):
    ValueError: tail is 2: it must be a number from 0, for precision, to 1, for rare labels
    """
    is_number = isinstance(tail, int | float | np.integer | np.floating) and not isinstance(tail, bool)
    if not is_number or not 0 <= tail <= 1:
        raise ValueError(f"tail is {tail!r}: it must be a number from 0, for precision, to 1, for rare labels")


def whole_matrix(matrix: Any, name: str) -> csr_matrix:
    """Return a copy as CSR float32 whose parts fit together: compiled code trusts them, and SciPy does not look."""
    copy = csr_matrix(matrix, dtype=np.float32, copy=True)
    try:
        copy.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"{name} is no valid sparse matrix ({error}): build it anew") from error
    return copy


def check_features(X: Any, n_features: int | None = None) -> csr_matrix:
    """Return features as CSR float32 with rows of length 1, or say what is wrong with them."""
    X = whole_matrix(X, "X")
    if n_features is not None and X.shape[1] != n_features:
        raise ValueError(f"X has {X.shape[1]} features, but LightDXML is expecting {n_features} features as input")
    if not np.all(np.isfinite(X.data)):
        raise ValueError("X holds NaN or infinite values: every feature must be a finite number")
    if (X.data < 0).any():
        raise ValueError("Negative values in data passed as X: features are weights of words, from 0")
    X.sum_duplicates()
    X.eliminate_zeros()
    X.indices = X.indices.astype(np.int32, copy=False)
    counts = np.diff(X.indptr)
    rows = np.repeat(np.arange(X.shape[0]), counts)
    # In float64: the square of a large float32 is infinite, that of a small one 0.
    lengths = np.sqrt(np.bincount(rows, weights=X.data.astype(np.float64) ** 2, minlength=X.shape[0]))
    lengths[lengths == 0] = 1
    X.data = (X.data / np.repeat(lengths, counts)).astype(np.float32)
    return X
