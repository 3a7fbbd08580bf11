"""`lightdxml predict --ray`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lightdxml import LightDXML
from lightdxml.cli.parts import MANIFEST, Worker, _manifest, _prepare
from lightdxml.cli.predicting import Request, Work
from lightdxml.cluster.connection import connect
from tests.support.commands import run
from tests.support.configs import PAPER
from tests.support.data import TEXTS

# Ray Data warns of its own settings.
pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")
NAMES = [["cat"], ["dog"], ["cat", "dog"], []] * 10


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a model and documents, while Ray runs."""
    folder = tmp_path_factory.mktemp("ray")
    LightDXML(options=PAPER | {"epochs": 30, "dense.batch_size": 8}).fit(TEXTS, NAMES).save(folder / "model")
    rows = [{"id": i, "text": TEXTS[i]} for i in range(23)]
    (folder / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with connect("local"):
        yield folder


def predict(folder: Path, *options: object) -> str:
    return run("predict", folder / "model", folder / "documents.jsonl", *options)


def test_parts_are_those_of_one_machine_and_missing_ones_are_made_again(folder: Path, tmp_path: Path) -> None:
    whole, out = predict(folder, "--json"), tmp_path / "out"
    predict(folder, "--ray", "local", "--out", out, "--parts", 3)
    parts = sorted(out.glob("part-*.jsonl"))
    assert [part.name for part in parts] == ["part-00000.jsonl", "part-00001.jsonl", "part-00002.jsonl"]
    assert "".join(part.read_text() for part in parts) == whole
    parts[1].unlink()
    parts[2].write_text("there\n")
    predict(folder, "--ray", "local", "--out", out)
    assert parts[1].read_text() in whole
    assert parts[2].read_text() == "there\n"


def test_an_error_of_a_worker_is_one_sentence_and_other_parts_stay(folder: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"text": "cat"}\n{"text": 7}\n')
    with pytest.raises(ValueError, match=r"bad\.jsonl, line 2: found"):
        run("predict", folder / "model", bad, "--ray", "local", "--out", tmp_path / "out", "--parts", 2)
    assert not (tmp_path / "out" / "part-00001.jsonl").exists()


def test_a_worker_refuses_a_model_that_was_replaced(folder: Path) -> None:
    request = Request(folder / "model", folder / "documents.jsonl", "jsonl")
    with pytest.raises(ValueError, match="has changed meanwhile: predict all parts again with --force"):
        Worker(request, "checksum of before", [23], 1)


@pytest.fixture
def begun(folder: Path, tmp_path: Path) -> Path:
    """A folder of predictions that Ray need not make."""
    out = tmp_path / "out"
    out.mkdir()
    predict(folder, "--json", "--out", out / "part-00000.jsonl")
    (out / MANIFEST).write_text(json.dumps(manifest_of(folder)))
    return out


def manifest_of(folder: Path) -> dict[str, object]:
    request = Request(folder / "model", folder / "documents.jsonl", "jsonl")
    return {**_manifest(request, Work(request).corpus, 23), "parts": 1}


def test_the_same_command_again_does_nothing_but_tidy_up(folder: Path, begun: Path) -> None:
    before = (begun / "part-00000.jsonl").stat().st_mtime_ns
    (begun / ".part-00000.jsonl.0123.part").touch()
    predict(folder, "--ray", "nowhere", "--out", begun)
    assert (begun / "part-00000.jsonl").stat().st_mtime_ns == before
    assert sorted(path.name for path in begun.iterdir()) == ["part-00000.jsonl", MANIFEST]


def test_a_folder_of_other_predictions_is_refused(folder: Path, begun: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds predictions with other options: choose another folder, or replace"):
        predict(folder, "--ray", "local", "--out", begun, "-k", 1)
    with pytest.raises(ValueError, match="holds predictions in 1 part, not 2"):
        predict(folder, "--ray", "local", "--out", begun, "--parts", 2)
    other = tmp_path / "other.jsonl"
    other.write_text('{"text": "cat"}\n')
    with pytest.raises(ValueError, match="holds predictions of other data"):
        run("predict", folder / "model", other, "--ray", "local", "--out", begun)
    (begun / MANIFEST).write_text(json.dumps({**manifest_of(folder), "model": "0"}))
    with pytest.raises(ValueError, match="holds predictions of another model"):
        predict(folder, "--ray", "local", "--out", begun)
    (begun / MANIFEST).write_text("[]")
    with pytest.raises(ValueError, match="is damaged or from another version"):
        predict(folder, "--ray", "local", "--out", begun)
    (begun / MANIFEST).unlink()
    with pytest.raises(ValueError, match="holds something other than predictions"):
        predict(folder, "--ray", "local", "--out", begun, "--force")


def test_force_removes_earlier_predictions_and_nothing_else(folder: Path, begun: Path) -> None:
    (begun / "notes.txt").touch()
    manifest = manifest_of(folder)
    assert _prepare(begun, manifest, 2, force=True) == 2
    assert sorted(path.name for path in begun.iterdir()) == ["notes.txt", MANIFEST]
    assert json.loads((begun / MANIFEST).read_text()) == {**manifest, "parts": 2}


def test_predictions_that_lack_parts_are_not_evaluated(folder: Path, begun: Path) -> None:
    (begun / MANIFEST).write_text(json.dumps({**manifest_of(folder), "parts": 2}))
    with pytest.raises(ValueError, match="has 1 of 2 parts of the predictions: run the command that predicted them"):
        run("evaluate", begun, folder / "documents.jsonl")
