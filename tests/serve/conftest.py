"""Models to serve, and servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lightdxml import LightDXML, Vocabulary
from lightdxml.data.vocabulary import Concept
from tests.support.serving import Running, running

ANIMALS = {"cat": "kissa", "dog": "koira", "cow": "lehmä"}
TEXTS = ["a purring cat", "a barking dog", "a mooing cow", "cat and dog", "dog and cow", "cow and cat"] * 8
SUBJECTS = [["cat"], ["dog"], ["cow"], ["cat", "dog"], ["dog", "cow"], ["cow", "cat"]] * 8


@pytest.fixture(scope="session")
def plain_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose labels are names."""
    folder = tmp_path_factory.mktemp("plain") / "pets"
    LightDXML("fast", min_df=1).fit(TEXTS, SUBJECTS).save(folder)
    return folder


@pytest.fixture(scope="session")
def kept_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that keeps its training data. Copy it to teach it."""
    folder = tmp_path_factory.mktemp("kept") / "pets"
    LightDXML("fast", min_df=1).fit(TEXTS, SUBJECTS, keep_training_data=True).save(folder)
    return folder


@pytest.fixture(scope="session")
def concept_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with a vocabulary: two languages, notations and a hierarchy."""
    below = [
        Concept(f"urn:{en}", {"en": (en,), "fi": (fi,)}, notation=f"5{i}", broader=("urn:animal",))
        for i, (en, fi) in enumerate(ANIMALS.items())
    ]
    vocabulary = Vocabulary([Concept("urn:animal", {"en": ("animal",), "fi": ("eläin",)}), *below])
    folder = tmp_path_factory.mktemp("concepts") / "animals"
    labels = [[f"urn:{one}" for one in some] for some in SUBJECTS]
    LightDXML("fast", min_df=1).fit(TEXTS, labels, vocabulary=vocabulary).save(folder)
    return folder


@pytest.fixture(scope="package")
def server(plain_folder: Path, concept_folder: Path) -> Iterator[Running]:
    """A server of both models. Do not change it."""
    with running({"pets": plain_folder, "animals": concept_folder}) as one:
        yield one
