"""Training on Ray with texts that stay in several files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("ray", reason='needs ray: pip install "lightdxml[ray]"')

from lightdxml import LightDXML
from lightdxml.cluster import RayBackend
from lightdxml.data import DataError, Dataset, Split, load
from lightdxml.data.text_files import TextFiles
from lightdxml.executor import Executor, Threads
from tests.support.commands import run


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    with RayBackend("local").connect() as found:
        yield found


def records(split: Split, names: list[str]) -> list[dict[str, object]]:
    assert split.texts is not None
    assert split.ids is not None
    titles, bodies, rows = split.texts.titles or [""] * len(split), split.texts.bodies, split.Y.tolil().rows
    return [
        {"id": split.ids[i], "title": titles[i], "text": bodies[i], "labels": [names[j] for j in rows[i]]}
        for i in range(len(split))
    ]


def write(path: Path, some: list[dict[str, object]]) -> None:
    if path.suffix == ".parquet":
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist(some), path)
    else:
        path.write_bytes(gzip.compress("".join(json.dumps(one) + "\n" for one in some).encode()))


@pytest.fixture(scope="module")
def folders(see_also: Dataset, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same documents in one file per part, and in several: JSON Lines, and Parquet in sub-folders."""
    made, names = {name: tmp_path_factory.mktemp(name) for name in ("one", "several", "sub")}, see_also.label_names
    assert names is not None
    train = records(see_also.train.take(np.arange(500)), list(names))
    others = {"dev": records(see_also.train.take(np.arange(500, 600)), list(names))}
    assert see_also.test is not None
    others["test"] = records(see_also.test.take(np.arange(50)), list(names))
    for part, some in others.items():
        write(made["one"] / f"{part}.jsonl.gz", some)
        write(made["several"] / f"{part}.jsonl.gz", some)
        for i in range(2):
            write(made["sub"] / part / f"{i}.parquet", some[i * len(some) // 2 : (i + 1) * len(some) // 2])
    write(made["one"] / "train.jsonl.gz", train)
    for i, first in enumerate(range(0, 500, 130)):
        write(made["several"] / f"train-{i:05}-of-00004.jsonl.gz", train[first : first + 130])
        write(made["sub"] / "train" / f"part-{i}.parquet", train[first : first + 130])
    return made


def trained(data: Dataset, folder: Path, backend: RayBackend | None = None) -> dict[str, Any]:
    """Train, and return what the model consists of."""
    assert data.dev is not None
    about: dict[str, Any] = {"label_names": data.label_names, "ids": data.train.ids}
    dev = data.dev.texts, data.dev.Y, data.dev.ids
    model = LightDXML("fast", ngrams=2, max_features=3000, random_state=3)
    model.fit(data.train.texts, data.train.Y, dev=dev, backend=backend, **about).save(folder)
    return contents(folder)


def contents(folder: Path) -> dict[str, Any]:
    """Return the files of a model, without the history, which has times, and its checksum."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    files: dict[str, Any] = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    manifest = json.loads(files.pop("manifest.json"))
    (history,) = (name for name in files if name.startswith("history"))
    del files[history], manifest["files"][history], manifest["sha256"]
    return files | {"manifest": manifest}


@pytest.mark.parametrize("name", ["several", "sub"])
def test_texts_in_files_give_the_model_of_one_machine(
    executor: Executor, folders: dict[str, Path], tmp_path: Path, name: str
) -> None:
    wanted = trained(load(folders["one"]), tmp_path / "one")
    data = load(folders[name], executor=executor)
    assert isinstance(data.train.texts, TextFiles)
    assert "arrays.safetensors" in wanted
    assert trained(data, tmp_path / name, RayBackend("local")) == wanted


def test_documents_of_weight_0_are_left_out_of_files(folders: dict[str, Path], tmp_path: Path) -> None:
    found = []
    for name, executor in (("one", None), ("several", Threads())):
        data = load(folders[name], executor=executor)
        about: dict[str, Any] = {"label_names": data.label_names, "ids": data.train.ids}
        weights = np.arange(len(data.train)) % 3
        model = LightDXML("fast").fit(data.train.texts, data.train.Y, sample_weight=weights, **about)
        assert model.model_.never_own, "titles are names of labels"
        model.save(tmp_path / name)
        found.append(contents(tmp_path / name))
    assert found[0] == found[1]


def test_the_command_line_trains_on_files_that_stay_where_they_are(
    executor: Executor, folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = "--preset", "fast", "--keep-training-data"
    run("train", folders["one"], "--model", tmp_path / "one", *options)
    # Workers have another working directory.
    monkeypatch.chdir(folders["several"])
    printed = run("train", ".", "--model", tmp_path / "several", *options, "--ray", "local")
    assert "trained in" in printed
    assert contents(tmp_path / "several") == contents(tmp_path / "one")


def test_a_worker_that_cannot_find_a_file_says_so(executor: Executor, folders: dict[str, Path]) -> None:
    texts = load(folders["several"], executor=executor).train.texts
    assert isinstance(texts, TextFiles)
    part = texts.parts[0]
    gone = replace(part, file=part.file._replace(path=Path("/nowhere/train-1.jsonl")))
    lost = TextFiles([gone, *texts.parts[1:]], texts.empty, texts.characters, has_titles=True)
    with pytest.raises(DataError, match=r"/nowhere/train-1.jsonl: found no such file on .*, expected files on a disk"):
        LightDXML("fast").fit(lost, [["a"]] * len(lost), backend=RayBackend("local"))


def test_features_in_several_files_are_read_by_workers(executor: Executor, tmp_path: Path) -> None:
    for i in range(3):
        (tmp_path / f"train-{i}.txt").write_text(f"2 5 4\n{i} {i}:0.5 4:1\n{i + 1} 3:{i}.25\n")
    data, wanted = load(tmp_path, executor=executor), load(tmp_path)
    assert data.train.X is not None
    assert wanted.train.X is not None
    assert (data.train.X != wanted.train.X).nnz == (data.train.Y != wanted.train.Y).nnz == 0
    assert (data.n_labels, data.n_features, len(data.train)) == (4, 5, 6)
