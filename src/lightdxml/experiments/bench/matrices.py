"""Feature and label matrices: built once per data set and shared by all methods."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.data import DataError, Dataset, load, registry
from lightdxml.data.split import split
from lightdxml.experiments.bench.results import write_json
from lightdxml.metrics import inverse_propensity
from lightdxml.text import tfidf
from lightdxml.text.tfidf import TextOptions
from lightdxml.validation import check_labels, check_values

_TEST_FRACTION = 0.2
_FACTS = "facts.json"


@dataclass(frozen=True)
class Matrices:
    """The data of a cell.

    Attributes
    ----------
    X, Y, X_test, Y_test
        Features as they are, and binary labels.
    ignore
        Pairs of test documents and labels to leave out of the evaluation, or None.
    inv_propensity
        Inverse propensity per label.
    """

    X: csr_matrix
    Y: csr_matrix
    X_test: csr_matrix
    Y_test: csr_matrix
    ignore: csr_matrix | None
    inv_propensity: NDArray[np.float64]


def prepare(source: str, folder: Path, text: TextOptions, seed: int = 0) -> Path:
    """Build the matrices of a data set unless they exist, and return their folder, which has the data set's name.

    TF-IDF is fitted on the training part. If there is no test part, a fifth of the documents is held out.
    """
    # An absolute path: "." and ".." have no name. Path.expanduser would raise if there is no such user.
    path = Path(os.path.abspath(os.path.expanduser(source)))  # noqa: PTH100, PTH111
    data = load(path if source and path.exists() else source)
    name = data.name.lstrip(".")
    if not name:
        raise DataError(source, "a hidden file", "a file or folder with a plain name")
    target = folder / name
    facts: dict[str, Any] = {
        "fingerprint": fingerprint(data),
        "text": asdict(text) if data.train.X is None else None,
        "split_seed": seed if data.test is None else None,
    }
    if (target / _FACTS).exists():
        if facts.items() <= read_facts(target).items():
            return target
        raise ValueError(f"{target} was built from other data, text settings or seed: use another --out")
    # A folder without facts is the rest of an interrupted run.
    shutil.rmtree(target, ignore_errors=True)
    if data.test is None:
        data = split(data, test=_TEST_FRACTION, seed=seed)
    parts = _build(data, text)
    (n, features), (_, labels), n_test = parts["train_X"].shape, parts["train_Y"].shape, parts["test_X"].shape[0]
    facts["propensity"] = registry.propensity_constants(data.name)
    facts["sizes"] = {"train": n, "test": n_test, "features": features, "labels": labels}
    target.mkdir(parents=True)
    for part, matrix in parts.items():
        scipy.sparse.save_npz(target / f"{part}.npz", matrix, compressed=False)
    # Last: it marks the folder as complete.
    write_json(target / _FACTS, facts)
    return target


def _build(data: Dataset, text: TextOptions) -> dict[str, csr_matrix]:
    train, test = data.train, data.test
    assert test is not None
    if train.X is None:
        vectorizer, X = tfidf.fit(train.texts or [], text)
        X_test = tfidf.transform(vectorizer, test.texts or [])
    else:
        X, X_test = train.X, test.X
    parts = {
        "train_X": check_values(X),
        "train_Y": check_labels(train.Y),
        "test_X": check_values(X_test, X.shape[1]),
        "test_Y": check_labels(test.Y),
    }
    if test.ignore is not None:
        ones = np.ones(len(test.ignore), dtype=np.float32)
        parts["ignore"] = csr_matrix((ones, tuple(test.ignore.T)), shape=test.Y.shape)
    return parts


def fingerprint(data: Dataset) -> str:
    """Return a hash of all documents and labels.

    >>> from lightdxml.data import Split
    >>> Y = csr_matrix(np.eye(2, dtype=np.float32))
    >>> fingerprint(Dataset("a", Split(Y=Y, X=Y))) == fingerprint(Dataset("a", Split(Y=Y, X=2 * Y)))
    False
    """
    digest = hashlib.blake2b(digest_size=16)
    for name, part in data.splits.items():
        for matrix in (part.Y, part.X):
            if matrix is not None:
                digest.update(f"{name} {matrix.shape}".encode())
                # Fixed types: readers may choose different integer sizes for the same data.
                for array, kind in ((matrix.indptr, np.int64), (matrix.indices, np.int64), (matrix.data, np.float32)):
                    digest.update(np.ascontiguousarray(array, dtype=kind).data)
        for text in part.texts or ():
            digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
        if part.ignore is not None:
            digest.update(np.ascontiguousarray(part.ignore).data)
    return digest.hexdigest()


def read_facts(folder: Path) -> dict[str, Any]:
    """Return what is known about prepared matrices, such as their `sizes`."""
    facts: dict[str, Any] = json.loads((folder / _FACTS).read_text("utf-8"))
    return facts


def read(folder: Path) -> Matrices:
    """Read matrices that `prepare` built."""
    parts = {path.stem: csr_matrix(scipy.sparse.load_npz(path)) for path in folder.glob("*.npz")}
    X, Y, X_test, Y_test = (parts[name] for name in ("train_X", "train_Y", "test_X", "test_Y"))
    inv_propensity = inverse_propensity(Y, *read_facts(folder)["propensity"])
    return Matrices(X, Y, X_test, Y_test, parts.get("ignore"), inv_propensity)
