"""What validation documents choose."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml.config import changed
from lightdxml.training import choose
from lightdxml.training.run import Run, TrainingData
from tests.support.configs import small

Metrics = dict[str, float]


def metrics(precision: float, psp: float = 0.0) -> Metrics:
    return {f"P@{k}": precision for k in choose.CUTS} | {f"PSP@{k}": psp for k in choose.CUTS}


def run_of(n_validation: int = 4, **settings: Any) -> Run:
    """Return a run of two labels, of which the second is rare, and validation documents that all have it."""
    frequent, rare = [[1, 0]] * 50, [[0, 1]] * 2
    Y = csr_matrix(np.array(frequent + rare, dtype=np.float32))
    X = csr_matrix(np.ones((52, 1), dtype=np.float32))
    Y_validation = csr_matrix(np.array([[0, 1]] * n_validation, dtype=np.float32))
    data = TrainingData(X, Y, csr_matrix(np.ones((n_validation, 1), dtype=np.float32)), Y_validation)
    return Run(data, small(**settings))


def both_labels(n: int) -> np.ndarray:
    return np.tile(np.array([0, 1], dtype=np.int32), (n, 1))


def test_psp_decides_among_results_of_equal_precision() -> None:
    results = [(0.1, metrics(50, 20)), (0.2, metrics(49.6, 30)), (0.3, metrics(40, 90))]
    assert choose.choose(results, 0.5)[0] == 0.2
    assert choose.choose(results, 0.0)[0] == 0.1


def test_if_nothing_is_best_at_all_cuts_the_smallest_loss_decides() -> None:
    a = metrics(50, 10) | {"P@5": 40.0}
    b = metrics(41, 90) | {"P@5": 50.0}
    assert choose.choose([(0.1, a), (0.2, b)], 0.5)[0] == 0.2
    assert choose.choose([(0.1, a), (0.2, metrics(30, 90) | {"P@5": 50.0})], 0.5)[0] == 0.1


def test_the_strength_of_tail_is_the_weakest_that_serves_rare_labels_best() -> None:
    run = run_of(blend__tail_documents=4)
    scores = np.zeros((4, 2))
    curve = choose.tail_curve(run, both_labels(4), scores, (0.0, 0.01, 1.0))
    # Of equal scores the lower label wins, unless the rarer one is preferred.
    assert [measured["PSP@1"] for _, measured in curve] == [0, 100, 100]
    assert choose.choose_tail(run, both_labels(4), scores, 7.0) == (0.0, 0.01)
    assert choose.choose_tail(run_of(), both_labels(4), scores, 7.0) == (0.0, 7.0), "with few documents the default"


@pytest.mark.parametrize(
    ("first", "lowest"),
    [
        ({"P@1": 50.0, "P@3": 50.0, "P@5": 50.0}, 0.3),
        ({"P@1": 49.92, "P@3": 50.05, "P@5": 50.05}, 0.3),  # one falls a little, the mean does not
        ({"P@1": 49.98, "P@3": 50.0, "P@5": 50.0}, 0.3),  # the mean falls, by less than a document makes
        ({"P@1": 49.92, "P@3": 50.0, "P@5": 50.0}, 0.0),  # the mean falls
        ({"P@1": 49.8, "P@3": 50.5, "P@5": 50.5}, 0.0),  # one falls too far
    ],
)
def test_at_0_the_shift_ends_before_it_costs_precision_and_is_not_above_that_at_1(
    monkeypatch: pytest.MonkeyPatch, first: dict[str, float], lowest: float
) -> None:
    precisions = {0.0: 50.0, 0.05: first, 0.3: 51.0, 0.6: 49.0, 0.8: 55.0, 1.0: 55.0, 2.0: 55.0}
    rare = {0.0: 20.0, 0.05: 22.0, 0.3: 24.0, 0.6: 25.0, 0.8: 28.0, 1.0: 30.0, 2.0: 28.0}

    def curve(*_: Any) -> Any:
        same = {s: p if isinstance(p, dict) else {f"P@{k}": p for k in (1, 3, 5)} for s, p in precisions.items()}
        return [(s, same[s] | {f"PSP@{k}": rare[s] for k in (1, 3, 5)}) for s in precisions]

    monkeypatch.setattr(choose, "tail_curve", curve)
    labels, scores = both_labels(4), np.zeros((4, 2))
    enough = run_of(blend__tail_documents=4, blend__min_documents=4)
    assert choose.choose_tail(enough, labels, scores, 7.0) == (lowest, 1.0)
    assert choose.choose_tail(run_of(blend__tail_documents=4), labels, scores, 7.0) == (0.0, 1.0)


def test_a_document_without_features_counts_as_wrong() -> None:
    run = run_of()
    empty = csr_matrix((4, 1), dtype=np.float32)
    run.data = TrainingData(run.data.X, run.data.Y, empty, run.data.Y_validation)
    scores = np.array([[0.1, 0.9]] * 4, dtype=np.float32)
    assert choose.measure(run, both_labels(4), scores)["P@1"] == 0
    assert choose.measure(run_of(), both_labels(4), scores)["P@1"] == 100


def test_settings_of_the_choice_are_validated() -> None:
    with pytest.raises(ValueError, match="beta is 2"):
        changed(small(), {"blend.beta": 2})
