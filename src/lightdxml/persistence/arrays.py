"""Arrays and JSON on disk: safetensors files, read as memory-mapped views; nothing in them is trusted."""

from __future__ import annotations

import hashlib
import json
import math
import stat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save_file

from lightdxml.persistence.files import Content, map_file, release

Arrays = dict[str, NDArray[Any]]
_TYPES: dict[str, np.dtype[Any]] = {"F16": np.dtype("<f2"), "F32": np.dtype("<f4"), "I32": np.dtype("<i4")}
_TYPES |= {"F64": np.dtype("<f8"), "I64": np.dtype("<i8"), "U16": np.dtype("<u2"), "I8": np.dtype("i1")}
_TYPES |= {"U8": np.dtype("u1")}
_MAX_HEADER, MAX_JSON = 1 << 24, 1 << 28
_BLOCK = 1 << 22
# No number of a model is as large. Below it, scores cannot overflow to NaN: encoder, residual layer and classifier
# multiply three of them.
MAX_VALUE = 1e9


def write(path: Path, arrays: Arrays) -> None:
    """Write arrays of float16, float32, float64, int8, uint8, uint16, int32 or int64."""
    for name, array in arrays.items():
        # What cannot be read must not be written: the work in a checkpoint would be lost.
        if array.dtype not in _TYPES.values():
            raise TypeError(f"array {name} has the type {array.dtype}, which is not stored")
    path.touch()
    mode = path.stat().st_mode
    try:
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path)
    except SafetensorError as error:
        raise OSError(f"{path} cannot be written ({error}): is the disk full?") from error
    # The library makes files that only their owner can read, whatever the umask says.
    path.chmod(stat.S_IMODE(mode))


def read(path: Path) -> Arrays:
    """Return views of the arrays in a file; pages are read when they are used.

    Several processes that read one file share one copy in memory.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder) / "a.safetensors", {"ones": np.ones((1, 2), dtype=np.float16)})
    ...     read(Path(folder) / "a.safetensors")["ones"].tolist()
    [[1.0, 1.0]]
    """
    return parse(map_file(path), path.name)


def parse(content: Content, name: str) -> Arrays:
    """Return views of the arrays in the bytes of a file; every array must lie within them."""
    size = len(content)
    if size < 8:
        raise ValueError(f"{name} is truncated")
    length = int.from_bytes(content[:8].tobytes(), "little")
    if length > min(size - 8, _MAX_HEADER):
        raise ValueError(f"{name} has a header of {length} bytes")
    header = json.loads(content[8 : 8 + length].tobytes())
    if not isinstance(header, dict):
        raise ValueError(f"{name} has a header of another form")
    body = content[8 + length :]
    return {array: _view(body, array, entry) for array, entry in header.items() if array != "__metadata__"}


def _view(body: NDArray[np.uint8], name: str, entry: Any) -> NDArray[Any]:
    try:
        kind, shape, (start, stop) = _TYPES[entry["dtype"]], entry["shape"], entry["data_offsets"]
        valid = all(type(n) is int and n >= 0 for n in (*shape, start, stop))
    except (TypeError, KeyError, ValueError) as error:
        raise ValueError(f"array {name} has a wrong description") from error
    if not valid or not start <= stop <= len(body) or stop - start != math.prod(shape) * kind.itemsize:
        raise ValueError(f"array {name} does not lie within its file")
    view: NDArray[Any] = body[start:stop].view(kind).reshape(shape)
    return view


def check_finite(arrays: dict[str, NDArray[Any]], limit: float = np.inf) -> None:
    """Raise a `ValueError` if a floating-point array holds NaN, or values that are infinite or not below a limit."""
    for name, array in arrays.items():
        if array.dtype.kind == "f":
            flat = array.reshape(-1)
            for start in range(0, flat.size, _BLOCK):
                block = flat[start : start + _BLOCK]
                if not _is_below(block, limit):
                    raise ValueError(f"its array {name} holds NaN, infinite or too large values")
                release(block)


def _is_below(numbers: NDArray[Any], limit: float) -> bool:
    """Return whether all absolute values are below a limit; NaN is not, and finite float16 numbers always are."""
    if numbers.dtype == np.float16:  # NumPy is faster on the exponent bits.
        return bool((numbers.view(np.uint16) & 0x7FFF).max(initial=0) < 0x7C00)
    return bool(np.maximum(numbers.max(initial=0), -numbers.min(initial=0)) < limit)


def write_json(path: Path, content: object) -> None:
    """Write JSON."""
    path.write_text(json.dumps(content, indent=1), encoding="utf-8")


def checksum(content: object) -> str:
    """Return the checksum of what is written as JSON."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def read_json(path: Path, limit: int = MAX_JSON) -> Any:
    """Return the content of a regular JSON file of at most `limit` bytes."""
    return parse_json(map_file(path), path.name, limit)


def check_size(content: Content, name: str, limit: int) -> None:
    """Raise a `ValueError` if a file has more than `limit` bytes."""
    if len(content) > limit:
        raise ValueError(f"{name} has more than {limit} bytes")


def parse_json(content: Content, name: str, limit: int = MAX_JSON) -> Any:
    """Return the content of a JSON file, given its bytes; one made to fill memory is not parsed."""
    check_size(content, name, limit)
    try:
        return json.loads(content.tobytes().decode())
    except RecursionError as error:
        raise ValueError(f"{name} is nested too deeply") from error
