"""Checkpoints that someone else wrote: what does not fit the training is refused in one sentence."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lightdxml.config import Config, changed
from lightdxml.kernels import parallel
from lightdxml.persistence import arrays as stored
from lightdxml.persistence.files import map_file, sha256
from tests.support.configs import FOUR_VIEWS, small
from tests.support.data import topics
from tests.support.trainings import bits, interrupt, train

DATA = topics(120)
SHORT = small(epochs=2, linear=False)
ALL_VIEWS = changed(Config(), FOUR_VIEWS | {"epochs": 1})
Forgery = Callable[[dict[str, Any], dict[str, NDArray[Any]]], object]


@pytest.fixture(scope="module")
def in_epoch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint within an epoch of the classifier."""
    folder = tmp_path_factory.mktemp("epoch") / "checkpoint"
    assert interrupt(folder, DATA, SHORT, 7, "classifier")
    return folder


@pytest.fixture(scope="module")
def in_trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with finished and unfinished steps after the cycle."""
    folder = tmp_path_factory.mktemp("trees") / "checkpoint"
    with parallel.use_threads(1):
        assert interrupt(folder, DATA, ALL_VIEWS, 12, "label tree")
    return folder


def forge(source: Path, folder: Path, change: Forgery) -> None:
    """Copy a folder of checkpoints, and change the last one as its author could have: with its checksum."""
    shutil.copytree(source, folder)
    place = max(folder.glob("0*"))
    facts = json.loads((place / "state.json").read_text())
    arrays = {key: np.array(array) for key, array in stored.read(place / "arrays.safetensors").items()}
    change(facts, arrays)
    stored.write(place / "arrays.safetensors", arrays)
    facts.pop("sha256")
    facts["arrays_sha256"] = sha256(map_file(place / "arrays.safetensors"))
    facts["sha256"] = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    (place / "state.json").write_text(json.dumps(facts))


def last(name: str, value: float) -> Forgery:
    """Change the last number of an array."""
    return lambda facts, arrays: arrays[name].flat.__setitem__(-1, value)


def fact(**changes: Any) -> Forgery:
    return lambda facts, arrays: facts.update(changes)


def best(**changes: Any) -> Forgery:
    return lambda facts, arrays: facts["best"].update(changes)


def array(name: str, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Forgery:
    return lambda facts, arrays: arrays.update({name: change(arrays[name])})


def without(name: str) -> Forgery:
    return lambda facts, arrays: [part.pop(name, None) for part in (facts, arrays)]


FORGED: dict[str, Forgery] = {
    "a label in the shortlists": last("shortlists", 10_000),
    "a document in the order": last("order", 10_000),
    "a document twice": last("order", 0),
    "a label in the index": last("best.nearness.labels", 10_000),
    "wide shortlists": array("shortlists", lambda a: np.tile(a, (1, 400))),
    "narrow shortlists": array("shortlists", lambda a: a[:, 1:].copy()),
    "no shortlists": array("shortlists", lambda a: np.empty((0, 0), np.int32)),
    "no rows": array("shortlists", lambda a: a[:0]),
    "no order": array("order", lambda a: a[:0]),
    "order in float": array("order", lambda a: a.astype(np.float32)),
    "a single weight": array("W", lambda a: a[:1, :1].copy()),
    "weights of 16 bits": array("W", lambda a: a.astype(np.float16)),
    "means of another type": array("W_mean", lambda a: a.astype(np.int32)),
    "NaN": last("vectors", np.nan),
    "NaN in the best model": last("best.classifier.W", np.nan),
    "no weights": without("W"),
    "no best model": without("best"),
    "no index": without("best.nearness.labels"),
    "few word vectors": array("best.encoder.vectors", lambda a: a[:1]),
    "more labels": array("best.classifier.W", lambda a: np.tile(a, (2, 1))),
    "another index": lambda facts, arrays: facts["best"]["nearness"].update(index="zzz"),
    "an index without its codes": lambda facts, arrays: facts["best"]["nearness"].update(index="rabitq"),
    "other shortlists": lambda facts, arrays: facts["best"]["nearness"].update(shortlist_size=3),
    "another encoder": lambda facts, arrays: facts["best"]["nearness"].update(relu=True),
    "a best model of int8": array("best.encoder.vectors", lambda a: np.zeros((len(a), a.shape[1] + 4), dtype=np.int8)),
    "a beta of text": best(beta="1"),
    "an accuracy of NaN": best(accuracy=float("nan")),
    "a latest that is neither": best(is_latest=1),
    "a step beyond": fact(step=99),
    "a step before": fact(step=-2),
    "another step": fact(step=0),
    "a batch beyond": fact(batch=999),
    "a batch before": fact(batch=-3),
    "a batch in float": fact(batch=1.0),
    "an infinite loss": fact(loss=float("-inf")),
    "too many steps": fact(label_encoder_steps=10**400),
    "other refreshes": fact(refreshes=7),
    "another generator": fact(rng={"bit_generator": "MT19937"}),
    "no generator": fact(rng=None),
    "a history of another form": fact(history=5),
    "a history without phases": fact(history=[{}]),
    "another stage": fact(stage="finalize"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_checkpoint_of_the_cycle_is_refused_in_one_sentence(in_epoch: Path, tmp_path: Path, name: str) -> None:
    """Some of these once led compiled code out of bounds."""
    forge(in_epoch, tmp_path / "forged", FORGED[name])
    with pytest.raises(ValueError, match=r"the checkpoints in .* are damaged \(.*\): remove it and start") as refused:
        train(DATA, SHORT, tmp_path / "forged")
    assert "\n" not in str(refused.value)
    assert list((tmp_path / "forged").glob("0*")), "nothing is removed"


FINAL, CLUSTERS = "product.linear view: labels.", "product.label tree: tree 1, clusters.clusters"
HARD = "product.linear view: hard negatives.clusters"
FORGED_PRODUCTS: dict[str, Forgery] = {
    "weights of a label that does not exist": last(f"{FINAL}classes", 10_000),
    "weights of label -1": last(f"{FINAL}classes", -1),
    "weights of a feature that does not exist": last(f"{FINAL}columns", 10_000),
    "weights of a negative feature": last(f"{FINAL}columns", -1),
    "counts beyond the weights": last(f"{FINAL}counts", 10**9),
    "negative counts": array(f"{FINAL}counts", lambda a: -a),
    "weights of NaN": last(f"{FINAL}weights", np.nan),
    "fewer biases": array(f"{FINAL}biases", lambda a: a[:-1]),
    "weights of another type": array(f"{FINAL}weights", lambda a: a.astype(np.float16)),
    "no axis": array(f"{FINAL}classes", lambda a: np.array(3, dtype=np.int32)),
    "hard negatives that do not exist": last(HARD, 10_000),
    "negative hard negatives": last(HARD, -1),
    "fewer hard negatives": array(HARD, lambda a: a[:-1]),
    "a cluster that does not exist": array(CLUSTERS, lambda a: np.where(a >= 0, 99, a).astype(np.int32)),
    "a negative cluster": array(CLUSTERS, lambda a: np.where(a >= 0, -2, a).astype(np.int32)),
    "clusters of fewer labels": array(CLUSTERS, lambda a: a[:-1]),
    "another product": lambda facts, arrays: facts["products"].update({"linear view: labels": []}),
}


def part_of_a_level(facts: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Change the classes of a part of an unfinished step."""
    name = next(name for name in arrays if name.startswith("product.label tree") and "/" in name and "classes" in name)
    arrays[name] = arrays[name] + np.int32(1000)


