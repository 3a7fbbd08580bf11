"""Fixtures of several test modules."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings
from scipy.sparse import csr_matrix

from lightdxml import LightDXML
from lightdxml.data import Dataset
from lightdxml.data import see_also as builder
from tests.support.configs import FOUR_VIEWS, PAPER, TEXT
from tests.support.data import NAMES, TEXTS, topics, words

# Tests start a hundred processes: where nobody may keep bytecode, each would compile the whole package.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

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


@pytest.fixture(scope="session")
def documents() -> tuple[csr_matrix, csr_matrix]:
    """Features and labels of 300 made-up documents with 12 labels."""
    return topics()


@pytest.fixture(scope="session")
def four_views(documents: tuple[csr_matrix, csr_matrix]) -> LightDXML:
    """A model of all views, with two trees. Do not change it."""
    X, Y = documents
    names, features = words(Y.shape[1]), words(X.shape[1])
    return LightDXML(options=FOUR_VIEWS).fit(X, Y, label_names=names, feature_names=features)


@pytest.fixture(scope="session")
def paper_model(documents: tuple[csr_matrix, csr_matrix]) -> LightDXML:
    """A model of the paper's two views with its blend. Do not change it."""
    return LightDXML(options=PAPER).fit(*documents)


@pytest.fixture(scope="session")
def text_model() -> LightDXML:
    """A model of texts with named labels. Do not change it."""
    return LightDXML(options=TEXT).fit(TEXTS, NAMES)
