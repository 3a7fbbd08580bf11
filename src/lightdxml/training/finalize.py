"""What comes after the cycle: further views, the weights of all views, `tail`, and the refit on held-out documents.

Every view trains in named steps, whose products go into checkpoints (`Run.step`, `views.linear.steps`). A run that is
resumed takes finished steps from there.
"""

from __future__ import annotations

from dataclasses import replace

from lightdxml.model.blend import Blend, PaperBlend, TailShift
from lightdxml.model.candidates import Candidates, extended, find_candidates
from lightdxml.model.model import Model
from lightdxml.training import choose
from lightdxml.training.run import Run
from lightdxml.training.state import Best
from lightdxml.views.base import View
from lightdxml.views.registry import VIEWS

# The views of the paper, which the cycle trains, and the one to which they are compared.
_DENSE, _LINEAR = ("nearness", "classifier"), "linear"


def finalize(run: Run) -> Model:
    """Train the views after the cycle, choose all weights, and return the model that ships."""
    model = _chosen_model(run)
    run.notify("on_model", model)
    if run.data.held_out and run.config.refit:
        # All choices stay: only the views learn the held-out documents.
        model = replace(model, views={name: view.refit(run) for name, view in model.views.items()})
    return model


def _chosen_model(run: Run) -> Model:
    for name in (*_DENSE, _LINEAR):
        view = VIEWS[name].train(run, lambda _: True)
        if view is not None:
            run.views[name] = view
    fit = _BlendFit(run)
    return _model(run, fit.blend(), fit.candidates)


def dense_model(run: Run, best: Best) -> Model:
    """Return a model of the paper's two views alone: what is kept of a training run that diverged."""
    run.views = {"nearness": best.nearness, "classifier": best.classifier}
    return _model(run, PaperBlend(best.beta))


class _BlendFit:
    """The choice of views, and of their weights, on the validation documents.

    Attributes
    ----------
    candidates
        Candidates of the validation documents, scored by all views so far.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.batch = run.data.validation_batch
        self.candidates = find_candidates(run.views, self.batch)
        if run.result is not None and _LINEAR in run.views and choose.can_choose(run):
            found = self._gain(self.candidates, "classifier and nearness", [_LINEAR], list(run.views))
            # They are trained already, so any gain is welcome. Few validation documents tell little.
            least = -found.error if self._is_few else 0.0
            if not self._is_kept(found, "classifier and nearness", least):
                for name in _DENSE:
                    del run.views[name]
                self.candidates = find_candidates(run.views, self.batch)

    @property
    def _is_few(self) -> bool:
        """Whether validation documents are too few to tell a small gain from chance."""
        return len(self.batch) < self.run.config.blend.few_documents

    def blend(self) -> Blend:
        """Try all further views, each with the ones before it, and return the blend."""
        run, further = self.run, [name for name in VIEWS if name not in (*_DENSE, _LINEAR)]
        for name in further:
            self._try(name)
        if not run.config.linear.enabled and not any(name in run.views for name in further):
            assert run.result is not None
            return PaperBlend(run.result.beta)
        with run.phase("blend") as phase:
            blend = choose.logistic_blend(run, self.candidates, list(run.views))
            run.progress(phase, 1, weights=blend.to_json())
        return blend

    def _try(self, name: str) -> None:
        """Train a view, and keep it if it adds enough precision."""
        view = VIEWS[name].train(self.run, lambda trial: self._extended(name, trial) is not None)
        candidates = None if view is None else self._extended(name, view)
        if view is not None and candidates is not None:
            self.run.views[name], self.candidates = view, candidates

    def _extended(self, name: str, view: View) -> Candidates | None:
        """Return the candidates with those of another view; None if it adds too little.

        Without validation documents there is no choice.
        """
        run, options = self.run, self.run.config.blend
        candidates = extended(self.candidates, run.views, name, view, self.batch)
        if not choose.can_choose(run):
            return candidates
        found = self._gain(candidates, name, list(run.views), [*run.views, name])
        # With few validation documents the view is kept unless it clearly does harm.
        least = -found.error if self._is_few else max(options.min_gain, options.min_errors * found.error)
        return candidates if self._is_kept(found, view.about, least) else None

    def _gain(self, candidates: Candidates, name: str, before: list[str], after: list[str]) -> choose.Gain:
        with self.run.phase("view") as phase:
            found = choose.gain(self.run, candidates, before, after)
            self.run.progress(phase, 1, view=name, gain=found.mean, error=found.error)
        return found

    def _is_kept(self, found: choose.Gain, what: str, least: float) -> bool:
        """Return whether views add enough, and say so."""
        is_kept = found.mean >= least
        outcome = "kept" if is_kept else "dropped"
        self.run.say(f"{what}: {found.mean:+.2f} ± {found.error:.2f} points of mean P, {outcome}")
        return is_kept


def _model(run: Run, blend: Blend, candidates: Candidates | None = None) -> Model:
    """Return the model of the views that have a weight, measured as it ships, with its shift to rare labels.

    `candidates` are those that all views together propose for validation documents, if they are known.
    """
    data, options = run.data, run.config.blend
    needed = {name: view for name, view in run.views.items() if is_needed(name, blend)}
    if candidates is None or len(needed) < len(run.views):
        candidates = find_candidates(needed, data.validation_batch)
    run.views, run.candidates = needed, candidates
    log_odds = blend.log_odds(candidates.log_scores, choose.label_groups(run)[candidates.labels])
    with run.phase("tail") as phase:
        default = options.default_tail if _LINEAR in run.views else options.default_paper_tail
        lowest, highest = choose.choose_tail(run, candidates.labels, log_odds, default)
        # The paper's prediction knows no shift.
        shift = TailShift(0.0 if isinstance(blend, PaperBlend) else lowest, highest)
        strengths = [shift.strength(tail) for tail in choose.TAILS]
        measured = choose.tail_curve(run, candidates.labels, log_odds, strengths)
        curve = [(tail, metrics) for tail, (_, metrics) in zip(choose.TAILS, measured, strict=True)]
        run.progress(phase, 1, lowest=shift.lowest, highest=shift.highest, curve=curve)
    with run.phase("probabilities") as phase:
        calibration, thresholds = choose.calibrate(run, candidates, log_odds)
        run.progress(phase, 1)
    return Model(
        views=run.views,
        blend=blend,
        config=run.config,
        n_features=data.X.shape[1],
        label_frequency=data.all_label_frequency,
        n_documents=data.n_documents,
        shift=shift,
        calibration=calibration,
        thresholds=thresholds,
        metrics=curve[0][1],
        n_validation=len(data.validation_batch),
        machines=run.machines,
    )


def is_needed(name: str, blend: Blend) -> bool:
    """Return whether a view takes part: it has a weight, or a view that has one requires it."""
    weighted = [other for other, weight in blend.weights.items() if weight > 0]
    return name in weighted or any(name in VIEWS[other].requires for other in weighted)
