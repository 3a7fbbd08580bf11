"""The cache of compiled kernels: private, and never needed."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lightdxml.kernels import cache

posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
PROGRAM = """
import os, sys, warnings
from pathlib import Path
from lightdxml.kernels import cache
{setup}
from lightdxml.kernels import bag
import numpy as np
from lightdxml.kernels.precision import to_bfloat16
with warnings.catch_warnings(record=True) as shown:
    warnings.simplefilter("always")
    to_bfloat16(np.float32(1.5))
print(cache.cache_folder(), [str(one.message) for one in shown])
"""


def compile_with(setup: str, **environment: str) -> str:
    command = [sys.executable, "-c", PROGRAM.replace("{setup}", setup)]
    shown = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=120, env={**os.environ, **environment}
    )
    return shown.stdout


@pytest.fixture
def fresh() -> object:
    cache.cache_folder.cache_clear()
    yield
    cache.cache_folder.cache_clear()


def test_without_a_folder_kernels_are_compiled_and_it_is_said_once() -> None:
    shown = compile_with("cache._candidates = lambda: iter(())")
    assert shown.startswith("None ")
    assert shown.count("compiled code cannot be cached (no folder for it can be written)") == 1


def test_a_full_disk_is_no_error() -> None:
    setup = f"""
def full(*_): raise OSError({errno.ENOSPC}, os.strerror({errno.ENOSPC}))
cache.caching.IndexDataCacheFile.save = full
cache.caching.IndexDataCacheFile.load = lambda *_: None
"""
    assert os.strerror(errno.ENOSPC) in compile_with(setup)


def test_damaged_files_in_the_cache_are_compiled_again(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    compile_with("", NUMBA_CACHE_DIR=str(tmp_path))
    damaged = list(tmp_path.glob("*.nb*"))
    assert damaged
    for path in damaged:
        path.write_bytes(b"damaged")
    assert "[]" in compile_with("", NUMBA_CACHE_DIR=str(tmp_path))


def test_a_user_without_a_home_gets_another_folder() -> None:
    setup = """
def homeless(*_): raise RuntimeError("no home")
cache.user_cache_path = homeless
cache._IN_PACKAGE = Path("/nonexistent/by/anyone")
os.access, real = (lambda path, mode: "nonexistent" not in str(path) and real(path, mode)), os.access
"""
    assert compile_with(setup).split(" ")[0] != "None"


@posix
def test_a_folder_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    shown = compile_with("", NUMBA_CACHE_DIR=str(tmp_path))
    assert str(tmp_path) not in shown
    assert not list(tmp_path.iterdir())


@posix
@pytest.mark.parametrize(("mode", "private"), [(0o700, True), (0o755, True), (0o775, False), (0o707, False)])
def test_a_private_folder_is_one_that_nobody_else_can_write(tmp_path: Path, mode: int, private: bool) -> None:
    tmp_path.chmod(mode)
    assert cache.is_private(tmp_path) is private


@posix
def test_a_link_is_not_a_private_folder(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert not cache.is_private(tmp_path / "link")


@posix
def test_an_existing_cache_is_used_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: object
) -> None:
    prepared, empty = tmp_path / "prepared", tmp_path / "empty"
    for folder in (prepared, empty):
        folder.mkdir(0o700)
    (prepared / "kernel.nbi").touch()
    monkeypatch.setattr(cache, "_candidates", lambda: iter([(empty, 0o700), (prepared, 0o700)]))
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert cache.cache_folder() == prepared


def test_names_of_files_depend_on_all_kernels_and_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that outlives a full disk once named code of another version."""
    (tmp_path / "a.py").write_text("1")
    monkeypatch.setattr(cache, "_SOURCES", tmp_path)
    stamps = set()
    for content, version in (("1", "1"), ("2", "1"), ("1", "2")):
        (tmp_path / "a.py").write_text(content)
        monkeypatch.setattr(cache, "__version__", version)
        cache._stamp.cache_clear()
        stamps.add(cache._Locator(test_a_full_disk_is_no_error, "x").get_disambiguator())
    cache._stamp.cache_clear()
    assert len(stamps) == 3


def test_kernels_are_plain_functions_without_the_compiler() -> None:
    program = "from lightdxml.kernels.inverted_index import push; print(type(push).__name__)"
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    assert shown.stdout.strip() == "function", shown.stderr


def test_code_of_another_signature_in_the_place_of_a_kernel_is_compiled_again(tmp_path: Path) -> None:
    """Numba's cache has no lock: two processes that write at once may take the same place."""
    program = """
import numpy as np
from lightdxml.kernels.jit import kernel
from lightdxml.kernels import sorting
for kind in (np.int32, np.int64):
    labels, values = np.array([2, 1], dtype=kind), np.array([0.5, 1.5], dtype=np.float32)
    sorting.sort_with_values(labels, values)
    assert labels.tolist() == [1, 2] and values.tolist() == [1.5, 0.5], (labels, values)
print("sorted")
"""
    for _ in range(2):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
        assert shown.stdout == "sorted\n", shown.stderr
        first, second = sorted(tmp_path.glob("sorting.sort_with_values-*.nbc"))[:2]
        first.write_bytes(second.read_bytes())
