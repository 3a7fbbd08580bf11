"""Early values of a training run, and steps that trials share."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from lightdxml import LightDXML
from lightdxml.tuning.metric import Metric
from lightdxml.tuning.watch import ALL_VIEWS, LINEAR, OutOfTime, SharedSteps, Watch
from tests.support.configs import FOUR_VIEWS

Documents = tuple[csr_matrix, csr_matrix]


def test_there_is_a_value_after_each_refresh_after_the_linear_view_and_before_the_refit(documents: Documents) -> None:
    found: list[tuple[int, float]] = []
    watch = Watch(Metric("PSP@5"), lambda stage, value: found.append((stage, value)), None)
    model = (
        LightDXML(options={**FOUR_VIEWS, "epochs": 2, "dense.refresh_every": 1})
        .fit(*documents, callbacks=[watch])
        .model_
    )
    assert [stage for stage, _ in found] == [2, 3, LINEAR, ALL_VIEWS]
    assert all(0 < value <= 100 for _, value in found)
    assert found[-1][1] == model.metrics["PSP@5"]


def test_what_the_report_raises_stops_the_training(documents: Documents) -> None:
    def report(stage: int, value: float) -> None:
        raise LookupError(str(stage))

    with pytest.raises(LookupError, match=str(LINEAR)):
        LightDXML(dense="never").fit(*documents, callbacks=[Watch(Metric("P@1"), report, None)])


def test_the_deadline_stops_the_training(documents: Documents) -> None:
    watch = Watch(Metric("P@1"), lambda *_: None, time.monotonic())
    with pytest.raises(OutOfTime):
        LightDXML(dense="never").fit(*documents, callbacks=[watch])


def test_shared_steps_change_no_bit(documents: Documents) -> None:
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
