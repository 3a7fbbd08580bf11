"""Lock files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lightdxml.persistence import lock


def test_a_lock_is_held_once_and_released(tmp_path: Path) -> None:
    for _ in range(2):
        with lock.held(tmp_path / "lock") as first, lock.held(tmp_path / "lock") as second:
            assert first
            assert not second


def test_a_process_that_dies_releases_its_lock(tmp_path: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path; from lightdxml.persistence import lock\n"
        "with lock.held(Path(sys.argv[1])) as mine:\n"
        "    print(mine, flush=True); os.kill(os.getpid(), 9)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "lock")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "True\n"
    with lock.held(tmp_path / "lock") as mine:
        assert mine


def test_a_lock_file_that_was_removed_holds_nothing(tmp_path: Path) -> None:
    with lock.held(tmp_path / "lock") as first:
        (tmp_path / "lock").unlink()
        with lock.held(tmp_path / "lock") as second:
            assert first
            assert second


def test_something_else_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    with pytest.raises(ValueError, match="is not a file"), lock.held(tmp_path / "lock"):
        pass


def test_a_folder_that_cannot_be_written_is_reported_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OSError, match=r"cannot hold checkpoints \(.*\): choose another folder"):
            lock.make_writable(folder, "checkpoints")
    lock.make_writable(tmp_path / "new" / "folder", "checkpoints")
    assert (tmp_path / "new" / "folder").is_dir()
