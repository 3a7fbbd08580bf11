"""Which settings a trial gets, and whether it goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.trial import FrozenTrial, TrialState

from lightdxml.tuning.watch import LINEAR

# Attributes of trials.
DEFAULTS, INTERRUPTED, ERROR, OWNER, METRICS, SECONDS, SETTINGS, EARLY = (
    "defaults", "interrupted", "error", "owner", "metrics", "seconds", "settings", "early",
)  # fmt: skip
# Trials with random settings at first.
STARTUP = 6
# The shares of trials that go on, at refreshes and later; the first few trials always go on. Within the cycle little is
# known: learning rates decrease to the end, and other views follow.
_SHARE_OF_CYCLE, _SHARE, _FIRST = 0.75, 0.5, 4


class RepeatableSampler(BaseSampler):
    """Optuna's TPE sampler, whose random numbers depend on the seed and on the place of the trial only.

    A study that was interrupted then goes on as if it had not been: trials that were interrupted do not count.

    Parameters
    ----------
    seed
        The same seed gives the same trials.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._sampler = TPESampler(seed=seed)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Seed the sampler for a trial."""
        seed = np.random.SeedSequence([self.seed, place(study.get_trials(deepcopy=False), trial.number)])
        self._sampler = TPESampler(seed=int(seed.generate_state(1)[0]), n_startup_trials=STARTUP)

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return the settings that are sampled together."""
        return self._sampler.infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Sample settings together."""
        return self._sampler.sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Sample a setting alone."""
        return self._sampler.sample_independent(study, trial, param_name, param_distribution)


def place(trials: Sequence[FrozenTrial], number: int) -> int:
    """Return how many trials were before a trial, without those that were interrupted."""
    return number - sum(one.number < number and INTERRUPTED in one.user_attrs for one in trials)


def counts(trial: FrozenTrial) -> bool:
    """Return whether a trial is finished, and was not interrupted."""
    return trial.state.is_finished() and INTERRUPTED not in trial.user_attrs


def goes_on(trials: Sequence[FrozenTrial], stage: int, value: float) -> bool:
    """Return whether a trial with this value at a stage is among the best half of those that reached it.

    Within the cycle, it is the best three quarters. This is asynchronous successive halving (Li et al. 2020) with the
    stages of a training run as rungs.
    """
    finished = [one for one in trials if one.state in (TrialState.COMPLETE, TrialState.PRUNED)]
    values: list[float] = [value]
    values += [early[str(stage)] for one in finished if str(stage) in (early := one.user_attrs.get(EARLY, {}))]
    if len(values) <= _FIRST:
        return True
    share = _SHARE if stage >= LINEAR else _SHARE_OF_CYCLE
    return value >= sorted(values, reverse=True)[int(share * len(values)) - 1]


def expected(trials: Sequence[FrozenTrial], stage: int, value: float) -> float:
    """Return about which value a trial would end with: as far from the defaults as it is at this stage.

    Values at different stages cannot be compared. The sampler learns from these instead.
    """
    for one in trials:
        early = one.user_attrs.get(EARLY, {}).get(str(stage))
        if DEFAULTS in one.user_attrs and one.value is not None and early is not None:
            return one.value + value - float(early)
    return value
