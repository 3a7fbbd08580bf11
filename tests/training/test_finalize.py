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
from lightdxml.model.blend import TailShift
from lightdxml.model.model import predict
from lightdxml.persistence import arrays as stored
from lightdxml.persistence.arrays import Arrays
from lightdxml.training import choose
from lightdxml.training.run import Run, TrainingData
from lightdxml.validation import check_features
from lightdxml.views.base import Batch, Contributions, ModelSizes, NewLabels, Proposal, View, ViewMemory, expect
from lightdxml.views.registry import VIEWS
from tests.support.configs import FOUR_VIEWS, SMALL, small
from tests.support.data import noisy_topics, topics, with_rare_label
from tests.support.trainings import bits, train

Documents = tuple[csr_matrix, csr_matrix]


@dataclass(frozen=True)
class PopularityView:
    """A hypothetical fifth view: how frequent a label is, whatever the document."""

    name: ClassVar[str] = "popularity"
    about: ClassVar[str] = "relative frequency of labels"
    requires: ClassVar[tuple[str, ...]] = ()

    log_frequency: NDArray[np.float32]

    def propose(self, batch: Batch, known: NDArray[np.int32]) -> Proposal | None:
        return None

    def log_score(self, batch: Batch, labels: NDArray[np.int32]) -> NDArray[np.float32]:
        return self.log_frequency[labels]

    def contributions(self, batch: Batch, label: int) -> Contributions:
        return Contributions(float(self.log_frequency[label]), np.zeros(batch.X.nnz))

    def arrays(self) -> Arrays:
        return {"popularity.log_frequency": self.log_frequency}

    def facts(self) -> dict[str, Any]:
        return {}

    @classmethod
    def restore(cls, arrays: Arrays, facts: dict[str, Any], sizes: ModelSizes) -> PopularityView:
        name = "popularity.log_frequency"
        return cls(expect(arrays[name], name, (sizes.n_labels,), np.float32))

    def check_values(self) -> None: ...

    def quantize(self, precision: str) -> PopularityView:
        return self

    def with_labels(self, new: NewLabels) -> PopularityView:
        rarest = np.full(new.n_labels - len(self.log_frequency), self.log_frequency.min())
        return PopularityView(np.append(self.log_frequency, rarest))

    def summary(self) -> str:
        return f"{len(self.log_frequency)} frequencies"

    @classmethod
    def memory(cls, data: TrainingData, config: Config, spilled: bool) -> ViewMemory:
        return ViewMemory()

    @classmethod
    def train(cls, run: Run, is_useful: Callable[[View], bool]) -> PopularityView | None:
        frequency = np.maximum(run.data.label_frequency, 1)
        return cls(np.log(frequency / frequency.max()).astype(np.float32))

    def refit(self, run: Run) -> PopularityView:
        return self


@pytest.fixture
def _fifth_view(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VIEWS, "popularity", PopularityView)


@pytest.mark.usefixtures("_fifth_view")
def test_a_new_view_is_weighted_stored_restored_explained_and_listed(tmp_path: Path) -> None:
    settings = SMALL | {"epochs": 1, "dense.learning_rate": 1e-6, "linear.proposals": 12, "blend.min_documents": 10}
    # The linear view learns nothing here, and the labels are skewed: popularity is worth a weight.
    blind = settings | {"linear.costs": (1e-6,), "linear.prior": 0, "blend.gamma": 0.5}
    trained = LightDXML(options=blind).fit(*noisy_topics(), dev=noisy_topics(100, seed=1))
    assert trained.model_.blend.weights["popularity"] > 0
    (entry,) = (entry for entry in trained.history_ if entry["phase"] == "share")
    assert entry["view"] == "popularity"
    assert entry["gain"] > 0.2
    trained.save(tmp_path / "model")
    again = load(tmp_path / "model")
    view = again.model_.views["popularity"]
    assert isinstance(view, PopularityView)
    assert view.summary() == "12 frequencies"
    X, _ = noisy_topics(20, seed=2)
    for found, expected in zip(again.rank(X, 5), trained.rank(X, 5), strict=True):
        np.testing.assert_array_equal(found, expected)
    for one in again.explain(X[:1], 3)[0]:
        assert one.base + sum(value for _, value in one.parts) == pytest.approx(one.score, abs=1e-5)


