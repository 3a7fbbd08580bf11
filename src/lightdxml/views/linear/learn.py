"""Learning with the linear view: labels of new documents are solved again, from the weights that they have."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.views.lesson import Lesson
from lightdxml.views.linear.groups import LabelGroups
from lightdxml.views.linear.grow import grown, weights_of
from lightdxml.views.linear.inverted import InvertedIndex
from lightdxml.views.linear.model import LinearView
from lightdxml.views.linear.options import SOLVER, SolverOptions
from lightdxml.views.linear.solver import Problem, solve, solver_documents
from lightdxml.views.linear.train import raised
from lightdxml.views.tree.clustering import cluster_labels, some_centroids


def learn(view: LinearView, lesson: Lesson) -> LinearView:
    """Return the view with the labels of a lesson solved again."""
    data, config = lesson.data, lesson.config
    prior = some_centroids(data, lesson.labels, config.names.documents) * np.float32(config.linear.prior)
    anchors = Anchors.of(lesson, view.index, prior)
    index = solved_again(lesson, view.index, _groups(lesson), anchors, view.cost, SOLVER)
    return replace(view, index=replace(index, dense=raised(index.biases)))


@dataclass(frozen=True)
class Anchors:
    """What classes are drawn to, and where they start: arguments of `Problem`."""

    prior: csr_matrix | None
    prior_biases: NDArray[np.float32] | None
    start: csr_matrix | None
    start_biases: NDArray[np.float32] | None

    @staticmethod
    def of(lesson: Lesson, index: InvertedIndex, prior: csr_matrix | None) -> Anchors:
        """Return the anchors of labels that have this prior in training.

        With the documents of training, the problem is that of training, and the old weights are near its solution. The
        duals follow from them, because the loss is the squared hinge loss. Without these documents, their duals cannot
        change: the old weights, which are the sum of what they add, are the prior.
        """
        known = weights_of(index, lesson.labels)
        known.resize(lesson.n_labels, lesson.n_features)
        biases = np.append(index.biases, np.full(lesson.n_labels - len(index.biases), SOLVER.bias, dtype=np.float32))
        if lesson.remembers:
            return Anchors(prior, None, known, biases)
        if prior is not None:
            is_unknown = np.diff(known.indptr) == 0
            known = known + csr_matrix(prior.multiply(is_unknown[:, None]))
        return Anchors(csr_matrix(known), biases, None, None)


def solved_again(
    lesson: Lesson,
    index: InvertedIndex,
    groups: LabelGroups,
    anchors: Anchors,
    cost: float,
    solver: SolverOptions,
) -> InvertedIndex:
    """Return an index with the labels of a lesson solved again, each against the documents of its group."""
    data = lesson.data
    # A label without documents keeps what it has.
    labels = groups.order(lesson.labels[data.label_frequency[lesson.labels] > 0])
    problem = Problem(
        solver_documents(data), data.label_to_docs, labels, groups.of_label, groups.members, cost, solver,
        lesson.config.random_state, anchors.prior, data.own_document, anchors.prior_biases, anchors.start,
        anchors.start_biases,
    )  # fmt: skip
    return grown(index, lesson.n_features, lesson.n_labels, solver.bias, solve(problem))


def _groups(lesson: Lesson) -> LabelGroups:
    """Return the groups of the labels of a lesson; documents of other groups are left out."""
    data, clusters = lesson.data, lesson.clusters
    if clusters is None:
        everything = csr_matrix(np.ones((1, data.X.shape[0]), dtype=np.float32))
        return LabelGroups(np.zeros(data.n_labels, np.int32), everything)
    found = clusters.of_document
    of_label = lesson.placed(clusters.of_label)
    n_clusters = int(max(of_label.max(initial=0), found.max(initial=0))) + 1
    is_wanted = np.zeros(n_clusters, dtype=np.bool_)
    is_wanted[of_label[lesson.labels]] = True
    documents, places = np.nonzero(is_wanted[found])
    pairs = np.ones(len(documents), dtype=np.float32), (documents, found[documents, places])
    matched = csr_matrix(pairs, shape=(len(found), n_clusters))
    return LabelGroups(np.maximum(of_label, 0), members_of(lesson, of_label, is_wanted, matched))


def members_of(
    lesson: Lesson, of_label: NDArray[np.int32], is_wanted: NDArray[np.bool_], others: csr_matrix | None = None
) -> csr_matrix:
    """Return the documents of the labels of wanted groups, and others (documents × groups), by group."""
    wanted = np.where(is_wanted[of_label] & (of_label >= 0), of_label, -1).astype(np.int32)
    documents = cluster_labels(lesson.data.Y, wanted, len(is_wanted))
    members = csr_matrix((documents if others is None else documents + others).T)
    members.sort_indices()
    return members
