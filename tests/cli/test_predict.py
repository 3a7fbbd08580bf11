"""`predict`, `explain`, `info` and `demo` as a user calls them."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lightdxml import LightDXML, load
from lightdxml.cli import app, main
from tests.training.test_cycle import SMALL, topics

TEXTS = ["a purring cat", "a barking dog", "a cat and a dog", "no pet"] * 10
NAMES = [["cat, 🐈"], ["dog\n\t"], ["cat, 🐈", "dog\n\t"], []] * 10


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "pets"
    LightDXML(**(SMALL | {"e_model": 30, "batch_size": 8})).fit(TEXTS, NAMES).save(folder)
    return folder


def run(*arguments: Any, text: str | bytes = "") -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=text, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def labels_of(out: str) -> list[list[str]]:
    return [[found["label"] for found in json.loads(line)["labels"]] for line in out.splitlines()]


def test_every_line_gets_a_line(model: Path) -> None:
    out = run("predict", model, "-", "-k", 1, text="the cat\n\nthe dog")
    cat, nothing, dog = out.split("\n")[:3]
    assert cat.startswith("cat, 🐈 0.")
    assert nothing == ""
    assert dog.startswith("dog 0.")


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize(
    "content",
    [
        "the cat\nthe dog\n",
        '{"id": 7, "text": "the cat"}\n\n{"title": "the dog", "labels": ["x"]}\n',
        "id,text\n1,the cat\n2,the dog\n",
        'text;labels\n"the\ncat";x\nthe dog;\n',
        "\ufeffthe cat\r\nthe dog\r\n",
    ],
)
def test_texts_of_all_forms_give_the_same_answers(model: Path, tmp_path: Path, content: str, suffix: str) -> None:
    path = tmp_path / f"documents{suffix}"
    path.write_bytes(gzip.compress(content.encode()) if suffix else content.encode())
    assert labels_of(run("predict", model, path, "--json", "-k", 1)) == [["cat, 🐈"], ["dog\n\t"]]
    assert labels_of(run("predict", model, "-", "--json", "-k", 1, text=path.read_bytes())) == [
        ["cat, 🐈"],
        ["dog\n\t"],
    ]


def test_blank_lines_lone_returns_and_empty_cells_keep_answers_in_line(model: Path) -> None:
    assert labels_of(run("predict", model, "-", "--json", "-k", 1, text='\n{"text": "cat"}\n')) == [["cat, 🐈"]]
    assert labels_of(run("predict", model, "-", "--json", "-k", 1, text='\ntext\n"cat"\n')) == [["cat, 🐈"]]
    assert len(labels_of(run("predict", model, "-", "--json", text=b"a cat\rand dog\nb\n"))) == 2
    assert len(labels_of(run("predict", model, "-", "--json", text='text\n"cat"\n""\n"dog"\n'))) == 3


def test_ids_come_back(model: Path) -> None:
    out = run("predict", model, "-", "--json", text='{"id": "a", "text": "cat"}\n{"id": 2, "text": "dog"}\n')
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["a", 2]


def test_more_labels_than_there_are_gives_all(model: Path) -> None:
    assert {len(row) for row in labels_of(run("predict", model, "-", "-k", 10**9, "--json", text="cat\ndog\n"))} == {2}


def test_a_model_of_features_reads_xc_text(tmp_path: Path) -> None:
    X, Y = topics(60)
    trained = LightDXML(**SMALL).fit(X, Y)
    trained.save(tmp_path / "model")
    lines = ["3 " + " ".join(f"{j}:{v:g}" for j, v in zip(X[i].indices, X[i].data, strict=True)) for i in range(60)]
    for header in ("", "60 42 12\n"):
        out = run("predict", tmp_path / "model", "-", "--json", "-k", 3, text=header + "\n".join(lines) + "\n")
        assert labels_of(out) == trained.predict(X, k=3)
    result = CliRunner().invoke(app, ["predict", str(tmp_path / "model"), "-"], input="9 42 12\n3 0:1\n")
    assert "1 documents, expected 9" in str(result.exception)


def test_documents_are_answered_before_the_next_ones_come(model: Path) -> None:
    """A program that asks line by line must not wait for its answer until it has asked everything."""
    from lightdxml.data.stream import text_batches

    class Slow(io.RawIOBase):
        lines = (b"the cat\n", b"the dog\n")
        asked = 0

        def as_bits(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            line = self.lines[self.asked] if self.asked < len(self.lines) else b""
            self.asked += 1
            buffer[: len(line)] = line
            return len(line)

    source = Slow()
    batches = text_batches(Path("-"), io.BufferedReader(source))
    assert list(next(batches).documents) == ["the cat"]
    assert source.asked == 1


def test_a_document_of_ten_megabytes_is_a_document(model: Path) -> None:
    assert labels_of(run("predict", model, "-", "--json", "-k", 1, text="cat " * 2_500_000)) == [["cat, 🐈"]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"text": 5}\n', "line 1"),
        (b'{"text": "a"}\n{"text"\n', "line 2"),
        (b'{"id": 1}\n', "without title and text"),
        (b"a\n\xff\n", "line 2"),
        (b"\x1f\x8b\x08 broken", "compressed"),
    ],
)
def test_bad_documents_are_said_with_their_line(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    content: bytes, message: str,
) -> None:  # fmt: skip
    (tmp_path / "bad").write_bytes(content)
    monkeypatch.setattr(sys, "argv", ["lightdxml", "predict", str(model), str(tmp_path / "bad")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert message in capsys.readouterr().err


def test_explain_shows_words_that_add_up(model: Path) -> None:
    (best,) = json.loads(run("explain", model, "a purring cat", "-k", 1, "--json"))
    assert best["label"] == "cat, 🐈"
    assert best["base"] + sum(word["adds"] for word in best["words"]) == pytest.approx(best["score"], abs=2e-6)
    assert "purring" in run("explain", model, "a purring cat")
    assert "none of these words, and gives no labels" in run("explain", model, "xyzzy")
    assert "purring" in run("explain", model, "-", text="a purring cat")


def test_info_says_what_a_model_is(model: Path) -> None:
    content = json.loads(run("info", model, "--json"))
    assert content["labels"] == 2
    assert content["precision"] == "float16"
    assert content["documents"] == 40
    assert "float16 costs" in run("info", model)


def test_the_demo_runs_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lightdxml.config._small", lambda documents: load_small())
    out = run("demo")
    assert "lightdxml explain" in out
    assert load(tmp_path / "demo-model").model_.n_labels > 1000
    assert (tmp_path / "demo-model-report.html").is_file()


def load_small() -> Any:
    from lightdxml.config import Config

    return Config(**SMALL)


def test_every_command_shows_an_example() -> None:
    for command in ("train", "predict", "explain", "evaluate", "report", "info", "demo"):
        assert "Example: " in run(command, "--help"), command


def test_a_table_without_a_column_of_texts_is_said(model: Path, tmp_path: Path) -> None:
    """Its header was once taken for a document, and every answer stood a line too low."""
    (tmp_path / "d.csv").write_text("id,description\n1,cat\n2,dog\n")
    result = CliRunner().invoke(app, ["predict", str(model), str(tmp_path / "d.csv")])
    assert "the columns id, description, expected a column named text" in str(result.exception)


def test_the_form_can_be_said_where_a_line_looks_like_another_one(model: Path) -> None:
    assert len(labels_of(run("predict", model, "-", "--json", "--format", "lines", text="{cat}\ntext\n"))) == 2
    assert len(labels_of(run("predict", model, "-", "--json", "--format", "csv", text="text\ncat\n"))) == 1


def test_labels_below_a_score_are_left_out(model: Path) -> None:
    out = run("predict", model, "-", "--json", "--min-score", 0.999, text="a cat and a dog\n")
    assert labels_of(out) == [[]]


def test_data_whose_labels_the_model_does_not_know_is_refused(model: Path, tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("text,labels\ncat,a;b\n")
    result = CliRunner().invoke(app, ["evaluate", str(model), str(tmp_path / "d.csv")])
    assert "none of the 1 labels of this data is one of the model's" in str(result.exception)
