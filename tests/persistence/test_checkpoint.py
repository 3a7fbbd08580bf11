"""Checkpoints in a folder: complete or not there, the last two kept, one process at a time."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lightdxml.persistence import checkpoint
from lightdxml.persistence.checkpoint import CheckpointFolder, Identity, is_in, locked, remove
from tests.support.identity import identity


def write(folder: Path, *values: int, mark: str = "mark") -> CheckpointFolder:
    """Write a checkpoint per value."""
    folder.mkdir(exist_ok=True)
    checkpoints = CheckpointFolder(folder, identity(mark))
    checkpoints.restore(lambda facts, arrays: None)
    for value in values:
        checkpoints.write({"value": value}, {"numbers": np.full(3, value, dtype=np.int32)})
    return checkpoints


def restored(folder: Path, refuse: int | None = None, mark: str = "mark") -> int | None:
    """Return the value of the checkpoint that is restored; one of them may be refused."""
    found: list[int] = []

    def unpack(facts: dict[str, Any], arrays: dict[str, Any]) -> None:
        if facts["value"] == refuse:
            raise ValueError("it does not fit")
        assert arrays["numbers"].tolist() == [facts["value"]] * 3
        found.append(facts["value"])

    return found[0] if CheckpointFolder(folder, identity(mark)).restore(unpack) else None


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_newest_checkpoint_is_restored_and_two_are_kept(tmp_path: Path) -> None:
    assert restored(tmp_path) is None
    assert not is_in(tmp_path)
    write(tmp_path, 5, 6, 7)
    assert names(tmp_path) == ["00000002", "00000003"]
    assert restored(tmp_path) == 7
    assert is_in(tmp_path)


@pytest.mark.parametrize("name", ["state.json", "arrays.safetensors"])
@pytest.mark.parametrize("damage", ["cut", "changed", "missing", "empty"])
def test_a_damaged_checkpoint_is_skipped(tmp_path: Path, name: str, damage: str) -> None:
    write(tmp_path, 5, 6)
    path = tmp_path / "00000002" / name
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        changed = content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]
        path.write_bytes({"cut": content[:-3], "changed": changed, "empty": b""}[damage])
    assert restored(tmp_path) == 5


def test_a_changed_number_among_the_facts_is_noticed(tmp_path: Path) -> None:
    write(tmp_path, 5, 6)
    path = tmp_path / "00000002" / "state.json"
    path.write_text(path.read_text().replace('"value": 6', '"value": 7'))
    assert restored(tmp_path) == 5


def test_content_that_does_not_fit_is_skipped(tmp_path: Path) -> None:
    write(tmp_path, 5, 6)
    assert restored(tmp_path, refuse=6) == 5


def test_if_all_are_damaged_one_sentence_says_so_and_nothing_is_removed(tmp_path: Path) -> None:
    write(tmp_path, 5, 6)
    for path in tmp_path.glob("0*/state.json"):
        path.write_text("{")
    with pytest.raises(ValueError, match=r"the checkpoints in .* are damaged \(.*\): remove it and start") as refused:
        restored(tmp_path)
    assert "\n" not in str(refused.value)
    assert names(tmp_path) == ["00000001", "00000002"]


def test_checkpoints_of_other_data_or_settings_are_refused(tmp_path: Path) -> None:
    write(tmp_path, 5, 6)
    with pytest.raises(ValueError, match="belongs to other data or another version"):
        restored(tmp_path, mark="other")


def test_a_damaged_checkpoint_does_not_count_as_one_of_the_two(tmp_path: Path) -> None:
    """It once was kept in the place of a good one, which the next write removed."""
    write(tmp_path, 5)
    shutil.copytree(tmp_path / "00000001", tmp_path / "00000009")
    (tmp_path / "00000009" / "state.json").write_text("{")
    write(tmp_path, 6)
    assert names(tmp_path) == ["00000001", "00000010"]
    shutil.rmtree(tmp_path / "00000010")
    (tmp_path / "00000010").mkdir()
    assert restored(tmp_path) == 5


def test_a_write_that_fails_leaves_the_checkpoints_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints = write(tmp_path, 5)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "sync", full)
    with pytest.raises(OSError, match="No space left"):
        checkpoints.write({"value": 6}, {})
    assert names(tmp_path) == ["00000001"]
    assert restored(tmp_path) == 5


def test_an_old_checkpoint_that_cannot_be_removed_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, *_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied", path)

    checkpoints = write(tmp_path, 5, 6)
    monkeypatch.setattr(os, "rmdir", refuse)
    monkeypatch.setattr(os, "unlink", refuse)
    checkpoints.write({"value": 7}, {"numbers": np.full(3, 7, dtype=np.int32)})
    monkeypatch.undo()
    assert restored(tmp_path) == 7


def test_a_folder_is_held_by_one_process(tmp_path: Path) -> None:
    with locked(tmp_path / "new"), pytest.raises(ValueError, match="another training uses"), locked(tmp_path / "new"):
        pass
    with locked(tmp_path / "new"):
        pass


def test_leftovers_of_killed_writes_are_removed_and_other_files_are_not(tmp_path: Path) -> None:
    for name in (".00000003.part", ".mine.part", ".123.part", "20260101"):
        (tmp_path / name).mkdir()
    (tmp_path / "20260101" / "thesis").touch()
    with locked(tmp_path):
        assert names(tmp_path) == [".123.part", ".mine.part", "20260101", "lock"]
    assert not is_in(tmp_path)


def test_checkpoints_are_not_removed_while_a_training_uses_them(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    write(folder, 5)
    with locked(folder):
        remove(folder)
        assert is_in(folder)
    remove(folder)
    assert not folder.exists()
    remove(folder)


def test_a_folder_with_other_files_stays_without_its_checkpoints(tmp_path: Path) -> None:
    write(tmp_path, 5)
    (tmp_path / "thesis").write_text("important")
    remove(tmp_path)
    assert names(tmp_path) == ["thesis"]


def resume(folder: Path, other: Identity, **options: bool) -> bool:
    return CheckpointFolder(folder, other, **options).restore(lambda facts, arrays: None)


def test_a_checkpoint_of_other_settings_names_them(tmp_path: Path) -> None:
    write(tmp_path, 5)
    with pytest.raises(ValueError, match=r"belongs to other settings \(dim 8, now 16\): use those"):
        resume(tmp_path, identity("other", dim=16))


def test_a_checkpoint_of_another_machine_is_taken_only_if_allowed(tmp_path: Path) -> None:
    write(tmp_path, 5)
    with pytest.raises(ValueError, match=r"another machine or other libraries \(processor this, now that\)"):
        resume(tmp_path, identity(machine="that"))
    assert resume(tmp_path, identity(machine="that"), allow_different_machine=True)


def test_errors_of_the_system_are_not_called_damage_and_nothing_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, 5, 6)

    def fail(path: Path, *_: Any) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "map_file", fail)
        with pytest.raises(OSError, match=r"cannot be read now \(Too many open files\)"):
            restored(tmp_path)
    assert restored(tmp_path) == 6