@pytest.mark.usefixtures("_fifth_view")
def test_a_new_view_needs_no_linear_view() -> None:
    settings = SMALL | {"epochs": 1, "dense.learning_rate": 1e-6, "linear": False, "blend.min_documents": 10}
    trained = LightDXML(options=settings).fit(*noisy_topics(), dev=noisy_topics(100, seed=1))
    assert trained.model_.blend.weights["popularity"] > 0
    assert set(trained.model_.views) <= {"nearness", "classifier", "popularity"}


@pytest.mark.usefixtures("_fifth_view")
def test_a_new_view_that_adds_nothing_is_dropped(documents: Documents, tmp_path: Path) -> None:
    trained = LightDXML(options=SMALL | {"epochs": 1, "blend.min_documents": 10}).fit(*documents)
    (entry,) = (entry for entry in trained.history_ if entry["phase"] == "share")
    assert (entry["view"], entry["share"]) == ("popularity", 0)
    assert "popularity" not in trained.model_.views
    assert "popularity" not in trained.model_.blend.weights
    trained.save(tmp_path / "model")
    assert not [name for name in stored.read(tmp_path / "model" / "arrays.safetensors") if "popularity" in name]


def test_a_model_of_a_view_that_does_not_exist_is_refused(
    documents: Documents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(VIEWS, "popularity", PopularityView)
    LightDXML(options=SMALL | {"epochs": 1}).fit(*documents).save(tmp_path / "model")
    monkeypatch.delitem(VIEWS, "popularity")
    with pytest.raises(ValueError, match="has a view 'popularity' that this version of lightdxml does not know"):
        load(tmp_path / "model")


def test_weights_are_chosen_on_validation_documents_without_a_loss_of_precision() -> None:
    config = changed(small(), {"epochs": 1, "blend.min_documents": 100})
    model, history = train(topics(150), config, dev=topics(100, seed=1))
    (entry,) = (entry for entry in history if entry["phase"] == "blend")
    assert len(entry["grid"]) == len(choose.GRID_BETAS) * len(choose.GRID_GAMMAS)
    for k in choose.CUTS:
        best = max(measured[f"P@{k}"] for _, measured in entry["grid"])
        assert entry[f"P@{k}"] >= best - 1
    beta, gamma = entry["beta"], entry["gamma"]
    expected = {name: weight for name, weight in choose.weights_of(beta, gamma, {}).items() if weight}
    assert {name: weight for name, weight in model.blend.weights.items() if weight} == expected


def test_a_handful_of_documents_chooses_nothing(documents: Documents) -> None:
    model, history = train(documents, small(epochs=1))
    (entry,) = (entry for entry in history if entry["phase"] == "blend")
    assert len(entry["grid"]) == 1
    assert model.blend.weights == pytest.approx({"classifier": 0.12, "nearness": 0.48, "linear": 0.4})
    assert model.shift == TailShift(0.0, 0.2)
    assert train(documents, small(epochs=1, linear=False))[0].shift == TailShift(0.0, 0.02)


def test_the_share_of_a_view_is_chosen_with_the_trees_that_ship() -> None:
    """It once was chosen with one tree and scaled for the others."""
    config = changed(Config(), FOUR_VIEWS | {"tree.max_trees": 3, "blend.beta": None, "blend.gamma": 0.5})
    model, history = train(topics(200), config, dev=topics(100, seed=1))
    trial, kept = (entry for entry in history if entry["phase"] == "share")
    assert [share for share, _ in kept["curve"]] == list(choose.SHARES)
    assert model.views["tree"].facts() == {"trees": 3}
    assert model.blend.weights["tree"] == kept["share"] * model.blend.weights["linear"]
    assert trial["curve"] != kept["curve"]


@pytest.mark.parametrize("settings", [{"blend.min_gain": 100}, {"blend.min_errors": 1e6}], ids=str)
def test_a_view_that_adds_too_little_is_dropped(settings: dict[str, float]) -> None:
    """Too few points, or no more than chance."""
    config = changed(Config(), FOUR_VIEWS | settings)
    model, history = train(noisy_topics(200), config, dev=noisy_topics(100, seed=1))
    (entry,) = (entry for entry in history if entry["phase"] == "share")
    assert entry["share"] == 0
    assert entry["error"] > 0
    assert "tree" not in model.views
    assert "tree" not in model.blend.weights


@pytest.mark.parametrize(
    ("settings", "views"),
    [
        ({"blend.beta": 0.0}, ["nearness", "linear"]),
        ({"blend.beta": 1.0}, ["nearness", "classifier", "linear"]),
        ({"blend.gamma": 1.0}, ["linear"]),
        ({"blend.gamma": 0.0, "blend.beta": 0.0}, ["nearness"]),
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