@pytest.mark.parametrize("name", [*FORGED_PRODUCTS, "classes of a part"])
def test_forged_products_of_steps_are_refused_in_one_sentence(in_trees: Path, tmp_path: Path, name: str) -> None:
    forge(in_trees, tmp_path / "forged", FORGED_PRODUCTS.get(name, part_of_a_level))
    with pytest.raises(ValueError, match=r"checkpoint.* damaged .*: remove .* and start again") as refused:
        train(DATA, ALL_VIEWS, tmp_path / "forged")
    assert "\n" not in str(refused.value)
    assert list((tmp_path / "forged").glob("0*")), "nothing is removed"


FORGED_RESULTS: dict[str, Forgery] = {
    "products of another form": fact(products=5),
    "names of another form": lambda facts, arrays: facts["products"].update({"linear view: labels": 5}),
    "arrays that are missing": lambda facts, arrays: facts["products"].update({"linear view: labels": ["zzz"]}),
    "a beta beyond 1": lambda facts, arrays: facts["dense"].update(beta=1.5),
    "no dense views": fact(dense=None),
    "layers of other sizes": array("layer0", lambda a: a[:1]),
    "NaN in a layer": last("layer1", np.nan),
    "a label in the index": last("dense.nearness.labels", 10_000),
    "another stage": fact(stage="cycle"),
    "no stage": without("stage"),
}


@pytest.mark.parametrize("name", FORGED_RESULTS)
def test_a_forged_result_of_the_cycle_is_refused_in_one_sentence(in_trees: Path, tmp_path: Path, name: str) -> None:
    forge(in_trees, tmp_path / "forged", FORGED_RESULTS[name])
    with pytest.raises(ValueError, match=r"the checkpoints in .* are damaged \(.*\): remove it and start") as refused:
        train(DATA, ALL_VIEWS, tmp_path / "forged")
    assert "\n" not in str(refused.value)


def test_a_forged_checkpoint_leaves_the_one_before_it(in_epoch: Path, tmp_path: Path) -> None:
    forge(in_epoch, tmp_path / "forged", lambda facts, arrays: None)
    good = max((tmp_path / "forged").glob("0*"))
    forge(tmp_path / "forged", tmp_path / "again", FORGED["another index"])
    max((tmp_path / "again").glob("0*")).rename(tmp_path / "forged" / "00000099")
    assert good.exists()
    assert bits(train(DATA, SHORT, tmp_path / "forged")[0]) == bits(train(DATA, SHORT)[0])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("name", ["state.json", "arrays.safetensors", "lock"])
def test_a_pipe_in_place_of_a_file_is_not_read(in_epoch: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(in_epoch, tmp_path / "piped")
    folder = tmp_path / "piped"
    path = folder / "lock" if name == "lock" else max(folder.glob("0*")) / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    with pytest.raises(ValueError, match=r"not a file|are damaged"):
        train(DATA, SHORT, folder)
