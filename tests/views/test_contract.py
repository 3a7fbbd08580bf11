"""What every view does: one contract, over all views of a small model."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from lightdxml import LightDXML
from lightdxml.training.run import TrainingData
from lightdxml.validation import check_features
from lightdxml.views.base import Batch, ModelSizes, NewLabels, View
from lightdxml.views.lesson import Lesson
from lightdxml.views.names.forms import NameForms
from lightdxml.views.registry import VIEWS
from tests.support.data import topics

N_LABELS = 12
# Models of earlier versions do not have them.
LATER_FACTS = {"cost"}


@pytest.fixture(params=list(VIEWS))
def view(request: pytest.FixtureRequest, four_views: LightDXML) -> View:
    return four_views.model_.views[request.param]


@pytest.fixture(params=["int8", "float16"])
def quantized(request: pytest.FixtureRequest, view: View) -> View:
    return view.quantize(request.param)


@pytest.fixture(scope="module", name="X")
def unseen_documents() -> csr_matrix:
    """Documents that no training has seen; the last one has no features."""
    features = topics(40, seed=3)[0].toarray()
    features[-1] = 0
    return check_features(features)


def every_label(X: csr_matrix) -> NDArray[np.int32]:
    """Return all labels for each document, in another order for each, and among them some -1."""
    rng = np.random.default_rng(0)
    table = np.array([rng.permutation(N_LABELS) for _ in range(X.shape[0])], dtype=np.int32)
    table[rng.random(table.shape) < 0.2] = -1
    return table


def sizes(model: LightDXML) -> ModelSizes:
    return ModelSizes(model.model_.n_features, model.model_.n_labels)


def test_all_views_are_covered(four_views: LightDXML) -> None:
    assert list(four_views.model_.views) == list(VIEWS)
    assert all(four_views.model_.blend.weights[name] > 0 for name in VIEWS)


def test_log_scores_are_finite_and_at_most_0(view: View, X: csr_matrix) -> None:
    labels = every_label(X)
    log_scores = view.log_score(Batch(X), labels)
    assert log_scores.shape == labels.shape
    assert log_scores.dtype == np.float32
    assert np.isfinite(log_scores).all()
    # Label embeddings of 16 bits are not exactly of length 1.
    assert (log_scores[labels >= 0] <= 1e-3).all()


def test_known_labels_are_not_proposed_and_proposals_are_scored_as_any_label(view: View, X: csr_matrix) -> None:
    for known in (np.empty((X.shape[0], 0), dtype=np.int32), every_label(X)[:, :5]):
        proposal = view.propose(Batch(X), known)
        if proposal is None:
            continue
        every = np.concatenate([known, proposal.labels], axis=1)
        for row in every:
            there = row[row >= 0]
            assert len(np.unique(there)) == len(there)
            assert (there < N_LABELS).all()
        expected = view.log_score(Batch(X), every)
        assert proposal.log_scores.shape == every.shape
        np.testing.assert_array_equal(proposal.log_scores[every >= 0], expected[every >= 0])


def test_labels_that_are_not_allowed_are_not_proposed_and_others_take_their_places(view: View, X: csr_matrix) -> None:
    none = np.empty((X.shape[0], 0), dtype=np.int32)
    every = view.propose(Batch(X), none)
    for left_out in ([0], [0, 2, 3, 5, 7, 11], list(range(N_LABELS))):
        allowed = np.ones(N_LABELS, dtype=np.bool_)
        allowed[left_out] = False
        proposal = view.propose(Batch(X, allowed=allowed), none)
        if proposal is None or every is None:
            assert proposal is every
            continue
        for i in range(X.shape[0]):
            found = set(proposal.labels[i].tolist()) - {-1}
            assert found.isdisjoint(left_out)
            assert found >= set(every.labels[i].tolist()) - {-1, *left_out}
            single = view.propose(Batch(X[i], allowed=allowed), none[:1])
            assert single is not None
            np.testing.assert_array_equal(single.labels[0], proposal.labels[i])


def test_one_document_at_a_time_gives_the_bits_of_a_batch(view: View, X: csr_matrix) -> None:
    labels, none = every_label(X), np.empty((X.shape[0], 0), dtype=np.int32)
    log_scores, proposal = view.log_score(Batch(X), labels), view.propose(Batch(X), none)
    for i in range(X.shape[0]):
        np.testing.assert_array_equal(view.log_score(Batch(X[i]), labels[i : i + 1])[0], log_scores[i])
        single = view.propose(Batch(X[i]), none[:1])
        assert (single is None) == (proposal is None)
        if single is not None and proposal is not None:
            np.testing.assert_array_equal(single.labels[0], proposal.labels[i])
            np.testing.assert_array_equal(single.log_scores[0], proposal.log_scores[i])


def check_contributions(view: View, X: csr_matrix) -> None:
    labels = np.tile(np.arange(N_LABELS, dtype=np.int32), (X.shape[0], 1))
    log_scores = view.log_score(Batch(X), labels)
    for i in range(X.shape[0]):
        for label in range(N_LABELS):
            parts = view.contributions(Batch(X[i]), label)
            assert parts.features.shape == (X[i].nnz,)
            assert parts.base + parts.features.sum() == pytest.approx(log_scores[i, label], abs=1e-4, rel=1e-4)


def test_contributions_add_up_to_the_log_score(view: View, X: csr_matrix) -> None:
    check_contributions(view, X[-6:])


def test_contributions_of_a_quantized_view_add_up(quantized: View, X: csr_matrix) -> None:
    check_contributions(quantized, X[-3:])


def test_arrays_and_facts_restore_the_view(view: View, X: csr_matrix, four_views: LightDXML) -> None:
    facts = json.loads(json.dumps(view.facts()))
    again = type(view).restore(view.arrays(), facts, sizes(four_views))
    labels = every_label(X)
    np.testing.assert_array_equal(again.log_score(Batch(X), labels), view.log_score(Batch(X), labels))
    assert {name: array.tobytes() for name, array in again.arrays().items()} == {
        name: array.tobytes() for name, array in view.arrays().items()
    }
    assert again.facts() == view.facts()
    again.check_values()


def test_a_quantized_view_is_restored(quantized: View, X: csr_matrix, four_views: LightDXML) -> None:
    again = type(quantized).restore(quantized.arrays(), quantized.facts(), sizes(four_views))
    again.check_values()
    labels = every_label(X)
    np.testing.assert_array_equal(again.log_score(Batch(X), labels), quantized.log_score(Batch(X), labels))


FORGERIES: dict[str, Any] = {
    "missing": None,
    "one entry less": lambda array: array[:-1].copy(),
    "one entry more": lambda array: np.concatenate([array, array[:1]]),
    "one axis more": lambda array: array[None].copy(),
    "no axis": lambda array: np.zeros((), dtype=array.dtype),
    "another type": lambda array: array.astype(np.float64),
}
# A list of labels may be shorter, and a tree may have a node that no label uses.
HARMLESS = {
    ("linear.dense", "one entry less"),
    ("tree.0.clusters.biases", "one entry more"),
    ("tree.1.clusters.biases", "one entry more"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_arrays_that_do_not_fit_are_refused(view: View, forgery: str, four_views: LightDXML) -> None:
    for name in view.arrays():
        arrays = view.arrays()
        array = arrays.pop(name)
        if (name, forgery) in HARMLESS or (array.size == 0 and forgery.startswith("one entry")):
            continue
        if FORGERIES[forgery] is not None:
            arrays[name] = FORGERIES[forgery](array)
        # A missing array may be a KeyError: whoever reads the model turns it into the same sentence.
        with pytest.raises((ValueError, LookupError, TypeError)):
            type(view).restore(arrays, view.facts(), sizes(four_views))


@pytest.mark.parametrize("value", [-2, -(2**31), "one too many", 2**31 - 1])
def test_ids_out_of_range_are_refused(view: View, value: Any, four_views: LightDXML) -> None:
    for name, array in view.arrays().items():
        # Any number of 16 bits is the class of a full block; here, the only block has fewer.
        kinds = (np.int32, np.int64, np.uint16) if value == "one too many" else (np.int32, np.int64)
        # Counts of documents are no ids.
        if array.dtype not in kinds or not array.size or ".occurrences." in name:
            continue
        arrays = view.arrays() | {name: array.copy()}
        n_classes = len(arrays[f"{name.rpartition('.')[0]}.biases"]) if ".clusters." in name else N_LABELS
        if name.endswith("paths"):
            n_classes = len(arrays[f"{name.rpartition('.')[0]}.clusters.biases"])
        too_many = array.flat[-1] + 1 if name.endswith("indptr") else n_classes
        arrays[name].flat[-1] = too_many if isinstance(value, str) else value
        with pytest.raises(ValueError, match="its "):
            type(view).restore(arrays, view.facts(), sizes(four_views))


@pytest.mark.parametrize("value", [None, "1", -1, 1.5, True, 2**40, [], {}])
def test_facts_of_another_form_are_refused(view: View, value: Any, four_views: LightDXML) -> None:
    for name, fact in view.facts().items():
        if type(fact) is type(value) and (value is True or value == 1.5):
            continue
        with pytest.raises((ValueError, TypeError, KeyError)):
            type(view).restore(view.arrays(), view.facts() | {name: value}, sizes(four_views))
        without = {other: one for other, one in view.facts().items() if other != name}
        if name in LATER_FACTS:
            type(view).restore(view.arrays(), without, sizes(four_views))
            continue
        with pytest.raises(KeyError):
            type(view).restore(view.arrays(), without, sizes(four_views))


def test_a_view_of_other_sizes_is_refused(view: View) -> None:
    for size in (ModelSizes(41, N_LABELS), ModelSizes(42, N_LABELS - 1)):
        with pytest.raises(ValueError, match="its "):
            type(view).restore(view.arrays(), view.facts(), size)


def test_quantizing_keeps_rankings_nearly(view: View, quantized: View, X: csr_matrix) -> None:
    labels = np.tile(np.arange(N_LABELS, dtype=np.int32), (X.shape[0] - 1, 1))
    before, after = (one.log_score(Batch(X[:-1]), labels) for one in (view, quantized))
    np.testing.assert_allclose(after, before, atol=0.1)
    best = before.argmax(axis=1)
    assert np.mean(after.argmax(axis=1) == best) > 0.9
    small, large = (sum(array.nbytes for array in one.arrays().values()) for one in (quantized, view))
    assert small <= large


def test_the_summary_is_one_line(view: View) -> None:
    assert view.summary().strip()
    assert "\n" not in view.summary()
    assert view.about


def more_labels(untrained: list[int]) -> NewLabels:
    """Return two new labels: one is called by a feature that documents have, the other by a new feature."""
    features = [*range(N_LABELS), 20, 42]
    terms = csr_matrix((np.ones(14, np.float32), (np.arange(14), features)), shape=(14, 43))
    examples = np.arange(N_LABELS, dtype=np.int32)
    names, none = NameForms(terms, np.arange(14, dtype=np.int32)), np.zeros(0, np.int32)
    return NewLabels(names, 14, np.array(untrained, np.int32), examples, none, np.zeros(14, np.int32))


def wider(X: csr_matrix) -> csr_matrix:
    """Return documents with one more feature, which none of them has."""
    return csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], 43))


@pytest.mark.parametrize("precision", ["as trained", "float16", "int8"])
def test_new_labels_change_no_score_of_trained_ones(view: View, precision: str, X: csr_matrix) -> None:
    trained = view if precision == "as trained" else view.quantize(precision)
    grown = trained.with_labels(more_labels([12, 13]))
    labels = every_label(X)
    np.testing.assert_array_equal(grown.log_score(Batch(wider(X)), labels), trained.log_score(Batch(X), labels))
    assert {name: array.dtype for name, array in grown.arrays().items()} == {
        name: array.dtype for name, array in trained.arrays().items()
    }


def test_new_labels_are_scored_stored_and_explained(view: View, X: csr_matrix) -> None:
    grown = view.with_labels(more_labels([12, 13]))
    again = type(view).restore(grown.arrays(), grown.facts(), ModelSizes(43, 14))
    again.check_values()
    documents = csr_matrix(np.eye(43, dtype=np.float32)[[20, 42, 3]])
    labels = np.tile(np.arange(14, dtype=np.int32), (3, 1))
    scores = again.log_score(Batch(documents), labels)
    assert np.isfinite(scores).all()
    assert (scores <= 1e-3).all()
    for i, label in ((0, 12), (1, 13)):
        # The classifier does not know names.
        assert view.name == "classifier" or scores[i, label] >= scores[2, label]
        parts = again.contributions(Batch(documents[i]), label)
        assert parts.base + parts.features.sum() == pytest.approx(scores[i, label], abs=1e-4)
        proposal = again.propose(Batch(documents[i]), np.empty((1, 0), dtype=np.int32))
        if view.name in ("linear", "names"):
            assert proposal is not None
            assert label in proposal.labels


def test_growing_twice_or_by_nothing_is_possible(view: View, X: csr_matrix) -> None:
    labels = every_label(X)
    grown = view.with_labels(more_labels([12, 13]))
    for again in (grown.with_labels(more_labels([])), grown.with_labels(more_labels([12]))):
        np.testing.assert_array_equal(again.log_score(Batch(wider(X)), labels), view.log_score(Batch(X), labels))
        assert {name: array.shape for name, array in again.arrays().items()} == {
            name: array.shape for name, array in grown.arrays().items()
        }


def lesson(model: LightDXML, documents: tuple[csr_matrix, csr_matrix], *, remembers: bool) -> Lesson:
    """Return a lesson of ten documents with a new feature and label, after the training documents, or alone."""
    new_X = wider(topics(10, seed=5)[0]).tolil()
    new_X[:, 42] = 3
    new_Y = np.zeros((10, N_LABELS + 1), dtype=np.float32)
    new_Y[:, N_LABELS] = 1
    X, Y = (csr_matrix(one) for one in (check_features(documents[0]), documents[1]))
    wide = csr_matrix((Y.data, Y.indices, Y.indptr), shape=(Y.shape[0], N_LABELS + 1))
    n = X.shape[0] if remembers else 0
    every = csr_matrix(vstack([wider(X)[:n], check_features(csr_matrix(new_X))]))
    labels = csr_matrix(vstack([wide[:n], csr_matrix(new_Y)]))
    data = TrainingData(every, labels, every[:0], labels[:0])
    new = np.array([N_LABELS], dtype=np.int32)
    frequency = np.append(model.model_.label_frequency, 10).astype(np.int32)
    return Lesson(data, n, remembers, new, new, np.array([3], np.int32), frequency, frequency, model.model_.config)


@pytest.mark.parametrize("remembers", [True, False])
@pytest.mark.parametrize("precision", ["as trained", "float16", "int8"])
def test_a_lesson_changes_its_labels_alone_and_can_be_stored(
    view: View,
    precision: str,
    remembers: bool,
    X: csr_matrix,
    four_views: LightDXML,
    documents: tuple[csr_matrix, csr_matrix],
) -> None:
    trained = view if precision == "as trained" else view.quantize(precision)
    learned = trained.learn(lesson(four_views, documents, remembers=remembers))
    again = type(view).restore(learned.arrays(), learned.facts(), ModelSizes(43, N_LABELS + 1))
    again.check_values()
    labels = every_label(X)
    expected = trained.log_score(Batch(X), labels)
    found = again.log_score(Batch(wider(X)), labels)
    if view.name == "names":
        # Documents of the lesson count in what names say.
        np.testing.assert_allclose(found, expected, atol=1.5)
    else:
        np.testing.assert_array_equal(found, expected)
    new_word = csr_matrix(np.eye(43, dtype=np.float32)[[42, 20]])
    scores = again.log_score(Batch(new_word), np.full((2, 1), N_LABELS, dtype=np.int32)).ravel()
    assert np.isfinite(scores).all()
    # The dense views do not know the word, and the label has no name.
    assert view.name in ("nearness", "classifier", "names") or scores[0] > scores[1]
    assert {name: array.dtype for name, array in learned.arrays().items()} == {
        name: array.dtype for name, array in trained.arrays().items()
    }
