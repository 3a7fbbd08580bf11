"""Training of the linear view: each label against all documents, or against its hard negatives."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags

from lightdxml.kernels.linear import LANES
from lightdxml.metrics import evaluate
from lightdxml.persistence.arrays import Arrays
from lightdxml.views.base import Batch, expect
from lightdxml.views.linear.groups import LabelGroups, fits_all_documents, refit_groups, training_groups
from lightdxml.views.linear.inverted import InvertedIndex, log_sigmoid, margins_of, search
from lightdxml.views.linear.model import LinearView
from lightdxml.views.linear.options import SOLVER, LinearOptions
from lightdxml.views.linear.solver import Problem, Weights, inverted, solve, solver_documents
from lightdxml.views.linear.steps import solve_step, solved
from lightdxml.views.tree.clustering import named_centroids
from lightdxml.views.tree.matcher import match

if TYPE_CHECKING:
    from lightdxml.training.run import Run, TrainingData

_PHASE, _LABELS = "linear view", "labels"
_CUTS = (1, 3, 5)
# Validation documents with one of the tried labels that are enough to compare costs.
_ENOUGH = 100
# How costs are compared: candidates per document, and the weight of the clusters that contain a label. Next to a label
# tree, higher costs do better.
_CANDIDATES, _TREE_WEIGHT = 50, 0.5
# A bias that was raised by more than this may rank a label high that shares no feature with the document.
_RAISED = 0.05


def train(run: Run) -> LinearView:
    """Train the view on the training documents; its steps are checkpointed."""
    data, groups = run.data, training_groups(run)
    labels = groups.order(data.trained_labels.astype(np.int32))
    cost = _cost(run, groups)
    weights = solve_step(run, _PHASE, _LABELS, labels, lambda: _problem(run, data, groups, labels, cost))
    return LinearView(_inverted(run, [weights]), run.config.linear.proposals, cost)


def refit(view: LinearView, run: Run) -> LinearView:
    """Train the labels of held-out documents again, with these documents."""
    data = run.data
    groups = training_groups(run)
    trained = solved(run, _PHASE, _LABELS, groups.order(data.trained_labels.astype(np.int32)))
    later = refit_groups(run)
    labels = later.order(np.unique(data.Y_validation.indices).astype(np.int32))
    cost = _cost(run, groups)
    again = solve_step(
        run, f"refit {_PHASE}", _LABELS, labels, lambda: _problem(run, run.all_data, later, labels, cost)
    )
    # Of a label that was trained twice the last weights count.
    return replace(view, index=_inverted(run, [trained, again]))


def _problem(run: Run, data: TrainingData, groups: LabelGroups, labels: NDArray[np.int32], cost: float) -> Problem:
    prior = None
    if run.config.linear.prior:
        centroids = named_centroids(data, run.config.names.documents)
        prior = centroids * np.float32(run.config.linear.prior)
    seed = run.config.random_state
    return Problem(
        solver_documents(data), data.label_to_docs, labels, groups.of_label, groups.members, cost, SOLVER, seed, prior,
        data.own_document,
    )  # fmt: skip


def _inverted(run: Run, trained: list[Weights]) -> InvertedIndex:
    data = run.data
    biases = np.full(data.n_labels, SOLVER.bias, dtype=np.float32)
    for part in trained:
        biases[part.classes] = part.biases
    return inverted(trained, data.X.shape[1], data.n_labels, run.config.precision, SOLVER.bias, raised(biases))


def raised(biases: NDArray[np.float32]) -> NDArray[np.int32]:
    """Return the labels that may rank high although they share no feature with the document: their bias was raised."""
    return np.flatnonzero(biases > SOLVER.bias + _RAISED).astype(np.int32)


def _cost(run: Run, groups: LabelGroups) -> float:
    """Return the cost that ranks validation documents best; it is compared on some of the labels."""
    options, data = run.config.linear, run.data
    if len(options.costs) == 1:
        return options.costs[0]
    tried = _some_blocks(groups.order(data.known_labels.astype(np.int32)), groups.of_label, options)
    truth = _only(data.Y_validation, tried)
    rows = np.flatnonzero(np.diff(truth.indptr))
    if data.X_validation.shape[0] < run.config.blend.min_documents or len(rows) < _ENOUGH:
        return options.default_cost
    batch = Batch(data.X_validation[rows], None if data.own_validation is None else data.own_validation[rows])

    def measure(bounds: tuple[int, int]) -> Arrays:
        weights = solve(_problem(run, data, groups, tried, options.costs[bounds[0]]), lambda _: run.tick())
        found = evaluate(truth[rows], _ranked(run, _inverted(run, [weights]), batch), k=_CUTS)
        return {"precisions": np.array([sum(found[f"P@{k}"] for k in _CUTS)])}

    def check(product: Arrays) -> float:
        precisions = expect(product["precisions"], "precisions", (len(options.costs),), np.float64)
        # Of equals the lower cost.
        return min(zip((-precisions).tolist(), options.costs, strict=True))[1]

    return run.chunks(_PHASE, "cost", len(options.costs), 1, measure, check)


def _some_blocks(labels: NDArray[np.int32], groups: NDArray[np.int32], options: LinearOptions) -> NDArray[np.int32]:
    """Return the labels on which costs are compared: evenly spaced blocks of the solver."""
    firsts = np.flatnonzero(np.diff(groups[labels], prepend=-1))
    parts = np.split(labels, firsts[1:])
    blocks = [part[i : i + LANES] for part in parts for i in range(0, len(part), LANES)]
    wanted = max(options.tried_labels, options.tried_share * len(labels))
    return np.concatenate(blocks[:: max(1, int(len(labels) / wanted))])


def _only(Y: csr_matrix, labels: NDArray[np.int32]) -> csr_matrix:
    """Return a label matrix without all other labels."""
    kept = np.zeros(Y.shape[1], dtype=np.float32)
    kept[labels] = 1
    some = csr_matrix(Y @ diags(kept))
    some.eliminate_zeros()
    return some


def _ranked(run: Run, index: InvertedIndex, batch: Batch) -> NDArray[np.int32]:
    """Return the best labels by margin and, if there is a matcher, by the clusters that contain them."""
    labels, margins, _ = search(index, batch, _CANDIDATES, np.empty((len(batch), 0), dtype=np.int32))
    scores = log_sigmoid(margins, labels)
    if not fits_all_documents(run.data, run.config.linear):
        matcher = match(run, 0)
        paths = np.where(labels[:, :, None] >= 0, matcher.paths(matcher.clusters[labels]), -1)
        clusters = paths.reshape(len(labels), -1)
        log_scores = log_sigmoid(margins_of(matcher.index, batch, clusters), clusters)
        scores += np.float32(_TREE_WEIGHT) * log_scores.reshape(paths.shape).sum(axis=2)
    if batch.own is not None:
        scores[labels == batch.own[:, None]] = -np.inf
    scores[labels < 0] = -np.inf
    # Ties by label: the order in which a search finds labels is arbitrary.
    order = np.lexsort((labels, -scores), axis=1)[:, : max(_CUTS)]
    return np.take_along_axis(labels, order, axis=1)
