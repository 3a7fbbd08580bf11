"""Linear problems as steps of a training run: parts are solved on all threads, shown and checkpointed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels import parallel
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
    parts, shown = problem.parts(), 0

    def solve_part(number: int) -> Weights:
        arrays = run.piece(key, number, lambda: problem.solve(parts[number]).arrays())
        with run.from_checkpoint(key):
            return restore_weights(arrays, parts[number], run.data.X.shape[1])

    with run.phase(phase, key, len(parts)) as current:

        def after(done: int) -> None:
            nonlocal shown
            run.progress(current, done - shown)
            shown = done

        pieces = parallel.run(solve_part, range(len(parts)), after)
        figures = {"weights": sum(len(piece.weights) for piece in pieces)}
        run.progress(current, len(parts) - shown, **figures)
    run.drop_pieces(key)
    return joined(pieces)
