"""The memory that training needs, checked before it begins.

What the process holds already is measured. What training adds is a bound over the dominant arrays of each phase, which
the views contribute (`View.memory`). `benchmarks/memory.py` compares it with what training really takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lightdxml.config import Config, changed
from lightdxml.resources.system import MemoryLimitError, format_bytes, free_memory, resident_memory
from lightdxml.views.registry import VIEWS

if TYPE_CHECKING:
    from lightdxml.training.run import TrainingData

# Allocators and libraries keep some memory that no array accounts for.
# Validation documents that weights of views are fitted to, and bytes per candidate: two numbers per view, in copies.
_FITTED, _FIT_BYTES = 5000, 250
_OVERHEAD = 1.05
# If the resident memory is unknown: the interpreter with everything that training imports.
_PROGRAM = 300_000_000


@dataclass(frozen=True)
class Estimate:
    """The memory that training needs at its peak.

    Attributes
    ----------
    held
        What the process holds before training, in bytes.
    phases
        What each phase adds to that.
    """

    held: int
    phases: dict[str, int]

    @property
    def total(self) -> int:
        """The peak in bytes."""
        return self.held + round(_OVERHEAD * max(self.phases.values()))

    def __str__(self) -> str:
        largest = max(self.phases, key=lambda name: self.phases[name])
        return f"{format_bytes(self.total)} of memory, most of it in the phase {largest!r}"


def estimate(data: TrainingData, config: Config, *, spilled: bool = False) -> Estimate:
    """Return the memory that training on these data needs.

    Parameters
    ----------
    data
        The training data.
    config
        All settings.
    spilled
        Whether shortlists are kept in a spill directory.
    """
    kept = 8 * data.Y.nnz
    phases: dict[str, int] = {}
    memory = {name: view.memory(data, config, spilled) for name, view in VIEWS.items()}
    for name, view in memory.items():
        if view.training:
            phases[name] = kept + view.training
        kept += view.kept
    phases["blend"] = kept + _blend_bytes(data, config)
    if data.held_out and config.refit:
        features = 0 if spilled else data.X.nnz + data.X_validation.nnz
        documents = 8 * (features + 2 * data.Y.nnz)
        for name, view in memory.items():
            if view.refit:
                phases[f"refit {name}"] = kept + documents + view.refit
    return Estimate(resident_memory() or _PROGRAM, phases)


def _blend_bytes(data: TrainingData, config: Config) -> int:
    """Return the bytes of validation documents' candidates: labels, log-scores of all views, and the fit of weights."""
    n = int(data.X_validation.shape[0])
    names = 0 if data.names is None else config.names.proposals
    proposed = config.dense.shortlist_size * config.dense.enabled + config.linear.proposals + names
    candidates = min(proposed, 2 * len(data.trained_labels))
    fitted = min(n, _FITTED) * candidates * _FIT_BYTES
    return 4 * n * (9 * candidates + 2 * config.dense.dim) + fitted


def check(data: TrainingData, config: Config, limit: int | None = None, *, spilled: bool = False) -> Estimate:
    """Return the estimate; raise a `MemoryLimitError` if it exceeds the limit or the free memory of the machine."""
    need = estimate(data, config, spilled=spilled)
    allowed = limit
    if allowed is None:
        free = free_memory()
        if free is None:
            return need
        allowed = free + need.held
    if need.total <= allowed:
        return need
    there = f"the limit is {format_bytes(allowed)}" if limit is not None else f"{format_bytes(allowed)} are available"
    advice = _advice(data, config, allowed, spilled)
    raise MemoryLimitError(f"training needs {format_bytes(need.total)} of memory and {there}: {advice}")


def _advice(data: TrainingData, config: Config, allowed: int, spilled: bool) -> str:
    """Return which settings would fit, or what else to try."""
    for settings in _smaller(config):
        if estimate(data, changed(config, settings), spilled=spilled).total <= allowed:
            return f"it would fit with {', '.join(f'{name}={value}' for name, value in settings.items())}"
    spill = "" if spilled else "use a spill directory (--spill), "
    return f"{spill}fewer features (max_features for texts) or fewer documents"


def _smaller(config: Config) -> Iterator[dict[str, Any]]:
    """Yield settings that need less and less memory, the least harmful ones first."""
    settings: dict[str, Any] = {}
    dense = config.dense
    steps: list[dict[str, Any]] = [
        {"refit": False},
        {"tree.max_trees": 1},
        {"tree": False},
    ]
    if dense.enabled:
        steps = [
            {"shortlist_size": max(1, dense.shortlist_size // 2)},
            {"dim": max(1, dense.dim // 2)},
            *steps,
            {"shortlist_size": max(1, dense.shortlist_size // 4)},
            {"dim": max(1, dense.dim // 4)},
            {"linear": False},
            {"dim": max(1, dense.dim // 8), "shortlist_size": max(1, dense.shortlist_size // 8)},
        ]
    for step in steps:
        settings = {**settings, **step}
        yield settings
