"""`lightdxml data …` as a person and as a machine would use it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lightdxml import __version__
from lightdxml.cli import app
from lightdxml.data import Dataset, load, save

CSV = "text,labels\n" + "".join(f"document {i},a|l{i % 3}\n" for i in range(10))


def run(*arguments: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.stdout


def ended(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command as a process of its own, as only that shows exit codes and error output."""
    command = [sys.executable, "-c", "from lightdxml.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "mine.csv"
    path.write_text(CSV)
    return path


@pytest.fixture
def embedded(tmp_path: Path, see_also: Dataset) -> Path:
    return save(see_also, tmp_path / "embedded", "jsonl")


def test_info_prints_the_figures_as_json(embedded: Path, see_also: Dataset) -> None:
    figures = json.loads(run("data", "info", embedded, "--json"))
    assert see_also.test is not None
    assert figures["n_train"] == len(see_also.train)
    assert figures["n_test"] == len(see_also.test)
    assert figures["n_features"] is None
    assert figures["n_labels"] == see_also.n_labels
    assigned = see_also.train.Y.nnz + see_also.test.Y.nnz
    assert figures["labels_per_point"] == pytest.approx(assigned / (figures["n_train"] + figures["n_test"]))
    assert figures["points_per_label"] == pytest.approx(assigned / see_also.n_labels)
    assert 0.5 < figures["share_of_labels_below_5"] < 1
    assert figures["label_frequency_curve"][0][0] == 1
    assert set(figures["sparkline"]) <= set("▁▂▃▄▅▆▇█")


def test_info_agrees_with_the_repositorys_figures(shared_data: Path) -> None:
    figures = json.loads(run("data", "info", shared_data / "bibtex", "--json"))
    assert round(figures["points_per_label"], 2) == 111.71
    assert round(figures["labels_per_point"], 2) == 2.40
    assert figures["n_features"] == 1836


def test_info_shows_people_a_table_and_a_curve(csv: Path) -> None:
    shown = run("data", "info", csv)
    assert "training documents" in shown
    assert "labels per document" in shown
    assert "█" in shown


def test_list_names_built_and_registered_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIGHTDXML_DATA", str(tmp_path))
    (tmp_path / "Bibtex").mkdir()
    rows = {row["name"]: row for row in json.loads(run("data", "list", "--json"))}
    assert rows["see-also"]["status"] == "built here"
    assert rows["AmazonTitles-670K"]["n_labels"] == 670_091
    assert rows["AmazonTitles-670K"]["status"] == "to fetch"
    assert rows["Bibtex"]["status"] == "fetched"
    assert "AmazonTitles-670K" in run("data", "list")


def test_convert_and_split_write_what_load_reads(tmp_path: Path, csv: Path) -> None:
    run("data", "split", csv, tmp_path / "parts", "--test", "0.3", "--dev", "0.2", "--seed", "1")
    data = load(tmp_path / "parts")
    assert {name: len(part) for name, part in data.splits.items()} == {"train": 5, "test": 3, "dev": 2}
    assert data.label_names == ["a", "l0", "l1", "l2"]
    run("data", "convert", tmp_path / "parts", tmp_path / "packed", "--to", "jsonl", "--compress", "zst")
    assert (tmp_path / "packed" / "train.jsonl.zst").exists()
    assert load(tmp_path / "packed").train.texts == data.train.texts


def test_split_with_the_same_seed_is_the_same(tmp_path: Path, csv: Path) -> None:
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        run("data", "split", csv, tmp_path / name, "--test", "0.4", "--seed", seed)
    first, again, other = (load(tmp_path / name).train.texts for name in "abc")
    assert first == again
    assert first != other


def test_get_builds_the_embedded_set_into_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIGHTDXML_DATA", str(tmp_path))
    run("data", "get", "see-also")
    assert load("see-also").n_labels == load(tmp_path / "see-also").n_labels


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["data", "info", "no-such-set"], 1, "lightdxml data list shows all"),
        (["data", "convert", "no-such-set", "out"], 2, "--to"),
        (["data", "split", "FILE", "out", "--test", "1.5"], 1, "at least 0 and below 1"),
        (["data", "convert", "FILE", "out", "--to", "xc"], 1, "write texts as jsonl"),
        (["data", "split", "FILE", "out", "--test", "inf"], 1, "at least 0 and below 1"),
        (["data", "info", "~nobody-of-this-name/x"], 1, "no such file or folder"),
        (["data", "info", "FILE", "--encoding", "hex"], 1, "encoding 'hex' is unknown"),
        (["data", "nonsense"], 2, "No such command"),
    ],
)
def test_errors_are_one_sentence_with_the_right_exit_code(
    csv: Path, tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    places = {"FILE": str(csv), "out": str(tmp_path / "out")}
    result = ended(*(places.get(argument, argument) for argument in arguments))
    assert result.returncode == code
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    if code == 1:
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
        assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_names_with_brackets_are_shown_as_they_are(tmp_path: Path, csv: Path) -> None:
    target = tmp_path / "out[red]"
    assert "out[red]" in run("data", "convert", csv, target, "--to", "jsonl").replace("\n", "")
    assert "out[red]" in run("data", "info", target)


def test_version_is_shown() -> None:
    assert run("--version") == f"lightdxml {__version__}\n"


@pytest.mark.parametrize("command", ["list", "info", "get", "convert", "split"])
def test_every_command_has_an_example_in_its_help(command: str) -> None:
    assert f"lightdxml data {command}" in run("data", command, "--help")


def test_a_reader_that_stops_early_is_no_error(csv: Path) -> None:
    command = [sys.executable, "-c", "from lightdxml.cli import main; main()", "data", "list", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
