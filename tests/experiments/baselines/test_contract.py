"""The contract of all methods in the benchmark."""

from __future__ import annotations

import importlib.metadata
import inspect
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.experiments.baselines import METHODS, Method, TooLargeError, method, simple
from tests.support.bench import LABELS, documents

TRAIN, TEST = 500, 100
NO_FEATURES, NO_LABELS = 3, 5
PEERS = ("sleec", "annexml", "fastxml", "pfastrexml", "craftml", "slice", "dismec", "ppdsparse")
# Methods that run on our kernels.
OWN = (
    *("lightdxml", "lightdxml-fast", "lightdxml-paper", "astec", "ova", "knn"),
    *PEERS,
)


@dataclass(frozen=True)
class Problem:
    """Documents whose words determine their labels. One has no features, one no labels."""

    X: csr_matrix
    Y: csr_matrix
    X_test: csr_matrix
    Y_test: csr_matrix


@dataclass(frozen=True)
class Trained:
    """A trained method and its predictions for the test documents."""

    method: Method
    labels: NDArray[np.int32]
    scores: NDArray[np.float32]


def without_rows(matrix: csr_matrix, *rows: int) -> csr_matrix:
    dense = matrix.toarray()
    dense[list(rows)] = 0
    return csr_matrix(dense)


@pytest.fixture(scope="module")
def problem() -> Problem:
    rng = np.random.default_rng(0)
    (X, Y), (X_test, Y_test) = documents(rng, TRAIN), documents(rng, TEST)
    X, Y = without_rows(X, NO_FEATURES), without_rows(Y, NO_LABELS)
    return Problem(X, Y, without_rows(X_test, NO_FEATURES), without_rows(Y_test, NO_FEATURES))


def installed(name: str) -> type[Method]:
    kind = METHODS[name]
    if kind.missing():
        pytest.skip(kind.missing())
    return kind


def content(matrix: csr_matrix) -> tuple[bytes, ...]:
    return matrix.data.tobytes(), matrix.indices.tobytes(), matrix.indptr.tobytes()


def fitted(name: str, problem: Problem, seed: int = 7, threads: int = 2) -> Method:
    learner = installed(name)()
    learner.fit(problem.X, problem.Y, seed=seed, threads=threads)
    return learner


@pytest.fixture(scope="module", params=list(METHODS))
def trained(request: pytest.FixtureRequest, problem: Problem) -> Trained:
    before = content(problem.X), content(problem.Y)
    learner = fitted(request.param, problem)
    assert (content(problem.X), content(problem.Y)) == before, "training changed its data"
    return Trained(learner, *learner.rank(problem.X_test, 5))


def test_an_easy_problem_is_learned(trained: Trained, problem: Problem) -> None:
    truth = problem.Y_test.toarray()
    rows = np.flatnonzero(truth.any(axis=1))
    precision = truth[rows, trained.labels[rows, 0]].mean()
    assert precision > 0.9  # by chance 0.07


def test_predictions_have_the_right_shapes_and_types(trained: Trained) -> None:
    assert trained.labels.shape == trained.scores.shape == (TEST, 5)
    assert trained.labels.dtype == np.int32
    assert trained.scores.dtype == np.float32
    assert trained.labels.min() >= -1
    assert trained.labels.max() < LABELS
    assert np.isfinite(trained.scores).all()


def test_the_best_labels_come_first_and_padding_last(trained: Trained) -> None:
    for labels, scores in zip(trained.labels, trained.scores, strict=True):
        n = int((labels >= 0).sum())
        assert (labels[:n] >= 0).all()
        assert (np.diff(scores[:n]) <= 0).all()
        assert (scores[n:] == 0).all()


def test_no_label_is_predicted_twice(trained: Trained) -> None:
    for labels in trained.labels:
        found = labels[labels >= 0]
        assert len(np.unique(found)) == len(found)


def test_predictions_are_padded_beyond_the_number_of_labels(trained: Trained, problem: Problem) -> None:
    labels, scores = trained.method.rank(problem.X_test[:10], LABELS + 3)
    assert labels.shape == (10, LABELS + 3)
    assert (labels[:, LABELS:] == -1).all()
    assert (scores[labels < 0] == 0).all()


def test_a_single_document_is_ranked_as_in_a_batch(trained: Trained, problem: Problem) -> None:
    for i in (0, NO_FEATURES, TEST - 1):
        labels, scores = trained.method.rank(problem.X_test[i : i + 1], 5)
        np.testing.assert_array_equal(labels[0], trained.labels[i])
        np.testing.assert_allclose(scores[0], trained.scores[i], rtol=1e-6)


def test_ranking_does_not_change_the_documents(trained: Trained, problem: Problem) -> None:
    before = content(problem.X_test)
    trained.method.rank(problem.X_test, 3)
    assert content(problem.X_test) == before


def test_no_documents_get_no_rows(trained: Trained, problem: Problem) -> None:
    labels, scores = trained.method.rank(problem.X_test[:0], 5)
    assert labels.shape == scores.shape == (0, 5)


def test_a_model_is_saved_into_its_folder_only(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, elsewhere = tmp_path / "model", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    trained.method.save(folder)
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "model"]
    assert not list(elsewhere.iterdir())


def test_phases_of_training_are_timed(trained: Trained) -> None:
    assert trained.method.phases
    assert all(seconds >= 0 for seconds in trained.method.phases.values())


@pytest.mark.parametrize("name", OWN)
def test_the_same_seed_gives_the_same_result_with_any_number_of_threads(name: str, problem: Problem) -> None:
    one, two = (fitted(name, problem, threads=threads).rank(problem.X_test, 5) for threads in (1, 2))
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])


