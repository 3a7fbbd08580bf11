"""The model card says what a model is, and nothing in it comes out as markup."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from huggingface_hub import ModelCard
from markdown_it import MarkdownIt

from lightdxml import LightDXML
from lightdxml.hub.card import About, card
from lightdxml.hub.evaluation import Evaluation, Group
from lightdxml.model.model import Model
from lightdxml.model.store import Stored
from tests.support.commands import run
from tests.support.data import NAMES, TEXTS

EVALUATION = Evaluation(
    "my <data>", 200, {"P@1": 60.04, "P@3": 40.0, "PSP@1": 30.0, "PSP@3": 31.0}, {"P@1": (53.1, 66.6)},
    (Group("1", 10, 20, 5),), 0.0321, 0.5, 7, 0.25,
)  # fmt: skip


def stored_of(model: Model) -> Stored:
    manifest = {"lightdxml": "0.1.0", "format": 3, "files": {"arrays.safetensors": {"bytes": 1234}}}
    return Stored(model, manifest, [{"phase": "linear view", "seconds": 2.0}])


def metadata(text: str) -> dict[str, object]:
    """Return the metadata as a hub reads them."""
    return dict(ModelCard(text).data.to_dict())  # type: ignore[no-untyped-call]


def test_a_card_has_the_measures_of_validation_documents(text_model: LightDXML) -> None:
    text = card(stored_of(text_model.model_), About("pets", "alice/pets", "mit", "en"))
    found = metadata(text)
    assert {key: found[key] for key in ("library_name", "license", "language", "pipeline_tag")} == {
        "library_name": "lightdxml", "license": "mit", "language": "en", "pipeline_tag": "text-classification",
    }  # fmt: skip
    assert "lightdxml" in str(found["tags"])
    for part in (
        'LightDXML.from_pretrained("alice/pets")',
        "lightdxml pull alice/pets my-model",
        "**2 labels**",
        "**40 documents**",
        "| classifier |",
        "Hashes of 4 training documents",
        "No training documents",
        "Seed (`random_state`) 0",
        "license `mit`",
        "| labels | 0 | 0 | 0 | 0 | 2 | 0 | 0 |",
    ):
        assert part in text


def test_a_card_has_the_measures_of_test_documents(text_model: LightDXML) -> None:
    text = card(stored_of(text_model.model_), About("pets"), EVALUATION)
    for part in (
        "200 documents of my \\<data\\>",
        "| P | 60.0 | 40.0 |",
        "|  | 53.1–66.6 |  | its 95% confidence interval |",
        "| 1 | 10 | 50.0 | 20 | 25.0 |",
        "is 0.032,",
        "does not know 7",
        "**It was trained on 25% of them, so these numbers are too high.**",
        "Its owner has named no license",
        "OWNER/NAME",
    ):
        assert part in text
    [result] = metadata(text)["model-index"][0]["results"]  # type: ignore[index]
    assert result["dataset"]["split"] == "test"
    assert [one["type"] for one in result["metrics"]] == ["P@1", "P@3", "PSP@1", "PSP@3"]
    assert result["metrics"][0]["value"] == 60.04


def test_measures_of_training_documents_are_no_results(text_model: LightDXML) -> None:
    text = card(stored_of(replace(text_model.model_, n_validation=40)), About("pets"))
    assert "expect **much less** on others" in text
    assert "model-index" not in metadata(text)


def test_a_model_without_measures_has_a_card(text_model: LightDXML) -> None:
    assert "It was not measured." in card(stored_of(replace(text_model.model_, metrics={})), About("pets"))


def test_a_model_of_features_says_so(paper_model: LightDXML) -> None:
    text = card(stored_of(paper_model.model_), About("topics"))
    assert "# X is a matrix of documents × 42 features." in text
    assert "pipeline_tag" not in metadata(text)
    assert "words that occur" not in text


def test_a_history_of_another_form_does_no_harm(text_model: LightDXML) -> None:
    stored = replace(stored_of(text_model.model_), history=[{"seconds": "long"}, {}, {"seconds": float("nan")}])
    assert "Training took" not in card(stored, About("pets"))


def test_names_are_shown_as_they_are(text_model: LightDXML) -> None:
    """Labels may be anything: no HTML, link, table cell or line of its own comes of them."""
    names = ["<script>alert(1)</script>", "[a](javascript:b) |\n# c ![d](http://e) `f` --- \x1b[2J " + "x" * 200]
    about = About('"quoted": <b>&amp; {x}\n---\n# y')
    text = card(stored_of(replace(text_model.model_, label_names=names)), about)
    shown = MarkdownIt("gfm-like", {"linkify": False, "html": True}).render(text.split("---\n", 2)[2])
    assert "<script" not in shown
    assert "<a " not in shown
    assert "<img" not in shown
    assert "<h1># y" not in shown
    assert shown.count("<h1>") == 1
    assert "\x1b" not in text
    assert metadata(text)["model-index"][0]["name"] == '"quoted": <b>&amp; {x} --- # y'  # type: ignore[index]


@pytest.mark.parametrize(
    ("license", "language"), [("MIT License!", ""), ("a\nb: c", ""), ("", "english"), ("", "e\nn")]
)
def test_metadata_of_another_form_are_refused(license: str, language: str) -> None:
    with pytest.raises(ValueError, match=r"is not the (identifier of a license|code of a language): write"):
        About("pets", license=license, language=language)


def test_the_command_measures_a_model_and_writes_its_card(tmp_path: Path, text_model: LightDXML) -> None:
    text_model.save(tmp_path / "pets")
    lines = [json.dumps({"text": text, "labels": names}) for text, names in zip(TEXTS, NAMES, strict=True)]
    (tmp_path / "pets.jsonl").write_text("\n".join(lines))
    options = "--license", "MIT", "--out", tmp_path / "README.md"
    run("card", tmp_path / "pets", "--data", tmp_path / "pets.jsonl", *options)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "40 documents of pets" in text
    assert "too high" in text
    assert "| 9–20 |" in text
    assert "license `mit`" in text
    assert "# pets" in run("card", tmp_path / "pets")
    # A card is replaced, another file is not.
    run("card", tmp_path / "pets", *options)
    (tmp_path / "README.md").write_text("years of work")
    with pytest.raises(ValueError, match="is not a model card and would be lost"):
        run("card", tmp_path / "pets", *options)
