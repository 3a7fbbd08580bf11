"""What comes after the cycle: further views, the weights of all views, `tail`, and the refit on held-out documents.

Every view trains in named steps, whose products go into checkpoints (`Run.step`, `views.linear.steps`). A run that is
resumed takes finished steps from there.
"""

from __future__ import annotations

from dataclasses import replace

from lightdxml.model.blend import Blend, LogLinearBlend, PaperBlend, TailShift
from lightdxml.model.candidates import Candidates, extended, find_candidates
from lightdxml.model.model import Model
from lightdxml.training import choose
from lightdxml.training.run import Run
from lightdxml.training.state import Best
from lightdxml.views.base import View
from lightdxml.views.registry import VIEWS

# The views of the paper, which the cycle trains, and the one that stands beside them in the grid of β and γ.
_DENSE, _LINEAR = ("nearness", "classifier"), "linear"


def finalize(run: Run) -> Model:
    """Train the views after the cycle, choose all weights, and return the model that ships."""
    model = _chosen_model(run)
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
    """The choice of the weights of all views on the validation documents.

    Attributes
    ----------
    candidates
        Candidates of the validation documents, scored by all views so far.
    shares
        Weights of further views, relative to γ; absolute without a linear view.
    chosen
        β and γ: of the cycle and 0 without a linear view, 0 and 1 without dense views.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.batch = run.data.validation_batch
        self.candidates = find_candidates(run.views, self.batch)
        self.shares: dict[str, float] = {}
        self.chosen = (0.0, 1.0) if run.result is None else (run.result.beta, 0.0)
        if self.has_grid:
            self.chosen = self._choose_grid(self.candidates, {})
            if self.chosen[1] == 0:
                del run.views[_LINEAR]
                self.candidates = find_candidates(run.views, self.batch)

    @property
    def has_grid(self) -> bool:
        """Whether there are dense views and a linear view, to be weighted against each other."""
        return self.run.result is not None and _LINEAR in self.run.views

    def blend(self) -> Blend:
        """Try all further views, each with the ones before it, and return the blend."""
        for name in VIEWS:
            if name not in (*_DENSE, _LINEAR):
                self._try(name)
        if not self.run.config.linear.enabled and not self.shares:
            return PaperBlend(self.chosen[0])
        return LogLinearBlend(choose.weights_of(*self.chosen, self.shares))

    def _try(self, name: str) -> None:
        """Train a view; keep it if it adds enough precision, and choose β and γ again with it."""
        run = self.run
        view = VIEWS[name].train(run, lambda trial: self._share(name, trial)[0] > 0)
        if view is None:
            return
        share, candidates = self._share(name, view)
        if share == 0:
            return
        shares, chosen = {**self.shares, name: share}, self.chosen
        if self.has_grid:
            chosen = self._choose_grid(candidates, shares)
            if chosen[1] == 0:
                return  # the share of the view is one of γ
        run.views[name] = view
        self.candidates, self.shares, self.chosen = candidates, shares, chosen

    def _share(self, name: str, view: View) -> tuple[float, Candidates]:
        """Return the best share of a view, 0 if it adds too little, and the candidates with it."""
        run, options = self.run, self.run.config.blend
        with run.phase("share") as phase:
            candidates = extended(self.candidates, run.views, name, view, self.batch)
            curve = choose.share_curve(run, candidates, self.chosen, self.shares, name)
            share, metrics = choose.choose(curve, options.share_tolerance)
            before = choose.weights_of(*self.chosen, self.shares)
            after = choose.weights_of(*self.chosen, {**self.shares, name: share})
            gain, error = choose.gain(run, candidates, before, after)
            # With few validation documents there is no choice of a share: the view is kept unless it does harm.
            is_enough = gain >= 0 if len(curve) == 1 else gain >= max(options.min_gain, options.min_errors * error)
            if not is_enough:
                share = 0.0
            run.progress(phase, 1, view=name, share=share, gain=gain, error=error, curve=curve, **metrics)
        outcome = f"kept with weight {after[name]:.2g}" if share else "dropped: the gain is too small"
        run.say(f"{view.about}: {gain:+.2f} ± {error:.2f} points of mean P, {outcome}")
        return share, candidates

    def _choose_grid(self, candidates: Candidates, shares: dict[str, float]) -> tuple[float, float]:
        """Return the best β and γ."""
        run = self.run
        with run.phase("blend") as phase:
            results = choose.grid(run, candidates, shares)
            (beta, gamma), metrics = choose.choose_smooth(results, run.config.blend.grid_tolerance)
            run.progress(phase, 1, beta=beta, gamma=gamma, grid=results, **metrics)
        run.say(
            f"blend: validation P@1 {metrics['P@1']:.2f}, PSP@1 {metrics['PSP@1']:.2f}, weight of the linear view"
            f" γ {gamma:g}, of the classifier beside nearness β {beta:g}"
        )
        return beta, gamma


def _model(run: Run, blend: Blend, candidates: Candidates | None = None) -> Model:
    """Return the model of the views that have a weight, measured as it ships, with its shift to rare labels.

    `candidates` are those that all views together propose for validation documents, if they are known.
    """
    data, options = run.data, run.config.blend
    needed = {name: view for name, view in run.views.items() if is_needed(name, blend)}
    if candidates is None or len(needed) < len(run.views):
        candidates = find_candidates(needed, data.validation_batch)
    run.views = needed
    scores = blend.combine(candidates.log_scores)
    with run.phase("tail") as phase:
        default = options.default_tail if _LINEAR in run.views else options.default_paper_tail
        lowest, highest = choose.choose_tail(run, candidates.labels, scores, default)
        # The paper's prediction knows no shift.
        shift = TailShift(0.0 if isinstance(blend, PaperBlend) else lowest, highest)
        strengths = [shift.strength(tail) for tail in choose.TAILS]
        measured = choose.tail_curve(run, candidates.labels, scores, strengths)
        curve = [(tail, metrics) for tail, (_, metrics) in zip(choose.TAILS, measured, strict=True)]
        run.progress(phase, 1, lowest=shift.lowest, highest=shift.highest, curve=curve)
    return Model(
        views=run.views,
        blend=blend,
        config=run.config,
        n_features=data.X.shape[1],
        label_frequency=data.all_label_frequency,
        n_documents=data.n_documents,
        shift=shift,
        metrics=curve[0][1],
        machines=run.machines,
    )


def is_needed(name: str, blend: Blend) -> bool:
    """Return whether a view takes part: it has a weight, or a view that has one requires it."""
    weighted = [other for other, weight in blend.weights.items() if weight > 0]
    return name in weighted or any(name in VIEWS[other].requires for other in weighted)
