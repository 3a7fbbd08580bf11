"""What comes after the cycle: further views, their weights, the refit, and a new view in a few lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml import LightDXML, load
from lightdxml.config import Config, changed
from lightdxml.model.blend import LogisticBlend, TailShift
from lightdxml.model.model import predict
from lightdxml.persistence import arrays as stored
from lightdxml.persistence.arrays import Arrays
from lightdxml.training import logistic
from lightdxml.training.run import Run, TrainingData
from lightdxml.validation import check_features
from lightdxml.views.base import Batch, Contributions, ModelSizes, NewLabels, Proposal, View, ViewMemory, expect
from lightdxml.views.lesson import Lesson
from lightdxml.views.registry import VIEWS
from tests.support.configs import FOUR_VIEWS, SMALL, small
from tests.support.data import noisy_topics, topics, with_rare_label
from tests.support.trainings import bits, train

Documents = tuple[csr_matrix, csr_matrix]


@dataclass(frozen=True)
class KeywordView:
    """A hypothetical view: a document has the label whose keyword, one feature, it has."""

    name: ClassVar[str] = "keyword"
    about: ClassVar[str] = "keywords of labels"
    requires: ClassVar[tuple[str, ...]] = ()

    keywords: NDArray[np.int32]

    def learn(self, lesson: Lesson) -> KeywordView:
        return self

    def propose(self, batch: Batch, known: NDArray[np.int32]) -> Proposal | None:
        return None

    def log_score(self, batch: Batch, labels: NDArray[np.int32]) -> NDArray[np.float32]:
        found: NDArray[np.float32] = np.where(
            self._has(batch)[np.arange(len(batch))[:, None], labels], np.float32(-0.1), np.float32(-3)
        )
        return found

    def contributions(self, batch: Batch, label: int) -> Contributions:
        return Contributions(-3.0, 2.9 * (batch.X.indices == self.keywords[label]).astype(np.float64))

    def _has(self, batch: Batch) -> NDArray[np.bool_]:
        """Return which keywords occur, documents × labels."""
        found: NDArray[np.bool_] = csr_matrix(batch.X).toarray()[:, self.keywords] > 0
        return found

    def arrays(self) -> Arrays:
        return {"keyword.keywords": self.keywords}

    def facts(self) -> dict[str, Any]:
        return {}

    @classmethod
    def restore(cls, arrays: Arrays, facts: dict[str, Any], sizes: ModelSizes) -> KeywordView:
        name = "keyword.keywords"
        return cls(expect(arrays[name], name, (sizes.n_labels,), np.int32))

    def check_values(self) -> None: ...

    def quantize(self, precision: str) -> KeywordView:
        return self

    def with_labels(self, new: NewLabels) -> KeywordView:
        return KeywordView(np.append(self.keywords, np.zeros(new.n_labels - len(self.keywords), dtype=np.int32)))

    def summary(self) -> str:
        return f"{len(self.keywords)} keywords"

    @classmethod
    def memory(cls, data: TrainingData, config: Config, spilled: bool) -> ViewMemory:
        return ViewMemory()

    @classmethod
    def train(cls, run: Run, is_useful: Callable[[View], bool]) -> KeywordView | None:
        return cls(np.arange(run.data.n_labels, dtype=np.int32))

    def refit(self, run: Run) -> KeywordView:
        return self


@pytest.fixture
def _fifth_view(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VIEWS, "keyword", KeywordView)


@pytest.mark.usefixtures("_fifth_view")
def test_a_new_view_is_weighted_stored_restored_explained_and_listed(tmp_path: Path) -> None:
    settings = SMALL | {"epochs": 1, "dense.learning_rate": 1e-6, "linear.proposals": 12, "blend.min_documents": 10}
    # Of few validation documents that tell little, every view that does no harm gets a weight.
    blind = settings | {"linear.costs": (1e-6,), "linear.prior": 0, "blend.min_documents": 1000}
    trained = LightDXML(options=blind).fit(*noisy_topics(), dev=noisy_topics(100, seed=1))
    assert trained.model_.blend.weights["keyword"] > 0
    entry = next(one for one in trained.history_ if one["phase"] == "view" and one["view"] == "keyword")
    assert entry["gain"] >= -entry["error"]
    trained.save(tmp_path / "model")
    again = load(tmp_path / "model")
    view = again.model_.views["keyword"]
    assert isinstance(view, KeywordView)
    assert view.summary() == "12 keywords"
    X, _ = noisy_topics(20, seed=2)
    for found, expected in zip(again.rank(X, 5), trained.rank(X, 5), strict=True):
        np.testing.assert_array_equal(found, expected)
    for one in again.explain(X[:1], 3)[0]:
        assert one.base + sum(value for _, value in one.parts) == pytest.approx(one.score, abs=1e-5)


@pytest.mark.usefixtures("_fifth_view")
def test_a_new_view_needs_no_linear_view() -> None:
    settings = SMALL | {"epochs": 1, "dense.learning_rate": 1e-6, "linear": False, "blend.min_documents": 10}
    trained = LightDXML(options=settings).fit(*noisy_topics(), dev=noisy_topics(100, seed=1))
    assert trained.model_.blend.weights["keyword"] > 0
    assert set(trained.model_.views) <= {"nearness", "classifier", "keyword"}


@pytest.mark.usefixtures("_fifth_view")
def test_a_new_view_that_adds_nothing_is_dropped(documents: Documents, tmp_path: Path) -> None:
    settings = SMALL | {"epochs": 1, "blend.few_documents": 10, "validation_fraction": 0.2}
    trained = LightDXML(options=settings).fit(*documents)
    assert "keyword" in [entry["view"] for entry in trained.history_ if entry["phase"] == "view"]
    assert "keyword" not in trained.model_.views
    assert "keyword" not in trained.model_.blend.weights
    trained.save(tmp_path / "model")
    assert not [name for name in stored.read(tmp_path / "model" / "arrays.safetensors") if "keyword" in name]


def test_a_model_of_a_view_that_does_not_exist_is_refused(
    documents: Documents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(VIEWS, "keyword", KeywordView)
    LightDXML(options=SMALL | {"epochs": 1}).fit(*documents).save(tmp_path / "model")
    monkeypatch.delitem(VIEWS, "keyword")
    with pytest.raises(ValueError, match="has a view 'keyword' that this version of lightdxml does not know"):
        load(tmp_path / "model")


def test_weights_are_fitted_to_validation_documents() -> None:
    config = changed(small(), {"epochs": 1})
    model, history = train(noisy_topics(150), config, dev=noisy_topics(100, seed=1))
    (entry,) = (entry for entry in history if entry["phase"] == "blend")
    assert isinstance(model.blend, LogisticBlend)
    assert entry["weights"] == model.blend.to_json()
    assert model.blend != logistic.usual(list(model.blend.slopes))
    usual, _ = train(noisy_topics(150), changed(config, {"blend.fit": False}), dev=noisy_topics(100, seed=1))
    assert usual.blend == logistic.usual(["nearness", "classifier", "linear"])


def test_without_validation_documents_nothing_is_chosen(documents: Documents) -> None:
    model, _ = train(documents, small(epochs=1, validation_fraction=0.0))
    assert model.blend == logistic.usual(["nearness", "classifier", "linear"])


def test_few_validation_documents_choose_a_usual_shift(documents: Documents) -> None:
    assert train(documents, small(epochs=1))[0].shift == TailShift(0.0, 0.2)
    assert train(documents, small(epochs=1, linear=False))[0].shift == TailShift(0.0, 0.02)


def test_a_view_is_measured_with_the_trees_that_ship() -> None:
    """It once was measured with one tree, and weighted for the others."""
    config = changed(Config(), FOUR_VIEWS | {"tree.max_trees": 3, "blend.fit": True, "blend.min_errors": 0})
    model, history = train(noisy_topics(200), config, dev=noisy_topics(100, seed=1))
    trial, kept = (entry for entry in history if entry["phase"] == "view" and entry["view"] == "tree")
    assert model.views["tree"].facts() == {"trees": 3}
    assert trial["gain"] != kept["gain"]


@pytest.mark.parametrize("settings", [{"blend.min_gain": 100}, {"blend.min_errors": 1e6}], ids=str)
def test_a_view_that_adds_too_little_is_dropped(settings: dict[str, float]) -> None:
    """Too few points, or no more than chance."""
    config = changed(Config(), FOUR_VIEWS | {"blend.fit": True, "blend.few_documents": 10} | settings)
    model, history = train(noisy_topics(200), config, dev=noisy_topics(100, seed=1))
    (entry,) = (entry for entry in history if entry["phase"] == "view" and entry["view"] == "tree")
    assert entry["error"] > 0
    assert "tree" not in model.views
    assert "tree" not in model.blend.weights


@pytest.mark.parametrize(
    ("settings", "views"),
    [
        ({"blend.fit": False}, ["nearness", "classifier", "linear"]),
        ({"linear": False, "blend.beta": 0.0}, ["nearness"]),
        ({"linear": False, "blend.beta": 1.0}, ["nearness", "classifier"]),
    ],
    ids=str,
)
def test_views_of_weight_0_are_neither_kept_nor_evaluated(
    documents: Documents, settings: dict[str, Any], views: list[str]
) -> None:
    """Nearness stays without a weight: it finds the shortlist that the classifier scores."""
    model, _ = train(documents, changed(small(epochs=1), settings))
    assert list(model.views) == views
    labels, _ = predict(model, check_features(documents[0]), 3)
    assert (labels[:, 0] >= 0).all()


def test_held_out_documents_are_learned_after_everything_is_chosen(documents: Documents) -> None:
    held = int(np.random.default_rng(0).permutation(300)[0])
    X, Y = with_rare_label(*documents, held)
    for refit in (True, False):
        model, history = train((X, Y), small(epochs=1, refit=refit))
        labels, _ = predict(model, check_features(X[held]), 4)
        assert (12 in labels) == refit
        assert (12 in model.views["nearness"].arrays()["nearness.labels"]) == refit
        assert any(entry["phase"].startswith("refit") for entry in history) == refit
        assert model.n_documents == 300
        assert model.label_frequency[12] == 1


def test_a_refit_changes_no_choice(documents: Documents) -> None:
    settings = changed(Config(), FOUR_VIEWS)
    (one, _), (other, _) = (train(documents, changed(settings, {"refit": refit})) for refit in (True, False))
    assert one.blend == other.blend
    assert one.metrics == other.metrics
    assert one.shift == other.shift
    assert bits(one) != bits(other)


def test_a_dev_part_is_not_learned(documents: Documents) -> None:
    model, history = train(documents, small(epochs=1), dev=topics(30, seed=1))
    assert not any(entry["phase"].startswith("refit") for entry in history)
    assert model.n_documents == 300


def test_without_validation_documents_the_training_documents_choose(documents: Documents) -> None:
    model, history = train(documents, small(epochs=1, validation_fraction=0.0))
    assert not any(entry["phase"].startswith("refit") for entry in history)
    assert model.metrics["P@1"] > 0
