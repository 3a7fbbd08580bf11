"""Learning with the linear view: labels of new documents are solved again, from the weights that they have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags

from lightdxml.kernels.sparse import Pattern
from lightdxml.views.lesson import Lesson
from lightdxml.views.linear.groups import LabelGroups
from lightdxml.views.linear.grow import grown, weights_of
from lightdxml.views.linear.inverted import InvertedIndex
from lightdxml.views.linear.model import LinearView
from lightdxml.views.linear.options import SOLVER, SolverOptions
from lightdxml.views.linear.solver import Problem, Weights, joined, no_weights, solve, solver_documents
from lightdxml.views.linear.train import raised
from lightdxml.views.tree.clustering import some_centroids

# Passes over the documents of a label, at most: fewer than in training, because the labels next to it are trained.
_PASSES = 8
# By how much documents must miss the margin to be visited in most of these passes.
_HARD = 0.3


def learn(view: LinearView, lesson: Lesson) -> LinearView:
    """Return the view with the labels of a lesson solved again."""
    data, weight = lesson.data, np.float32(lesson.config.linear.prior)
    prior = some_centroids(data, lesson.from_scratch, lesson.config.names.documents) * weight
    classes = Classes(lesson.labels, data.label_to_docs, _groups(lesson), lesson.n_earlier, prior, data.own_document)
    index = solved_again(lesson, view.index, classes, lesson.from_scratch, view.cost, SOLVER)
    return replace(view, index=replace(index, dense=raised(index.biases)))


@dataclass(frozen=True)
class Classes:
    """Classes of an index to solve again, labels or clusters of labels, each against the documents of its group.

    Attributes
    ----------
    numbers
        The classes, ascending.
    positives
        The documents of every class.
    groups
        The group of every class, and the documents of every group.
    first_new
        The first document that the classes have not learned yet.
    prior
        What training draws the classes to that are solved from scratch; None for zero.
    own
        The document that every class is itself and is not trained on, -1 for none; None if no class is one.
    """

    numbers: NDArray[np.int32]
    positives: csr_matrix
    groups: LabelGroups
    first_new: int
    prior: csr_matrix | None = None
    own: NDArray[np.int32] | None = None


def solved_again(
    lesson: Lesson,
    index: InvertedIndex,
    classes: Classes,
    from_scratch: NDArray[np.int32],
    cost: float,
    solver: SolverOptions,
) -> InvertedIndex:
    """Return an index, of all classes and features of a lesson, with some classes solved again.

    Those in `from_scratch` forget their weights. For the others, only new documents and those that do not reach the
    margin can change the weights, which are near the solution.
    """
    # A class without documents, and without a name, cannot be trained.
    sizes = np.diff(classes.positives.indptr) + (0 if classes.prior is None else np.diff(classes.prior.indptr))
    has_some = sizes[classes.numbers] > 0
    numbers, empty = classes.numbers[has_some], classes.numbers[~has_some]
    few, groups = replace(solver, max_iter=_PASSES, hard=_HARD), classes.groups
    problem = Problem(
        solver_documents(lesson.data), classes.positives, groups.order(numbers), groups.of_label, groups.members,
        cost, few, lesson.config.random_state, own=classes.own,
        **_anchors(lesson, index, numbers, from_scratch, classes, solver.bias),
    )  # fmt: skip
    solved = solve(problem)
    if lesson.remembers:
        # Documents of the empty ones were taken back, and their weights with them.
        solved = joined([solved, no_weights(empty, solver.bias)])
    else:
        solved = _damped(lesson, solved, problem, from_scratch)
    return grown(index, lesson.n_features, classes.positives.shape[0], solver.bias, solved)


def _anchors(
    lesson: Lesson,
    index: InvertedIndex,
    numbers: NDArray[np.int32],
    from_scratch: NDArray[np.int32],
    classes: Classes,
    bias: float,
) -> dict[str, Any]:
    """Return what classes are drawn to: arguments of `Problem`.

    The weights of a known class are the sum of its prior and of what its documents have added. The duals of these
    documents follow from the weights, because the loss is the squared hinge loss. If the documents are not at hand,
    their duals cannot change. The prior of a known class stays as it was: a few new documents move it by little.
    """
    n_classes, known = classes.positives.shape[0], np.setdiff1d(numbers, from_scratch)
    weights = weights_of(index, known)
    weights.resize(n_classes, lesson.n_features)
    biases = np.full(n_classes, bias, dtype=np.float32)
    biases[known] = index.biases[known]
    prior = weights if classes.prior is None else csr_matrix(weights + classes.prior).astype(np.float32)
    anchors: dict[str, Any] = {"prior": prior, "prior_biases": biases}
    if not lesson.remembers:
        return anchors
    is_solved = np.zeros(n_classes, dtype=np.uint8)
    is_solved[known] = 1
    return {**anchors, "is_solved": is_solved, "first_new": classes.first_new}


def _damped(lesson: Lesson, solved: Weights, problem: Problem, from_scratch: NDArray[np.int32]) -> Weights:
    """Return weights of known labels that are as far from what they were as documents about the label are new.

    Earlier documents would resist a change, but are not at hand.
    """
    assert problem.prior is not None
    assert problem.prior_biases is not None
    labels = solved.classes
    new = lesson.evidence[labels]
    share = np.minimum(1, new / np.maximum(lesson.frequency[labels], 1)).astype(np.float32)
    share[np.isin(labels, from_scratch)] = 1
    indptr = np.append(0, np.cumsum(solved.counts))
    found = csr_matrix((solved.weights, solved.columns, indptr), shape=(len(labels), lesson.n_features))
    mixed = csr_matrix(diags(share) @ found + diags(1 - share) @ problem.prior[labels]).astype(np.float32)
    biases = share * solved.biases + (1 - share) * problem.prior_biases[labels]
    return Weights(labels, np.diff(mixed.indptr).astype(np.int64), mixed.indices.astype(np.int32), mixed.data, biases)


def _groups(lesson: Lesson) -> LabelGroups:
    """Return the groups of the labels of a lesson; documents of other groups are left out."""
    data, clusters = lesson.data, lesson.clusters
    if not lesson.remembers:
        return _rehearsal_groups(lesson)
    if clusters is None:
        return LabelGroups(np.zeros(data.n_labels, np.int32), Pattern.of(all_documents(lesson)))
    of_label, found = lesson.placed(clusters.of_label), clusters.of_document
    is_wanted = np.zeros(int(max(of_label.max(initial=0), found.max(initial=0))) + 1, dtype=np.bool_)
    above = of_label[lesson.labels]
    is_wanted[above[above >= 0]] = True
    # Documents that were removed have no features, and are negatives of nothing.
    has_features = np.diff(data.X.indptr) > 0
    places = np.flatnonzero(is_wanted[found] & has_features[:, None])
    negatives = found.ravel()[places], places // max(1, found.shape[1])
    return LabelGroups(np.maximum(of_label, 0), Pattern.of(members_of(lesson, of_label, is_wanted, negatives)))


def _rehearsal_groups(lesson: Lesson) -> LabelGroups:
    """Return two groups: new documents for known labels, and all documents for new ones.

    Documents without features would only raise the bias of their labels.

    A document that stands for earlier ones has a single label. It would be a wrong negative of other labels that these
    had, but new labels have nothing else to be told apart from.
    """
    members = np.repeat(all_documents(lesson).toarray(), 2, axis=0)
    members[0, : lesson.n_earlier] = 0
    of_label = np.zeros(lesson.n_labels, dtype=np.int32)
    of_label[lesson.fresh] = 1
    return LabelGroups(of_label, Pattern.of(csr_matrix(members)))


def all_documents(lesson: Lesson) -> csr_matrix:
    """Return one group of all documents that have features. Those that were removed have none."""
    return csr_matrix((np.diff(lesson.data.X.indptr) > 0).astype(np.float32)[None])


def members_of(
    lesson: Lesson,
    of_label: NDArray[np.int32],
    is_wanted: NDArray[np.bool_],
    negatives: tuple[NDArray[np.integer], NDArray[np.integer]] | None = None,
) -> csr_matrix:
    """Return the documents of wanted groups: those of their labels and, as pairs of group and document, negatives."""
    Y, n = lesson.data.label_to_docs, lesson.data.X.shape[0]
    wanted = np.flatnonzero(is_wanted[of_label] & (of_label >= 0))
    some = Y[wanted]
    groups, documents = np.repeat(of_label[wanted], np.diff(some.indptr)), some.indices
    if negatives is not None:
        groups, documents = (np.concatenate(pair) for pair in zip((groups, documents), negatives, strict=True))
    if not lesson.remembers:
        is_new = documents >= lesson.n_earlier
        groups, documents = groups[is_new], documents[is_new]
    # Documents in ascending order, each of them once.
    members = csr_matrix((np.ones(len(groups), dtype=np.float32), (groups, documents)), shape=(len(is_wanted), n))
    members.sum_duplicates()
    return members
