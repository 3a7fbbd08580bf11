"""Conditions of a measurement."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import lightdxml
from lightdxml.experiments.bench import machine


def test_the_source_hash_covers_measuring_code_but_not_presentation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = tmp_path / "experiments" / "bench"
    bench.mkdir(parents=True)
    files = [tmp_path / "__init__.py", bench / "cell.py", bench / "matrices.py", bench / "tables.py"]
    for path in files:
        path.write_text("")
    monkeypatch.setattr(lightdxml, "__file__", str(files[0]))
    source_hash = machine._source_hash.__wrapped__
    hashes = [source_hash()]
    for path in files:
        path.write_text("changed = 1")
        hashes.append(source_hash())
    assert len(set(hashes)) == 4
    assert hashes[-1] == hashes[-2], "tables measure nothing"


def test_the_measuring_modules_exist() -> None:
    root = Path(lightdxml.__file__).parent
    assert all((root / name).is_file() for name in machine._MEASURING)


def test_all_cores_are_reported_whatever_number_of_threads_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIGHTDXML_THREADS", "77")
    assert f", {os.cpu_count()} cores, " in machine.describe()
