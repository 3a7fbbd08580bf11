"""Software prefetch of rows that are read or written in no predictable order.

CPUs predict how a row goes on, not where the next row starts: without a prefetch its first bytes are waited for.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numpy.typing import NDArray

from lightdxml.kernels import intrinsics as llvm
from lightdxml.kernels.jit import kernel

_CACHE_LINE = 64
# Arguments of LLVM's instruction: read or write, keep in all cache levels, data.
_READ, _WRITE, _LOCALITY, _DATA = 0, 1, 3, 1


def _prefetch(purpose: int) -> Any:
    """Return an intrinsic that prefetches the cache line of array[i]."""

    @llvm.intrinsic
    def prefetch(builder: Any, array: Any, i: Any) -> None:
        address = builder.bitcast(builder.gep(array.data, [i]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [address.type], kind)
        builder.call(function, [address, number(purpose), number(_LOCALITY), number(_DATA)])

    return prefetch


prefetch_item: Any = _prefetch(_READ)
_prefetch_item_for_write: Any = _prefetch(_WRITE)


@kernel
def prefetch_row(row: NDArray[Any]) -> None:
    """Prefetch a row that will be read."""
    for i in range(0, row.size, _CACHE_LINE // row.itemsize):
        prefetch_item(row, i)
    # Rows do not start at the start of a cache line.
    prefetch_item(row, row.size - 1)


@kernel
def prefetch_row_for_write(row: NDArray[Any]) -> None:
    """Prefetch a row that will be written."""
    for i in range(0, row.size, _CACHE_LINE // row.itemsize):
        _prefetch_item_for_write(row, i)
    _prefetch_item_for_write(row, row.size - 1)
