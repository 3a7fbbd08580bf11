"""Folders appear or are replaced in one step."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from lightdxml.persistence import atomic_dir, lock
from lightdxml.persistence.atomic_dir import locate, replace_folder


def writer(content: str) -> Any:
    """Return a function that writes two files."""

    def write(folder: Path) -> None:
        (folder / "a.txt").write_text(content)
        (folder / "b.txt").write_text(content)

    return write


def is_ours(folder: Path) -> bool:
    return (folder / "a.txt").is_file()


def content_of(folder: Path) -> list[str]:
    return [path.read_text() for path in sorted(folder.iterdir())]


@pytest.fixture(params=[True, False], ids=["exchange", "rename"])
def _system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Systems that can exchange two folders in one call, and such that cannot."""
    if not request.param:
        monkeypatch.setattr(atomic_dir, "_exchange", lambda *_: False)


@pytest.mark.usefixtures("_system")
def test_a_folder_appears_and_is_replaced(tmp_path: Path) -> None:
    for content in ("one", "two"):
        replace_folder(tmp_path / "x" / "target", writer(content), is_ours)
        assert content_of(tmp_path / "x" / "target") == [content, content]
        assert [path.name for path in (tmp_path / "x").iterdir()] == ["target"]


@pytest.mark.usefixtures("_system")
def test_a_write_that_fails_leaves_the_old_content_and_nothing_else(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "a.txt").write_text("half")
        raise OSError("disk full")

    for before in ([], ["old", "old"]):
        if before:
            replace_folder(tmp_path / "target", writer("old"), is_ours)
        with pytest.raises(OSError, match="disk full"):
            replace_folder(tmp_path / "target", fail, is_ours)
        assert [path.name for path in tmp_path.iterdir()] == (["target"] if before else [])
        if before:
            assert content_of(tmp_path / "target") == before


def test_a_system_that_can_exchanges_both_folders_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    if not atomic_dir._exchange(tmp_path / "one", tmp_path / "other"):
        pytest.skip("this system cannot")
    replace_folder(tmp_path / "target", writer("old"), is_ours)

    def refuse(*_: Any) -> None:
        raise AssertionError("renamed in two steps")

    monkeypatch.setattr(Path, "rename", refuse)
    replace_folder(tmp_path / "target", writer("new"), is_ours)
    assert content_of(tmp_path / "target") == ["new", "new"]


def test_new_content_is_on_the_disk_before_the_old_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever replaces a folder may remove its source next: a power cut must then find all of it."""
    happened: list[tuple[str, str]] = []
    remove = shutil.rmtree

    def removed(path: Path, **_: Any) -> None:
        happened.append(("remove", path.name))
        remove(path)

    monkeypatch.setattr(atomic_dir, "sync", lambda path: happened.append(("sync", path.name)))
    monkeypatch.setattr(shutil, "rmtree", removed)
    for content in ("one", "two"):
        happened.clear()
        replace_folder(tmp_path / "target", writer(content), is_ours)
        assert {name for what, name in happened if what == "sync"} >= {"a.txt", "b.txt", tmp_path.name}
    # The new folder, then the folder that holds it, then the old one goes.
    assert [what for what, _ in happened[-3:]] == ["sync", "sync", "remove"]
    assert happened[-2] == ("sync", tmp_path.name)


def test_new_parent_folders_are_on_the_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(atomic_dir, "sync", synced.append)
    replace_folder(tmp_path / "a" / "b" / "target", writer("x"), is_ours)
    assert synced[-3:] == [tmp_path / "a" / "b", tmp_path / "a", tmp_path]


def test_what_a_killed_process_left_is_found_and_put_back(tmp_path: Path) -> None:
    replace_folder(tmp_path / "target", writer("old"), is_ours)
    (tmp_path / "target").rename(tmp_path / ".target.0123abcd.old")
    assert locate(tmp_path / "target", is_ours) == tmp_path / ".target.0123abcd.old"
    replace_folder(tmp_path / "target", writer("new"), is_ours)
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_of_two_leftovers_none_is_guessed(tmp_path: Path) -> None:
    for name in (".target.0123abcd.old", ".target.4567abcd.old", ".target.89ab.old", ".other.0123abcd.old"):
        replace_folder(tmp_path / name, writer("old"), is_ours)
    assert locate(tmp_path / "target", is_ours) == tmp_path / "target"


@pytest.mark.parametrize(("system", "mode"), [("posix", os.O_RDONLY), ("nt", os.O_RDWR)])
def test_files_are_synced_as_windows_can_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str, mode: int
) -> None:
    file, opened, usual = tmp_path / "a.txt", list[int](), os.open
    file.touch()

    def spied(path: Path, flags: int) -> int:
        opened.append(flags)
        return usual(path, flags)

    monkeypatch.setattr(os, "open", spied)
    monkeypatch.setattr(os, "name", system)
    atomic_dir.sync(file)
    monkeypatch.undo()
    assert opened == [mode]


@pytest.mark.skipif(os.name == "nt", reason="Windows cannot lock folders")
def test_what_killed_writers_left_is_removed_at_the_next_save_unless_one_still_writes(tmp_path: Path) -> None:
    killed, writing, young, foreign = (tmp_path / name for name in (
        ".model.00000001.part", ".model.00000002.part", ".model.00000003.part", ".other.00000001.part"
    ))  # fmt: skip
    for folder in (killed, writing, young, foreign):
        folder.mkdir()
        (folder / "arrays").write_text("x")
        if folder is not young:
            os.utime(folder, (0, 0))
    with lock.held_folder(writing):
        replace_folder(tmp_path / "model", writer("new"), is_ours)
    assert not killed.exists()
    assert writing.exists()
    assert young.exists()
    assert foreign.exists()
