"""`lightdxml evaluate`: cut-offs, thresholds, the grid and the table of labels."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml import LightDXML
from lightdxml import load as load_model
from lightdxml.cli.measure import cuts_up_to, measure
from lightdxml.data import Dataset, Split, Texts
from lightdxml.data.vocabulary import Concept, Vocabulary
from lightdxml.metrics import decision_measures, evaluate, r_precision
from tests.support.commands import run

ANIMALS = [f"animal{i}" for i in range(15)]
ODD = 'a "b"\tc'
NAMES = [ODD, *ANIMALS[1:]]


def words_of(labels: list[int]) -> str:
    return " ".join(f"the {ANIMALS[j]}" for j in labels)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model and test documents, one of which has 12 labels and one a label that is unknown."""
    folder = tmp_path_factory.mktemp("evaluate")
    rng = np.random.default_rng(0)
    chosen = [sorted(rng.choice(15, 1 + i % 3, replace=False).tolist()) for i in range(90)]
    labels = [[NAMES[j] for j in row] for row in chosen]
    LightDXML(dim=8, epochs=5, random_state=1).fit([words_of(row) for row in chosen], labels).save(folder / "model")
    rows = [list(range(12)), *chosen[:20]]
    records = [{"text": words_of(row), "labels": [NAMES[j] for j in row]} for row in rows]
    records[5]["labels"] = [*records[5]["labels"], "unicorn"]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "test.jsonl").write_text(lines, encoding="utf-8")
    return folder


def evaluated(folder: Path, *options: Any) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(run("evaluate", folder / "model", folder / "test.jsonl", *options, "--json"))
    return content


def test_k_adds_a_cut_off_above_the_usual_ones(folder: Path) -> None:
    found = evaluated(folder, "-k", 10)
    assert {f"P@{k}" for k in (1, 3, 5, 10)} == {name for name in found if name.startswith("P@")}
    assert "micro-F1@10" in found
    assert "micro-F1@5" in evaluated(folder)
    shown = run("evaluate", folder / "model", folder / "test.jsonl", "-k", 10)
    assert shown.splitlines()[1].split() == ["%", "@1", "@3", "@5", "@10"]
    assert cuts_up_to(1) == (1,)
    assert cuts_up_to(12) == (1, 3, 5, 10, 12)


def test_measures_at_a_threshold_are_those_of_labels_with_such_a_score(folder: Path) -> None:
    found = evaluated(folder, "--threshold", 0.2)["at_threshold"]
    records = [json.loads(line) for line in (folder / "test.jsonl").read_text(encoding="utf-8").splitlines()]
    trained = load_model(folder / "model")
    names = [*(trained.model_.label_names or []), "unicorn"]
    Y = csr_matrix([[name in record["labels"] for name in names] for record in records])
    expected = decision_measures(Y, *trained.rank([record["text"] for record in records], 15), 0.2)
    assert found == pytest.approx({"lowest": 0.2, "highest": 0.2, **expected})


def test_r_precision_counts_more_than_ten_labels_of_a_document(folder: Path) -> None:
    """Ten labels are ranked otherwise: a document with twelve could not reach 100."""
    record = json.loads((folder / "test.jsonl").read_text(encoding="utf-8").splitlines()[0])
    split = Split(Y=csr_matrix(np.ones((1, 12))), texts=Texts([record["text"]]))
    found = measure(load_model(folder / "model"), Dataset("one", split, label_names=record["labels"]))
    assert found.ranked.shape == (1, 12)
    assert found.metrics["R-precision"] == r_precision(found.documents.Y, found.ranked) > 0


def test_the_grid_has_every_threshold_and_limit_and_names_the_best(folder: Path) -> None:
    grid = evaluated(folder, "--grid")["grid"]
    assert grid["limits"] == [1, 3, 5, 10, None]
    assert np.shape(grid["micro-F1"]) == np.shape(grid["samples-F1"]) == (len(grid["thresholds"]), 5)
    shown = run("evaluate", folder / "model", folder / "test.jsonl", "--grid")
    assert f"Best micro-F1: {np.max(grid['micro-F1']):.2f} at threshold" in shown


def test_tables_fit_a_terminal_of_80_columns(folder: Path) -> None:
    options = ("-k", 100, "--threshold", "0.123", "--grid")
    shown = run("evaluate", folder / "model", folder / "test.jsonl", *options)
    tables = shown[: shown.index("Examples")].splitlines()
    assert max(len(line.rstrip()) for line in tables) <= 80
    assert any("F1@100" in line and "F1 ≥T" in line for line in tables), "columns are not cut"


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


