"""The data set see-also: canonical names, clean texts, and the same data in every process."""

from __future__ import annotations

import hashlib
import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml.data import see_also as builder
from lightdxml.data.dataset import Dataset
from lightdxml.data.errors import DataError
from lightdxml.data.split import Document, is_test, split_by_hash

PUBLIC = r"(?:numpy|scipy|sklearn)(?:\.[A-Za-z]\w*)*"


class Found(NamedTuple):
    part: str
    title: str
    text: str
    labels: list[str]


def documents(data: Dataset) -> dict[str, Found]:
    found = {}
    names = data.label_names
    assert names is not None
    for part, split in data.splits.items():
        assert split.texts is not None
        assert split.texts.titles is not None
        assert split.ids is not None
        for row, id_ in enumerate(split.ids):
            labels = [names[j] for j in split.Y.indices[split.Y.indptr[row] : split.Y.indptr[row + 1]]]
            found[id_] = Found(part, split.texts.titles[row], split.texts.bodies[row], labels)
    return found


def digest(data: Dataset) -> str:
    return hashlib.sha256(repr(sorted(documents(data).items())).encode()).hexdigest()


@pytest.fixture(scope="module")
def everything(see_also: Dataset) -> dict[str, Found]:
    return documents(see_also)


@pytest.mark.parametrize(
    ("reference", "home", "meant"),
    [
        ("lstsq", "numpy.linalg.svd", "numpy.linalg.lstsq"),  # of the same module
        ("linalg.svd", "numpy.dot", "numpy.linalg.svd"),  # relative to the package
        ("np.dot", "scipy.linalg.svd", "numpy.dot"),
        ("abs", "numpy.dot", "numpy.absolute"),  # an alias
        ("sort", "numpy.ndarray.all", "numpy.ndarray.sort"),  # of the same class
        ("sort", "numpy.ndarray", "numpy.sort"),  # of the module rather than of the class itself
        ("Ridge", "sklearn.svm.SVR", "sklearn.linear_model.Ridge"),  # the only one of its name
        ("svd", "sklearn.svm.SVR", None),  # one of several
        ("description", "numpy.dot", None),
    ],
)
def test_reference_resolves_to_the_nearest_object(reference: str, home: str, meant: str | None) -> None:
    names = [
        *("numpy.linalg.svd", "numpy.linalg.lstsq", "numpy.dot", "numpy.absolute", "numpy.sort"),
        *("numpy.ndarray", "numpy.ndarray.all", "numpy.ndarray.sort"),
        *("scipy.linalg.svd", "sklearn.svm.SVR", "sklearn.linear_model.Ridge"),
    ]
    canonical = {name: name for name in names}
    canonical["numpy.abs"] = "numpy.absolute"
    by_last_word = {name.rpartition(".")[2]: set[str]() for name in canonical.values()}
    for name in canonical.values():
        by_last_word[name.rpartition(".")[2]].add(name)
    assert builder._resolve(reference, home, canonical, by_last_word) == meant


# --- the split


def test_split_of_known_documents_never_changes() -> None:
    ids = [
        "numpy.linalg.svd",
        "numpy.linalg.pinv",
        "numpy.concatenate",
        "sklearn.svm.SVC",
        "numpy.add",
        "0ad",
    ]
    assert [is_test(id_) for id_ in ids] == [False, True, True, True, False, False]


def test_documents_are_sorted_and_repeated_labels_count_once() -> None:
    data = split_by_hash(
        "made up",
        [
            Document("numpy.linalg.svd", "svd", "decomposition", ["z", "a", "z"]),
            Document("numpy.add", "add", "sum", ["m"]),
            Document("numpy.linalg.pinv", "pinv", "inverse", ["m", "z"]),
        ],
    )
    assert data.label_names == ["a", "m", "z"]
    assert data.train.ids == ["numpy.add", "numpy.linalg.svd"]
    assert data.train.Y.toarray().tolist() == [[0, 1, 0], [1, 0, 1]]
    assert data.test is not None
    assert data.test.ids == ["numpy.linalg.pinv"]
    assert data.test.Y.toarray().tolist() == [[0, 1, 1]]


# --- the installed packages


def test_data_set_has_the_documented_size_and_form(see_also: Dataset) -> None:
    assert see_also.name == "see-also"
    assert see_also.test is not None
    n = len(see_also.train) + len(see_also.test)
    assert 1_500 <= n <= 3_500
    assert 1_200 <= see_also.n_labels <= 3_000
    assert 0.15 < len(see_also.test) / n < 0.25
    for split in see_also.splits.values():
        assert isinstance(split.Y, csr_matrix)
        assert split.Y.dtype == np.float32
        assert split.Y.has_canonical_format
        assert set(split.Y.data.tolist()) == {1.0}
        assert np.diff(split.Y.indptr).min() >= 1
        assert split.ids == sorted(split.ids or [])


