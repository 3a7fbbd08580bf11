"""`lightdxml info`, `lightdxml compress` and `lightdxml demo`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from lightdxml import LightDXML, load
from lightdxml.data import Dataset, save
from tests.support.commands import run
from tests.support.data import NAMES, TEXTS


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, text_model: LightDXML) -> Path:
    folder = tmp_path_factory.mktemp("models") / "pets"
    text_model.save(folder)
    return folder


def test_info_describes_a_model(model: Path) -> None:
    content = json.loads(run("info", model, "--json"))
    assert (content["labels"], content["documents"], content["from"]) == (2, 40, "texts")
    assert content["blend"] == "paper"
    assert content["views"]["nearness"]["index"] == "exact"
    assert sum(view["weight"] for view in content["views"].values()) == pytest.approx(1)
    assert content["config"]["dense"]["dim"] == 16
    shown = run("info", model)
    assert "view: classifier" in shown
    assert "dense.dim=16" in shown.replace("\n", "")


def test_info_has_a_line_per_view(tmp_path: Path, four_views: LightDXML) -> None:
    four_views.save(tmp_path / "model")
    shown = run("info", tmp_path / "model")
    for name, view in four_views.model_.views.items():
        assert f"view: {name}" in shown
        assert view.about.split()[0] in shown
    weights = {
        name: view["weight"] for name, view in json.loads(run("info", tmp_path / "model", "--json"))["views"].items()
    }
    assert weights == four_views.model_.blend.weights


def test_compress_writes_a_smaller_model_and_measures_both(tmp_path: Path, model: Path) -> None:
    lines = [json.dumps({"text": text, "labels": names}) for text, names in zip(TEXTS, NAMES, strict=True)]
    (tmp_path / "pets.jsonl").write_text("\n".join(lines))
    shown = run("compress", model, tmp_path / "small", "--data", tmp_path / "pets.jsonl")
    assert "size in MB" in shown
    assert "PSP@5" in shown
    small = load(tmp_path / "small")
    assert small.predict("a cat", k=1) == load(model).predict("a cat", k=1)
    assert small.model_.views["nearness"].arrays()["nearness.vectors"].dtype == np.int8
    assert "compressed" in run("info", tmp_path / "small")
    assert json.loads(run("info", tmp_path / "small", "--json"))["quantized"]["precision"] == "int8"


def test_compress_measures_up_to_k_labels(tmp_path: Path, model: Path) -> None:
    (tmp_path / "pets.jsonl").write_text(json.dumps({"text": TEXTS[0], "labels": NAMES[0]}))
    shown = run("compress", model, tmp_path / "small", "--data", tmp_path / "pets.jsonl", "-k", 10)
    assert "P@5" in shown
    assert "P@10" in shown


@pytest.mark.parametrize("precision", ["float16", "int8"])
def test_compress_refuses_what_would_not_become_smaller(tmp_path: Path, model: Path, precision: str) -> None:
    source = model
    if precision == "int8":
        run("compress", model, tmp_path / "int8")
        source = tmp_path / "int8"
    with pytest.raises(ValueError, match=f"{precision} would not make .* smaller"):
        run("compress", source, tmp_path / "same", "--precision", precision)
    assert not (tmp_path / "same").exists()


def test_compress_says_that_a_model_has_no_embeddings(tmp_path: Path) -> None:
    LightDXML("fast").fit(TEXTS, NAMES).save(tmp_path / "fast")
    with pytest.raises(ValueError, match="smaller: it has no embeddings to quantize"):
        run("compress", tmp_path / "fast", tmp_path / "small")


def test_compress_keeps_the_original(tmp_path: Path, model: Path) -> None:
    with pytest.raises(ValueError, match="is the model itself: choose another folder"):
        run("compress", model, model)
    (tmp_path / "notes.txt").write_text("years of work")
    with pytest.raises(ValueError, match="something other than a model"):
        run("compress", model, tmp_path)


def test_the_demo_runs_to_its_end(tmp_path: Path, see_also: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    assert see_also.test is not None
    rows = np.arange(60)
    small = Dataset("see-also", see_also.train.take(rows), see_also.test.take(rows), label_names=see_also.label_names)
    save(small, tmp_path / "see-also", "jsonl")
    monkeypatch.setenv("LIGHTDXML_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    # The folder must not have the name of the data set, which would be read from it.
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    shown = run("demo")
    assert "lightdxml explain" in shown
    assert load("demo-model").model_.n_documents == 60
    assert Path("demo-model-report.html").resolve().as_uri() in shown
    assert Path("demo-model-report.html").is_file()
    # A second demo replaces the model of the first, but no other model.
    run("demo")
    Path("demo-model").rename("mine")
    with pytest.raises(ValueError, match="mine holds a model already"):
        run("demo", "--model", "mine")
