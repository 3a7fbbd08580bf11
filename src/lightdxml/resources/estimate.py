"""An upper bound of the memory that training needs, checked before it begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lightdxml.training.run import TrainingData

Bytes = dict[str, int]


class MemoryLimitError(ValueError):
    """Training needs more memory than there is."""


@dataclass(frozen=True)
class DataSizes:
    """The sizes of training data that determine how much memory training needs."""

    documents: int

    @staticmethod
    def of(data: TrainingData, *, spilled: bool) -> DataSizes:
        """Return the sizes of training data."""
        return DataSizes(data.X.shape[0])


@dataclass(frozen=True)
class Estimate:
    """Bytes of the phase that needs most."""

    total: int


def check(sizes: DataSizes, config: Any, limit: int | None = None) -> Estimate:
    """Return the estimate."""
    return Estimate(0)
