"""What comes after the cycle: further views, the weights of all views, `tail`, and the refit on held-out documents.

Every view trains in named steps, whose products go into checkpoints (`Run.step`, `Run.solve`). A training that is
resumed takes finished steps from there.
"""

from __future__ import annotations

from dataclasses import replace

from lightdxml.model.blend import Blend, LogLinearBlend, PaperBlend
from lightdxml.model.candidates import Candidates, extended, find_candidates
from lightdxml.model.model import Model
from lightdxml.training import choose
from lightdxml.training.run import Run
from lightdxml.training.state import Best, DenseResult
from lightdxml.views import VIEWS
from lightdxml.views.base import Batch, View

# The views of the paper, which the cycle trains, and the one that stands beside them in the grid of β and γ.
_DENSE, _LINEAR = ("nearness", "classifier"), "linear"


def finalize(run: Run, dense: DenseResult) -> Model:
    """Train the views after the cycle, choose all weights, and return the model that ships."""
    run.views = {"nearness": dense.nearness, "classifier": dense.classifier}
    linear = VIEWS[_LINEAR].train(run)
    if linear is None:
        model = _model(run, PaperBlend(dense.beta))
    else:
        run.views[_LINEAR] = linear
        fit = _BlendFit(run)
        model = _model(run, fit.blend(), fit.candidates)
    if run.data.held_out and run.config.refit:
        model = _refit(run, model)
    return model


def dense_model(run: Run, best: Best) -> Model:
    """Return a model of the paper's two views alone: what is kept of a training that diverged."""
    run.views = {"nearness": best.nearness, "classifier": best.classifier}
    return _model(run, PaperBlend(best.beta))


class _BlendFit:
    """The choice of the weights of all views on the validation documents."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.batch = Batch(run.data.X_validation)
        self.candidates = find_candidates(run.views, self.batch)
        self.shares: dict[str, float] = {}
        self.chosen, self.metrics = self._choose_grid(self.candidates, self.shares)

    def blend(self) -> Blend:
        """Try all further views, each with the ones before it, and return the blend."""
        for name in VIEWS:
            if name not in (*_DENSE, _LINEAR) and self.chosen[1]:
                self._try(name)
        return LogLinearBlend(choose.weights_of(*self.chosen, self.shares))

    def _try(self, name: str) -> None:
        """Train a view; keep it if it adds enough precision, and choose β and γ again with it."""
        run = self.run
        run.is_worth = lambda trial: self._share(name, trial)[0] > 0
        view = VIEWS[name].train(run)
        if view is None:
            return
        share, metrics, candidates = self._share(name, view)
        if share == 0:
            return
        shares = {**self.shares, name: share}
        chosen, metrics = self._choose_grid(candidates, shares)
        if chosen[1]:
            run.views[name] = view
            self.candidates, self.shares, self.chosen, self.metrics = candidates, shares, chosen, metrics

    def _share(self, name: str, view: View) -> tuple[float, choose.Metrics, Candidates]:
        """Return the best share of a view, 0 if it adds too little, with its measures and the candidates."""
        run, options = self.run, self.run.config.blend
        with run.phase("share") as phase:
            candidates = extended(self.candidates, run.views, name, view, self.batch)
            curve = choose.share_curve(run, candidates, self.chosen, self.shares, name)
            share, metrics = choose.choose(curve, options.share_tolerance)
            before = choose.weights_of(*self.chosen, self.shares)
            after = choose.weights_of(*self.chosen, {**self.shares, name: share})
            gain, error = choose.gain(run, candidates, before, after)
            # With few validation documents there is no choice: the view is kept at its default share.
            if gain < max(options.min_gain, options.min_errors * error) and len(curve) > 1:
                share = 0.0
            run.progress(phase, 1, view=name, share=share, gain=gain, error=error, curve=curve, **metrics)
        outcome = f"weight {share:g} · γ" if share else "too little to keep it"
        run.say(f"{view.about}: {gain:+.2f} ± {error:.2f} points of mean P, {outcome}")
        return share, metrics, candidates

    def _choose_grid(
        self, candidates: Candidates, shares: dict[str, float]
    ) -> tuple[tuple[float, float], choose.Metrics]:
        run = self.run
        with run.phase("blend") as phase:
            results = choose.grid(run, candidates, shares)
            (beta, gamma), metrics = choose.choose_smooth(results, run.config.blend.grid_tolerance)
            run.progress(phase, 1, beta=beta, gamma=gamma, grid=results, **metrics)
        run.say(f"blend: validation P@1 {metrics['P@1']:.2f}, PSP@1 {metrics['PSP@1']:.2f}, β {beta:g}, γ {gamma:g}")
        return (beta, gamma), metrics


def _model(run: Run, blend: Blend, candidates: Candidates | None = None) -> Model:
    """Return the model of the views that have a weight, measured as it ships, with its strength of `tail`.

    `candidates` are those that all views together propose for validation documents, if they are known.
    """
    data, options = run.data, run.config.blend
    needed = {name: view for name, view in run.views.items() if is_needed(name, blend)}
    if candidates is None or len(needed) < len(run.views):
        candidates = find_candidates(needed, Batch(data.X_validation))
    run.views = needed
    scores = blend.combine(candidates.log_scores)
    with run.phase("tail") as phase:
        default = options.default_tail if _LINEAR in run.views else options.default_paper_tail
        strength = choose.choose_tail(run, candidates.labels, scores, default)
        measured = choose.tail_curve(run, candidates.labels, scores, [tail * strength for tail in choose.TAILS])
        curve = [(tail, metrics) for tail, (_, metrics) in zip(choose.TAILS, measured, strict=True)]
        run.progress(phase, 1, strength=strength, curve=curve)
    return Model(
        views=run.views,
        blend=blend,
        config=run.config,
        n_features=data.X.shape[1],
        label_frequency=data.label_frequency,
        n_documents=data.X.shape[0],
        tail_strength=strength,
        metrics=choose.measure(run, candidates.labels, scores),
    )


def is_needed(name: str, blend: Blend) -> bool:
    """Return whether a view takes part: it has a weight, or it finds the shortlist that the classifier scores."""
    weights = blend.weights
    return weights.get(name, 0) > 0 or (name == "nearness" and weights.get("classifier", 0) > 0)


def _refit(run: Run, model: Model) -> Model:
    """Return the model with views that have learned the held-out documents too; all choices stay."""
    views = {name: type(view).refit(run) or view for name, view in model.views.items()}
    return replace(model, views=views)
