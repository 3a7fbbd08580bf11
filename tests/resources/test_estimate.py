"""The memory estimate: it grows with the data, refuses in time, and offers settings that fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array

from lightdxml.config import Config, changed
from lightdxml.resources import estimate as module
from lightdxml.resources.estimate import check, estimate
from lightdxml.resources.system import MemoryLimitError
from lightdxml.training.run import TrainingData


def data(
    n: int = 2000, features: int = 3000, labels: int = 400, words: int = 20, held_out: bool = True
) -> TrainingData:
    """Return documents of this many words each, with two labels each; 100 of them are for validation."""
    rng = np.random.default_rng(0)
    X = csr_matrix(random_array((n, features), density=words / features, rng=rng, dtype=np.float32))
    columns = rng.integers(0, labels, 2 * n)
    Y = csr_matrix((np.ones(2 * n, dtype=np.float32), (np.repeat(np.arange(n), 2), columns)), shape=(n, labels))
    Y.data[:] = 1
    return TrainingData(X[100:], Y[100:], X[:100], Y[:100], held_out)


@pytest.fixture(autouse=True)
def _known_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that holds 100 MB on a machine with 1 GB left."""
    monkeypatch.setattr(module, "resident_memory", lambda: 100_000_000)
    monkeypatch.setattr(module, "free_memory", lambda: 1_000_000_000)


# All views of the paper and of ours.
EVERYTHING = changed(Config(), {"dense": "always"})


def test_the_total_is_what_is_held_and_the_largest_phase() -> None:
    need = estimate(data(), EVERYTHING)
    assert need.held == 100_000_000
    assert need.total > need.held + max(need.phases.values())
    assert min(need.phases.values()) > 0
    assert max(need.phases, key=lambda name: need.phases[name]) in str(need)


@pytest.mark.parametrize("more", [{"n": 8000}, {"features": 20_000}, {"labels": 4000}], ids=str)
def test_more_data_need_more(more: dict[str, Any]) -> None:
    assert estimate(data(**more), EVERYTHING).total > estimate(data(), EVERYTHING).total


@pytest.mark.parametrize(
    "settings",
    [{"dim": 768}, {"shortlist_size": 390}, {"dense.batch_size": 1024}, {"precision": "float32"}],
    ids=str,
)
def test_larger_settings_need_more(settings: dict[str, Any]) -> None:
    base = {"dense": "always", "linear": False, "shortlist_size": 50, "dense.batch_size": 8, "dim": 64}
    small, large = (changed(Config(), base | extra) for extra in ({}, settings))
    assert estimate(data(), large).total > estimate(data(), small).total


def test_views_that_are_off_and_a_refit_that_is_off_need_nothing() -> None:
    def phases(held_out: bool = True, **settings: Any) -> set[str]:
        return set(estimate(data(held_out=held_out), changed(EVERYTHING, settings)).phases)

    assert not [name for name in phases(linear=False) if "linear" in name]
    assert not [name for name in phases(refit=False) if name.startswith("refit")]
    assert not [name for name in phases(held_out=False) if name.startswith("refit")]
    assert [name for name in phases() if name.startswith("refit")]


def test_spilled_shortlists_are_not_counted() -> None:
    in_memory, spilled = (estimate(data(20_000), EVERYTHING, spilled=spilled) for spilled in (False, True))
    assert spilled.total < in_memory.total


def test_what_does_not_fit_is_refused_with_settings_that_do() -> None:
    large = changed(EVERYTHING, {"dim": 1024})
    limit = int(0.8 * estimate(data(), large).total)
    with pytest.raises(MemoryLimitError, match=r"training needs \d+ MB of memory and the limit is \d+ MB: ") as refused:
        check(data(), large, limit)
    message = str(refused.value)
    assert "\n" not in message
    given = dict(part.split("=") for part in message.partition("it would fit with ")[2].split(", "))
    assert given
    assert check(data(), changed(large, given), limit).total <= limit


def test_if_no_settings_fit_the_message_says_what_else_to_do() -> None:
    with pytest.raises(MemoryLimitError, match=r"use a spill directory .--spill., fewer features .* or fewer"):
        check(data(), EVERYTHING, 10**6)
    with pytest.raises(MemoryLimitError, match=r": fewer features"):
        check(data(), EVERYTHING, 10**6, spilled=True)


def test_without_a_limit_the_free_memory_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    need = estimate(data(), EVERYTHING)
    # What the process holds already is not asked for twice.
    monkeypatch.setattr(module, "free_memory", lambda: need.total - need.held)
    assert check(data(), EVERYTHING) == need
    monkeypatch.setattr(module, "free_memory", lambda: (need.total - need.held) // 4)
    with pytest.raises(MemoryLimitError, match="are available"):
        check(data(), EVERYTHING)
    monkeypatch.setattr(module, "free_memory", lambda: None)
    assert check(data(), EVERYTHING) == need
