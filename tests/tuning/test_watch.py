"""Early values of a training run, and steps that trials share."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml import LightDXML
from lightdxml.data import Split, Texts
from lightdxml.tuning.documents import Documents
from lightdxml.tuning.metric import Metric, Truth
from lightdxml.tuning.watch import ALL_VIEWS, LINEAR, SharedSteps, Watch
from tests.support.configs import FOUR_VIEWS

Pair = tuple[csr_matrix, csr_matrix]


def truth(documents: Pair) -> Truth:
    X, Y = documents
    return Truth.of(Documents("made-up", Split(Y, X), Split(Y[:40], X[:40]), held_out=True))


def test_there_is_a_value_after_each_refresh_after_the_linear_view_and_before_the_refit(documents: Pair) -> None:
    found: list[tuple[int, float]] = []
    watch = Watch(Metric("PSP@5"), truth(documents), lambda stage, value: found.append((stage, value)))
    options = {**FOUR_VIEWS, "epochs": 2, "dense.refresh_every": 1, "refit": False}
    model = LightDXML(options=options).fit(*documents, callbacks=[watch])
    assert [stage for stage, _ in found] == [2, 3, LINEAR, ALL_VIEWS]
    assert all(0 < value <= 100 for _, value in found)
    # Without a refit, this is the model.
    assert found[-1][1] == Metric("PSP@5").measure(model, truth(documents))["PSP@5"]


def test_texts_get_the_features_of_the_trial() -> None:
    Y = csr_matrix(np.tile(np.eye(2, dtype=np.float32), (40, 1)))
    split = Split(Y, texts=Texts(["a purring cat", "a barking dog"] * 40))
    found: list[float] = []
    watch = Watch(
        Metric("P@1"), Truth.of(Documents("pets", split, split, held_out=True)), lambda _, value: found.append(value)
    )
    LightDXML("fast").fit(split.texts, Y, callbacks=[watch])
    assert found == [100.0, 100.0]


def test_what_the_report_raises_stops_the_training(documents: Pair) -> None:
    def report(stage: int, value: float) -> None:
        raise LookupError(str(stage))

    with pytest.raises(LookupError, match=str(LINEAR)):
        LightDXML(dense="never").fit(*documents, callbacks=[Watch(Metric("P@1"), truth(documents), report)])


def test_what_the_check_raises_stops_the_training(documents: Pair) -> None:
    def check() -> None:
        raise TimeoutError

    watch = Watch(Metric("P@1"), truth(documents), lambda *_: None, check)
    with pytest.raises(TimeoutError):
        LightDXML(dense="never").fit(*documents, callbacks=[watch])


def test_shared_steps_change_no_bit(documents: Pair) -> None:
    X, Y = documents
    # Little work is allowed: hard negatives are needed.
    options = {**FOUR_VIEWS, "dense.train": "never", "linear.work": 10, "linear.min_clusters": 1}
    shared = SharedSteps()

    def phases(estimator: LightDXML) -> int:
        return sum(entry["phase"] in ("label tree", "linear view") for entry in estimator.history_)

    first = LightDXML(options=options).fit(X, Y, callbacks=[shared])
    again = LightDXML(options={**options, "linear.prior": 0.5}).fit(X, Y, callbacks=[shared])
    alone = LightDXML(options={**options, "linear.prior": 0.5}).fit(X, Y)
    assert phases(again) < phases(alone) == phases(first)
    for one, other in zip(again.rank(X, 5), alone.rank(X, 5), strict=True):
        np.testing.assert_array_equal(one, other)
    other_seed = LightDXML(options=options, random_state=5).fit(X, Y, callbacks=[shared])
    assert phases(other_seed) == phases(first)
