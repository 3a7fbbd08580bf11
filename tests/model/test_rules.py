"""Rules that say which labels may be suggested."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from lightdxml import LightDXML
from lightdxml.data.vocabulary import Concept, Vocabulary
from lightdxml.model import model as models
from lightdxml.model.rules import allowed_labels
from tests.support.data import topics

N_LABELS = 12


@pytest.fixture(params=["four_views", "paper_model"])
def model(request: pytest.FixtureRequest) -> LightDXML:
    found: LightDXML = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=["all are scored", "the views propose some"])
def _ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Score all allowed labels, or those that the views propose: what happens with few and with many of them."""
    if request.param == "the views propose some":
        monkeypatch.setattr(models, "_FEW", 0)


def labels_of(ranked: NDArray[np.int32]) -> set[int]:
    return set(ranked[ranked >= 0].tolist())


@pytest.mark.usefixtures("_ways")
@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ({"include": [3, 7, 8]}, {3, 7, 8}),
        ({"exclude": [0, 1, 2, 3]}, set(range(4, N_LABELS))),
        ({"include": [3, 7, 8], "exclude": [7]}, {3, 8}),
        ({"include": 5}, {5}),
    ],
)
def test_only_allowed_labels_are_suggested_and_the_best_of_them(
    model: LightDXML, rules: dict[str, Any], allowed: set[int]
) -> None:
    X, _ = topics(40, seed=3)
    every, scores = model.rank(X, N_LABELS)
    found, found_scores = model.rank(X, N_LABELS, **rules)
    assert labels_of(found) == allowed
    for i in range(40):
        expected = dict(zip(every[i].tolist(), scores[i].tolist(), strict=True))
        there = [j for j in found[i].tolist() if j >= 0]
        assert [j for j in there if j in expected] == [j for j in every[i].tolist() if j in allowed]
        # Without labels that are left out, a label may rank higher, and is more likely then.
        assert all(
            score >= expected[j]
            for j, score in zip(found[i].tolist(), found_scores[i].tolist(), strict=True)
            if j in expected and j >= 0
        )
    assert (model.rank(X, 1, **rules)[0] >= 0).all(), "every document has an allowed label"


@pytest.mark.usefixtures("_ways")
def test_one_document_at_a_time_gets_the_bits_of_a_batch(model: LightDXML) -> None:
    X, _ = topics(30, seed=3)
    labels, scores = model.rank(X, 5, exclude=[1, 2, 11])
    for i in range(30):
        one, score = model.rank(X[i], 5, exclude=[1, 2, 11])
        np.testing.assert_array_equal(one[0], labels[i])
        np.testing.assert_array_equal(score[0], scores[i])


def test_few_labels_are_scored_in_chunks(model: LightDXML, monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = topics(30, seed=3)
    whole = model.rank(X, 2, include=[1, 2, 11])
    monkeypatch.setattr(models, "_CELLS", 10)
    for found, expected in zip(model.rank(X, 2, include=[1, 2, 11]), whole, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_retired_labels_are_never_suggested(model: LightDXML) -> None:
    X, _ = topics(40, seed=3)
    retired = LightDXML()
    retired.model_ = replace(model.model_, retired=np.array([2, 5], dtype=np.int32))
    assert labels_of(retired.rank(X, N_LABELS)[0]) == set(range(N_LABELS)) - {2, 5}
    assert labels_of(retired.rank(X, N_LABELS, include=[2, 3])[0]) == {3}
    with pytest.raises(ValueError, match="the rules leave no label that could be suggested"):
        retired.rank(X, 1, include=[5])


def test_rules_hold_for_names_scores_and_explanations(four_views: LightDXML) -> None:
    X, _ = topics(10, seed=3)
    assert {name for row in four_views.predict(X, k=3, include=["word3", "word4"]) for name in row} <= {
        "word3",
        "word4",
    }
    scores = four_views.scores(X, k=3, exclude=["word3"])
    assert scores.nnz
    assert 3 not in scores.indices
    ranked, values = four_views.rank(X, 2, exclude="word3")
    for i, row in enumerate(four_views.explain(X, k=2, exclude="word3")):
        assert [one.label for one in row] == [f"word{j}" for j in ranked[i].tolist() if j >= 0]
        for one, score in zip(row, values[i].tolist(), strict=False):
            assert one.score == score
            assert one.base + sum(value for _, value in one.parts) == pytest.approx(score, rel=1e-3)


def test_a_document_that_is_a_label_never_gets_it_although_it_is_included(four_views: LightDXML) -> None:
    X, _ = topics(3, seed=3)
    allowed = allowed_labels(four_views.model_, include=[1, 2])
    own = np.array([1, 2, -1], dtype=np.int32)
    found, _ = models.predict(four_views.model_, X, 2, own=own, allowed=allowed)
    assert 1 not in found[0]
    assert 2 not in found[1]
    assert labels_of(found[2]) == {1, 2}


def test_labels_are_named_by_uri_or_preferred_name(four_views: LightDXML) -> None:
    vocabulary = Vocabulary([Concept(f"word{i}", {"en": (f"name {i}",)}) for i in range(N_LABELS)])
    named = replace(four_views.model_, vocabulary=vocabulary)
    for rule in ("word4", "<word4>", "name 4", 4):
        allowed = allowed_labels(named, include=rule)
        assert allowed is not None
        assert np.flatnonzero(allowed).tolist() == [4]
    assert allowed_labels(named) is None


@pytest.mark.parametrize("rule", ["urn:none", 12, -1, "12"])
def test_unknown_labels_are_refused_in_one_sentence(model: LightDXML, rule: Any) -> None:
    expected = f"there is no label {rule!r} to exclude: give URIs, names or ids of labels of the model"
    with pytest.raises(ValueError, match=expected):
        model.predict(topics(1)[0], exclude=[rule])


def test_ids_of_labels_without_names_may_be_text(paper_model: LightDXML) -> None:
    assert paper_model.predict(topics(1)[0], k=5, include=["7"]) == [[7]]


def test_rules_that_leave_nothing_are_refused(model: LightDXML) -> None:
    nothing: list[dict[str, Any]] = [{"include": []}, {"include": [1], "exclude": [1]}, {"exclude": range(N_LABELS)}]
    for rules in nothing:
        with pytest.raises(ValueError, match="the rules leave no label that could be suggested"):
            model.predict(topics(1)[0], **rules)
