"""The matrices that all methods get: made once a data set, from texts if need be, and kept in a folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.data import DataError, Dataset, Split, load, registry
from lightdxml.data.catalog import BUILDERS, find_cached
from lightdxml.data.files import base_name, writing_text
from lightdxml.data.folder import innermost
from lightdxml.data.split import split
from lightdxml.metrics import inverse_propensity
from lightdxml.model import check_features
from lightdxml.text import tfidf
from lightdxml.text.tfidf import TextOptions
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


def names_of(sources: Sequence[str]) -> list[str]:
    """Return the names of data sets, without reading them; raise where one is not there, or two have one name.

    Raises
    ------
    ValueError
        Of one sentence.

    Examples
    --------
    >>> names_of(["see-also"])
    ['see-also']
    """
    named: dict[str, str] = {}
    for source in sources:
        name = _name(source)
        if name in named:
            raise ValueError(
                f"{named[name]} and {source} are both called {name}: name one of them, or run each with its own --out"
            )
        named[name] = source
    return list(named)


def _name(source: str) -> str:
    """Return a name that a file can have."""
    place = _locate(source)
    if isinstance(place, str):
        return place
    name = innermost(place).name if place.is_dir() else base_name(place).partition(".")[0]
    safe = re.sub(r"[/\\\x00-\x1f]", "-", name).lstrip(".")
    if not safe:
        raise DataError(source, "a data set whose name is empty or begins with a dot", "a folder with a plain name")
    return safe


def _locate(source: str) -> Path | str:
    """Return the place of a data set, without dots, or its name where it is built here."""
    path = Path(os.path.expanduser(source))  # noqa: PTH111 - unlike Path.expanduser it never raises
    if source.strip() and path.exists():
        return path.resolve() if ".." in path.parts or not path.name else path.absolute()
    cached = find_cached(source) if path.parent == Path() else None
    if cached is not None:
        return cached
    if source.lower() in BUILDERS:
        return source.lower()
    known = [entry.name for entry in registry.entries()]
    for name in known:
        if name.lower() == source.lower():
            found = "a known data set that is not here yet"
            raise DataError(source, found, f"it to be fetched: lightdxml data get {name}")
    names = ", ".join((*BUILDERS, *known))
    raise DataError(source, "neither a file nor a data set of this name", f"a path, or one of {names}")


def prepare(source: str, folder: Path, text: TextOptions, seed: int = 0) -> str:
    """Read a data set, make its matrices unless they are there, and return its name.

    Texts become features by what is in the training part alone. Without a test part, a fifth is set aside for it.
    """
    place, called = _locate(source), _name(source)
    data = load(place)
    origin = {"source": place if isinstance(place, str) else str(place.resolve()), "fingerprint": fingerprint(data)}
    target = folder / called
    if (target / _FACTS).exists():
        _check_same(target, origin, text)
        return called
    if target.exists():
        # Whoever began it did not come to its end.
        shutil.rmtree(target)
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
        "name": called,
        **origin,
        "text": asdict(text) if data.train.X is None else None,
        "vectorize_seconds": seconds if data.train.X is None else 0.0,
        "propensity": registry.propensity_constants(data.name),
        "sizes": _sizes(parts),
    }
    # Last of all: a folder without it is not complete.
    with writing_text(target / _FACTS) as stream:
        json.dump(facts, stream, indent=2)
    return called


def fingerprint(data: Dataset) -> dict[str, Any]:
    """Return what tells data sets apart: shapes, numbers of entries, and checksums of labels and features or texts.

    >>> one = Dataset("one", Split(Y=csr_matrix(np.eye(2, dtype=np.float32)), X=csr_matrix([[1.0, 0], [0, 1]])))
    >>> fingerprint(one)["train"]["Y"][:2]
    [[2, 2], 2]
    """
    parts = {"train": data.train, "test": data.test, "dev": data.dev}
    return {name: _part_mark(part) for name, part in parts.items() if part is not None}


def _part_mark(part: Split) -> dict[str, Any]:
    mark: dict[str, Any] = {"Y": _matrix_mark(part.Y)}
    if part.X is not None:
        mark["X"] = _matrix_mark(part.X)
    else:
        checksum = 0
        for text in part.texts or []:
            checksum = zlib.crc32(text.encode("utf-8", "surrogatepass") + b"\0", checksum)
        mark["texts"] = [len(part), checksum]
    if part.ignore is not None:
        mark["ignore"] = [len(part.ignore), zlib.crc32(np.ascontiguousarray(part.ignore).data)]
    return mark


def _matrix_mark(matrix: csr_matrix) -> list[Any]:
    checksum = 0
    # In types of one size: which ones a reader takes says nothing about the data.
    for array, kind in ((matrix.indptr, np.int64), (matrix.indices, np.int64), (matrix.data, np.float32)):
        checksum = zlib.crc32(np.ascontiguousarray(array, dtype=kind).data, checksum)
    return [list(matrix.shape), int(matrix.nnz), checksum]


def _check_same(target: Path, origin: dict[str, Any], text: TextOptions) -> None:
    facts = json.loads((target / _FACTS).read_text("utf-8"))
    if facts["source"] != origin["source"]:
        raise ValueError(f"{target} was made from {facts['source']}, not from {origin['source']}: use another --out")
    if facts.get("fingerprint") != origin["fingerprint"]:
        raise ValueError(f"{target} was made from {facts['source']} as it was, which has changed: use another --out")
    if facts["text"] not in (None, asdict(text)):
        raise ValueError(f"{target} was made with other text settings: use another --out")


def _features(data: Dataset, text: TextOptions) -> tuple[csr_matrix, csr_matrix]:
    assert data.test is not None
    if data.train.X is not None:
        assert data.test.X is not None
        return data.train.X, data.test.X
    vectorizer, X = tfidf.fit(data.train.texts or [], text)
    return X, tfidf.transform(vectorizer, data.test.texts or [])


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
