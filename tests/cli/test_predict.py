"""`lightdxml predict` and `lightdxml explain`."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import shlex
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_matrix
from typer.testing import CliRunner

from lightdxml import LightDXML, load
from lightdxml.__main__ import main
from lightdxml.cli import application
from lightdxml.cli.train import _hint_at_vocabulary
from lightdxml.data.vocabulary import Concept, Vocabulary
from tests.support.commands import COMMAND, run, run_process
from tests.support.configs import PAPER
from tests.support.data import TEXTS

NAMES = [["cat, 🐈"], ["dog\n\t"], ["cat, 🐈", "dog\n\t"], []] * 10


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "pets"
    LightDXML(options=PAPER | {"epochs": 30, "dense.batch_size": 8}).fit(TEXTS, NAMES).save(folder)
    return folder


def labels_of(out: str) -> list[list[str]]:
    return [[found["label"] for found in json.loads(line)["labels"]] for line in out.splitlines()]


def test_every_input_line_gets_an_output_line(model: Path) -> None:
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
def test_texts_in_all_formats_give_the_same_predictions(model: Path, tmp_path: Path, content: str, suffix: str) -> None:
    path = tmp_path / f"documents{suffix}"
    path.write_bytes(gzip.compress(content.encode()) if suffix else content.encode())
    assert labels_of(run("predict", model, path, "--json", "-k", 1)) == [["cat, 🐈"], ["dog\n\t"]]
    assert labels_of(run("predict", model, "-", "--json", "-k", 1, text=path.read_bytes())) == [
        ["cat, 🐈"],
        ["dog\n\t"],
    ]


def test_blank_lines_lone_returns_and_empty_cells_keep_predictions_in_line(model: Path) -> None:
    assert labels_of(run("predict", model, "-", "--json", "-k", 1, text='\n{"text": "cat"}\n')) == [["cat, 🐈"]]
    assert labels_of(run("predict", model, "-", "--json", "-k", 1, text='\ntext\n"cat"\n')) == [["cat, 🐈"]]
    assert len(labels_of(run("predict", model, "-", "--json", text=b"a cat\rand dog\nb\n"))) == 2
    assert len(labels_of(run("predict", model, "-", "--json", text='text\n"cat"\n""\n"dog"\n'))) == 3


def test_ids_are_printed(model: Path) -> None:
    out = run("predict", model, "-", "--json", text='{"id": "a", "text": "cat"}\n{"id": 2, "text": "dog"}\n')
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["a", 2]


def test_k_above_the_number_of_labels_gives_all(model: Path) -> None:
    assert {len(row) for row in labels_of(run("predict", model, "-", "-k", 10**9, "--json", text="cat\ndog\n"))} == {2}


def test_a_model_of_features_reads_xc_text(
    tmp_path: Path, paper_model: LightDXML, documents: tuple[csr_matrix, csr_matrix]
) -> None:
    X = documents[0][:60]
    paper_model.save(tmp_path / "model")
    lines = ["3 " + " ".join(f"{j}:{v:g}" for j, v in zip(X[i].indices, X[i].data, strict=True)) for i in range(60)]
    for header in ("", "60 42 12\n"):
        out = run("predict", tmp_path / "model", "-", "--json", "-k", 3, text=header + "\n".join(lines) + "\n")
        assert labels_of(out) == paper_model.predict(X, k=3)
    result = CliRunner().invoke(application(), ["predict", str(tmp_path / "model"), "-"], input="9 42 12\n3 0:1\n")
    assert "1 documents, expected 9" in str(result.exception)


def test_predictions_do_not_wait_for_the_next_documents(model: Path) -> None:
    """A program that sends line by line must get each prediction before it sends the next line."""
    from lightdxml.data.stream import text_batches

    class Slow(io.RawIOBase):
        lines = (b"the cat\n", b"the dog\n")
        read_lines = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            line = self.lines[self.read_lines] if self.read_lines < len(self.lines) else b""
            self.read_lines += 1
            buffer[: len(line)] = line
            return len(line)

    source = Slow()
    batches = text_batches(Path("-"), io.BufferedReader(source))
    assert list(next(batches).documents) == ["the cat"]
    assert source.read_lines == 1


def test_a_line_of_ten_megabytes_is_one_document(model: Path) -> None:
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
def test_errors_in_documents_name_the_line(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    content: bytes, message: str,
) -> None:  # fmt: skip
    (tmp_path / "bad").write_bytes(content)
    monkeypatch.setattr(sys, "argv", ["lightdxml", "predict", str(model), str(tmp_path / "bad")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert message in capsys.readouterr().err


BAD = b'{"text": "cat"}\n{"text"\n{"id": 3, "text": 5}\n{"text": "dog"}\n'


def test_a_bad_document_does_not_lose_the_answers_before_it(model: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_bytes(BAD)
    shown = run_process("predict", model, tmp_path / "bad.jsonl", "--json", "-k", 1)
    assert shown.returncode == 1
    assert labels_of(shown.stdout) == [["cat, 🐈"]]
    assert shown.stderr.startswith("error: ")
    assert "bad.jsonl, line 2: found " in shown.stderr


def test_bad_documents_can_be_skipped_and_keep_their_lines(model: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_bytes(BAD)
    shown = run_process("predict", model, tmp_path / "bad.jsonl", "--json", "-k", 1, "--on-error", "skip")
    assert shown.returncode == 0
    answers = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [len(answer["labels"]) for answer in answers] == [1, 0, 0, 1]
    assert [answer.get("id") for answer in answers] == [None, None, 3, None]
    assert "line 2" in answers[1]["error"]
    assert shown.stderr.count("warning: ") == 2
    lines = run("predict", model, tmp_path / "bad.jsonl", "-k", 1, "--on-error", "skip").split("\n")
    assert [bool(line) for line in lines] == [True, False, False, True, False]


def test_only_the_first_bad_documents_are_named(model: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"text": "cat"}\n' + "{\n" * 25, encoding="utf-8")
    shown = run_process("predict", model, tmp_path / "bad.jsonl", "--on-error", "skip")
    assert shown.stderr.count("; skipped") == 10
    assert "warning: 15 more documents that cannot be read were skipped" in shown.stderr
    assert shown.stdout.count("\n") == 26


def test_explain_shows_words_that_add_up(model: Path) -> None:
    (best,) = json.loads(run("explain", model, "a purring cat", "-k", 1, "--json"))
    assert best["label"] == "cat, 🐈"
    assert best["base"] + sum(word["adds"] for word in best["words"]) == pytest.approx(best["score"], abs=2e-6)
    assert "purring" in run("explain", model, "a purring cat")
    assert "knows none of these words" in run("explain", model, "xyzzy")
    assert "purring" in run("explain", model, "-", text="a purring cat")


def test_a_table_without_a_column_of_texts_is_refused(model: Path, tmp_path: Path) -> None:
    """Its header was once taken for a document, which shifted all predictions by a line."""
    (tmp_path / "d.csv").write_text("id,description\n1,cat\n2,dog\n")
    result = CliRunner().invoke(application(), ["predict", str(model), str(tmp_path / "d.csv")])
    assert "the columns id, description, expected a column named text" in str(result.exception)


def test_the_format_of_texts_can_be_given(model: Path) -> None:
    assert len(labels_of(run("predict", model, "-", "--json", "--format", "lines", text="{cat}\ntext\n"))) == 2
    assert len(labels_of(run("predict", model, "-", "--json", "--format", "csv", text="text\ncat\n"))) == 1


@pytest.mark.parametrize("threshold", ["0.999", "0.2", "auto", "macro-f1"])
def test_labels_below_the_threshold_are_omitted(model: Path, threshold: str) -> None:
    out = run("predict", model, "-", "--json", "--threshold", threshold, text="a cat and a dog\n")
    value = float(threshold) if threshold[0] == "0" else threshold
    assert labels_of(out) == [load(model).predict("a cat and a dog", threshold=value)]
    assert threshold != "0.999" or labels_of(out) == [[]]


def test_a_wrong_threshold_is_reported_before_a_model_is_read(tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_text("a cat\n")
    result = CliRunner().invoke(application(), ["predict", str(tmp_path), str(tmp_path / "d.txt"), "--threshold", "2"])
    assert str(result.exception).startswith("threshold is 2.0: give a number from 0 to 1")


def test_data_with_unknown_labels_only_is_refused(model: Path, tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("text,labels\ncat,lion\n")
    result = CliRunner().invoke(application(), ["evaluate", str(model), str(tmp_path / "d.csv")])
    assert "the model knows none of the 1 labels of this data" in str(result.exception)


@pytest.mark.parametrize("tail", ["0", "1"])
def test_explanations_add_up_at_any_tail(model: Path, tail: str) -> None:
    (best,) = json.loads(run("explain", model, "a cat", "-k", "1", "--tail", tail, "--json"))
    adds = [best["base"], *(word["adds"] for word in best["words"])]
    assert sum(adds) == pytest.approx(best["score"], abs=1e-5)


def test_predict_passes_tail_on(model: Path) -> None:
    trained = load(model)
    found = json.loads(run("predict", model, "-", "--json", "--tail", "1", text="a cat and a dog\n"))
    scores = trained.rank(["a cat and a dog"], 2, tail=1)[1][0]
    assert [one["label"] for one in found["labels"]] == trained.predict("a cat and a dog", tail=1)
    assert [one["score"] for one in found["labels"]] == pytest.approx(scores.tolist(), abs=1e-6)


@pytest.mark.parametrize("tail", ["-1", "2", "nan"])
@pytest.mark.parametrize("command", ["predict", "evaluate", "explain"])
def test_a_wrong_tail_is_reported_before_anything_is_read(tmp_path: Path, command: str, tail: str) -> None:
    result = CliRunner().invoke(application(), [command, str(tmp_path / "none"), "-", f"--tail={tail}"])
    assert isinstance(result.exception, ValueError)
    assert str(result.exception).startswith("tail is ")


HOSTILE = "red\x1b[2J\x07\x9b31m\x00\x7f\u202e\U000e0041=cmd()"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose labels would command a terminal."""
    folder = tmp_path_factory.mktemp("models") / "hostile"
    LightDXML(options=PAPER | {"epochs": 3}).fit(TEXTS, [[HOSTILE], ["b"]] * (len(TEXTS) // 2)).save(folder)
    return folder


def raw_controls(out: str) -> set[str]:
    return {char for char in out if char not in "\n\t" and unicodedata.category(char) in ("Cc", "Cf")}


def test_labels_print_no_control_characters(hostile: Path, tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text(
        "".join(json.dumps({"text": text, "labels": [HOSTILE]}) + "\n" for text in TEXTS[:4])
    )
    for arguments in (
        ("predict", hostile, "-", "-k", 2),
        ("predict", hostile, "-", "-k", 2, "--json"),
        ("explain", hostile, TEXTS[0]),
        ("explain", hostile, TEXTS[0], "--json"),
        ("data", "info", tmp_path / "data.jsonl"),
        ("evaluate", hostile, tmp_path / "data.jsonl"),
    ):
        out = run(*arguments, text=f"{TEXTS[0]}\n")
        assert not raw_controls(out), (arguments, out)
        if arguments[0] != "evaluate":
            assert "x1b" in out or "u001b" in out


def test_json_keeps_labels_as_they_are(hostile: Path) -> None:
    out = run("predict", hostile, "-", "-k", 2, "--json", text=f"{TEXTS[0]}\n")
    assert HOSTILE in labels_of(out)[0]


def test_errors_print_no_control_characters(tmp_path: Path) -> None:
    shown = run_process("predict", tmp_path / "none\x1b[2J", "-")
    assert shown.returncode == 1
    assert not raw_controls(shown.stderr)


@pytest.mark.skipif(os.name == "nt", reason="Windows closes no streams like this")
@pytest.mark.parametrize(
    ("closed", "said"), [("<&-", "standard input is closed"), (">&-", "standard output is closed"), ("2>&-", "")]
)
def test_closed_streams_give_no_traceback(model: Path, closed: str, said: str) -> None:
    command = f"{shlex.join([*COMMAND, 'predict', str(model), '-'])} {closed}"
    text = None if closed == "<&-" else "a cat\n"
    shown = subprocess.run(command, shell=True, input=text, capture_output=True, text=True, timeout=60, check=False)
    assert said in shown.stderr
    assert "Traceback" not in shown.stderr
    assert shown.returncode == (1 if said else 0)


@pytest.mark.skipif(os.name == "nt", reason="Windows has other signals")
def test_ctrl_c_during_imports_gives_no_traceback() -> None:
    for module in ("typer", "rich.console", "lightdxml.cli.output"):
        program = (
            "import sys, os, signal, importlib.abc\n"
            "class Interrupt(importlib.abc.MetaPathFinder):\n"
            "    def find_spec(self, name, *_):\n"
            f"        if name == {module!r}: os.kill(os.getpid(), signal.SIGINT)\n"
            "sys.meta_path.insert(0, Interrupt())\n"
            "sys.argv = ['lightdxml', '--version']\n"
            "from lightdxml.__main__ import main; main()"
        )
        shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
        assert shown.returncode == 130
        assert shown.stderr == ""


def test_a_vocabulary_is_shown_as_names_and_given_to_programs_as_uris(tmp_path: Path) -> None:
    """`:x:` in a URI was once shown as an emoji."""
    rows = "".join(f"the {name} sleeps,{name}\n" for name in ("cat", "dog", "cow") * 10)
    (tmp_path / "data.csv").write_text(f"text,labels\n{rows}")
    (tmp_path / "v.tsv").write_text("<urn:x:cat>\tcat\tC1\nurn:x:dog\tdog\nurn:x:hamster\thamster\tC9\n")
    run("train", tmp_path / "data.csv", "--model", tmp_path / "model", "--vocabulary", tmp_path / "v.tsv")
    (tmp_path / "new.txt").write_text("my hamster\n")
    assert run("predict", tmp_path / "model", tmp_path / "new.txt", "-k", "1").startswith("hamster ")
    (found,) = json.loads(run("predict", tmp_path / "model", tmp_path / "new.txt", "-k", "1", "--json"))["labels"]
    assert (found["uri"], found["label"], found["notation"]) == ("urn:x:hamster", "hamster", "C9")
    explained = run("explain", tmp_path / "model", "my hamster", "-k", "1", "--json")
    (found,) = json.loads(explained)
    assert (found["uri"], found["label"], found["notation"]) == ("urn:x:hamster", "hamster", "C9")
    assert found["name_match"] == "hamster"
    shown = run("explain", tmp_path / "model", "my hamster", "-k", "1")
    assert "hamster  C9  " in shown
    assert "the label's name occurs in the text: hamster" in shown


def test_explanations_tell_concepts_of_one_name_apart(tmp_path: Path) -> None:
    concepts = [Concept("urn:1", {"": ("bank",)}), Concept("urn:2", {"": ("bank",)})]
    texts, labels = ["money in the bank", "the bank of a river"] * 10, [["urn:1"], ["urn:2"]] * 10
    LightDXML(dim=8, epochs=2).fit(texts, labels, vocabulary=Vocabulary(concepts)).save(tmp_path / "model")
    shown = run("explain", tmp_path / "model", "bank", "-k", "2")
    assert "bank <urn:1>  0." in shown
    assert "bank <urn:2>  0." in shown


def test_labels_that_are_not_in_the_vocabulary_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    vocabulary = Vocabulary([Concept("urn:x:cat", {"": ("cat",)})])
    _hint_at_vocabulary(["cat", "cow", "urn:x:cat"], vocabulary)
    assert "1 of 3 labels are not in the vocabulary, such as cow: they are kept" in capsys.readouterr().err


def test_predictions_are_written_as_csv(model: Path, tmp_path: Path) -> None:
    documents = '{"id": 7, "text": "the cat"}\n{"text": "xyzzy"}\n'
    out = run("predict", model, "-", "-k", 2, "--to", "csv", "--separator", "; ", text=documents)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["id"], row["labels"]) for row in rows] == [("7", "cat, 🐈; dog\n\t"), ("", "")]
    scores = [float(score) for score in rows[0]["scores"].split("; ")]
    assert scores == sorted(scores, reverse=True)
    run("predict", model, "-", "-k", 2, "--to", "csv", "--separator", "; ", "--out", tmp_path / "p.csv", text=documents)
    assert (tmp_path / "p.csv").read_text(encoding="utf-8") == out


def test_predictions_are_written_as_parquet(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    documents = '{"id": 7, "text": "the cat"}\n{"text": "xyzzy"}\n'
    assert run("predict", model, "-", "-k", 1, "--to", "parquet", "--out", path, text=documents) == ""
    table = pq.read_table(path).to_pydict()
    assert (table["id"], table["labels"]) == (["7", None], [["cat, 🐈"], []])
    assert len(table["scores"][0]) == 1


def test_integer_labels_are_integers_in_every_format(tmp_path: Path) -> None:
    LightDXML(options=PAPER | {"epochs": 5}).fit(TEXTS[:20], [[7], [999_999]] * 10).save(tmp_path / "model")
    arguments = ["predict", tmp_path / "model", "-", "-k", 2, "--to"]
    assert set(json.loads(run(*arguments, "jsonl", text=TEXTS[0]))["labels"][0]) == {"label", "score"}
    assert {one["label"] for one in json.loads(run(*arguments, "jsonl", text=TEXTS[0]))["labels"]} == {7, 999_999}
    run(*arguments, "parquet", "--out", tmp_path / "p.parquet", text=TEXTS[0])
    assert set(pq.read_table(tmp_path / "p.parquet").to_pydict()["labels"][0]) == {7, 999_999}
    assert "999999 0." in run(*arguments, "text", text=TEXTS[0])
    assert "999999" in run("explain", tmp_path / "model", TEXTS[0], "-k", 2)


def test_predictions_that_are_written_to_a_file_appear_when_all_are_there(model: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="line 2"):
        run("predict", model, "-", "--to", "jsonl", "--out", tmp_path / "p.jsonl", text='{"text": "a"}\n{"text": 5}\n')
    assert list(tmp_path.iterdir()) == []
    run("predict", model, "-", "--json", "--out", tmp_path / "p.jsonl", text='{"text": "a"}\n')
    assert (tmp_path / "p.jsonl").read_text().startswith('{"labels"')


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--to", "parquet"], "Parquet is not written to standard output: give --out FILE"),
        (["--json", "--to", "csv"], "--json is the same as --to jsonl, and --to is csv"),
        (
            ["--to", "csv", "--separator", ","],
            "the label 'cat, 🐈' contains the separator ',': give another --separator",
        ),
        (["--out", "."], "is a folder: give a file as --out"),
        (["--encoding", "zzz"], "encoding 'zzz' is unknown"),
    ],
)
def test_predictions_that_cannot_be_written_are_refused(model: Path, options: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run("predict", model, "-", *options, text="the cat\n")


def test_with_a_vocabulary_predictions_have_names_and_uris(tmp_path: Path) -> None:
    vocabulary = Vocabulary([Concept("urn:cat", {"en": ("cat",)}), Concept("urn:dog", {"en": ("dog",)})])
    rows = [[{"cat": "urn:cat", "dog": "urn:dog"}[name[:3]] for name in row] for row in NAMES]
    LightDXML(options=PAPER | {"epochs": 30}).fit(TEXTS, rows, vocabulary=vocabulary).save(tmp_path / "model")
    arguments = ["predict", tmp_path / "model", "-", "-k", 1, "--to"]
    (row,) = csv.DictReader(io.StringIO(run(*arguments, "csv", text="the cat\n")))
    assert (row["labels"], row["uris"]) == ("cat", "urn:cat")
    run(*arguments, "parquet", "--out", tmp_path / "p.parquet", text="the cat\n")
    table = pq.read_table(tmp_path / "p.parquet").to_pydict()
    assert (table["labels"], table["uris"]) == ([["cat"]], [["urn:cat"]])


def test_predictions_do_not_replace_the_documents_and_have_the_form_of_the_file(model: Path, tmp_path: Path) -> None:
    documents, found = tmp_path / "d.csv", tmp_path / "found.jsonl"
    documents.write_text("text\na cat\n")
    result = CliRunner().invoke(application(), ["predict", str(model), str(documents), "--out", str(documents)])
    assert "has the documents to predict, and would be replaced" in str(result.exception)
    run("predict", model, documents, "--out", found)
    assert labels_of(found.read_text())[0][0].startswith("cat")
