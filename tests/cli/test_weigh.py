"""`lightdxml weigh`, and `--with` of `predict` and `evaluate`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from lightdxml import LightDXML
from tests.support.commands import run, run_process

TEXTS, LABELS = ["a purring cat", "a barking dog", "a mooing cow", "a bleating sheep"], ["cat", "dog", "cow", "sheep"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model that has mixed up two animals, data, and the scores of a system that knows better."""
    folder = tmp_path_factory.mktemp("opinions")
    wrong = [["cat"], ["cow"], ["dog"], ["sheep"]] * 10
    LightDXML(dim=8, epochs=5, random_state=1).fit(TEXTS * 10, wrong).save(folder / "model")
    (folder / "data").mkdir()
    for part in ("train", "dev", "test"):
        rows = [
            {"id": f"{part}{i}", "text": text, "labels": [label]}
            for i, (text, label) in enumerate(zip(TEXTS * 10, LABELS * 10, strict=True))
        ]
        write(folder / "data" / f"{part}.jsonl", rows)
        known = [{"label": row["labels"][0], "score": 3.0} for row in rows]
        scores = [{"id": row["id"], "labels": [one]} for row, one in zip(rows, known, strict=True)]
        write(folder / f"{part}-scores.jsonl", scores)
    return folder


def write(path: Path, records: Sequence[Mapping[str, object]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def test_a_weight_is_chosen_on_the_dev_part_and_used_to_evaluate_and_predict(folder: Path) -> None:
    found = json.loads(run("weigh", folder / "model", folder / "data", "--with", folder / "dev-scores.jsonl", "--json"))
    assert found["documents"] == 40
    assert found["gain"] > found["error"]
    assert found["precision"]["P@1"] == 100
    assert found["curve"][0]["precision"]["P@1"] == 50
    options = ("--with", folder / "test-scores.jsonl", "--with-weight", found["weight"])
    alone = json.loads(run("evaluate", folder / "model", folder / "data", "--json"))
    blended = json.loads(run("evaluate", folder / "model", folder / "data", *options, "--json"))
    assert (alone["P@1"], blended["P@1"]) == (50, 100)
    lines = run("predict", folder / "model", folder / "data" / "test.jsonl", *options, "-k", 1).splitlines()
    assert [line.split()[1] for line in lines[:4]] == LABELS


def test_the_table_marks_the_weight_and_says_how_to_use_it(folder: Path) -> None:
    shown = run("weigh", folder / "model", folder / "data", "--with", folder / "dev-scores.jsonl")
    marked = next(line for line in shown.splitlines() if line.endswith("✓"))
    assert f"Best weight: --with-weight {marked.split()[0]}. It gains" in shown


def test_scores_that_add_nothing_get_weight_0(folder: Path, tmp_path: Path) -> None:
    own = run("predict", folder / "model", folder / "data" / "dev.jsonl", "--json")
    (tmp_path / "own.jsonl").write_text(own, encoding="utf-8")
    assert "Best weight: 0." in run("weigh", folder / "model", folder / "data", "--with", tmp_path / "own.jsonl")


def test_a_file_of_documents_can_choose_a_weight_but_test_documents_cannot(folder: Path, tmp_path: Path) -> None:
    test, scores = folder / "data" / "test.jsonl", folder / "test-scores.jsonl"
    assert "Best weight" in run("weigh", folder / "model", test, "--with", scores)
    for part in ("train", "test"):
        (tmp_path / f"{part}.jsonl").write_text((folder / "data" / f"{part}.jsonl").read_text("utf-8"), "utf-8")
    with pytest.raises(ValueError, match="has no dev part, and test documents must not choose a weight"):
        run("weigh", folder / "model", tmp_path, "--with", scores)


def test_missing_documents_keep_their_labels_and_unknown_labels_are_left_out_and_both_are_said(
    folder: Path, tmp_path: Path
) -> None:
    labels = [{"label": "dog", "score": 1}, {"label": "unicorn", "score": 1}]
    write(tmp_path / "few.jsonl", [{"id": "test1", "labels": labels}])
    options = ("--with", tmp_path / "few.jsonl", "--with-weight", 0.9)
    shown = run_process("predict", folder / "model", folder / "data" / "test.jsonl", *options, "-k", 1)
    assert [line.split()[1] for line in shown.stdout.splitlines()[:6]] == ["cat", "dog", "dog", "sheep", "cat", "cow"]
    assert "few.jsonl has no scores for 39 of 40 documents: they keep the model's scores" in shown.stderr
    assert "the model does not know 1 label of" in shown.stderr
    assert "such as unicorn: left out" in shown.stderr


def test_rules_hold_for_the_labels_of_the_other_system(folder: Path) -> None:
    options = ("--with", folder / "test-scores.jsonl", "--with-weight", 0.9, "--exclude", "dog")
    lines = run("predict", folder / "model", folder / "data" / "test.jsonl", *options, "-k", 4).splitlines()
    assert len(lines) == 40
    assert not any("dog " in line for line in lines)
    assert [line.split()[1] for line in (lines[0], lines[2], lines[3])] == ["cat", "cow", "sheep"]
    found = json.loads(run("evaluate", folder / "model", folder / "data", *options, "--json"))
    assert found["R@1"] == 75, "documents of the excluded label count as 0"


def test_a_weight_is_chosen_under_rules(folder: Path) -> None:
    options = ("--with", folder / "dev-scores.jsonl", "--exclude", "dog", "--exclude", "cow", "--json")
    shown = run_process("weigh", folder / "model", folder / "data", *options)
    assert "20 of 40 occurrences of labels do not count" in shown.stderr
    found = json.loads(shown.stdout)
    assert found["weight"] == 0, "the model alone is right on the other labels"
    assert {point["precision"]["P@1"] for point in found["curve"]} == {50}


def test_scores_of_other_documents_are_refused(folder: Path) -> None:
    options = ("--with", folder / "dev-scores.jsonl", "--with-weight", 0.5)
    with pytest.raises(ValueError, match="has none of the 40 documents: check that the ids are the same"):
        run("evaluate", folder / "model", folder / "data", *options)


def test_lines_without_ids_are_matched_in_order(folder: Path, tmp_path: Path) -> None:
    records = [{"labels": [{"label": label, "score": 1}]} for label in LABELS]
    write(tmp_path / "scores.jsonl", records)
    options = ("--with", tmp_path / "scores.jsonl", "--with-weight", 0.9, "-k", 1)
    found = run("predict", folder / "model", "-", *options, text="".join(f"{text}\n" for text in TEXTS))
    assert [line.split()[0] for line in found.splitlines()] == LABELS
    with pytest.raises(ValueError, match="has 4 documents without ids, and not 1"):
        run("predict", folder / "model", "-", *options, text="a cat\n")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--with", "scores.jsonl"), "--with needs a weight"),
        (("--with-weight", "0.5"), "give their file as --with"),
        (("--with", "scores.jsonl", "--with-weight", "2"), "the weight is 2.0: it must be from 0"),
        (("--with", "scores.jsonl", "--with-weight", "nan"), "the weight is nan: it must be from 0"),
    ],
)
@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_wrong_options_are_reported_before_anything_is_read(
    tmp_path: Path, command: str, options: tuple[str, ...], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        run(command, tmp_path / "none", "-", *options)
