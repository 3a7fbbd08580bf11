"""`lightdxml data`."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from lightdxml import __version__
from lightdxml.data import Dataset, load, save
from tests.support.commands import COMMAND, run, run_process

CSV = "text,labels\n" + "".join(f"document {i},a|l{i % 3}\n" for i in range(10))


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


def test_info_prints_a_table_and_a_curve(csv: Path) -> None:
    shown = run("data", "info", csv)
    assert "training documents" in shown
    assert "labels per document" in shown
    assert "█" in shown


def test_list_shows_built_in_and_registered_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIGHTDXML_DATA", str(tmp_path))
    (tmp_path / "Bibtex").mkdir()
    rows = {row["name"]: row for row in json.loads(run("data", "list", "--json"))}
    assert rows["see-also"]["status"] == "built-in"
    assert rows["AmazonTitles-670K"]["n_labels"] == 670_091
    assert rows["AmazonTitles-670K"]["status"] == "to fetch"
    assert rows["Bibtex"]["status"] == "fetched"
    assert "AmazonTitles-670K" in run("data", "list")


def test_convert_and_split_write_what_load_reads(tmp_path: Path, csv: Path) -> None:
    run("data", "split", csv, tmp_path / "parts", "--test", "0.3", "--dev", "0.2", "--random-state", "1")
    data = load(tmp_path / "parts")
    assert {name: len(part) for name, part in data.splits.items()} == {"train": 5, "test": 3, "dev": 2}
    assert data.label_names == ["a", "l0", "l1", "l2"]
    run("data", "convert", tmp_path / "parts", tmp_path / "packed", "--to", "jsonl", "--compress", "zst")
    assert (tmp_path / "packed" / "train.jsonl.zst").exists()
    assert load(tmp_path / "packed").train.texts == data.train.texts


@pytest.mark.parametrize("form", ["annif-tsv", "annif-csv", "annif-jsonl", "annif-txt"])
def test_convert_writes_corpora_that_load_reads(tmp_path: Path, csv: Path, form: str) -> None:
    assert "10 train documents" in run("data", "convert", csv, tmp_path / "corpus", "--to", form)
    data, source = load(tmp_path / "corpus"), load(csv)
    assert data.train.texts == source.train.texts
    assert data.label_names == source.label_names
    assert (data.train.Y != source.train.Y).nnz == 0


def test_the_same_random_state_gives_the_same_split(tmp_path: Path, csv: Path) -> None:
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        run("data", "split", csv, tmp_path / name, "--test", "0.4", "--random-state", seed)
    first, again, other = (load(tmp_path / name).train.texts for name in "abc")
    assert first == again
    assert first != other


def test_get_writes_the_built_in_set_to_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIGHTDXML_DATA", str(tmp_path))
    run("data", "get", "see-also")
    assert load("see-also").n_labels == load(tmp_path / "see-also").n_labels


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["info", "no-such-set"], "lightdxml data list shows all"),
        (["split", "FILE", "OUT", "--test", "1.5"], "at least 0 and below 1"),
        (["split", "FILE", "OUT", "--test", "inf"], "at least 0 and below 1"),
        (["convert", "FILE", "OUT", "--to", "xc"], "write texts as jsonl"),
        (["info", "~nobody-of-this-name/x"], "no such file or folder"),
        (["info", "FILE", "--encoding", "hex"], "encoding 'hex' is unknown"),
    ],
)
def test_mistakes_are_reported_in_one_sentence(csv: Path, tmp_path: Path, arguments: list[str], said: str) -> None:
    paths = {"FILE": str(csv), "OUT": str(tmp_path / "out")}
    with pytest.raises(ValueError, match=re.escape(said)) as error:
        run("data", *(paths.get(argument, argument) for argument in arguments))
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_errors_have_an_exit_code_and_no_traceback() -> None:
    error, usage = run_process("data", "info", "no-such-set"), run_process("data", "nonsense")
    assert (error.returncode, usage.returncode) == (1, 2)
    assert error.stderr.startswith("error: ")
    assert error.stderr.count("\n") == 1
    assert "No such command" in usage.stderr


def test_names_with_brackets_are_shown_as_they_are(tmp_path: Path, csv: Path) -> None:
    target = tmp_path / "out[red]"
    assert "out[red]" in run("data", "convert", csv, target, "--to", "jsonl").replace("\n", "")
    assert "out[red]" in run("data", "info", target)


def test_version_is_shown() -> None:
    assert run("--version") == f"lightdxml {__version__}\n"


@pytest.mark.parametrize("command", ["list", "info", "get", "convert", "split"])
def test_every_data_command_has_an_example_in_its_help(command: str) -> None:
    assert f"lightdxml data {command}" in run("data", command, "--help")


def test_a_reader_that_stops_early_is_no_error() -> None:
    with subprocess.Popen(
        [*COMMAND, "data", "list", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


def test_columns_and_separator_can_be_given(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(
        "Nr,Body,Tags\n" + "".join(f'{i},document {i},"a,l{i % 3}"\n' for i in range(10))
    )
    options = ["--text-column", "body", "--label-column", "tags", "--id-column", "nr"]
    with pytest.raises(ValueError, match='--separator ","'):
        run("data", "info", tmp_path / "mine.csv", *options)
    run("data", "split", tmp_path / "mine.csv", tmp_path / "split", *options, "--separator", ",")
    data = load(tmp_path / "split")
    assert data.test is not None
    assert len(data.train) + len(data.test) == 10
    assert sorted(data.label_names or ()) == ["a", "l0", "l1", "l2"]
    assert data.train.ids is not None


def test_a_table_of_the_user_is_not_replaced(tmp_path: Path, csv: Path) -> None:
    """A train.csv with columns of other names was once taken for a file of ours, and removed."""
    (tmp_path / "split").mkdir()
    (tmp_path / "split" / "train.csv").write_text("body,tags\na,b\n")
    run("data", "split", csv, tmp_path / "split", "--force")
    assert (tmp_path / "split" / "train.csv").read_text() == "body,tags\na,b\n"
