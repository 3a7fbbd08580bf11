"""What the processes of a cluster run in tests. Importing it takes less time than importing a test module."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
from numpy.typing import NDArray

Part = list[int]


def scaled(factors: NDArray[np.float64], item: int) -> float:
    return float(factors[item]) * item


def slow(_: None, item: int) -> int:
    # Long enough that no thread takes all items.
    time.sleep(0.01)
    return item


def failing(_: None, item: int) -> int:
    if item == 3:
        raise ValueError("item 3 cannot be done")
    return item


def new_part(shared: NDArray[np.float64], item: int) -> Part:
    return [item, int(shared[item])]


def grow(part: Part, by: int) -> tuple[int, int]:
    part[0] += by
    return part[0], part[1]


def end_process(part: Part, first: int) -> tuple[int]:
    if part[0] == first:
        os.kill(os.getpid(), signal.SIGKILL)
    return (0,)


def total_bytes(arrays: list[NDArray[np.uint8]], item: int) -> int:
    return sum(int(array[item]) for array in arrays)


def row_of(values: NDArray[np.float32], item: int) -> NDArray[np.float32]:
    row: NDArray[np.float32] = values[item]
    return row


def times(row: NDArray[np.float32], factor: np.float32) -> tuple[NDArray[np.float32]]:
    return (row * factor,)
