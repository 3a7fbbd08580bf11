"""The scores of another system, blended with those of a model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml import LightDXML
from lightdxml.data.vocabulary import Concept, Vocabulary
from lightdxml.model import opinions
from lightdxml.model.model import Model
from lightdxml.model.opinions import Ranking, best_weight, combine, weight_curve
from lightdxml.model.rules import allowed_labels


def ranking(*rows: dict[int, float], width: int = 4) -> Ranking:
    """Return labels with scores, one dictionary per document."""
    labels, scores = np.full((len(rows), width), -1, dtype=np.int32), np.zeros((len(rows), width), dtype=np.float32)
    for i, row in enumerate(rows):
        labels[i, : len(row)], scores[i, : len(row)] = list(row), list(row.values())
    return labels, scores


def as_dictionaries(found: Ranking) -> list[dict[int, float]]:
    """Return labels with rounded scores, in the order of the ranking."""
    pairs = zip(found[0].tolist(), found[1].tolist(), strict=True)
    return [{j: round(score, 5) for j, score in zip(*row, strict=True) if j >= 0} for row in pairs]


def test_candidates_are_those_of_both_and_scores_are_added_with_their_weights() -> None:
    blended = combine(ranking({4: 0.8, 2: 0.4}), ranking({9: 1.0, 2: 0.6}), 0.25, 4)
    assert list(as_dictionaries(blended)[0].items()) == [(4, 0.6), (2, 0.45), (9, 0.25)]


def test_weight_0_is_the_model_alone_and_weight_1_the_other_system_alone() -> None:
    ours, theirs = ranking({4: 0.8, 2: 0.4}, {1: 0.5}), ranking({9: 0.3}, {2: 0.6, 1: 0.1})
    assert as_dictionaries(combine(ours, theirs, 0.0, 4)) == as_dictionaries(ours)
    assert as_dictionaries(combine(ours, theirs, 1.0, 4)) == as_dictionaries(theirs)


def test_a_document_that_only_one_system_scores_has_that_systems_labels() -> None:
    blended = combine(ranking({4: 0.8}, {}), ranking({}, {9: 0.5}), 0.5, 4)
    assert as_dictionaries(blended) == [{4: 0.8}, {9: 0.25}]


def test_scores_stay_below_1_on_any_scale() -> None:
    labels, scores = combine(ranking({4: 0.8}), ranking({9: 50.0, 3: 40.0}), 0.5, 2)
    assert labels.tolist() == [[9, 3]]
    assert scores.max() == 1


@pytest.fixture(scope="module")
def model() -> Model:
    """A model of four concepts, two of which have the same name."""
    names = {"urn:1": "cat", "urn:2": "dog", "urn:3": "bank", "urn:4": "bank"}
    concepts = [Concept(uri, {"en": (name,)}) for uri, name in names.items()]
    texts, labels = ["a purring cat", "a barking dog"] * 10, [["urn:1"], ["urn:2"]] * 10
    return LightDXML(dim=8, epochs=2).fit(texts, labels, vocabulary=Vocabulary(concepts)).model_


def loaded(tmp_path: Path, model: Model, *records: Any, allowed: NDArray[np.bool_] | None = None) -> opinions.Opinions:
    """Return opinions that were written to a file."""
    path = tmp_path / "scores.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return opinions.load(path, model, allowed)


def document(name: str | None, *labels: dict[str, Any]) -> dict[str, Any]:
    return {"id": name, "labels": [{"score": 0.5, **label} for label in labels]}


def test_labels_are_found_by_uri_or_name(tmp_path: Path, model: Model) -> None:
    labels = {"uri": "<urn:4>", "label": "bank"}, {"label": "dog", "score": 0.4}, {"label": "urn:1", "score": 0.3}
    found = loaded(tmp_path, model, document("a", *labels))
    assert as_dictionaries((found.labels, found.scores)) == [{3: 0.5, 1: 0.4, 0: 0.3}]


def test_unknown_labels_are_left_out_and_listed_once(tmp_path: Path, model: Model) -> None:
    unknown = {"uri": "urn:9", "label": "dog"}
    found = loaded(tmp_path, model, document("a", unknown, {"label": "cat"}), document("b", unknown))
    assert found.unknown == ["urn:9"]
    assert as_dictionaries((found.labels, found.scores)) == [{0: 0.5}, {}]


def test_a_file_of_unknown_labels_only_is_refused(tmp_path: Path, model: Model) -> None:
    with pytest.raises(ValueError, match=r"knows none of the labels in .*scores\.jsonl, such as 'cow'"):
        loaded(tmp_path, model, document("a", {"label": "cow"}))


def test_a_name_of_two_concepts_is_refused(tmp_path: Path, model: Model) -> None:
    with pytest.raises(ValueError, match="give URIs as labels"):
        loaded(tmp_path, model, document("a", {"label": "bank"}))


def test_a_repeated_label_counts_once_and_a_score_of_0_not_at_all(tmp_path: Path, model: Model) -> None:
    labels = {"uri": "urn:1", "score": 0.2}, {"label": "cat", "score": 0.7}, {"label": "dog", "score": 0}
    found = loaded(tmp_path, model, document("a", *labels))
    assert as_dictionaries((found.labels, found.scores)) == [{0: 0.7}]


def test_labels_without_names_are_numbers(tmp_path: Path) -> None:
    unnamed = LightDXML(dim=8, epochs=2).fit(["red rose", "white wine"] * 10, [[0], [1]] * 10).model_
    found = loaded(tmp_path, unnamed, document("a", {"label": 1}, {"label": 2}, {"label": "x"}))
    assert as_dictionaries((found.labels, found.scores)) == [{1: 0.5}]
    assert found.unknown == ["2", "x"]


def test_a_document_that_is_a_label_never_gets_itself(tmp_path: Path, model: Model) -> None:
    own = replace(model, never_own=True)
    found = loaded(tmp_path, own, document("urn:1", {"label": "cat"}, {"label": "dog"}))
    assert as_dictionaries((found.labels, found.scores)) == [{1: 0.5}]


@pytest.mark.parametrize("way", ["rule", "retired", "rule and retired"])
def test_labels_that_may_not_be_suggested_are_left_out(tmp_path: Path, model: Model, way: str) -> None:
    rule = {"rule": "urn:1", "retired": None, "rule and retired": "urn:3"}[way]
    limited = model if way == "rule" else replace(model, retired=np.array([0], dtype=np.int32))
    records = document("a", {"uri": "urn:1"}, {"uri": "urn:2", "score": 0.4}), document("b", {"uri": "urn:1"})
    found = loaded(tmp_path, limited, *records, allowed=allowed_labels(limited, exclude=rule))
    assert as_dictionaries((found.labels, found.scores)) == [{1: 0.4}, {}]
    assert found.unknown == []


def test_labels_that_may_not_be_suggested_take_no_place_from_others(
    tmp_path: Path, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opinions, "DEPTH", 1)
    labels = {"uri": "urn:1", "score": 0.9}, {"uri": "urn:2", "score": 0.4}
    found = loaded(tmp_path, model, document("a", *labels), allowed=allowed_labels(model, exclude="urn:1"))
    assert as_dictionaries((found.labels, found.scores)) == [{1: 0.4}]


def test_a_known_label_that_may_not_be_suggested_is_not_unknown(tmp_path: Path, model: Model) -> None:
    records = document("a", {"uri": "urn:1"}, {"uri": "urn:9"})
    found = loaded(tmp_path, model, records, allowed=allowed_labels(model, exclude="urn:1"))
    assert found.unknown == ["urn:9"]
    assert as_dictionaries((found.labels, found.scores)) == [{}]


def test_documents_are_found_by_id(tmp_path: Path, model: Model) -> None:
    found = loaded(tmp_path, model, document("a", {"label": "cat"}), document("7", {"label": "dog"}))
    places = found.places([7, "b", "a"], 3)
    assert places.tolist() == [1, -1, 0]
    assert as_dictionaries(found.of(places)) == [{1: 0.5}, {}, {0: 0.5}]
    found.check_count(5)
    with pytest.raises(ValueError, match="has ids of documents, but the documents have none"):
        found.places(None, 3)


def test_documents_without_ids_are_found_by_their_order(tmp_path: Path, model: Model) -> None:
    found = loaded(tmp_path, model, document(None, {"label": "cat"}), document(None, {"label": "dog"}))
    assert found.places(["x"], 1, first=1).tolist() == [1]
    for too_many_or_few in (lambda: found.places(None, 2, first=1), lambda: found.check_count(1)):
        with pytest.raises(ValueError, match="has 2 documents without ids, and not"):
            too_many_or_few()


def test_the_best_weight_is_found_on_any_scale() -> None:
    """Half of the documents are right in one system, half in the other."""
    Y = csr_matrix(np.tile(np.eye(10)[[0, 1]], (20, 1)))
    ours = ranking(*[{0: 0.6, 2: 0.5}, {2: 0.6, 1: 0.5}] * 20)
    for scale in (1e-3, 1, 1e3):
        theirs = ranking(*[{3: 0.3 * scale, 0: 0.2 * scale}, {1: 0.6 * scale, 3: 0.1 * scale}] * 20)
        points = weight_curve(Y, ours, theirs)
        best = best_weight(points)
        assert (points[0].weight, points[-1].weight) == (0, 1)
        assert points[0].precision["P@1"] == 50
        assert best.precision["P@1"] == 100
        assert best.gain > best.error > 0
        assert combine(ours, theirs, best.weight, 1)[0][:2].tolist() == [[0], [1]]


def test_ignored_labels_leave_the_ranking_before_weights_are_measured() -> None:
    Y, ignore = csr_matrix(np.eye(10)[[1, 1]]), csr_matrix(np.eye(10)[[0, 0]])
    points = weight_curve(Y, ranking(*[{0: 0.9, 1: 0.5}] * 2), ranking(*[{0: 0.9}] * 2), ignore)
    assert all(point.precision["P@1"] == 100 for point in points[:-1])


def test_another_system_that_says_nothing_has_weight_0() -> None:
    Y = csr_matrix(np.eye(10)[[1, 2]])
    points = weight_curve(Y, ranking({1: 0.5}, {3: 0.5}), ranking({}, {}))
    assert best_weight(points).weight == 0
    assert all(point.gain == point.error == 0 for point in points)
