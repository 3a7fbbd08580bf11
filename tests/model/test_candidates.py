"""The labels that documents are scored on."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml import LightDXML
from lightdxml.model.candidates import extended, find_candidates
from lightdxml.validation import check_features
from lightdxml.views.base import Batch
from tests.support.data import topics


@pytest.fixture(scope="module", name="X")
def unseen_documents() -> csr_matrix:
    return check_features(topics(40, seed=3)[0])


def test_every_view_scores_every_candidate_and_none_occurs_twice(four_views: LightDXML, X: csr_matrix) -> None:
    views = four_views.model_.views
    candidates = find_candidates(views, Batch(X))
    assert list(candidates.log_scores) == ["nearness", "linear", "names", "classifier", "tree"]
    there = candidates.labels >= 0
    assert (there.sum(axis=1) > 8).all(), "the linear view adds to the shortlist"
    for row in candidates.labels:
        assert len(np.unique(row[row >= 0])) == np.sum(row >= 0)
    for name, view in views.items():
        expected = view.log_score(Batch(X), candidates.labels)
        np.testing.assert_array_equal(candidates.log_scores[name][there], expected[there])


@pytest.mark.parametrize("added", ["linear", "tree", "names"])
def test_adding_a_view_gives_what_all_views_give_at_once(four_views: LightDXML, X: csr_matrix, added: str) -> None:
    # The last one to propose candidates, or one that proposes none.
    views = {name: view for name, view in four_views.model_.views.items() if name in ("nearness", "classifier", added)}
    before = {name: view for name, view in views.items() if name != added}
    batch = Batch(X)
    found = extended(find_candidates(before, batch), before, added, views[added], batch)
    expected = find_candidates(views, batch)
    np.testing.assert_array_equal(found.labels, expected.labels)
    assert set(found.log_scores) == set(expected.log_scores)
    there = found.labels >= 0
    for name, log_scores in found.log_scores.items():
        np.testing.assert_array_equal(log_scores[there], expected.log_scores[name][there])


def test_a_view_that_proposes_nothing_alone_finds_no_candidates(four_views: LightDXML, X: csr_matrix) -> None:
    candidates = find_candidates({"tree": four_views.model_.views["tree"]}, Batch(X))
    assert candidates.labels.shape == (40, 0)


def test_a_batch_computes_shared_values_once(X: csr_matrix) -> None:
    batch, calls = Batch(X), []
    for _ in range(3):
        assert batch.shared("key", lambda: calls.append(1) or 5) == 5  # type: ignore[func-returns-value]
    assert len(calls) == 1
    assert len(batch) == 40
