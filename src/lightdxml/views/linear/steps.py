"""Linear problems as steps of a training run: parts are solved on all threads, shown and checkpointed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lightdxml.persistence.arrays import Arrays
from lightdxml.views.linear.solver import Problem, Weights, joined, restore_weights

if TYPE_CHECKING:
    from lightdxml.training.run import Run


def solve_step(run: Run, phase: str, name: str, classes: NDArray[np.int32], problem: Callable[[], Problem]) -> Weights:
    """Return the weights of a problem with these classes: from the checkpoint, or computed now."""
    key = run.key(phase, name)
    if key not in run.products:
        run.tick()
        run.products[key] = _solve_parts(run, phase, key, problem()).arrays()
    with run.from_checkpoint(key):
        return solved(run, phase, name, classes)


def solved(run: Run, phase: str, name: str, classes: NDArray[np.int32]) -> Weights:
    """Return the weights of a problem that was solved."""
    return restore_weights(run.product(phase, name), classes, run.data.X.shape[1])


def _solve_parts(run: Run, phase: str, key: str, problem: Problem) -> Weights:
    parts = problem.parts()
    with run.phase(phase, key, len(parts)) as current:
        found = run.map_pieces(current, key, _solve, problem, parts)
        with run.from_checkpoint(key):
            n_features = run.data.X.shape[1]
            pieces = [restore_weights(one, part, n_features) for one, part in zip(found, parts, strict=True)]
        run.progress(current, weights=sum(len(piece.weights) for piece in pieces))
    del found
    run.drop_pieces(key)
    return joined(pieces)


def _solve(problem: Problem, part: NDArray[np.int32]) -> Arrays:
    return problem.solve(part).arrays()
