"""Asking for rows before they are needed.

Processors foresee how a row goes on, not where the next one lies: the first bytes of each would be waited for.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from lightdxml.kernels.jit import kernel

# Bytes that come together.
_LINE = 64
_TO_READ, _TO_WRITE, _KEEP_CLOSE, _DATA = 0, 1, 3, 1


def _asking(purpose: int) -> Any:
    """Return what asks for the bytes of a row at a place, to read them or to write them."""

    def ask(_: Any, row: Any, place: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            where = builder.bitcast(builder.gep(array.data, [arguments[1]]), ir.IntType(8).as_pointer())
            number = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [where.type, number, number, number])
            function = builder.module.declare_intrinsic("llvm.prefetch", [where.type], kind)
            builder.call(function, [where, number(purpose), number(_KEEP_CLOSE), number(_DATA)])
            return context.get_dummy_value()

        return types.void(row, types.intp), code

    return intrinsic(ask)


ask_to_read: Any = _asking(_TO_READ)
ask_to_write: Any = _asking(_TO_WRITE)


@kernel
def fetch(row: NDArray[Any]) -> None:
    """Ask for a row that is going to be read; what it holds does not change."""
    for place in range(0, row.size, _LINE // row.itemsize):
        ask_to_read(row, place)
    # Rows do not begin where lines do.
    ask_to_read(row, row.size - 1)


@kernel
def fetch_to_write(row: NDArray[Any]) -> None:
    """Ask for a row that is going to be written; what it holds does not change."""
    for place in range(0, row.size, _LINE // row.itemsize):
        ask_to_write(row, place)
    ask_to_write(row, row.size - 1)