@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize(
    ("X", "Y"),
    [
        pytest.param(np.ones((1, 1)), np.ones((1, 1)), id="one document, feature and label"),
        pytest.param(np.ones((12, 1)), np.eye(12, 5), id="one feature"),
        pytest.param(np.ones((12, 20)), np.eye(12), id="documents that are all the same"),
        pytest.param(np.eye(12), np.ones((12, 1)), id="one label, which all documents have"),
        pytest.param(np.zeros((12, 5)), np.eye(12), id="no document has features"),
        pytest.param(np.eye(12), np.zeros((12, 4)), id="no document has labels"),
    ],
)
def test_odd_data_are_learned_too(name: str, X: NDArray[np.float64], Y: NDArray[np.float64]) -> None:
    data = csr_matrix(X, dtype=np.float32), csr_matrix(Y, dtype=np.float32)
    learner = installed(name)()
    learner.fit(*data, seed=0, threads=2)
    labels, scores = learner.rank(data[0], 3)
    assert np.isfinite(scores).all()
    assert labels.max() < Y.shape[1]
    assert Y.any() or (labels == -1).all()


@pytest.mark.parametrize("name", METHODS)
def test_an_unknown_setting_is_rejected(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} has no setting 'color': choose from"):
        METHODS[name](color="blue")


def test_the_package_of_a_method_is_installed_by_the_extra_of_its_name() -> None:
    extras = importlib.metadata.metadata("lightdxml").get_all("Provides-Extra") or []
    assert {kind.package for kind in METHODS.values()} - {""} <= set(extras)


def test_an_unknown_method_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"unknown method 'oracle': choose from .*parabel, bonsai"):
        method("oracle")


def test_packages_of_methods_are_not_imported_before_training() -> None:
    code = (
        "import sys, lightdxml.experiments.baselines; print(sys.modules.keys() & {'omikuji', 'napkinxc', 'fasttext'})"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"


def test_parabel_has_omikujis_defaults() -> None:
    omikuji = pytest.importorskip("omikuji")
    parameters = omikuji.Model.default_hyper_param()
    for name, value in METHODS["parabel"].defaults.items():
        if name != "beam_size":
            assert getattr(parameters, name) == pytest.approx(value), name


def test_plt_has_napkinxcs_defaults() -> None:
    models = pytest.importorskip("napkinxc.models")
    signature = inspect.signature(models.PLT.__init__).parameters
    for name, value in METHODS["plt"].defaults.items():
        assert signature[name].default == value, name


def test_ova_has_scikit_learns_defaults() -> None:
    from sklearn.svm import LinearSVC

    own = LinearSVC().get_params()
    assert {name: own[name] for name in METHODS["ova"].defaults} == METHODS["ova"].defaults


def test_ova_gives_the_same_result_with_several_processes(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    one = fitted("ova", problem).rank(problem.X_test, 5)
    monkeypatch.setattr(simple, "_MIN_PAIRS_FOR_PROCESSES", 0)
    two = fitted("ova", problem).rank(problem.X_test, 5)
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])


def test_ova_handles_labels_of_all_documents_and_of_none() -> None:
    X = csr_matrix(np.eye(4, dtype=np.float32))
    Y = csr_matrix(np.array([[1, 0, 1], [1, 0, 1], [1, 0, 0], [1, 0, 0]], dtype=np.float32))
    learner = METHODS["ova"]()
    learner.fit(X, Y, seed=0, threads=1)
    labels, _ = learner.rank(X, 3)
    assert labels[:, 0].tolist() == [0, 0, 0, 0]
    assert (labels[:, 1] == 2).all()
    assert (labels[:, 2] == -1).all()


@pytest.mark.parametrize(("n_features", "n_labels"), [(10, 31_000), (2_000_000, 600)])
def test_ova_rejects_data_that_is_too_large(n_features: int, n_labels: int) -> None:
    X, Y = csr_matrix((1000, n_features), dtype=np.float32), csr_matrix((1000, n_labels), dtype=np.float32)
    with pytest.raises(TooLargeError, match=r"ova is limited to .*: leave it out"):
        METHODS["ova"]().fit(X, Y, seed=0, threads=1)


def test_fasttext_halves_a_learning_rate_that_diverges(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    fasttext = pytest.importorskip("fasttext")
    train, rates = fasttext.train_supervised, []

    def diverges(path: str, **settings: Any) -> Any:
        rates.append(settings["lr"])
        if settings["lr"] > 0.2:
            raise RuntimeError("Encountered NaN.")
        return train(path, **settings)

    monkeypatch.setattr(fasttext, "train_supervised", diverges)
    learner = fitted("fasttext", problem)
    assert rates == [0.5, 0.25, 0.125]
    assert learner.settings["lr"] == 0.125
    assert METHODS["fasttext"].defaults["lr"] == 0.5


def test_neighbors_vote_by_their_cosines() -> None:
    X = csr_matrix(np.array([[1, 0], [0.6, 0.8], [0, 1]], dtype=np.float32))
    Y: Any = csr_matrix(np.eye(3, dtype=np.float32))
    learner = METHODS["knn"](neighbors=2)
    learner.fit(X, Y, seed=0, threads=1)
    labels, scores = learner.rank(X[:1], 3)
    assert labels.tolist() == [[0, 1, -1]]
    np.testing.assert_allclose(scores, [[1, 0.6, 0]], rtol=1e-6)
