"""What watches the training of a trial: it reports early values, prunes, keeps to the time, and shares steps."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.model.blend import PaperBlend, top_k
from lightdxml.model.candidates import find_candidates
from lightdxml.model.model import predict
from lightdxml.persistence.arrays import Arrays
from lightdxml.text import tfidf
from lightdxml.training.callbacks import Callback
from lightdxml.training.choose import label_groups
from lightdxml.training.logistic import usual
from lightdxml.tuning.metric import deepest
from lightdxml.validation import check_features
from lightdxml.views.base import Batch

if TYPE_CHECKING:
    from lightdxml.model.model import Model
    from lightdxml.text.tfidf import Vectorizer
    from lightdxml.training.run import Phase, Run
    from lightdxml.tuning.metric import Metric, Truth

# Stages of a training run at which there is a value: refreshes of the cycle count from 1, then come these.
LINEAR, ALL_VIEWS = 1000, 1001
_NAMES = {LINEAR: "linear view", ALL_VIEWS: "all views, before the refit"}
_LINEAR_VIEW = "linear"
# Steps that depend on the documents and on these settings only. Trials that agree on them share the results.
_SHARED = re.compile(r"label tree: tree \d+, (clusters|matcher)|linear view: hard negatives")
_RELEVANT = ("random_state", "precision", "linear.work", "linear.document_work", "linear.min_clusters")


def stage_name(stage: int) -> str:
    """Return what a stage is called.

    >>> stage_name(2), stage_name(LINEAR)
    ('refresh 2', 'linear view')
    """
    return _NAMES.get(stage, f"refresh {stage}")


class Watch(Callback):
    """Reports early values of a trial, on documents that it is measured on later, too, and lets it stop.

    Those are more than the validation documents of training, and the same for all trials.

    Parameters
    ----------
    metric, truth
        What is measured, on which documents.
    report
        Takes a stage and a value, and may stop the trial by an exception.
    check
        Is called now and then, and may stop the trial by an exception.
    """

    def __init__(
        self,
        metric: Metric,
        truth: Truth,
        report: Callable[[int, float], None],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.metric, self.truth, self.report, self.check = metric, truth, report, check
        self._vectorizer: Vectorizer | None = None
        self._X: csr_matrix | None = None
        self._reported = {0, 1}

    def on_vectorizer(self, vectorizer: Vectorizer) -> None:
        """Remember how texts become features."""
        self._vectorizer = vectorizer

    def on_step_end(self, run: Run) -> None:
        """Report the value of the best refresh so far, from the second on: the first one comes before training."""
        assert run.cycle is not None
        best, refreshes = run.cycle.best, run.cycle.refreshes
        if best is None or refreshes in self._reported:
            return
        self._reported.add(refreshes)
        candidates = find_candidates({"nearness": best.nearness, "classifier": best.classifier}, self._batch())
        groups = label_groups(run)[candidates.labels]
        log_odds = PaperBlend(best.beta).log_odds(candidates.log_scores, groups)
        self._report(run, refreshes, top_k(candidates.labels, log_odds, self._depth(run))[0])

    def on_phase_begin(self, run: Run, phase: Phase) -> None:
        """Report the value of the linear view once it is trained."""
        self.check()
        if _LINEAR_VIEW not in run.views or LINEAR in self._reported:
            return
        self._reported.add(LINEAR)
        # Next to it there may be dense views. Weights are not fitted yet.
        candidates = find_candidates(run.views, self._batch())
        log_odds = usual(list(run.views)).log_odds(candidates.log_scores, label_groups(run)[candidates.labels])
        self._report(run, LINEAR, top_k(candidates.labels, log_odds, self._depth(run))[0])

    def on_model(self, run: Run, model: Model) -> None:
        """Report the value of the model before the refit."""
        self._report(run, ALL_VIEWS, predict(model, self._batch().X, self._depth(run), self.metric.tail)[0])

    def on_progress(self, run: Run, phase: Phase, amount: int) -> None:
        """Stop if the study stops."""
        self.check()

    def on_tick(self, run: Run) -> None:
        """Stop if the study stops."""
        self.check()

    def _batch(self) -> Batch:
        """Return the documents with the features of this trial."""
        if self._X is None:
            split = self.truth.split
            if self._vectorizer is not None and split.texts is not None:
                self._X = tfidf.transform(self._vectorizer, split.texts)
            else:
                self._X = check_features(split.X)
        return Batch(self._X)

    def _depth(self, run: Run) -> int:
        return min(self.metric.k + deepest(self._ignored(run)), run.data.n_labels)

    def _ignored(self, run: Run) -> csr_matrix | None:
        return self.truth.ignored(run.data.own is not None)

    def _report(self, run: Run, stage: int, ranked: NDArray[np.int32]) -> None:
        self.report(stage, self.metric.early(ranked, self.truth, self._ignored(run)))


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
