"""The names view: labels whose names occur in a document, with and without training documents."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml import LightDXML
from lightdxml.data.vocabulary import Concept, Vocabulary
from lightdxml.views.base import Batch
from lightdxml.views.names import scorer
from lightdxml.views.names.model import NamesView
from lightdxml.views.names.scorer import Matches

ANIMALS = ["cat", "dog", "cow", "horse", "sheep", "goat", "duck", "goose", "mouse", "hamster"]


def matches(coverage: list[float], weight: list[float], frequency: list[int]) -> Matches:
    n = len(coverage)
    return Matches(
        np.array(coverage, np.float32),
        np.array(weight, np.float32),
        np.zeros(n, np.uint8),
        np.zeros(n, np.uint8),
        np.array(frequency, np.uint8),
        np.full(n, -3, np.float32),
    )


def test_the_scorer_learns_that_whole_names_are_right() -> None:
    rng = np.random.default_rng(0)
    coverage = rng.choice([0.0, 0.5, 1.0], 4000)
    right = rng.random(4000) < np.where(coverage == 1, 0.8, np.where(coverage == 0.5, 0.2, 0.01))
    found = scorer.fit(matches(coverage.tolist(), (0.2 * coverage).tolist(), [0] * 4000), right)
    odds = found.log_odds(matches([0, 0.5, 1], [0, 0.1, 0.2], [0, 0, 0]))
    np.testing.assert_allclose(1 / (1 + np.exp(-odds)), [0.01, 0.2, 0.8], atol=0.03)


def test_the_scorer_tells_groups_of_labels_apart_where_nothing_matches() -> None:
    right = np.array([False] * 90 + [True] * 10 + [False] * 10 + [True] * 90)
    found = scorer.fit(matches([0.0] * 200, [0.0] * 200, [0] * 100 + [6] * 100), right)
    odds = found.log_odds(matches([0, 0, -np.inf], [0, 0, 0], [0, 6, 6]))
    assert odds[0] < -1
    assert odds[1] > 1
    assert np.isfinite(odds[2])


@pytest.fixture(scope="module", name="model")
def farm() -> LightDXML:
    """Documents about two animals each, with noise; no training document has the label hamster."""
    rng = np.random.default_rng(1)
    noise = [f"noise{i}" for i in range(200)]
    texts, labels = [], []
    for _ in range(600):
        pair = rng.choice(9, 2, replace=False)
        texts.append(" ".join([*(ANIMALS[i] for i in pair), *rng.choice(noise, 12)]))
        labels.append([ANIMALS[i] for i in pair])
    return LightDXML("fast", options={"validation_fraction": 0.2}).fit(texts, labels, label_names=ANIMALS)


def test_a_label_without_training_documents_is_found_by_its_name(model: LightDXML) -> None:
    assert model.model_.label_frequency[9] == 0
    assert "hamster" in model.predict("my hamster noise1 noise2", k=2)


def test_explanations_name_the_words_of_the_name_and_add_up(model: LightDXML) -> None:
    view = model.model_.views["names"]
    assert isinstance(view, NamesView)
    found = next(one for one in model.explain("my hamster noise1", k=3) if one.label == "hamster")
    assert found.parts[0][0] == "hamster"
    assert found.base + sum(value for _, value in found.parts) == pytest.approx(found.score, rel=1e-4)


def test_names_can_be_left_out() -> None:
    texts, labels = ["a cat", "a dog"] * 20, [["cat"], ["dog"]] * 20
    trained = LightDXML("fast", names=False).fit(texts, labels)
    assert "names" not in trained.model_.views


def test_a_label_with_one_name_scores_the_same_next_to_one_with_many(model: LightDXML) -> None:
    view = model.model_.views["names"]
    assert isinstance(view, NamesView)
    # The last two names belong to one label.
    both = replace(view, labels=np.array([*range(9), 8], np.int32), frequency=view.frequency[:9])
    X = csr_matrix(np.eye(model.n_features_in_, dtype=np.float32))
    labels = np.tile(np.arange(9, dtype=np.int32), (X.shape[0], 1))
    together = both.log_score(Batch(X), labels)
    np.testing.assert_array_equal(together[:, :8], view.log_score(Batch(X), labels[:, :8]))
    assert model.model_.vectorizer is not None
    hamster = model.model_.vectorizer.vocabulary.index("hamster")
    assert together[hamster, 8] > together[:, 8].min(), "the second name of the label occurs"


def test_a_vocabulary_gives_names_and_labels_without_documents() -> None:
    concepts = [Concept(f"urn:{name}", {"en": (name, f"{name} (animal)")}, f"N{i}") for i, name in enumerate(ANIMALS)]
    rng = np.random.default_rng(2)
    pairs = [rng.choice(9, 2, replace=False) for _ in range(100)]
    texts = [" ".join(["the", *(ANIMALS[i] for i in pair)]) for pair in pairs]
    labels = [[f"urn:{ANIMALS[i]}" for i in pair] for pair in pairs]
    trained = LightDXML("fast").fit(texts, labels, vocabulary=Vocabulary(concepts))
    assert trained.model_.n_labels == 10
    assert trained.predict("a hamster", k=1) == ["urn:hamster"]
    assert trained.model_.label(9) == ("urn:hamster", "hamster", "N9")
    with pytest.raises(ValueError, match="the vocabulary has none of the labels in Y, such as 'x'"):
        LightDXML("fast").fit(texts, [["x"]] * 100, vocabulary=Vocabulary(concepts))
