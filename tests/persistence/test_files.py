"""Files of a folder, read as they were at one moment."""

from __future__ import annotations

import hashlib
import mmap
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from lightdxml.persistence import atomic_dir, files
from lightdxml.persistence.atomic_dir import locate, replace_folder
from lightdxml.persistence.files import map_file, map_files, sha256


def is_ours(folder: Path) -> bool:
    return (folder / "one").exists()


def write(value: int, folder: Path) -> None:
    for name in ("one", "two"):
        (folder / name).write_text(f"{value}")


@pytest.mark.parametrize("exchange", [True, False])
@pytest.mark.parametrize("by_descriptor", [True, False])
def test_files_belong_together_while_the_folder_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool, by_descriptor: bool
) -> None:
    if not exchange:
        monkeypatch.setattr(atomic_dir, "_exchange", lambda *_: False)
    monkeypatch.setattr(files, "_HAS_DIR_FD", by_descriptor and files._HAS_DIR_FD)
    target, stop, written = tmp_path / "model", threading.Event(), 0
    replace_folder(target, lambda folder: write(0, folder), is_ours)

    def swap() -> None:
        nonlocal written
        while not stop.is_set():
            written += 1
            replace_folder(target, partial(write, written), is_ours)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        seen = set()
        for _ in range(300):
            found = map_files(lambda: locate(target, is_ours), ("one", "two", "three"))
            assert set(found) == {"one", "two"}
            assert found["one"].tobytes() == found["two"].tobytes()
            seen.add(found["one"].tobytes())
    finally:
        stop.set()
        swapper.join()
    assert len(seen) > 1


def test_a_mapping_outlives_its_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    content = map_file(tmp_path / "x")
    (tmp_path / "x").unlink()
    assert content.tobytes() == b"abc"


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        map_files(lambda: tmp_path / "none", ("one",))


def test_checksums_are_of_the_content(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x" * 10_000_000)
    (tmp_path / "empty").touch()
    assert sha256(map_file(tmp_path / "x")) == hashlib.sha256(b"x" * 10_000_000).hexdigest()
    assert sha256(map_file(tmp_path / "empty")) == hashlib.sha256().hexdigest()
    assert sha256(np.empty(0, dtype=np.uint8)) == hashlib.sha256().hexdigest()


def test_released_pages_are_read_again_from_the_file(tmp_path: Path) -> None:
    content = np.random.default_rng(0).integers(0, 255, 3 * mmap.PAGESIZE + 100, dtype=np.uint8)
    content.tofile(tmp_path / "file")
    mapped = files.map_file(tmp_path / "file")
    for part in (mapped, mapped[10:20], mapped[5:], mapped[mmap.PAGESIZE : 2 * mmap.PAGESIZE], mapped[::2]):
        files.release(part)
        np.testing.assert_array_equal(mapped, content)
    files.release(content)  # not a file: nothing happens
