"""What watches the training of a trial: it reports early values, prunes, keeps to the time, and shares steps."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix

from lightdxml.metrics import evaluate
from lightdxml.model.blend import top_k
from lightdxml.model.candidates import find_candidates
from lightdxml.persistence.arrays import Arrays
from lightdxml.training.callbacks import Callback

if TYPE_CHECKING:
    from lightdxml.training.run import Phase, Run
    from lightdxml.tuning.metric import Metric

# Stages of a training run at which there is a value: refreshes of the cycle count from 1, then come these.
LINEAR, ALL_VIEWS = 1000, 1001
_NAMES = {LINEAR: "linear view", ALL_VIEWS: "all views, before the refit"}
_LINEAR_VIEW = "linear"
_CUTS = (1, 3, 5)
# Steps that depend on the documents and on these settings only. Trials that agree on them share the results.
_SHARED = re.compile(r"label tree: tree \d+, (clusters|matcher)|linear view: hard negatives")
_RELEVANT = ("random_state", "precision", "linear.work", "linear.document_work", "linear.min_clusters")


def stage_name(stage: int) -> str:
    """Return what a stage is called.

    >>> stage_name(2), stage_name(LINEAR)
    ('refresh 2', 'linear view')
    """
    return _NAMES.get(stage, f"refresh {stage}")


class OutOfTime(Exception):  # noqa: N818 - a message to the study, which stops
    """The time of the study is over."""


class Watch(Callback):
    """Reports early values of a trial.

    Parameters
    ----------
    metric
        What is measured, on the validation documents of the training run.
    report
        Takes a stage and a value, and may stop the trial by an exception.
    deadline
        When the trial must stop, by `time.monotonic`; None for never.
    """

    def __init__(self, metric: Metric, report: Callable[[int, float], None], deadline: float | None) -> None:
        self.metric, self.report, self.deadline = metric, report, deadline
        self._linear_is_known = False

    def on_phase_begin(self, run: Run, phase: Phase) -> None:
        """Report the value of the linear view once it is trained."""
        self.on_tick(run)
        if not self._linear_is_known and _LINEAR_VIEW in run.views:
            self._linear_is_known = True
            self.report(LINEAR, self._value_of_linear(run))

    def on_phase_end(self, run: Run, phase: Phase) -> None:
        """Report the value of a refresh of the cycle, and that of all views."""
        if not phase.completed:
            return
        if phase.name == "validation" and run.cycle is not None and run.cycle.refreshes > 1:
            # The first refresh comes before the classifier is trained: it says little.
            self.report(run.cycle.refreshes, self.metric.early(phase.figures))
        elif phase.name == "tail":
            # The curve has a point for each tenth.
            self.report(ALL_VIEWS, self.metric.early(phase.figures["curve"][round(10 * self.metric.tail)][1]))

    def on_progress(self, run: Run, phase: Phase, amount: int) -> None:
        """Stop if the time is over."""
        self.on_tick(run)

    def on_tick(self, run: Run) -> None:
        """Stop if the time is over."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise OutOfTime

    def _value_of_linear(self, run: Run) -> float:
        candidates = find_candidates({_LINEAR_VIEW: run.views[_LINEAR_VIEW]}, run.data.validation_batch)
        ranked = top_k(candidates.labels, candidates.log_scores[_LINEAR_VIEW], max(_CUTS))[0]
        measured = evaluate(run.data.Y_validation, ranked, _CUTS, run.data.inv_propensity)
        return self.metric.early(measured)


class SharedSteps(Callback):
    """Keeps the clusters of labels and hard negatives of the last trial, for trials that would compute the same."""

    def __init__(self) -> None:
        self._key = ""
        self._products: dict[str, Arrays] = {}

    def on_begin(self, run: Run) -> None:
        """Give the run what is known already."""
        key = _key(run)
        if key != self._key:
            self._key, self._products = key, {}
        run.products.update(self._products)

    def on_phase_begin(self, run: Run, phase: Phase) -> None:
        """Keep what is finished."""
        for name, product in run.products.items():
            if _SHARED.fullmatch(name):
                self._products[name] = product


def _key(run: Run) -> str:
    """Return what identifies the documents, and the settings that matter."""
    from lightdxml.config import walk

    settings = {name: value for name, _, value in walk(run.config)}
    wanted = {name: one for name, one in settings.items() if name.startswith("tree.") or name in _RELEVANT}
    # How many trees there are changes none of them.
    del wanted["tree.max_trees"]
    digest = hashlib.sha256(repr(sorted(wanted.items())).encode())
    data = run.data
    for matrix in (data.X, data.Y):
        _add(digest, matrix)
    return digest.hexdigest()


def _add(digest: Any, matrix: csr_matrix) -> None:
    for part in (np.array(matrix.shape), matrix.indptr, matrix.indices, matrix.data):
        digest.update(np.ascontiguousarray(part).data)
