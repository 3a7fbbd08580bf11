"""Arrays and JSON on disk: written as they are, read without trust."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from lightdxml.persistence import arrays as stored

KINDS = (np.float16, np.float32, np.float64, np.int8, np.uint8, np.uint16, np.int32, np.int64)


def test_arrays_come_back_as_mapped_views(tmp_path: Path) -> None:
    written: dict[str, Any] = {str(i): np.arange(6).reshape(2, 3).astype(kind) for i, kind in enumerate(KINDS)}
    written |= {"empty": np.empty((0, 4), dtype=np.float32), "scalar": np.array(3, dtype=np.int32)}
    # A view that is not contiguous.
    written["part"] = np.arange(20, dtype=np.int64)[::3]
    stored.write(tmp_path / "x.safetensors", written)
    found = stored.read(tmp_path / "x.safetensors")
    assert set(found) == set(written)
    for name, array in written.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
        assert not found[name].flags.writeable


def test_files_may_be_read_by_whoever_may_read_other_files(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    stored.write(tmp_path / "x.safetensors", {"ones": np.ones(3, dtype=np.float32)})
    assert (tmp_path / "x.safetensors").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_types_that_are_not_stored_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="array x has the type bool, which is not stored"):
        stored.write(tmp_path / "x.safetensors", {"x": np.ones(3, dtype=bool)})
    assert not (tmp_path / "x.safetensors").exists()
    save_file({"x": np.ones(3, dtype=bool)}, tmp_path / "x.safetensors")
    with pytest.raises(ValueError, match="array x has a wrong description"):
        stored.read(tmp_path / "x.safetensors")


def entry(dtype: Any = "I32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"x": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


@pytest.mark.parametrize(
    "header",
    [
        entry(dtype="BOOL"),
        entry(dtype=None),
        entry(shape=[3]),
        entry(shape=[-2]),
        entry(shape=[2.0]),
        entry(shape=[True, 2]),
        entry(shape=5),
        entry(shape=[10**12]),
        entry(offsets=[0, 100]),
        entry(offsets=[8, 0]),
        entry(offsets=[-8, 0]),
        entry(offsets=[0]),
        {"x": 5},
        {"x": {}},
        [],
        5,
    ],
    ids=str,
)
def test_a_header_that_lies_is_refused(tmp_path: Path, header: Any) -> None:
    text = json.dumps(header).encode()
    (tmp_path / "x").write_bytes(len(text).to_bytes(8, "little") + text + bytes(8))
    with pytest.raises(ValueError, match=r"array x|header"):
        stored.read(tmp_path / "x")


@pytest.mark.parametrize("content", [b"", b"1234567", (100).to_bytes(8, "little") + b"{}", b"\xff" * 20])
def test_a_truncated_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(ValueError, match=r"x (is truncated|has a header)"):
        stored.read(tmp_path / "x")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_pipes_devices_and_folders_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    for read in (stored.read, stored.read_json):
        for name in ("pipe", "device", "folder"):
            with pytest.raises(ValueError, match="is not a file"):
                read(tmp_path / name)
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "nothing")


@pytest.mark.parametrize("kind", [np.float16, np.float32])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_found(kind: Any, value: float) -> None:
    array = np.zeros((3, 4), dtype=kind)
    stored.check_finite({"x": array, "ids": np.arange(3)})
    array[2, 1] = value
    with pytest.raises(ValueError, match="its array x holds NaN, infinite or too large values"):
        stored.check_finite({"x": array})


def test_numbers_that_reach_the_limit_are_found() -> None:
    array = np.array([0, -5], dtype=np.float32)
    stored.check_finite({"x": array}, 6)
    with pytest.raises(ValueError, match="too large"):
        stored.check_finite({"x": array}, 5)


def test_json_comes_back_and_is_limited(tmp_path: Path) -> None:
    stored.write_json(tmp_path / "x.json", {"a": ["🐈", 1.5, None]})
    assert stored.read_json(tmp_path / "x.json") == {"a": ["🐈", 1.5, None]}
    with pytest.raises(ValueError, match=r"x\.json has more than 10 bytes"):
        stored.read_json(tmp_path / "x.json", 10)
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match="nested too deeply"):
        stored.read_json(tmp_path / "deep.json")


def test_a_full_disk_is_reported_as_one(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match=r"cannot be written|Is a directory"):
        stored.write(tmp_path / "folder", {"x": np.ones(3, dtype=np.float32)})
