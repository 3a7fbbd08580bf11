"""The matrices that all methods get: made once a data set, from texts if need be, and kept in a folder."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.data import Dataset, load
from lightdxml.data.files import writing_text
from lightdxml.data.registry import propensity_constants
from lightdxml.data.split import split
from lightdxml.metrics import inverse_propensity
from lightdxml.model import check_features
from lightdxml.text import tfidf
from lightdxml.text.tfidf import TextSettings
from lightdxml.training.fit import check_labels

_TEST_SHARE = 0.2
_FACTS = "facts.json"
_PARTS = ("train_X", "train_Y", "test_X", "test_Y", "ignore")


@dataclass(frozen=True)
class Matrices:
    """What a cell works on.

    Attributes
    ----------
    name
        The data set's.
    X, Y, X_test, Y_test
        Features, rows of length 1, and labels, ones.
    ignore
        Pairs of test documents and labels that count for nothing, or None.
    inv_propensity
        Of each label.
    facts
        Sizes, and how texts became features.
    """

    name: str
    X: csr_matrix
    Y: csr_matrix
    X_test: csr_matrix
    Y_test: csr_matrix
    ignore: csr_matrix | None
    inv_propensity: NDArray[np.float64]
    facts: dict[str, Any]


def prepare(source: str, folder: Path, text: TextSettings, seed: int = 0) -> str:
    """Read a data set, make its matrices unless they are there, and return its name.

    Texts become features by what is in the training part alone. Without a test part, a fifth is set aside for it.
    """
    data = load(source)
    target = folder / data.name
    if (target / _FACTS).exists():
        _check_same(target, source, text)
        return data.name
    if data.test is None:
        data = split(data, test=_TEST_SHARE, seed=seed)
    start = time.perf_counter()
    X, X_test = _features(data, text)
    seconds = time.perf_counter() - start
    assert data.test is not None
    target.mkdir(parents=True, exist_ok=True)
    parts = {
        "train_X": check_features(X),
        "train_Y": check_labels(data.train.Y),
        "test_X": check_features(X_test, X.shape[1]),
        "test_Y": check_labels(data.test.Y),
    }
    if data.test.ignore is not None:
        parts["ignore"] = _ignored(data)
    for name, matrix in parts.items():
        scipy.sparse.save_npz(target / f"{name}.npz", matrix, compressed=False)
    facts = {
        "name": data.name,
        "source": source,
        "text": asdict(text) if data.train.X is None else None,
        "vectorise_seconds": seconds if data.train.X is None else 0.0,
        "propensity": propensity_constants(data.name),
        "sizes": _sizes(parts),
    }
    # Last of all: a folder without it is not complete.
    with writing_text(target / _FACTS) as stream:
        json.dump(facts, stream, indent=2)
    return data.name


def _check_same(target: Path, source: str, text: TextSettings) -> None:
    facts = json.loads((target / _FACTS).read_text("utf-8"))
    if facts["source"] != source:
        raise ValueError(f"{target} was made from {facts['source']}, not from {source}: use another --out")
    if facts["text"] not in (None, asdict(text)):
        raise ValueError(f"{target} was made with other text settings: use another --out")


def _features(data: Dataset, text: TextSettings) -> tuple[csr_matrix, csr_matrix]:
    assert data.test is not None
    if data.train.X is not None:
        assert data.test.X is not None
        return data.train.X, data.test.X
    vectoriser, X = tfidf.fit(data.train.texts or [], text)
    return X, tfidf.transform(vectoriser, data.test.texts or [])


def _ignored(data: Dataset) -> csr_matrix:
    assert data.test is not None
    assert data.test.ignore is not None
    pairs = np.asarray(data.test.ignore)
    shape = data.test.Y.shape
    return csr_matrix((np.ones(len(pairs), dtype=np.float32), (pairs[:, 0], pairs[:, 1])), shape=shape)


def _sizes(parts: dict[str, csr_matrix]) -> dict[str, int]:
    X, Y = parts["train_X"], parts["train_Y"]
    return {"train": X.shape[0], "test": parts["test_X"].shape[0], "features": X.shape[1], "labels": Y.shape[1]}


def read(folder: Path) -> Matrices:
    """Read the matrices of a data set that `prepare` made."""
    facts = json.loads((folder / _FACTS).read_text("utf-8"))
    parts = {
        name: csr_matrix(scipy.sparse.load_npz(folder / f"{name}.npz"))
        for name in _PARTS
        if (folder / f"{name}.npz").exists()
    }
    return Matrices(
        facts["name"],
        parts["train_X"],
        parts["train_Y"],
        parts["test_X"],
        parts["test_Y"],
        parts.get("ignore"),
        inverse_propensity(parts["train_Y"], *facts["propensity"]),
        facts,
    )
