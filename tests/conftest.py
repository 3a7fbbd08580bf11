"""What several test modules share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

from lightdxml.data import Dataset
from lightdxml.data import see_also as builder

# Compiling a kernel inside an example is no reason to fail it; runs are repeatable.
settings.register_profile("default", deadline=None, derandomize=True, max_examples=100)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def see_also() -> Dataset:
    """The embedded data set, built once."""
    return builder.build()


@pytest.fixture
def shared_data() -> Path:
    """The folder of real data sets, where there is one."""
    folder = Path(os.environ.get("LIGHTDXML_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not (folder / "bibtex").is_dir():
        pytest.skip(f"no development data in {folder}: set LIGHTDXML_DATA to run this")
    return folder
