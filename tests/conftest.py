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


# Files that take seconds, the longest first: with `--dist loadfile`, one that starts late would end alone.
_LONG = (
    "cluster/test_cluster.py", "experiments/baselines/test_contract.py", "test_faults.py", "cluster/test_text_files.py",
    "cluster/test_predict.py", "index/test_contract.py", "training/test_checkpoint.py", "test_sklearn.py",
    "cli/test_learn.py", "model/test_store.py", "serve/test_page.py", "serve/test_server.py", "kernels/test_rabitq.py",
    "cli/test_predict.py", "training/test_cycle.py", "data/test_load.py", "training/test_snapshot.py",
    "cli/test_traps.py", "test_docs.py", "test_examples.py", "views/test_contract.py", "learning/test_folder.py",
    "kernels/test_dot.py",
    "kernels/test_cache.py", "serve/test_schema.py", "serve/test_learn.py", "learning/test_learn.py",
    "report/test_page.py", "cluster/test_connection.py", "experiments/bench/test_process.py",
    "experiments/bench/test_grid.py", "cli/test_train.py",
)  # fmt: skip
_RANKS = {str(Path(__file__).parent / name): rank for rank, name in enumerate(_LONG)}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config) -> None:
    """Keep the order of files; xdist would start those of the most tests first."""
    config.option.loadscopereorder = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest files first."""
    items.sort(key=lambda item: _RANKS.get(str(item.path), len(_RANKS)))


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
