"""Values as bytes and large arrays: the arrays travel once, and are read where they are."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ray import cloudpickle

# Arrays below this size travel with the bytes.
_LARGE = 1 << 16


@dataclass(frozen=True)
class Packed:
    """The bytes of a value, and its large arrays, or references to them, in the order of their first use."""

    content: bytes
    arrays: list[Any]


def pack(value: Any, put: Callable[[Any], Any]) -> Packed:
    """Return a value packed; `put` stores a large array, and returns a reference to it."""
    stream, arrays = io.BytesIO(), list[Any]()
    _Pickler(stream, put, arrays).dump(value)
    return Packed(stream.getvalue(), arrays)


def unpack(packed: Packed) -> Any:
    """Return the value, with read-only arrays.

    >>> value = {"small": 1, "large": np.ones(100_000)}
    >>> unpack(pack(value, lambda array: array))["large"].sum().item()
    100000.0
    """
    return _Unpickler(io.BytesIO(packed.content), packed.arrays).load()


class _Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
    def __init__(self, stream: io.BytesIO, put: Callable[[Any], Any], arrays: list[Any]) -> None:
        super().__init__(stream, protocol=5)
        self._put, self._arrays, self._places = put, arrays, dict[int, int]()

    def persistent_id(self, value: Any) -> int | None:
        if not isinstance(value, np.ndarray) or value.nbytes < _LARGE or value.dtype == object:
            return None
        value = _viewed(value)
        if id(value) not in self._places:
            self._places[id(value)] = len(self._arrays)
            self._arrays.append(self._put(value))
        return self._places[id(value)]


def _viewed(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array that another one is a view of, if it has the same cells: both travel as one.

    >>> array = np.zeros(4)
    >>> _viewed(array.view()) is array, _viewed(array[1:]) is array, _viewed(array.view(np.uint64)) is array
    (True, False, False)
    """
    while isinstance(base := array.base, np.ndarray) and _layout(base) == _layout(array):
        array = base
    return array


def _layout(array: NDArray[Any]) -> tuple[object, ...]:
    return array.ctypes.data, array.dtype, array.shape, array.strides


class _Unpickler(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, arrays: list[Any]) -> None:
        super().__init__(stream)
        self._arrays = arrays

    def persistent_load(self, place: int) -> Any:
        return self._arrays[place]
