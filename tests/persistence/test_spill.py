"""Arrays in files of a temporary folder."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml.persistence.spill import SpillDirectory, spill_directory
from tests.support.data import topics


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="this system writes zeros")
@pytest.mark.parametrize("supported", [True, False])
def test_files_have_their_space_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, supported: bool) -> None:
    def not_here(*_: Any) -> None:
        raise OSError(95, "Operation not supported")

    if not supported:
        monkeypatch.setattr(os, "posix_fallocate", not_here)
    made = SpillDirectory(tmp_path).array("numbers", (1000, 700), np.int32)
    assert isinstance(made, np.memmap)
    assert not made.any()
    assert (tmp_path / "numbers").stat().st_size == made.nbytes
    assert 512 * (tmp_path / "numbers").stat().st_blocks >= made.nbytes


def test_a_second_array_of_the_same_name_replaces_the_first(tmp_path: Path) -> None:
    spill = SpillDirectory(tmp_path)
    first = spill.array("numbers", (2,), np.int32)
    first[:] = 7
    assert spill.array("numbers", (5,), np.float32).tolist() == [0] * 5
    assert first.tolist() == [7, 7], "whoever still uses the first one is not disturbed"


def test_an_empty_array_needs_no_file(tmp_path: Path) -> None:
    assert SpillDirectory(tmp_path).array("numbers", (3, 0), np.int32).shape == (3, 0)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("cuts", [[], [5, 5, 12]], ids=["one part", "four parts"])
def test_a_matrix_in_files_is_the_same_matrix(tmp_path: Path, cuts: list[int]) -> None:
    X = csr_matrix(topics(20)[0], dtype=np.float32)
    parts = [X[start:stop] for start, stop in pairwise([0, *cuts, 20])]
    mapped = SpillDirectory(tmp_path).matrix("features", parts)
    assert isinstance(mapped.data, np.memmap)
    assert isinstance(mapped.indices, np.memmap)
    assert mapped.indptr.dtype == mapped.indices.dtype, "SciPy would copy all indices in every operation"
    assert (mapped != X).nnz == 0
    np.testing.assert_array_equal(mapped[3:7].toarray(), X[3:7].toarray())


def test_leftovers_of_killed_processes_are_removed_and_nothing_else(tmp_path: Path) -> None:
    for name, files in {
        "lightdxml-left": ("lock", "features.values", "all-features.indices", "shortlists"),
        "lightdxml-mine": ("lock", "thesis"),
        "lightdxml-other": ("features.values",),
        "other": ("lock",),
    }.items():
        (tmp_path / name).mkdir()
        for file in files:
            (tmp_path / name / file).touch()
    with spill_directory(tmp_path) as first, spill_directory(tmp_path) as second:
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {"lightdxml-mine", "lightdxml-other", "other", first.folder.name, second.folder.name}
    assert {path.name for path in tmp_path.iterdir()} == {"lightdxml-mine", "lightdxml-other", "other"}


def test_the_folder_is_created_and_emptied_after_an_error(tmp_path: Path) -> None:
    def fail() -> None:
        with spill_directory(tmp_path / "new") as spill:
            spill.array("numbers", (10,), np.int32)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not list((tmp_path / "new").iterdir())


def test_a_folder_that_cannot_be_written_is_reported_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="cannot hold spilled arrays"), spill_directory(tmp_path / "file"):
        pass
