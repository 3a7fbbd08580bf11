"""Learning with the linear view: labels of new documents are solved again, from the weights that they have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags

from lightdxml.views.lesson import Lesson
from lightdxml.views.linear.groups import LabelGroups
from lightdxml.views.linear.grow import grown, weights_of
from lightdxml.views.linear.inverted import InvertedIndex
from lightdxml.views.linear.model import LinearView
from lightdxml.views.linear.options import SOLVER, SolverOptions
from lightdxml.views.linear.solver import Problem, joined, solve, solver_documents
from lightdxml.views.linear.train import raised
from lightdxml.views.tree.clustering import some_centroids

# Passes over the documents of a label, at most: fewer than in training, because the labels next to it are trained.
_PASSES = 8
# By how much documents must miss the margin to be visited in most of these passes.
_HARD = 0.3


def learn(view: LinearView, lesson: Lesson) -> LinearView:
    """Return the view with the labels of a lesson solved again."""
    data, weight = lesson.data, np.float32(lesson.config.linear.prior)
    prior = some_centroids(data, lesson.labels, lesson.config.names.documents) * weight
    known = np.setdiff1d(lesson.labels, lesson.anew)
    before = some_centroids(lesson.earlier, known, lesson.config.names.documents) * weight
    before.resize(prior.shape)
    groups, own = _groups(lesson), data.own_document
    classes = Classes(lesson.labels, data.label_to_docs, groups, lesson.n_earlier, prior, before, own)
    index = solved_again(lesson, view.index, classes, lesson.anew, view.cost, SOLVER)
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
    prior, prior_before
        What training draws every class to, with all documents and without the new ones; None for zero.
    own
        The document that every class is itself and is not trained on, -1 for none; None if no class is one.
    """

    numbers: NDArray[np.int32]
    positives: csr_matrix
    groups: LabelGroups
    first_new: int
    prior: csr_matrix | None = None
    prior_before: csr_matrix | None = None
    own: NDArray[np.int32] | None = None


def solved_again(
    lesson: Lesson,
    index: InvertedIndex,
    classes: Classes,
    anew: NDArray[np.int32],
    cost: float,
    solver: SolverOptions,
) -> InvertedIndex:
    """Return an index, of all classes and features of a lesson, with some classes solved again.

    Those in `anew` are solved from scratch. For the others, only new documents and those that do not reach the margin
    can change the weights, which are near the solution.
    """
    # A class without documents, and without a name, keeps what it has.
    sizes = np.diff(classes.positives.indptr) + (0 if classes.prior is None else np.diff(classes.prior.indptr))
    numbers = classes.numbers[sizes[classes.numbers] > 0]
    is_anew = np.isin(numbers, anew)
    few, seed, parts = replace(solver, max_iter=_PASSES, hard=_HARD), lesson.config.random_state, []
    for some, anchors in (
        (numbers[is_anew], {"prior": classes.prior}),
        (numbers[~is_anew], _anchors(lesson, index, numbers[~is_anew], classes, solver.bias)),
    ):
        if len(some):
            problem = Problem(
                solver_documents(lesson.data), classes.positives, classes.groups.order(some), classes.groups.of_label,
                classes.groups.members, cost, few, seed, own=classes.own, **anchors,
            )  # fmt: skip
            parts.append(solve(problem))
    return grown(index, lesson.n_features, classes.positives.shape[0], solver.bias, joined(parts))


def _anchors(
    lesson: Lesson, index: InvertedIndex, numbers: NDArray[np.int32], classes: Classes, bias: float
) -> dict[str, Any]:
    """Return what known classes are drawn to, and where they start: arguments of `Problem`.

    The weights of a class are the sum of its prior and of what its documents have added. The duals of these documents
    follow from the weights, because the loss is the squared hinge loss. If the documents are not at hand, their duals
    cannot change.
    """
    n_classes = classes.positives.shape[0]
    known = weights_of(index, numbers)
    known.resize(n_classes, lesson.n_features)
    biases = np.append(index.biases, np.full(n_classes - len(index.biases), bias, dtype=np.float32))
    anchors: dict[str, Any] = {"prior": known, "prior_biases": biases}
    if not lesson.remembers:
        return anchors
    if classes.prior is not None and classes.prior_before is not None:
        kept = np.zeros(n_classes, dtype=np.float32)
        kept[numbers] = 1
        anchors["prior"] = csr_matrix(known + diags(kept) @ (classes.prior - classes.prior_before)).astype(np.float32)
    return {**anchors, "start": known, "start_biases": biases, "first_new": classes.first_new}


def _groups(lesson: Lesson) -> LabelGroups:
    """Return the groups of the labels of a lesson; documents of other groups are left out."""
    data, clusters = lesson.data, lesson.clusters
    if not lesson.remembers:
        return _rehearsal_groups(lesson)
    if clusters is None:
        return LabelGroups(np.zeros(data.n_labels, np.int32), all_documents(lesson))
    of_label, found = lesson.placed(clusters.of_label), clusters.of_document
    is_wanted = np.zeros(int(max(of_label.max(initial=0), found.max(initial=0))) + 1, dtype=np.bool_)
    above = of_label[lesson.labels]
    is_wanted[above[above >= 0]] = True
    # Documents that were removed have no features, and are negatives of nothing.
    has_features = np.diff(data.X.indptr) > 0
    places = np.flatnonzero(is_wanted[found] & has_features[:, None])
    negatives = found.ravel()[places], places // max(1, found.shape[1])
    return LabelGroups(np.maximum(of_label, 0), members_of(lesson, of_label, is_wanted, negatives))


def _rehearsal_groups(lesson: Lesson) -> LabelGroups:
    """Return two groups: new documents for known labels, and all documents for new ones.

    A document that stands for earlier ones has a single label. It would be a wrong negative of other labels that these
    had, but new labels have nothing else to be told apart from.
    """
    members = np.ones((2, lesson.data.X.shape[0]), dtype=np.float32)
    members[0, : lesson.n_earlier] = 0
    of_label = np.zeros(lesson.n_labels, dtype=np.int32)
    of_label[lesson.fresh] = 1
    return LabelGroups(of_label, csr_matrix(members))


def all_documents(lesson: Lesson) -> csr_matrix:
    """Return one group of all documents that have features; those that were removed have none."""
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
