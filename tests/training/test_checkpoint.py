"""Trainings that are stopped at every kind of moment end at the same bits."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lightdxml import LightDXML
from lightdxml import arrays as stored
from lightdxml.config import Config
from lightdxml.model import predict
from lightdxml.progress import Progress
from lightdxml.training import checkpoint
from lightdxml.training.checkpoint import FolderKeeper, Interrupted
from lightdxml.training.cycle import DivergedError, Result, plan, train
from lightdxml.training.state import State
from tests.training.test_cycle import SMALL, topics

X, Y = topics(120)
KINDS: list[dict[str, Any]] = [{}, {"relu": True, "residual": True, "frequent_labels": 2}, {"index": "hnsw"}]


class Stopping(FolderKeeper):
    """A keeper that is asked to stop at its n-th look."""

    def __init__(self, folder: Path, at: int) -> None:
        super().__init__(folder, 1e9, "mark", resume=True)
        self.looks, self.at = 0, at

    def look(self) -> None:
        self.looks += 1
        if self.looks == self.at:
            self.wanted = signal.SIGTERM

    def keep(self, state: State) -> None:
        self.look()
        super().keep(state)

    def check(self) -> None:
        self.look()
        super().check()


def run(config: Config, keeper: FolderKeeper | None = None) -> Result:
    return train(X, Y, X[:20], Y[:20], config, Progress(show=False), None, keeper)


def bits(result: Result) -> list[bytes]:
    model = result.model
    arrays = [model.encoder.vectors, model.classifier, model.shortlist.vectors, np.array(model.beta)]
    return [array.tobytes() for array in (*arrays, *predict(model, X, 3))]


@pytest.mark.parametrize("settings", KINDS, ids=str)
def test_a_training_stopped_again_and_again_ends_at_the_same_bits(tmp_path: Path, settings: dict[str, Any]) -> None:
    config = Config(**(SMALL | {"e_model": 3, "e_label": 2} | settings))
    expected = run(config)
    (tmp_path / "kept").mkdir()
    stops = 0
    for look in range(1, 200):
        try:
            result = run(config, Stopping(tmp_path / "kept", 1 + look % 9))
            break
        except Interrupted as stopped:
            assert stopped.signal == signal.SIGTERM
            stops += 1
    assert stops > 5
    assert bits(result) == bits(expected)
    phases = [entry["phase"] for entry in result.history]
    assert phases == [entry["phase"] for entry in expected.history]


def test_no_more_than_two_checkpoints_are_kept(tmp_path: Path) -> None:
    run(Config(**(SMALL | {"e_model": 2})), FolderKeeper(tmp_path, 0, "mark", resume=False))
    assert len(list(tmp_path.glob("0*"))) == 2
    checkpoint.remove(tmp_path)
    assert not tmp_path.exists()


def test_other_data_or_settings_are_refused(tmp_path: Path) -> None:
    trained = LightDXML(**SMALL).fit(X, Y, checkpoint=tmp_path / "kept", checkpoint_every=0)
    with pytest.raises(ValueError, match="holds the checkpoint of a training"):
        LightDXML(**SMALL).fit(X, Y, checkpoint=tmp_path / "kept")
    with pytest.raises(ValueError, match="other data or settings"):
        LightDXML(**SMALL, seed=1).fit(X, Y, checkpoint=tmp_path / "kept", resume=True)
    with pytest.raises(ValueError, match="other data or settings"):
        LightDXML(**SMALL).fit(X[1:], Y[1:], checkpoint=tmp_path / "kept", resume=True)
    again = LightDXML(**SMALL).fit(X, Y, checkpoint=tmp_path / "kept", resume=True)
    np.testing.assert_array_equal(again.rank(X)[1], trained.rank(X)[1])


@pytest.mark.parametrize("name", ["shortlists", "order", "best.labels"])
def test_a_checkpoint_of_documents_and_labels_that_are_not_there_is_refused(tmp_path: Path, name: str) -> None:
    """Whoever can write a checkpoint can write its checksum."""
    config = Config(**(SMALL | {"e_model": 2}))
    with pytest.raises(Interrupted):
        run(config, Stopping(tmp_path, 6))
    place = max(tmp_path.glob("0*"))
    arrays = {key: np.array(array) for key, array in stored.read(place / "arrays.safetensors").items()}
    assert arrays[name].size
    arrays[name].flat[-1] = 10_000
    facts = json.loads((place / "state.json").read_text())
    checkpoint.write(tmp_path, 99, facts, arrays)
    with pytest.raises(ValueError, match=r"not there|label numbers"):
        run(config, FolderKeeper(tmp_path, 1e9, "mark", resume=True))


def test_the_plan_has_as_many_epochs_as_the_settings_say() -> None:
    config = Config(e_model=7, e_hat_label=3)
    steps = plan(config)
    assert [step.epoch for step in steps if step.what == "classifier"] == list(range(7))
    assert sum(step.what == "refresh" for step in steps) == config.e_model // config.e_hat_label + 1


def test_a_training_that_grows_without_end_is_stopped_and_its_best_model_kept(tmp_path: Path) -> None:
    wild = LightDXML(**(SMALL | {"learning_rate": 10.0, "random_weight": 1e6, "e_model": 60}), feature_rate=10.0)
    with pytest.raises(DivergedError, match=r"diverged in epoch \d+; the model of .* is kept: lower learning_rate"):
        wild.fit(X, Y)
    wild.save(tmp_path / "model")
    assert np.isfinite(wild.rank(X)[1]).all()


def test_gradients_too_small_to_matter_do_not_become_denormal_numbers() -> None:
    from lightdxml.kernels import adam

    row, mean, square = np.ones((1, 8), np.float32), np.full((1, 8), 1, np.uint16), np.ones(1, np.float32)
    adam.adam_row(row, mean, square, 0, np.full(8, 1e-38, np.float32), np.float32(0.1))
    assert not mean.any()


def test_features_and_shortlists_in_files_give_the_same_bits_and_leave_nothing(tmp_path: Path) -> None:
    expected = LightDXML(**SMALL).fit(X, Y)
    trained = LightDXML(**SMALL).fit(X, Y, scratch=tmp_path)
    np.testing.assert_array_equal(trained.model_.classifier, expected.model_.classifier)
    assert list(tmp_path.iterdir()) == []


def test_too_little_memory_is_said_before_training() -> None:
    with pytest.raises(ValueError, match=r"training needs .* of memory and the limit is 100 MB"):
        LightDXML(**SMALL).fit(X, Y, memory_limit="100MB")
