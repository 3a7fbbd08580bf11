"""The scikit-learn face: what it takes for X and Y, and what it says when it cannot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from lightdxml import LightDXML, storage
from tests.training.test_cycle import SMALL, topics

TEXTS = ["a purring cat", "a barking dog", "a cat and a dog", "no pet"] * 10
NAMES = [["cat"], ["dog"], ["cat", "dog"], []] * 10


def test_clone_and_parameters_work() -> None:
    estimator = LightDXML("paper/EURLex-4K", k=7, seed=3)
    assert clone(estimator).get_params() == estimator.get_params()
    assert estimator.set_params(k=9).config().k == 9


def test_numbers_with_names_are_numbers_everywhere() -> None:
    """Numbered labels were once looked up as names in dev and score, and all dropped."""
    X, Y = topics(80)
    rows = [Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist() for i in range(80)]
    trained = LightDXML(**SMALL).fit(X, rows, label_names=list("abcdefghijkl"), dev=(X, rows))
    assert trained.score(X, rows) == trained.score(X, Y) > 0
    assert trained.model_.metrics["P@1"] > 0


def test_too_few_names_are_refused() -> None:
    with pytest.raises(ValueError, match="2 label names, and label 7 in Y"):
        LightDXML(**SMALL).fit(np.eye(3), [[0], [7], [1]], label_names=["a", "b"])


def test_sets_of_labels_do_not_depend_on_the_hash_seed() -> None:
    program = (
        "from lightdxml import LightDXML, storage; import sys\n"
        "rows = [{'n3', 'n1', 'n2'}, {'n2', 'n4'}, {'n5'}] * 8\n"
        "m = LightDXML(D=8, e_model=2).fit(['aa bb', 'bb cc', 'cc aa'] * 8, rows)\n"
        "sys.stdout.write(str(m.model_.label_names) + m.model_.classifier.tobytes().hex())"
    )
    outs = {
        subprocess.check_output([sys.executable, "-c", program], env={"PYTHONHASHSEED": seed, "PATH": ""}, text=True)
        for seed in ("1", "2")
    }
    assert len(outs) == 1


@pytest.mark.parametrize(
    "X",
    [TEXTS, tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, dtype=object), (t for t in TEXTS)],
    ids=lambda X: type(X).__name__,
)
def test_texts_may_come_in_any_sequence(X: Any) -> None:
    trained = LightDXML(**SMALL).fit(X, iter(NAMES))
    assert trained.predict(TEXTS[:2], k=1) == LightDXML(**SMALL).fit(TEXTS, NAMES).predict(TEXTS[:2], k=1)
    assert trained.predict([]) == []


@pytest.mark.parametrize("settings", [{}, {"frequent_labels": 3}, {"relu": True, "residual": True}], ids=str)
def test_one_document_alone_gets_the_same_scores_as_in_a_batch(settings: dict[str, Any]) -> None:
    X, Y = topics()
    trained = LightDXML(**(SMALL | settings)).fit(X, Y)
    labels, scores = trained.rank(X, k=5)
    for i in range(0, 300, 7):
        alone = trained.rank(X[i], k=5)
        np.testing.assert_array_equal(alone[0][0], labels[i])
        np.testing.assert_array_equal(alone[1][0], scores[i])


def test_numpy_numbers_are_numbers() -> None:
    X, Y = topics(60)
    trained = LightDXML(**(SMALL | {"D": np.int64(16)})).fit(X, Y)
    assert len(trained.predict(X, k=np.int64(2))[0]) == 2


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        ("one text", [["a"]], "X is a single text"),
        (["one", "two"], ["a", "b"], "the labels of document 0 are 'a'"),
        (["one", "two"], [[0], [-1]], "document 1 has label -1"),
        (["one", "two"], [["a"], ["b"]], "no word occurs in two documents"),
        (["one one", "one"], [["a"]], "2 and 1 rows"),
    ],
)
def test_bad_input_is_said(X: Any, Y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LightDXML(**SMALL).fit(X, Y)


def test_an_untrained_estimator_says_so() -> None:
    with pytest.raises(NotFittedError, match="not trained yet"):
        LightDXML().predict(["a"])
    with pytest.raises(NotFittedError, match="not trained yet"):
        LightDXML().score(["a"], [["b"]])
    with pytest.raises(NotFittedError, match="not trained yet"):
        LightDXML().save("nowhere")


def test_text_given_to_a_model_of_features_is_refused() -> None:
    X, Y = topics(60)
    with pytest.raises(ValueError, match="trained on features"):
        LightDXML(**SMALL).fit(X, Y).predict(["text"])


def test_very_large_and_very_small_weights_count_by_their_ratio() -> None:
    X, Y = topics(60)
    trained = LightDXML(**SMALL).fit(X, Y)
    expected = trained.rank(X)
    for factor in (1e25, 1e-25):
        np.testing.assert_array_equal(trained.rank(X.astype(np.float64) * factor)[0], expected[0])


def test_a_model_behind_a_link_is_replaced_and_the_link_stays(tmp_path: Path) -> None:
    trained = LightDXML(**SMALL).fit(TEXTS, NAMES)
    trained.save(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    trained.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]


@pytest.mark.parametrize("at", ["X", "Y"])
def test_a_sparse_matrix_with_columns_out_of_range_is_refused(at: str) -> None:
    """SciPy does not look at them, and compiled code would read beyond its arrays."""
    X, Y = topics(30)
    trained = LightDXML(**SMALL).fit(X, Y)
    broken = (X if at == "X" else Y).copy()
    broken.indices[3] = 900_000_000
    with pytest.raises(ValueError, match=f"{at} is no valid sparse matrix"):
        LightDXML(**SMALL).fit(*((broken, Y) if at == "X" else (X, broken)))
    if at == "X":
        with pytest.raises(ValueError, match="X is no valid sparse matrix"):
            trained.predict(broken)


def test_a_stored_zero_is_no_word() -> None:
    X, Y = topics(30)
    zero = csr_matrix(([0.0], ([0], [3])), shape=(1, X.shape[1]))
    assert LightDXML(**SMALL).fit(X, Y).predict(zero) == [[]]


def test_more_labels_than_there_are_cost_nothing() -> None:
    X, Y = topics(30)
    assert LightDXML(**SMALL).fit(X, Y).rank(X[0], 10**12)[0].shape == (1, 12)


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        ([None] * 4, [["a"]] * 4, "document 0 is None among texts"),
        ([], [], "no rows"),
        (["a cat"] * 2, [[1], ["a"]], "labels are all names, or all numbers"),
        (["a cat"] * 2, [[("a", 1)], ["a"]], "labels are all names, or all numbers"),
    ],
)
def test_odd_documents_and_labels_are_named(X: Any, Y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LightDXML(**SMALL).fit(X, Y)


def test_columns_of_scores_have_names() -> None:
    trained = LightDXML(**SMALL).fit(TEXTS, NAMES)
    best = trained.scores("a purring cat", k=1).indices[0]
    assert [trained.classes_[best]] == trained.predict("a purring cat", k=1)


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *arguments, **options: False)
    with pytest.raises(ValueError, match="cannot be written"):
        storage.check_target(tmp_path / "new" / "model")


def test_going_on_needs_a_folder_to_go_on_from() -> None:
    with pytest.raises(ValueError, match="resume needs the folder to go on from: give checkpoint as well"):
        LightDXML(**SMALL).fit(["a", "b"], [[0], [1]], resume=True)


@pytest.mark.parametrize("every", ["5m", None, -1.0, True])
def test_time_between_checkpoints_is_a_number_of_seconds(tmp_path: Path, every: Any) -> None:
    with pytest.raises(ValueError, match=r"checkpoint_every is .*: it must be a number of seconds from 0"):
        LightDXML(**SMALL).fit(["a", "b"], [[0], [1]], checkpoint=tmp_path, checkpoint_every=every)
