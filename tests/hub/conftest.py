"""A hub, and models to share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from lightdxml import LightDXML
from tests.support.data import NAMES, TEXTS
from tests.support.hub import FakeHub, running_hub


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A hub without repositories; the user is logged in, and the cache is empty."""
    home = tmp_path / "home"
    for name, value in {
        "HF_HUB_DISABLE_XET": True,
        "HF_HUB_CACHE": str(home / "hub"),
        "HF_XET_CACHE": str(home / "xet"),
        "HF_TOKEN_PATH": str(home / "token"),
        "HF_STORED_TOKENS_PATH": str(home / "stored"),
    }.items():
        monkeypatch.setattr(constants, name, value)
    with running_hub() as one:
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, one.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "ENDPOINT", one.url)
        monkeypatch.setenv("HF_TOKEN", one.token)
        yield one


@pytest.fixture
def model(tmp_path: Path, text_model: LightDXML) -> Path:
    """A model of texts."""
    text_model.save(tmp_path / "pets")
    return tmp_path / "pets"


@pytest.fixture(scope="session")
def kept_model() -> LightDXML:
    """A model that keeps its training data. Do not change it."""
    return LightDXML("fast", min_df=1).fit(TEXTS, NAMES, keep_training_data=True)


def files_in(folder: Path) -> dict[str, bytes]:
    """Return all files of a folder."""
    return {one.relative_to(folder).as_posix(): one.read_bytes() for one in folder.rglob("*") if one.is_file()}