def test_hash_of_the_id_decides_the_split(everything: dict[str, Found]) -> None:
    assert [id_ for id_, found in everything.items() if (found.part == "test") != is_test(id_)] == []


def test_names_are_public_dotted_names_of_the_three_packages(see_also: Dataset, everything: dict[str, Found]) -> None:
    names = see_also.label_names
    assert names is not None
    assert list(names) == sorted(set(names))
    assert [name for name in [*names, *everything] if not re.fullmatch(PUBLIC, name)] == []
    # Most labels have a See Also section and are documents too.
    assert sum(name in everything for name in names) > 0.75 * len(names)


def test_every_label_has_a_document_and_no_document_is_its_own_label(
    see_also: Dataset, everything: dict[str, Found]
) -> None:
    used = np.unique(np.concatenate([split.Y.indices for split in see_also.splits.values()]))
    assert used.tolist() == list(range(see_also.n_labels))
    assert [id_ for id_, found in everything.items() if id_ in found.labels] == []


def test_texts_contain_no_markup_or_boilerplate(everything: dict[str, Found]) -> None:
    unwanted = (
        *(">>>", "`", "\\", ":func:", ":math:", ":class:", ":ref:", ".. ver", ".. math", "-----", "====="),
        *("://", "see also", "sphx_glr", "user guide", "deprecated", "versionadded", "\n", "\0", "  "),
    )
    for id_, found in everything.items():
        assert found.text.strip(), id_
        assert [scrap for scrap in unwanted if scrap in found.text.lower()] == [], id_


def test_texts_are_distinct(everything: dict[str, Found]) -> None:
    texts = [found.text.casefold() for found in everything.values()]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("numpy.abs", "numpy.absolute"),
        ("numpy.asin", "numpy.arcsin"),
        ("numpy.lib.scimath.sqrt", "numpy.emath.sqrt"),
        ("numpy.random.RandomState.normal", "numpy.random.normal"),
        ("sklearn.metrics.cluster.rand_score", "sklearn.metrics.rand_score"),
    ],
)
def test_object_with_several_names_has_one_canonical_name(
    see_also: Dataset, everything: dict[str, Found], alias: str, name: str
) -> None:
    names = {*everything, *(see_also.label_names or ())}
    assert name in names
    assert alias not in names


def test_functions_classes_methods_and_attributes_are_documents(everything: dict[str, Found]) -> None:
    assert everything["numpy.linalg.lstsq"].labels == ["scipy.linalg.lstsq"]
    assert "sklearn.linear_model.LassoCV" in everything["sklearn.linear_model.Lasso"].labels
    assert "numpy.ndarray.reshape" in everything["numpy.ndarray.shape"].labels
    method = everything["numpy.ndarray.sort"]
    assert method.title == "ndarray.sort"
    assert method.text.startswith("Sort an array in-place.")
    assert {"numpy.sort", "numpy.ndarray.argsort"} & set(method.labels)


def test_another_process_builds_the_same_without_warnings_or_test_modules(see_also: Dataset) -> None:
    program = (
        "import sys; from lightdxml.data import see_also; from tests.data.test_see_also import digest\n"
        "before = set(sys.modules); print(digest(see_also.build()))\n"
        "print(sorted(m for m in set(sys.modules) - before if {'tests', 'conftest'} & set(m.split('.'))))"
    )
    command = [sys.executable, "-W", "error", "-c", program]
    root = Path(__file__).parents[2]
    result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)
    assert result.stderr == ""
    assert result.stdout.splitlines() == [digest(see_also), "[]"]


def test_earlier_imports_make_no_difference(see_also: Dataset) -> None:
    """scikit-learn's checks enable experimental estimators, which must not become documents."""
    importlib.import_module("sklearn.utils.estimator_checks")
    assert digest(builder.build()) == digest(see_also)


def test_module_that_cannot_be_imported_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    original = importlib.import_module

    def import_module(name: str) -> ModuleType:
        if name == "numpy.linalg":
            raise ImportError(name)
        return original(name)

    monkeypatch.setattr(builder, "ROOTS", ("numpy",))
    monkeypatch.setattr(importlib, "import_module", import_module)
    paths = [path for path, _ in builder._modules()]
    assert "numpy.fft" in paths
    assert "numpy.linalg" not in paths


def test_without_docstrings_the_error_gives_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder, "ROOTS", ())
    with pytest.raises(DataError, match=r"found no docstrings, expected some: run Python without -OO"):
        builder.build()
