"""Helpers for intrinsics: functions whose vector instructions are written out in LLVM's language."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from typing import Any

from llvmlite import ir
from numba import types as _types
from numba.core import cgutils as _cgutils
from numba.core import codegen as _codegen
from numba.core import config as _config
from numba.extending import intrinsic as _intrinsic

# Parts of these have no type information.
types: Any = _types
cgutils: Any = _cgutils
codegen: Any = _codegen
config: Any = _config


def cpu_features() -> list[str]:
    """Return the instruction sets that Numba compiles for: those of this CPU, unless Numba is configured otherwise."""
    configured: str | None = config.CPU_FEATURES
    return str(codegen.get_host_cpu_features() if configured is None else configured).split(",")


def intrinsic(write: Callable[..., None]) -> Any:
    """Turn a function that writes LLVM instructions into one that kernels can call.

    It receives LLVM's builder and the arguments of the call: arrays, which must be C-contiguous, as structs with `data`
    and `shape`, and integers with 64 bits.
    """

    def define(_: Any, *kinds: Any) -> Any:
        assert all(kind.layout == "C" for kind in kinds if isinstance(kind, types.Array))

        def generate(context: Any, builder: Any, call: Any, values: Any) -> Any:
            arguments = [
                context.make_array(kind)(context, builder, value) if isinstance(kind, types.Array) else value
                for kind, value in zip(call.args, values, strict=True)
            ]
            write(builder, *arguments)
            return context.get_dummy_value()

        return types.void(*(kind if isinstance(kind, types.Array) else types.intp for kind in kinds)), generate

    # Numba reads the names of the arguments; the first one is its own.
    own = Parameter("_", Parameter.POSITIONAL_OR_KEYWORD)
    setattr(define, "__signature__", Signature([own, *list(signature(write).parameters.values())[1:]]))  # noqa: B010
    return _intrinsic(define)


def row_start(builder: Any, array: Any, row: Any) -> Any:
    """Return a pointer to the first element of a row of a C-contiguous 2-D array."""
    return builder.gep(array.data, [builder.mul(row, builder.extract_value(array.shape, 1))])


def load_unaligned(builder: Any, pointer: Any, kind: Any) -> Any:
    """Load a vector of this type from any address."""
    loaded = builder.load(builder.bitcast(pointer, kind.as_pointer()))
    loaded.align = 1
    return loaded


def store_unaligned(builder: Any, value: Any, pointer: Any) -> None:
    """Store a vector at any address."""
    builder.store(value, builder.bitcast(pointer, value.type.as_pointer())).align = 1


def shuffle(builder: Any, first: Any, second: Any, lanes: list[int]) -> Any:
    """Return the lanes with these numbers of two vectors, the second one's counted after the first one's."""
    return builder.shuffle_vector(first, second, ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), lanes))


def broadcast(builder: Any, value: Any, lanes: int) -> Any:
    """Return a vector of this many copies of a value."""
    vector = builder.insert_element(
        ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined), value, ir.IntType(32)(0)
    )
    return shuffle(builder, vector, vector, [0] * lanes)
