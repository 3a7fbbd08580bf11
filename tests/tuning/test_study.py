"""Trials one after the other: the same after an interruption, skipped if they fail, in time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from lightdxml.data import Dataset, Split
from lightdxml.presets import Preset
from lightdxml.tuning.documents import Documents
from lightdxml.tuning.metric import Metric
from lightdxml.tuning.space import Dimension, Space
from lightdxml.tuning.study import Outcome, Plan, Study
from lightdxml.tuning.watch import ALL_VIEWS, LINEAR, Watch
from tests.support.data import topics

SPACE = Space([Dimension("linear.prior", low=0.1, high=8.0, log=True), Dimension("linear.costs", low=0.1, high=4.0)])
Fake = Callable[[Mapping[str, Any], Watch], float]


def value(settings: Mapping[str, Any], watch: Watch | None = None) -> float:
    """Return a value that is best at a prior of 4."""
    return 90 - abs(float(settings.get("linear.prior", 2.0)) - 4)


@pytest.fixture(scope="module")
def documents() -> Documents:
    X, Y = topics(60)
    return Documents.of(Dataset("made-up", Split(Y, X)))


def study(documents: Documents, trial: Fake = value, **options: Any) -> Study:
    """Return a study whose trials are computed by a function instead of training."""
    made = Study(documents, Plan(Metric("P@1"), **{"space": SPACE, "trials": 12, **options}))
    made._metrics = lambda settings, watch: {"P@1": trial(settings, watch)}  # type: ignore[method-assign]
    return made


def settings_of(found: Outcome) -> list[dict[str, Any]]:
    return [one.settings for one in found.trials]


def test_the_first_trial_has_the_defaults_and_the_best_one_is_found(documents: Documents) -> None:
    seen: list[float] = []
    found = study(documents).run(lambda trial, so_far: seen.append(trial.value or 0))
    assert found.trials[0] is found.default or found.trials[0] == found.default
    assert found.trials[0].settings == {}
    assert found.best is not None
    assert found.best.value == max(seen) > 88
    assert len(seen) == len(found.trials) == 12
    assert found.ended == "12 trials"


def test_of_equal_trials_the_defaults_are_best(documents: Documents) -> None:
    found = study(documents, lambda *_: 50.0, trials=3).run()
    assert found.best == found.default


def test_the_same_seed_gives_the_same_trials(documents: Documents) -> None:
    one, same, other = (settings_of(study(documents, seed=seed).run()) for seed in (0, 0, 1))
    assert one == same
    assert one[1:] != other[1:]


@pytest.mark.parametrize(("name", "at"), [("tune.db", 0), ("tune.log", 7)])
def test_an_interrupted_study_goes_on_as_if_it_had_not_been(
    documents: Documents, tmp_path: Any, name: str, at: int
) -> None:
    calls = 0

    def interrupted(settings: Mapping[str, Any], watch: Watch) -> float:
        nonlocal calls
        calls += 1
        if calls == at + 1:
            raise KeyboardInterrupt
        return value(settings)

    storage = str(tmp_path / name)
    first = study(documents, interrupted, storage=storage)
    with pytest.raises(KeyboardInterrupt):
        first.run()
    assert len(first.outcome().trials) == at
    again = study(documents, storage=storage).run()
    assert settings_of(again) == settings_of(study(documents).run())


def test_an_interruption_that_python_loses_stops_the_study_at_its_next_step(documents: Documents) -> None:
    """As when Ctrl-C comes during a callback of the garbage collector, which ignores exceptions."""

    def losing(settings: Mapping[str, Any], watch: Watch) -> float:
        made.stopped = True
        watch.on_tick(None)  # type: ignore[arg-type]
        return value(settings)

    made = study(documents, losing)
    with pytest.raises(KeyboardInterrupt):
        made.run()
    assert made.outcome().trials == []


def test_more_trials_continue_a_study(documents: Documents, tmp_path: Any) -> None:
    storage = str(tmp_path / "tune.db")
    study(documents, storage=storage, trials=5).run()
    more = study(documents, storage=storage, trials=9).run()
    assert settings_of(more) == settings_of(study(documents, trials=9).run())


def test_a_trial_that_fails_is_recorded_and_skipped(documents: Documents) -> None:
    calls = 0

    def failing(settings: Mapping[str, Any], watch: Watch) -> float:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise MemoryError("training needs 9 GB of memory")
        return value(settings)

    found = study(documents, failing, trials=4).run()
    assert [one.outcome for one in found.trials] == ["done", "failed", "done", "done"]
    assert found.trials[1].note == "training needs 9 GB of memory"
    assert found.trials[1].settings


def test_a_study_ends_if_no_trial_works(documents: Documents) -> None:
    def failing(settings: Mapping[str, Any], watch: Watch) -> float:
        raise ValueError("it never works")

    with pytest.raises(ValueError, match="the first 3 trials failed: it never works"):
        study(documents, failing).run()


def test_trials_that_are_not_in_the_better_half_stop_early(documents: Documents) -> None:
    finished = 0

    def staged(settings: Mapping[str, Any], watch: Watch) -> float:
        nonlocal finished
        watch.report(LINEAR, value(settings))
        watch.report(ALL_VIEWS, value(settings))
        finished += 1
        return value(settings)

    found = study(documents, staged, trials=20).run()
    pruned = [one for one in found.trials if one.outcome == "pruned"]
    assert len(pruned) + finished == 20
    assert len(pruned) > 5
    assert pruned[0].note == "linear view"
    assert found.best is not None
    assert found.best.value == max(one.value or 0 for one in found.trials)
    assert not any(one.outcome == "pruned" for one in study(documents, staged, prune=False).run().trials)


def test_the_time_stops_a_study_but_not_the_defaults(documents: Documents, tmp_path: Any) -> None:
    def slow(settings: Mapping[str, Any], watch: Watch) -> float:
        for _ in range(20):
            time.sleep(0.005)
            watch.on_tick(None)  # type: ignore[arg-type]
        return value(settings)

    storage = str(tmp_path / "tune.log")
    found = study(documents, slow, seconds=0.0, storage=storage).run()
    assert found.ended == "the time is over"
    assert settings_of(found) == [{}]
    found = study(documents, slow, seconds=0.05, storage=storage).run()
    assert len(found.trials) == 1
    assert settings_of(study(documents, storage=storage, trials=4).run()) == settings_of(
        study(documents, trials=4).run()
    )


def test_two_processes_share_the_work(documents: Documents, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # Both are this process, which would take the trial of the other for one that was left behind.
    monkeypatch.setattr("lightdxml.tuning.study.recover", lambda _: 0)
    storage = str(tmp_path / "tune.log")
    other = study(documents, storage=storage, trials=6)

    def meanwhile(settings: Mapping[str, Any], watch: Watch) -> float:
        if len(one.outcome().trials) == 1:
            other.run()
        return value(settings)

    one = study(documents, meanwhile, storage=storage, trials=6)
    found = one.run()
    assert len(found.trials) == 6
    assert len({tuple(sorted(map(str, settings.items()))) for settings in settings_of(found)}) == 6


def test_trials_build_on_the_settings_of_the_preset(documents: Documents) -> None:
    made = Study(documents, Plan(Metric("P@1"), trials=1, preset=Preset("fast", {"dense.dim": 8, "dense.epochs": 1})))
    found = made.run()
    assert found.best is not None
    assert found.best.metrics["P@1"] == found.best.value
    assert replace(made.plan, trials=2) != made.plan