def test_the_table_of_labels_adds_up_to_the_averages(folder: Path, tmp_path: Path) -> None:
    found = evaluated(folder, "--per-label", tmp_path / "labels.tsv", "--threshold", 0.3)["at_threshold"]
    rows = read(tmp_path / "labels.tsv")
    right, wrong, missed = (
        sum(int(row[name]) for row in rows) for name in ("true_positives", "false_positives", "false_negatives")
    )
    assert found["micro-P"] == pytest.approx(100 * right / (right + wrong))
    assert found["micro-R"] == pytest.approx(100 * right / (right + missed))
    assert found["macro-F1"] == pytest.approx(sum(float(row["F1"]) for row in rows) / 16, abs=0.01)
    assert [int(row["support"]) for row in rows] == sorted((int(row["support"]) for row in rows), reverse=True)
    by_name = {row["name"]: row for row in rows}
    assert by_name["unicorn"]["support"] == by_name["unicorn"]["false_negatives"] == "1"
    assert 'a "b" c' in by_name, "a name is one cell"


def test_without_a_threshold_the_table_is_about_the_first_k_labels(folder: Path, tmp_path: Path) -> None:
    run("evaluate", folder / "model", folder / "test.jsonl", "--per-label", tmp_path / "labels.tsv.gz", "-k", 2)
    run("evaluate", folder / "model", folder / "test.jsonl", "--per-label", tmp_path / "labels.tsv", "-k", 2)
    kept = sum(int(row["true_positives"]) + int(row["false_positives"]) for row in read(tmp_path / "labels.tsv"))
    assert kept == 2 * 21
    # A table, compressed or not, may be written again.
    for name in ("labels.tsv", "labels.tsv.gz"):
        run("evaluate", folder / "model", folder / "test.jsonl", "--per-label", tmp_path / name)


def test_concepts_have_their_uri_in_the_table(tmp_path: Path) -> None:
    concepts = Vocabulary([Concept("urn:1", {"en": ("pet",)}), Concept("urn:2", {"en": ("pet",)})])
    texts, labels = ["a purring cat", "a barking dog"] * 10, [["urn:1"], ["urn:2"]] * 10
    LightDXML(dim=8, epochs=2).fit(texts, labels, vocabulary=concepts).save(tmp_path / "model")
    (tmp_path / "data.jsonl").write_text('{"text": "a cat", "labels": ["urn:1"]}\n', encoding="utf-8")
    run("evaluate", tmp_path / "model", tmp_path / "data.jsonl", "--per-label", tmp_path / "labels.tsv")
    assert {(row["name"], row["uri"]) for row in read(tmp_path / "labels.tsv")} == {("pet", "urn:1"), ("pet", "urn:2")}


def test_another_file_is_not_replaced_by_the_table_of_labels(folder: Path, tmp_path: Path) -> None:
    thesis = tmp_path / "thesis.tsv"
    thesis.write_text("years of work", encoding="utf-8")
    for path, says in ((thesis, "is not a table of labels and would be lost"), (tmp_path, "is a folder: give a file")):
        with pytest.raises(ValueError, match=says):
            run("evaluate", folder / "model", folder / "test.jsonl", "--per-label", path)
    assert thesis.read_text(encoding="utf-8") == "years of work"


@pytest.mark.parametrize("threshold", ["high", "30%", "-0.1", "1.5", "nan"])
def test_a_wrong_threshold_is_reported_before_anything_is_read(tmp_path: Path, threshold: str) -> None:
    with pytest.raises(ValueError, match=f"threshold is '?{threshold}'?: give a number from 0 to 1"):
        run("evaluate", tmp_path / "none", "nothing", f"--threshold={threshold}")


def test_ignored_pairs_leave_the_ranking_and_its_scores(folder: Path) -> None:
    trained = load_model(folder / "model")
    texts = [words_of([0, 1]), words_of([2])]
    ranked, scores = trained.rank(texts, 15)
    Y = csr_matrix(np.eye(15)[[0, 2]])
    first = np.column_stack([np.arange(2), ranked[:, 0]])
    split = Split(Y=Y, texts=Texts(texts), ignore=first)
    found = measure(trained, Dataset("two", split, label_names=trained.model_.label_names))
    np.testing.assert_array_equal(found.ranked, ranked[:, 1:11])
    np.testing.assert_array_equal(found.scores, scores[:, 1:11])
    assert found.metrics["P@1"] == evaluate(Y, ranked, 1, ignore=first)["P@1"]


def test_the_grid_takes_any_order_of_labels(folder: Path) -> None:
    """By `--tail`, rare labels come before likelier ones."""
    found = evaluated(folder, "--grid", "--tail", 1)
    assert np.isfinite(found["grid"]["micro-F1"]).all()


@pytest.mark.parametrize("option", [["--tail", "1"], ["--threshold", "auto"]])
def test_what_is_chosen_for_the_model_alone_does_not_go_with_another_system(tmp_path: Path, option: list[str]) -> None:
    with pytest.raises(ValueError, match=r"alone: .* with --with"):
        run("evaluate", tmp_path / "none", "nothing", "--with", "scores.jsonl", "--with-weight", "0.5", *option)
