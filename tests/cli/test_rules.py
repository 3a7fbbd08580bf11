"""`--include`, `--exclude` and their branches in `predict`, `explain` and `evaluate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lightdxml import LightDXML
from lightdxml.cli import application
from lightdxml.data.vocabulary import Concept, Vocabulary
from tests.support.commands import run

ANIMALS, PLANTS = ["cat", "dog", "cow"], ["rose", "oak"]
CONCEPTS = [
    *(Concept(f"urn:{kind}", {"en": (kind,)}) for kind in ("animal", "plant")),
    *(Concept(f"urn:{name}", {"en": (name,)}, broader=("urn:animal",)) for name in ANIMALS),
    *(Concept(f"urn:{name}", {"en": (name,)}, broader=("urn:plant",)) for name in PLANTS),
]
TEXTS = [f"a {one} and a {other}" for one in [*ANIMALS, *PLANTS] for other in [*ANIMALS, *PLANTS]]
LABELS = [[f"urn:{word}" for word in text.split() if len(word) > 2 and word != "and"] for text in TEXTS]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "garden"
    LightDXML("fast").fit(TEXTS * 2, LABELS * 2, vocabulary=Vocabulary(CONCEPTS)).save(folder)
    return folder


def found(model: Path, *rules: str) -> set[str]:
    out = json.loads(run("predict", model, "-", "-k", 3, "--json", *rules, text="a cat and an oak"))
    return {one["uri"] for one in out["labels"]}


def test_labels_and_branches_are_included_and_excluded(model: Path) -> None:
    assert found(model) >= {"urn:cat", "urn:oak"}
    assert found(model, "--exclude", "urn:cat").isdisjoint({"urn:cat"})
    assert found(model, "--include", "urn:cow", "--include", "rose") == {"urn:cow", "urn:rose"}
    assert found(model, "--include-branch", "urn:plant") == {"urn:plant", "urn:rose", "urn:oak"}
    assert found(model, "--include-branch", "plant", "--exclude", "oak") == {"urn:plant", "urn:rose"}
    assert found(model, "--exclude-branch", "urn:animal") == {"urn:plant", "urn:rose", "urn:oak"}


def test_explanations_respect_rules(model: Path) -> None:
    explained = json.loads(run("explain", model, "a cat and an oak", "--json", "--exclude-branch", "urn:plant"))
    assert "cat" in {one["label"] for one in explained}
    assert {one["uri"] for one in explained} <= {"urn:animal", "urn:cat", "urn:dog", "urn:cow"}


def test_labels_that_are_left_out_do_not_count_as_missed(model: Path, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"text": "a cat and an oak", "labels": ["urn:cat", "urn:oak"]},
        {"text": "a dog and an oak", "labels": ["dog", "oak"]},
    ]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    command = ["evaluate", str(model), str(tmp_path / "data.jsonl"), "--json", "--exclude", "urn:oak"]
    result = CliRunner().invoke(application(), command, catch_exceptions=False)
    content = json.loads(result.stdout)
    assert content["P@1"] == content["R@1"] == 100
    assert "2 of 4 occurrences of labels do not count" in result.stderr


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (("--exclude", "urn:none"), "there is no label 'urn:none' to exclude"),
        (("--include-branch", "urn:none"), "the vocabulary has no concept urn:none"),
    ],
)
def test_unknown_labels_are_refused(model: Path, rule: tuple[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        found(model, *rule)


def test_branches_need_a_hierarchy(tmp_path: Path) -> None:
    flat = Vocabulary([Concept(one.uri, one.names) for one in CONCEPTS])
    for name, vocabulary in (("flat", flat), ("none", None)):
        LightDXML("fast").fit(TEXTS * 2, LABELS * 2, vocabulary=vocabulary).save(tmp_path / name)
        with pytest.raises(ValueError, match="--exclude-branch needs a vocabulary with a hierarchy"):
            found(tmp_path / name, "--exclude-branch", "urn:animal")
