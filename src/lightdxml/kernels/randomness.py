"""Random numbers within kernels: streams that depend on nothing but their seed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.jit import kernel


@kernel
def stream(seed: int, number: int) -> np.uint64:
    """Return the state at the start of one of many streams of the same seed.

    The bits are mixed as by SplitMix64: linear functions of the number would give streams that resemble each other.
    """
    state = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(number) * np.uint64(0xD1B54A32D192ED03)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.uint64 = state ^ (state >> np.uint64(31))
    return mixed


@kernel
def advance(state: np.uint64) -> np.uint64:
    """Return the next state of Knuth's linear congruential generator, whose high bits are the good ones."""
    following: np.uint64 = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
    return following


@kernel
def below(state: np.uint64, n: int) -> int:
    """Return a number from 0 to n − 1, for n up to 2³¹."""
    number: int = np.int64((state >> np.uint64(33)) % np.uint64(n))
    return number


@kernel
def next_below(state: NDArray[np.uint64], n: int) -> int:
    """Return a number from 0 to n − 1; `state` is one number, which is replaced by the next.

    >>> state = np.array([1], dtype=np.uint64)
    >>> [next_below(state, 10) for _ in range(5)]
    [4, 3, 6, 0, 4]
    """
    state[0] = advance(state[0])
    return below(state[0], n)


@kernel
def uniform(state: np.uint64) -> float:
    """Return a number from 0 up to, but not including, 1."""
    number: float = np.float64(state >> np.uint64(11)) * 2.0**-53
    return number


@kernel
def shuffle(order: NDArray[np.int32], n: int, block: int, state: np.uint64) -> np.uint64:
    """Shuffle blocks of this size among the first n, without the incomplete one; return the next random state."""
    for i in range(n // block - 1, 0, -1):
        state = advance(state)
        j = below(state, i + 1)
        for at in range(block):
            order[i * block + at], order[j * block + at] = order[j * block + at], order[i * block + at]
    return state
