"""From matrices to a model: data checks, validation documents, spill directory, memory limit, and real data."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml import LightDXML
from lightdxml.data import Dataset
from lightdxml.kernels import parallel
from lightdxml.metrics import evaluate, inverse_propensity
from lightdxml.resources.system import MemoryLimitError
from lightdxml.training.callbacks import Callback, Interrupted
from lightdxml.training.fit import CheckpointOptions, fit, prepare
from lightdxml.training.run import Phase, Run
from tests.support.configs import FOUR_VIEWS, PAPER, SMALL, small
from tests.support.data import topics
from tests.support.trainings import InterruptAt, bits, train


def test_all_views_have_the_same_bits_at_any_number_of_threads(documents: tuple[csr_matrix, csr_matrix]) -> None:
    config, found = small(**{name.replace(".", "__"): value for name, value in FOUR_VIEWS.items()}), []
    for threads in (1, 2, 3):
        with parallel.use_threads(threads):
            found.append(bits(train(documents, config)[0]))
    assert found[0] == found[1] == found[2]


def test_the_defaults_reach_this_accuracy_on_real_data(see_also: Dataset) -> None:
    """Measured when this was written, with ten seeds: P@3 25.6 ± 0.2, P@5 23.1 ± 0.4, PSP@5 40.8 ± 0.8.

    P@1 varies by 1.4 from seed to seed.
    """
    X, Y = see_also.train.texts, see_also.train.Y
    assert see_also.test is not None
    assert X is not None
    trained = LightDXML(random_state=0).fit(X, Y)
    ranked, _ = trained.rank(see_also.test.texts, 5)
    found = evaluate(see_also.test.Y, ranked, k=(3, 5), inv_propensity=inverse_propensity(Y))
    assert found["P@3"] > 24.9
    assert found["P@5"] > 21.9
    assert found["PSP@5"] > 38.4


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        ([[np.nan, 1]], [[1]], "X holds NaN or infinite"),
        ([[1.0], [2.0]], [[1]], "2 and 1 rows"),
        ([[1.0]], [[0]], "Y has no labels at all"),
        (np.empty((0, 2)), np.empty((0, 2)), "no rows"),
    ],
)
def test_bad_data_are_refused_before_training(X: Any, Y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(np.array(X), np.array(Y), small())


def test_fit_returns_the_model_and_its_history() -> None:
    X, Y = topics(60)
    model, history = fit(X, Y, small(epochs=1), dev=topics(20, seed=1))
    assert model.n_labels == 12
    assert history[0]["phase"] == "compile"
    assert history[0]["seconds"] > 0


def test_prepared_data_are_given_away_once() -> None:
    prepared = prepare(*topics(60), small())
    data = prepared.take()
    assert (data.X.shape[0], data.X_validation.shape[0]) == (57, 3)
    assert data.held_out
    assert prepared.data is None
    assert data.n_documents == 60
    assert data.all_label_frequency.sum() == data.Y.nnz + data.Y_validation.nnz


def test_vectors_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"word_vectors have shape \(42, 3\): it must be features × dim, \(42, 16\)"):
        prepare(*topics(60), small(), vectors=np.zeros((42, 3)))
    with pytest.raises(ValueError, match="word_vectors hold NaN"):
        prepare(*topics(60), small(), vectors=np.full((42, 16), np.nan))


@pytest.mark.parametrize("every", ["5m", None, -1.0, True, float("nan")])
def test_the_time_between_checkpoints_is_a_number_of_seconds(tmp_path: Path, every: Any) -> None:
    with pytest.raises(ValueError, match=r"checkpoint_every is .*: it must be a number of seconds from 0"):
        CheckpointOptions(tmp_path, every)


def test_too_little_memory_is_reported_before_training() -> None:
    seen: list[str] = []

    class Watch(Callback):
        def on_phase_begin(self, run: Run, phase: Phase) -> None:
            seen.append(phase.name)

    with pytest.raises(MemoryLimitError, match=r"training needs [\d.]+ [MG]B of memory and the limit is 1 MB"):
        train(topics(60), small(), callbacks=[Watch()], memory_limit=10**6)
    assert not seen


class InMemory(Callback):
    """Looks for matrices of features in memory, and for shortlists that are not in a file, in every epoch."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.rows: list[list[int]] = []
        # Those of the caller and of other tests. They are held, so that no new one gets the same id.
        self.left = [one for one in gc.get_objects() if isinstance(one, csr_matrix)]

    def on_batch_end(self, run: Run) -> None:
        known = {id(one) for one in self.left}
        every = [one for one in gc.get_objects() if isinstance(one, csr_matrix) and id(one) not in known]
        features = [one for one in every if one.shape[1] == self.width and not isinstance(one.data, np.memmap)]
        self.rows.append(sorted(one.shape[0] for one in features))
        assert run.cycle is not None
        assert isinstance(run.cycle.shortlists, np.memmap)
        assert Path(str(run.cycle.shortlists.filename)).name == "shortlists"


@pytest.mark.parametrize("fraction", [0.05, 0.0], ids=["held-out documents", "all for both"])
def test_with_a_spill_directory_features_and_shortlists_are_not_in_memory(tmp_path: Path, fraction: float) -> None:
    """Before and after an interruption."""
    config = small(epochs=2, validation_fraction=fraction)
    data = topics(100)
    watch = InMemory(width=42)
    options: dict[str, Any] = {"checkpoint": tmp_path / "kept", "spill": tmp_path / "spill"}
    with pytest.raises(Interrupted):
        train(data, config, callbacks=[watch, InterruptAt(4, "classifier")], **options)
    train(data, config, callbacks=[watch], **options)
    assert len(watch.rows) > 3
    # Only the few validation documents are; the batch itself is gone by then.
    assert {tuple(rows) for rows in watch.rows} == {(5,) if fraction else ()}
    assert not list((tmp_path / "spill").iterdir())


def test_a_spill_directory_changes_no_bits_and_is_left_empty(tmp_path: Path) -> None:
    data = topics(100)
    assert bits(train(data, small(epochs=2), spill=tmp_path)[0]) == bits(train(data, small(epochs=2))[0])
    assert not list(tmp_path.iterdir())


def test_a_spill_directory_without_space_is_reported_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files were sparse once: a full disk then killed the process when a page was written."""

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(
        OSError, match=r"no space for \d+ MB of [\w.]+ in .*No space left.*: choose another spill directory"
    ):
        LightDXML(options=PAPER).fit(*topics(60), spill=tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_the_user_gave_is_not_changed() -> None:
    X, Y = topics(60)
    before = [array.copy() for matrix in (X, Y) for array in (matrix.data, matrix.indices, matrix.indptr)]
    LightDXML(options=SMALL | {"epochs": 1}).fit(X, Y)
    after = [array for matrix in (X, Y) for array in (matrix.data, matrix.indices, matrix.indptr)]
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)
