"""The linear view: its solver, its inverted index, its negatives, and what it learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml import LightDXML
from lightdxml.kernels import parallel
from lightdxml.kernels.sparse import Pattern
from lightdxml.training.run import TrainingData
from lightdxml.validation import check_features
from lightdxml.views.base import Batch
from lightdxml.views.linear.groups import clusters_per_document, fits_all_documents
from lightdxml.views.linear.inverted import log_sigmoid, margins_of, search
from lightdxml.views.linear.model import LinearView
from lightdxml.views.linear.options import SOLVER, LinearOptions, SolverOptions
from lightdxml.views.linear.solver import Documents, Problem, Weights, inverted, joined, restore_weights, solve
from tests.support.configs import FOUR_VIEWS, SMALL
from tests.support.data import topics

NOTHING = np.empty(0, dtype=np.int32)


@pytest.fixture(scope="module")
def checked(documents: tuple[csr_matrix, csr_matrix]) -> tuple[csr_matrix, csr_matrix]:
    return check_features(documents[0]), documents[1]


@pytest.fixture(scope="module")
def uneven() -> Documents:
    """Feature 0 is in all documents and small, feature 1 has the usual size, feature 2 is in no document."""
    return Documents.of(csr_matrix([[0.1, 1.0, 0], [0.1, 0, 0], [0.1, 1.0, 0]], dtype=np.float32))


def view_of(model: LightDXML) -> LinearView:
    view = model.model_.views["linear"]
    assert isinstance(view, LinearView)
    return view


def weights_of(dense: NDArray[np.float32], classes: list[int]) -> Weights:
    """Return rows of a table as weights of these classes, with their ids as biases."""
    rows, ids = csr_matrix(dense[classes]), np.array(classes, dtype=np.int32)
    return Weights(ids, np.diff(rows.indptr).astype(np.int64), rows.indices, rows.data, ids.astype(np.float32))


def problem(X: csr_matrix, Y: csr_matrix, classes: NDArray[np.int32]) -> Problem:
    """Return the problem of training classes on all documents."""
    everything = Pattern.full(X.shape[0])
    return Problem(
        Documents.of(X), csr_matrix(Y.T), classes, np.zeros(Y.shape[1], np.int32), everything, 1.0, SOLVER, 0
    )


def test_features_that_are_small_relative_to_others_need_larger_weights(uneven: Documents) -> None:
    np.testing.assert_allclose(uneven.usual[0] / uneven.usual[1], 0.1, rtol=1e-5)
    thresholds = uneven.thresholds(SolverOptions(1, 0.05, 0.04))
    assert thresholds[1] == np.float32(0.05)
    np.testing.assert_allclose(thresholds[0], 0.04 / uneven.usual[0], rtol=1e-5)


def test_pruning_does_not_depend_on_the_number_of_features_per_document() -> None:
    long = csr_matrix(np.random.default_rng(0).random((20, 5)) + 0.1, dtype=np.float32)
    scaled = csr_matrix(0.01 * long.toarray(), dtype=np.float32)
    options = SolverOptions(1, 0.05, 0.04)
    np.testing.assert_allclose(
        Documents.of(long).thresholds(options), Documents.of(scaled).thresholds(options), rtol=1e-4
    )


def test_the_inverted_index_holds_the_weights_of_all_classes_by_feature() -> None:
    rng = np.random.default_rng(1)
    dense = np.where(rng.random((7, 5)) < 0.5, rng.normal(size=(7, 5)), 0).astype(np.float32)
    dense[3] = 0
    index = inverted([weights_of(dense, [6, 2]), weights_of(dense, [0, 3, 5])], 5, 7, "float32", -9.0, NOTHING)
    found = np.zeros((5, 7), dtype=np.float32)
    for feature in range(5):
        entries = slice(index.indptr[0, feature], index.indptr[0, feature + 1])
        assert index.classes[entries].tolist() == sorted(index.classes[entries].tolist())
        found[feature, index.classes[entries]] = index.weights[entries]
    np.testing.assert_array_equal(found.T[[0, 2, 3, 5, 6]], dense[[0, 2, 3, 5, 6]])
    assert not found.T[[1, 4]].any()
    assert index.biases.tolist() == [0, -9, 2, 3, -9, 5, 6]


def test_of_a_class_that_was_trained_twice_the_last_weights_count() -> None:
    dense = np.eye(3, dtype=np.float32)
    index = inverted([weights_of(dense, [0, 1, 2]), weights_of(5 * dense, [1])], 3, 3, "float32", 0.0, NOTHING)
    assert index.weights.tolist() == [1, 5, 1]
    assert index.classes.tolist() == [0, 1, 2]


def test_weights_that_overflow_float16_keep_all_of_them_in_float32() -> None:
    dense = np.array([[1e5], [0.5]], dtype=np.float32)
    index = inverted([weights_of(dense, [0]), weights_of(dense, [1])], 1, 2, "float16", -1.0, NOTHING)
    assert index.weights.dtype == np.float32
    assert index.weights.tolist() == [1e5, 0.5]


def test_no_classes_make_an_empty_index() -> None:
    index = inverted([], 4, 2, "float16", -1.0, NOTHING)
    assert index.indptr.tolist() == [[0] * 5]
    assert index.biases.tolist() == [-1, -1]


def test_the_solver_separates_a_class_from_its_negatives(checked: tuple[csr_matrix, csr_matrix]) -> None:
    X, Y = checked
    weights = solve(problem(X, Y, np.arange(12, dtype=np.int32)))
    index = inverted([weights], X.shape[1], 12, "float32", 0.0, NOTHING)
    margins = margins_of(index, Batch(X), np.tile(np.arange(12, dtype=np.int32), (X.shape[0], 1)))
    assert ((margins > 0) == Y.toarray()).mean() > 0.99
    assert weights.classes.tolist() == list(range(12))


def test_parts_of_a_problem_make_up_its_classes(checked: tuple[csr_matrix, csr_matrix]) -> None:
    X, Y = checked
    for classes in (np.array([1, 4, 5, 11], dtype=np.int32), np.arange(12, dtype=np.int32)):
        whole = problem(X, Y, classes)
        parts = whole.parts()
        assert np.concatenate(parts).tolist() == classes.tolist()
        separate = joined([whole.solve(part) for part in parts])
        for name, array in solve(whole).arrays().items():
            np.testing.assert_array_equal(array, separate.arrays()[name])


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays["columns"].__setitem__(0, 5),
        lambda arrays: arrays["columns"].__setitem__(0, -1),
        lambda arrays: arrays["counts"].__setitem__(slice(2), [-1, 3]),
        lambda arrays: arrays["classes"].__setitem__(0, 3),
        lambda arrays: arrays["weights"].__setitem__(0, np.nan),
        lambda arrays: arrays["biases"].__setitem__(0, np.inf),
        lambda arrays: arrays.update(weights=arrays["weights"][:-1]),
        lambda arrays: arrays.update(biases=arrays["biases"].astype(np.float16)),
    ],
)
def test_weights_that_do_not_fit_are_refused(change: Any) -> None:
    arrays = weights_of(np.eye(5, dtype=np.float32), [1, 2]).arrays()
    classes = np.array([1, 2], dtype=np.int32)
    restore_weights(arrays, classes, 5)
    change(arrays)
    with pytest.raises(ValueError, match="its "):
        restore_weights(arrays, classes, 5)


def test_the_log_score_is_a_log_sigmoid_of_the_margin(four_views: LightDXML) -> None:
    X = check_features(topics(20, seed=3)[0])
    view = view_of(four_views)
    labels = np.tile(np.arange(12, dtype=np.int32), (20, 1))
    margins = search(view.index, Batch(X), 0, labels)[2]
    weights = np.zeros((42, 12))
    for feature in range(42):
        entries = slice(view.index.indptr[0, feature], view.index.indptr[0, feature + 1])
        weights[feature, view.index.classes[entries]] = view.index.weights[entries]
    expected = X @ weights + view.index.biases
    np.testing.assert_allclose(margins, expected, atol=1e-3)
    np.testing.assert_allclose(view.log_score(Batch(X), labels), -np.logaddexp(0, -4 * expected), atol=1e-2, rtol=1e-3)
    assert log_sigmoid(margins, np.full_like(labels, -1)).max() == 0


def test_margins_above_1_have_different_scores_and_extreme_ones_are_finite() -> None:
    margins = np.array([[1.0, 1.5, 2.0, 3.0, -1e30, 1e30]], dtype=np.float32)
    scores = log_sigmoid(margins, np.zeros_like(margins, dtype=np.int32))[0]
    assert (np.diff(scores[:4]) > 0).all()
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("work", [0, 10**9], ids=["hard negatives", "all documents"])
@pytest.mark.parametrize("dense", ["never", "always"])
def test_the_view_tells_labels_by_their_features(
    documents: tuple[csr_matrix, csr_matrix], work: int, dense: str
) -> None:
    hard = {"linear.work": work, "linear.min_clusters": 1, "tree": False}
    settings = SMALL | hard | {"epochs": 1, "dense": dense, "linear.proposals": 3}
    X, Y = topics(100, seed=1)
    model = LightDXML(options=settings).fit(*documents)
    assert "linear" in model.model_.views
    assert model.score(X, Y) > 0.9
    assert view_of(model).proposals == 3


def test_a_bias_that_was_raised_makes_a_label_a_candidate_of_every_document(four_views: LightDXML) -> None:
    index = view_of(four_views).index
    assert (index.biases[index.dense] > SOLVER.bias).all()
    assert (np.delete(index.biases, index.dense) <= SOLVER.bias + 0.05).all()


def test_the_work_allowed_decides_on_how_many_documents_a_label_is_trained(
    checked: tuple[csr_matrix, csr_matrix],
) -> None:
    X, Y = checked
    data = TrainingData(X, Y, X, Y)
    one_pass = X.nnz + 25 * X.shape[0]
    assert fits_all_documents(data, LinearOptions(work=one_pass))
    assert not fits_all_documents(data, LinearOptions(work=one_pass - 1))
    assert clusters_per_document(data, LinearOptions(work=7 * one_pass, min_clusters=2), 100) == 7
    assert clusters_per_document(data, LinearOptions(work=0, min_clusters=2), 100) == 2
    assert clusters_per_document(data, LinearOptions(work=0, min_clusters=200), 100) == 100


def test_the_cost_is_chosen_on_validation_documents(documents: tuple[csr_matrix, csr_matrix]) -> None:
    costs = {"linear.costs": (1e-9, 1.0), "linear.prior": 0, "blend.min_documents": 10, "dense": "never"}
    X, Y = topics(200, seed=1)
    model = LightDXML(options=costs).fit(*documents, dev=(X, Y))
    assert model.score(X, Y) > 0.9
    assert "linear view" in {entry["phase"] for entry in model.history_}


def test_the_view_does_not_depend_on_the_number_of_threads(documents: tuple[csr_matrix, csr_matrix]) -> None:
    found = []
    for threads in (1, 3):
        with parallel.use_threads(threads):
            settings = FOUR_VIEWS | {"dense": "never", "tree": False}
            found.append(view_of(LightDXML(options=settings).fit(*documents)).arrays())
    for name, array in found[0].items():
        np.testing.assert_array_equal(array, found[1][name])


def test_a_label_that_no_shortlist_reaches_is_found_by_its_feature(documents: tuple[csr_matrix, csr_matrix]) -> None:
    model = LightDXML(options=SMALL | {"shortlist_size": 1, "epochs": 1}).fit(*documents)
    labels, _ = model.rank(documents[0][:30], 12)
    assert (np.sum(labels >= 0, axis=1) > 1).all()
