"""The files of a model that are shared."""

from __future__ import annotations

from pathlib import Path

import pytest

from lightdxml import LightDXML, ModelFolder
from lightdxml.hub.contents import files_of, is_of_model
from lightdxml.learning.stored import DATA, JOURNAL, file_of
from lightdxml.model import store
from lightdxml.persistence.arrays import read_json
from tests.hub.conftest import files_in


def test_all_files_of_a_model_that_has_learned_are_files_of_a_model(tmp_path: Path, kept_model: LightDXML) -> None:
    kept_model.save(folder := tmp_path / "pets")
    changed = ModelFolder(folder).learn(["a horse"] * 3, [["horse"]] * 3)
    found = files_of(folder, read_json(folder / "manifest.json"), with_training_data=True)
    assert {one.name for one in found} == set(files_in(folder))
    assert {f"learning/{name}" for name in (JOURNAL, *DATA, file_of(changed.entry))} <= {one.name for one in found}
    assert all(is_of_model(f"learning/base/{name}") for name in (*store.FILES, *DATA))


@pytest.mark.parametrize(
    "name",
    ["setup.py", "a.pkl", "x/manifest.json", "manifest.json/x", "../manifest.json", "/manifest.json", "manifest.json\n",
     "learning", "learning/", "learning/../x", "learning/base/x.py", "learning/base/base/manifest.json",
     "learning/x.json.gz", "learning\\journal.json", "MANIFEST.JSON", "README.md", ".gitattributes"],
)  # fmt: skip
def test_other_paths_are_not(name: str) -> None:
    assert not is_of_model(name)
