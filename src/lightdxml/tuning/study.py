"""A study: trials one after the other, each with other settings, until there are enough or the time is over."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from lightdxml.estimator import LightDXML
from lightdxml.presets import TEXT_NAMES, Preset
from lightdxml.tuning.documents import Documents
from lightdxml.tuning.metric import Metric, Truth
from lightdxml.tuning.sampling import (
    DEFAULTS,
    EARLY,
    ERROR,
    INTERRUPTED,
    METRICS,
    OWNER,
    SECONDS,
    SETTINGS,
    counts,
    expected,
    goes_on,
)
from lightdxml.tuning.space import Space, default_space
from lightdxml.tuning.storage import open_study, owner, recover
from lightdxml.tuning.watch import SharedSteps, Watch, stage_name

# So many failures in a row, without a success, are no accident.
_MAX_FAILURES = 3
# Documents that early values are measured on, at most.
_EARLY_DOCUMENTS = 5000


@dataclass(frozen=True)
class Plan:
    """What to do.

    Attributes
    ----------
    metric
        What is maximized.
    trials
        How many trials the study has in the end, all processes and earlier runs together.
    seconds
        For how long this run may go on; None without a limit. The first trial always runs to its end.
    storage
        Where trials are kept: see `lightdxml.tuning.storage.open_study`.
    preset
        Where settings come from that are not varied; its own settings are the first trial.
    space
        What is varied; None for what matters for the data.
    seed
        The same seed gives the same trials.
    prune
        Whether trials stop early that are not in the better half.
    n_jobs, memory_limit
        As for `LightDXML` and its `fit`.
    """

    metric: Metric
    trials: int = 50
    seconds: float | None = None
    storage: str | None = None
    preset: Preset = field(default_factory=Preset)
    space: Space | None = None
    seed: int = 0
    prune: bool = True
    n_jobs: int | None = None
    memory_limit: int | str | None = None


@dataclass(frozen=True)
class Trial:
    """A trial that is finished.

    Attributes
    ----------
    number
        Its number, from 0.
    outcome
        `done`, `pruned` or `failed`.
    value
        The metric in percent; of a pruned trial, about what it would have been.
    settings
        What differs from the preset.
    metrics
        All metrics; empty unless it is done.
    seconds
        How long it took.
    note
        At which stage it was pruned, or why it failed.
    """

    number: int
    outcome: str
    value: float | None
    settings: dict[str, Any]
    metrics: dict[str, float]
    seconds: float
    note: str = ""


@dataclass(frozen=True)
class Outcome:
    """What a study has found so far: all finished trials, the one of the defaults, the best one, and why it ended."""

    trials: list[Trial]
    default: Trial | None
    best: Trial | None
    ended: str

    @property
    def seconds(self) -> float:
        """How long all trials took together."""
        return sum(one.seconds for one in self.trials)


class OutOfTime(Exception):  # noqa: N818 - a message to the study, which stops
    """The time of the study is over."""


class Study:
    """A search for settings, which goes on where an earlier one with the same storage has ended.

    Parameters
    ----------
    data
        The documents.
    plan
        What to do.

    Attributes
    ----------
    identity
        What the study belongs to: trials of other studies cannot be compared with its own.
    stopped
        Whether the study must stop soon, by a `KeyboardInterrupt`. Handlers of signals set it, because an exception
        that they raise can get lost: Python ignores it in a callback of the garbage collector.

    Examples
    --------
    >>> from lightdxml.data import Dataset, Split, Texts
    >>> from scipy.sparse import csr_matrix
    >>> split = Split(csr_matrix([[1, 0], [0, 1]] * 40, dtype="float32"), texts=Texts(["a cat", "a dog"] * 40))
    >>> found = Study(Documents.of(Dataset("pets", split)), Plan(Metric.of("P@1"), trials=1)).run()
    >>> found.best.value, found.best.settings
    (100.0, {})
    """

    def __init__(self, data: Documents, plan: Plan) -> None:
        self.data, self.plan, self.stopped = data, plan, False
        self.deadline = None if plan.seconds is None else time.monotonic() + plan.seconds
        self.space = default_space(data, plan.preset) if plan.space is None else plan.space
        self.identity = _identity(data, plan, self.space)
        self.study = open_study(plan.storage, plan.seed, self.identity)
        self.shared, self.truth = SharedSteps(), Truth.of(data)
        self.early_truth = self.truth.some(_EARLY_DOCUMENTS)

    def outcome(self, ended: str = "") -> Outcome:
        """Return what has been found so far."""
        return _outcome(self.study, ended)

    def run(self, on_trial: Callable[[Trial, Outcome], None] = lambda *_: None) -> Outcome:
        """Run trials; `on_trial` is called after each."""
        recover(self.study)
        while not (ended := self._ended()):
            self._check_stopped()
            self._enqueue_defaults()
            trial = self.study.ask()
            trial.set_user_attr(OWNER, owner())
            try:
                self._run(trial)
            except OutOfTime:
                continue
            found = self.outcome()
            on_trial(next(one for one in found.trials if one.number == trial.number), found)
            _check_failures(found)
        return self.outcome(ended)

    def _check_stopped(self) -> None:
        if self.stopped:
            raise KeyboardInterrupt

    def _ended(self) -> str:
        """Return why there are no more trials; empty if there are."""
        trials = self.study.get_trials(deepcopy=False)
        active = [one for one in trials if counts(one) or one.state == TrialState.RUNNING]
        if len(active) >= self.plan.trials:
            return f"{self.plan.trials} trials"
        # The trial of the defaults starts in any case.
        started = [one for one in trials if DEFAULTS in one.user_attrs and one.state != TrialState.WAITING]
        has_defaults = any(INTERRUPTED not in one.user_attrs for one in started)
        return "the time is over" if self._is_late() and has_defaults else ""

    def _is_late(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline

    def _enqueue_defaults(self) -> None:
        """Let the next trial be that of the defaults, if there is none."""
        known = [one for one in self.study.get_trials(deepcopy=False) if DEFAULTS in one.user_attrs]
        if all(INTERRUPTED in one.user_attrs for one in known):
            # The sampler learns from the closest point of the space; the trial has exactly the preset's settings.
            near = self.space.near(self.plan.preset, len(self.data.train))
            self.study.enqueue_trial(near, user_attrs={DEFAULTS: True})

    def _run(self, trial: optuna.Trial) -> None:
        """Run a trial and record how it ended. What stops the whole study leaves the trial to be run again."""
        start = time.monotonic()
        try:
            value = self._value(trial)
        except optuna.TrialPruned:
            _finish(self.study, trial, start, TrialState.PRUNED)
        except (KeyboardInterrupt, SystemExit, OutOfTime):
            trial.set_user_attr(INTERRUPTED, "stopped")
            self.study.tell(trial, state=TrialState.FAIL)
            raise
        except Exception as error:  # A trial that fails must not end the study.
            trial.set_user_attr(ERROR, str(error) or type(error).__name__)
            _finish(self.study, trial, start, TrialState.FAIL)
        else:
            _finish(self.study, trial, start, TrialState.COMPLETE, value)

    def _value(self, trial: optuna.Trial) -> float:
        """Train with the settings of a trial and return its metric."""
        is_default = DEFAULTS in trial.user_attrs
        # Suggested also for the defaults, so that the sampler knows the point.
        suggested = self.space.suggest(trial)
        settings = {} if is_default else suggested
        trial.set_user_attr(SETTINGS, json.loads(json.dumps(settings)))

        early: dict[str, float] = {}

        def report(stage: int, value: float) -> None:
            early[str(stage)] = value
            trial.set_user_attr(EARLY, early)
            others = [one for one in self.study.get_trials(deepcopy=False) if one.number != trial.number]
            if self.plan.prune and not is_default and not goes_on(others, stage, value):
                # At one step for all: the sampler would take a later one for a better one.
                trial.report(expected(others, stage, value), 0)
                raise optuna.TrialPruned

        def check() -> None:
            self._check_stopped()
            if self._is_late() and not is_default:
                raise OutOfTime

        watch = Watch(self.plan.metric, self.early_truth, report, check)
        metrics = self._metrics(settings, watch)
        trial.set_user_attr(METRICS, metrics)
        return metrics[self.plan.metric.name]

    def _metrics(self, settings: Mapping[str, Any], watch: Watch) -> dict[str, float]:
        data, train = self.data, self.data.train
        own = self.plan.preset.with_settings(settings).settings
        texts = {name: value for name, value in own.items() if name in TEXT_NAMES}
        options = {name: value for name, value in own.items() if name not in TEXT_NAMES}
        # A model that is no longer needed must not take memory meanwhile.
        gc.collect()
        estimator = LightDXML(
            self.plan.preset.base, n_jobs=self.plan.n_jobs, verbose=False, options=options, **texts
        ).fit(
            train.texts if train.X is None else train.X,
            train.Y,
            label_names=data.label_names,
            feature_names=data.feature_names,
            ids=train.ids,
            vocabulary=data.vocabulary,
            memory_limit=self.plan.memory_limit,
            callbacks=(self.shared, watch),
        )
        return self.plan.metric.measure(estimator, self.truth)


def _outcome(study: optuna.Study, ended: str) -> Outcome:
    """Return what a study has found so far."""
    known = [one for one in study.get_trials(deepcopy=False) if counts(one)]
    trials = [_trial(one) for one in known]
    done = [one for one in trials if one.outcome == "done"]
    defaults = [one.number for one in known if DEFAULTS in one.user_attrs]
    return Outcome(
        trials,
        next((one for one in done if one.number in defaults), None),
        # Of equals the first one: the defaults, if they are as good.
        max(done, key=lambda one: one.value or 0.0, default=None),
        ended,
    )


def _finish(
    study: optuna.Study, trial: optuna.Trial, start: float, state: TrialState, value: float | None = None
) -> None:
    trial.set_user_attr(SECONDS, time.monotonic() - start)
    study.tell(trial, value, state=state)


def _check_failures(found: Outcome) -> None:
    """Raise a `ValueError` if no trial works."""
    failures = [one for one in found.trials if one.outcome == "failed"]
    if len(failures) == len(found.trials) >= _MAX_FAILURES:
        raise ValueError(f"the first {len(failures)} trials failed: {failures[-1].note}")


def _trial(frozen: FrozenTrial) -> Trial:
    attributes, state = frozen.user_attrs, frozen.state
    outcome = {TrialState.COMPLETE: "done", TrialState.PRUNED: "pruned"}.get(state, "failed")
    note = stage_name(max(map(int, attributes[EARLY]))) if outcome == "pruned" else attributes.get(ERROR, "")
    settings, metrics = attributes.get(SETTINGS, {}), attributes.get(METRICS, {})
    value = None if outcome == "failed" else frozen.value
    return Trial(frozen.number, outcome, value, settings, metrics, attributes.get(SECONDS, 0.0), note)


def _identity(data: Documents, plan: Plan, space: Space) -> dict[str, Any]:
    """Return what a study belongs to: trials of other studies cannot be compared with its own."""
    from lightdxml import __version__

    identity = {
        "version": __version__,
        "data": data.fingerprint(),
        "metric": plan.metric.name,
        "tail": plan.metric.tail,
        "preset": [plan.preset.base, dict(plan.preset.settings)],
        "space": space.to_json(),
        "seed": plan.seed,
    }
    # As it comes back from a storage.
    known: dict[str, Any] = json.loads(json.dumps(identity))
    return known
