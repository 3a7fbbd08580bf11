"""Arrays on disk in the safetensors format: written by that library, read as memory-mapped views."""

from __future__ import annotations

import json
import math
import stat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save_file

_TYPES: dict[str, np.dtype[Any]] = {"F16": np.dtype("<f2"), "F32": np.dtype("<f4"), "I32": np.dtype("<i4")}
_TYPES |= {"U16": np.dtype("<u2"), "I64": np.dtype("<i8"), "I8": np.dtype("i1"), "U8": np.dtype("u1")}
_LONGEST_HEADER = 1 << 20


def write(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write arrays of float16, float32, int8, uint8, uint16, int32 or int64."""
    path.touch()
    mode = path.stat().st_mode
    try:
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path)
    except SafetensorError as error:
        raise OSError(f"{path} cannot be written ({error}): is there room on the disk?") from error
    # The library's files are its user's alone, whatever files are by default.
    path.chmod(stat.S_IMODE(mode))


def read(path: Path) -> dict[str, NDArray[Any]]:
    """Return views of the arrays in a file; what is not looked at is not read.

    Several processes that read one file share one copy in memory. Nothing in the header is trusted: every array must
    lie within the file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder) / "a.safetensors", {"ones": np.ones((1, 2), dtype=np.float16)})
    ...     read(Path(folder) / "a.safetensors")["ones"].tolist()
    [[1.0, 1.0]]
    """
    if not path.is_file():
        raise ValueError(f"{path.name} is missing or no file")
    size = path.stat().st_size
    if size < 8:
        raise ValueError(f"{path.name} is cut short")
    content = np.memmap(path, dtype=np.uint8, mode="r")
    length = int.from_bytes(content[:8].tobytes(), "little")
    if length > min(size - 8, _LONGEST_HEADER):
        raise ValueError(f"{path.name} has a header of {length} bytes")
    header = json.loads(content[8 : 8 + length].tobytes())
    if not isinstance(header, dict):
        raise ValueError(f"{path.name} has a header of another form")
    body = content[8 + length :]
    return {name: _view(body, name, entry) for name, entry in header.items() if name != "__metadata__"}


def _view(body: NDArray[np.uint8], name: str, entry: Any) -> NDArray[Any]:
    try:
        kind, shape, (start, stop) = _TYPES[entry["dtype"]], entry["shape"], entry["data_offsets"]
        whole = all(type(n) is int and n >= 0 for n in (*shape, start, stop))
    except (TypeError, KeyError, ValueError) as error:
        raise ValueError(f"array {name} is described wrongly") from error
    if not whole or not start <= stop <= len(body) or stop - start != math.prod(shape) * kind.itemsize:
        raise ValueError(f"array {name} does not lie within its file")
    view: NDArray[Any] = body[start:stop].view(kind).reshape(shape)
    return view
