"""The metric of a study is what `lightdxml evaluate` prints."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml import LightDXML
from lightdxml.data import Dataset, Split, Texts, save
from lightdxml.data.vocabulary import Concept, Vocabulary
from lightdxml.tuning.documents import Documents
from lightdxml.tuning.metric import Metric, Truth
from tests.support.commands import run
from tests.support.data import noisy_topics

NAMES_OF_METRICS = (
    "PSP@5",
    "P@2",
    "nDCG@10",
    "macro-F1@3",
    "coverage@5",
    "RP@7",
    "R-precision",
    "micro-F1",
    "macro-F1",
)


def test_metrics_are_those_of_evaluate(tmp_path: Path) -> None:
    X, Y = noisy_topics(300)
    train, test = Split(Y[:250], X[:250]), Split(Y[250:], X[250:])
    estimator = LightDXML(dense="never").fit(train.X, train.Y)
    estimator.save(tmp_path / "model")
    save(Dataset("made-up", train, test), tmp_path / "data", "npz")
    documents = Documents("made-up", train, test, held_out=False)
    options = ("--threshold", "auto", "--json", "--tail", 0.5)
    for name in NAMES_OF_METRICS:
        metric = Metric.of(name.lower(), 0.5)
        shown = json.loads(run("evaluate", tmp_path / "model", tmp_path / "data", *options, "-k", metric.k))
        found = metric.measure(estimator, Truth.of(documents))[metric.name]
        assert found == pytest.approx(shown[name] if name in shown else shown["at_threshold"][name]), name


@pytest.mark.parametrize("name", ["P", "P@0", "P@101", "accuracy", "PSP@five", ""])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"there is no metric {name}: choose P@k"):
        Metric.of(name)


def test_each_metric_has_an_early_value_of_a_ranking() -> None:
    X, Y = noisy_topics(100)
    truth = Truth.of(Documents("made-up", Split(Y, X), Split(Y, X), held_out=False))
    right = np.argsort(-Y.toarray(), axis=1, kind="stable").astype(np.int32)
    for name in NAMES_OF_METRICS:
        assert Metric.of(name).early(right, truth, None) > Metric.of(name).early(right[:, ::-1].copy(), truth, None)
    some = truth.some(30)
    assert some.Y.shape[0] == len(some.split) == 25
    assert Metric.of("nDCG@1").early(right[::4], some, None) == 100


def test_with_a_vocabulary_labels_are_concepts() -> None:
    uris = ("urn:cow", "urn:dog", "urn:cat")
    vocabulary = Vocabulary([Concept(uri, {"en": (uri[4:],)}) for uri in uris])
    Y = csr_matrix(np.tile(np.eye(2, dtype=np.float32), (40, 1)))
    split = Split(Y, texts=Texts(["a purring cat", "a barking dog"] * 40))
    documents = Documents.of(Dataset("pets", split, label_names=["cat", "dog"]), vocabulary)
    train = documents.train
    estimator = LightDXML().fit(train.texts, train.Y, label_names=documents.label_names, vocabulary=vocabulary)
    found = Metric.of("P@1").measure(estimator, Truth.of(documents))
    assert found["P@1"] == 100
    assert found["PSP@1"] == 100


def test_documents_that_are_labels_are_not_expected_to_find_themselves() -> None:
    names = [f"d{i}" for i in range(60)]
    texts = [f"word{i // 2} thing" for i in range(60)]
    # Each document has its neighbor as a label.
    Y = csr_matrix((np.ones(60, np.float32), (np.arange(60), np.arange(60) ^ 1)), shape=(60, 60))
    documents = Documents.of(Dataset("linked", Split(Y, texts=Texts(texts), ids=names), label_names=names))
    train = documents.train
    estimator = LightDXML(min_df=1).fit(train.texts, train.Y, label_names=names, ids=train.ids)
    assert estimator.model_.never_own
    assert Metric.of("P@1").measure(estimator, Truth.of(documents))["P@1"] >= 0
