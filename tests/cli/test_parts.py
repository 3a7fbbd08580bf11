"""`lightdxml predict --part`, and `lightdxml evaluate` of what it writes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from lightdxml import LightDXML
from lightdxml.cli.evaluate_predictions import Ranked
from lightdxml.data.errors import DataError
from tests.support.commands import COMMAND, run
from tests.support.configs import PAPER
from tests.support.data import TEXTS

NAMES = [["cat"], ["dog"], ["cat", "dog"], []] * 10
N = 23


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, documents with ids, and documents without."""
    folder = tmp_path_factory.mktemp("parts")
    LightDXML(options=PAPER | {"epochs": 30, "dense.batch_size": 8}).fit(TEXTS, NAMES).save(folder / "model")
    rows = [{"text": TEXTS[i], "labels": NAMES[i]} for i in range(N)]
    (folder / "plain.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = "".join(json.dumps({"id": f"d{i}", **row}) + "\n" for i, row in enumerate(rows))
    (folder / "named.jsonl").write_text(lines)
    return folder


def predict(folder: Path, name: str = "named.jsonl", *options: object) -> str:
    return run("predict", folder / "model", folder / name, *options)


@pytest.mark.parametrize("to", ["jsonl", "text"])
def test_the_outputs_of_all_parts_are_the_output_of_all_documents(folder: Path, to: str, tmp_path: Path) -> None:
    whole = predict(folder, "named.jsonl", "--to", to)
    for parts in (2, 5, 30):
        names = [tmp_path / f"{parts}-{i}" for i in range(1, parts + 1)]
        for i, name in enumerate(names, 1):
            predict(folder, "named.jsonl", "--to", to, "--part", f"{i}/{parts}", "--out", name)
        assert "".join(name.read_text() for name in names) == whole


def test_parts_of_tables_are_tables(folder: Path, tmp_path: Path) -> None:
    parts = [predict(folder, "named.jsonl", "--to", "csv", "--part", f"{i}/2").splitlines() for i in (1, 2)]
    assert [*parts[0], *parts[1][1:]] == predict(folder, "named.jsonl", "--to", "csv").splitlines()
    predict(folder, "named.jsonl", "--part", "2/2", "--out", tmp_path / "2.parquet")
    assert pq.read_table(tmp_path / "2.parquet")["id"].to_pylist() == [f"d{i}" for i in range(N // 2, N)]


def test_a_part_that_is_there_is_not_predicted_again_unless_forced(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "part"
    out.write_text("there")
    predict(folder, "named.jsonl", "--part", "1/2", "--out", out)
    assert out.read_text() == "there"
    predict(folder, "named.jsonl", "--part", "1/2", "--out", out, "--force")
    assert out.read_text() == predict(folder, "named.jsonl", "--part", "1/2")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_part_that_is_killed_leaves_no_file(folder: Path, tmp_path: Path) -> None:
    many = tmp_path / "many.jsonl"
    many.write_text((folder / "named.jsonl").read_text() * 10_000)
    out = tmp_path / "out" / "1.jsonl"
    command = ["predict", folder / "model", many, "--part", "1/2", "--out", out]
    process = subprocess.Popen([*COMMAND, *map(str, command)])
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not any(one.stat().st_size for one in out.parent.glob(".1.jsonl.*")):
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not out.exists()


def test_another_systems_scores_are_found_by_the_place_in_all_documents(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    lines = [{"labels": [{"label": ["cat", "dog"][i % 2], "score": 0.9}]} for i in range(N)]
    other.write_text("".join(json.dumps(line) + "\n" for line in lines))
    options = ("--json", "--with", other, "--with-weight", 0.5)
    parts = [predict(folder, "plain.jsonl", *options, "--part", f"{i}/3") for i in (1, 2, 3)]
    assert "".join(parts) == predict(folder, "plain.jsonl", *options)


@pytest.mark.parametrize("part", ["0/8", "9/8", "3", "1/0", "-1/2"])
def test_what_is_no_part_is_refused(folder: Path, part: str) -> None:
    with pytest.raises(ValueError, match="is not a part: write 1/8 for the first of eight"):
        predict(folder, "named.jsonl", f"--part={part}")


def test_options_that_do_not_go_together_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="standard input cannot be divided"):
        run("predict", folder / "model", "-", "--part", "1/2", text="a cat\n")
    with pytest.raises(ValueError, match="--parts is for a Ray cluster"):
        predict(folder, "named.jsonl", "--parts", 3)
    with pytest.raises(ValueError, match="--part is for jobs without Ray"):
        predict(folder, "named.jsonl", "--part", "1/2", "--ray", "local")
    with pytest.raises(ValueError, match="give a folder as --out"):
        predict(folder, "named.jsonl", "--ray", "local")


@pytest.mark.parametrize("name", ["named.jsonl", "plain.jsonl"])
@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_parts_are_evaluated_like_the_model(folder: Path, tmp_path: Path, name: str, ending: str) -> None:
    for i in (1, 2):
        predict(folder, name, "--part", f"{i}/2", "--out", tmp_path / f"{i}.{ending}")
    expected = json.loads(run("evaluate", folder / "model", folder / name, "-k", 2, "--json"))
    found = json.loads(run("evaluate", tmp_path, folder / name, "-k", 2, "--json"))
    assert found["documents"] == N
    for metric in ("P@1", "P@2", "nDCG@2", "R@2", "coverage@2"):
        assert found[metric] == expected[metric]
    assert not any("PSP" in metric for metric in found)


def test_with_a_train_part_rare_labels_are_measured(folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for part in ("train", "test"):
        (data / f"{part}.jsonl").write_text((folder / "named.jsonl").read_text())
    predict(folder, "named.jsonl", "--out", tmp_path / "found.jsonl")
    expected = json.loads(run("evaluate", folder / "model", data, "-k", 2, "--json"))
    found = json.loads(run("evaluate", tmp_path / "found.jsonl", data, "-k", 2, "--json"))
    for metric in ("PSP@1", "PSnDCG@2", "macro-F1@2"):
        assert found[metric] == expected[metric]


def test_predictions_for_other_documents_are_refused(folder: Path, tmp_path: Path) -> None:
    predict(folder, "plain.jsonl", "--part", "1/2", "--out", tmp_path / "half.jsonl")
    predict(folder, "named.jsonl", "--part", "1/2", "--out", tmp_path / "named.jsonl")
    with pytest.raises(ValueError, match="has 11 predictions without ids, but the data has 23 documents"):
        run("evaluate", tmp_path / "half.jsonl", folder / "plain.jsonl")
    with pytest.raises(ValueError, match="has no predictions for 12 of 23 documents, such as 'd11'"):
        run("evaluate", tmp_path / "named.jsonl", folder / "named.jsonl")
    with pytest.raises(ValueError, match="has ids of documents, but the data has none"):
        run("evaluate", tmp_path / "named.jsonl", folder / "plain.jsonl")
    with pytest.raises(ValueError, match="leave out options that need a model"):
        run("evaluate", tmp_path / "half.jsonl", folder / "plain.jsonl", "--grid")
    (tmp_path / "text").write_text("cat 0.9\n")
    with pytest.raises(DataError, match="expected predictions as `lightdxml predict --to jsonl`"):
        run("evaluate", tmp_path / "text", folder / "plain.jsonl")


def test_labels_are_found_by_uri_and_by_name(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    first = [{"uri": "urn:1", "label": "one", "score": 1}, {"uri": "urn:9", "label": "two", "score": 1}]
    path.write_text(json.dumps({"labels": first}) + '\n{"labels": [{"label": "x", "score": 0.5}]}\n')
    found = Ranked.read(path, ["<urn:1>", "two"], 2)
    assert found.labels.tolist() == [[0, 1], [2, -1]]
    assert (found.n_labels, found.ids) == (3, None)
