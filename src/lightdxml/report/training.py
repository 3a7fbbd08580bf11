"""The sections about training and model: loss, validation, weights of the views, `tail`, time, memory, sizes."""

from __future__ import annotations

from collections.abc import Mapping

from lightdxml.model.blend import GROUP_NAMES, LogisticBlend
from lightdxml.model.model import Model
from lightdxml.plotting import BLUE, GREEN, ORANGE
from lightdxml.report import figures
from lightdxml.report import history as log
from lightdxml.report.history import Curve, History, series
from lightdxml.report.markup import NAME, bars, duration, figure, note, percent, side_by_side, size, table, text

CUTS = (1, 3, 5)
_NO_HISTORY = "The model has no record of its training."
_EPOCHS = "classifier epochs"


def training(history: History) -> str:
    """Return loss, validation accuracy and recall of shortlists."""
    blocks = []
    epochs, losses = series(history, "classifier", "loss")
    if losses:
        line = {"loss": (epochs, losses, BLUE)}
        chart = figures.lines("loss", "Training loss by epoch", line, (_EPOCHS, "loss per document"), ylim=(0, None))
        blocks.append(figure(chart, "Loss of the classifier on training documents."))
    kept = log.kept_validation(history)
    found = {name: series(history, "validation", name) for name in ("P@1", "PSP@1")}
    if kept is not None and found["P@1"][1]:
        lines = {name: (*found[name], color) for name, color in (("P@1", BLUE), ("PSP@1", ORANGE))}
        chart = figures.lines("validation", "Validation P@1 and PSP@1 by epoch", lines, (_EPOCHS, "%"), kept[0])
        caption = "Accuracy of the dense views on validation documents, at every refresh. The best ones are kept."
        blocks.append(figure(chart, caption))
    if not blocks:
        return note(_NO_HISTORY if not history else "No embeddings were trained.")
    epochs, recalls = series(history, "shortlist", "recall")
    if recalls and min(recalls) < 1:
        line = {"recall": (epochs, [100 * recall for recall in recalls], GREEN)}
        axes = (_EPOCHS, "% of the exact shortlist")
        chart = figures.lines("shortlist", "Recall of the shortlists by epoch", line, axes, ylim=(None, 100.5))
        blocks.append(figure(chart, "Percentage of the nearest labels that the index finds."))
    exact = note("The index found all of the nearest labels: the recall of the shortlists was 100%.")
    return side_by_side(*blocks) + (exact if recalls and min(recalls) == 1 else "")


def weights(model: Model, history: History) -> str:
    """Return the weight of each view, and the accuracy that other weights would have given."""
    if isinstance(model.blend, LogisticBlend):
        return _logistic_weights(model, model.blend, history)
    rows = [
        (text(name), text(view.about), f"{model.blend.weights.get(name, 0):.3g}") for name, view in model.views.items()
    ]
    shown = table(("view", "", "weight"), rows, words=(0, 1), kind="plain")
    meaning, kept = "The score is β · classifier + (1 − β) · nearness.", log.kept_validation(history)
    if kept is None:
        return shown + note("The model has no record of how the weights were chosen.")
    chosen, points = kept[1]["beta"], kept[1]["curve"]
    if len(points) < 2:
        return shown + note(f"{meaning} β is {chosen:g}; no other value was tried.")
    rule = (
        "Of the values whose P@1, P@3 and P@5 on validation documents are within"
        f" {model.config.blend.tolerance:g} points of the best, the one with the best PSP is chosen."
    )
    chart = figures.trade_off("β", points, "β: 0 label embeddings only, 1 classifier only", ("β", chosen))
    caption = "Accuracy by β on validation documents."
    return side_by_side(figure(chart, caption) + note(f"{meaning} {rule}"), shown + _curve_table("β", points, chosen))


def _logistic_weights(model: Model, blend: LogisticBlend, history: History) -> str:
    """Return the weights by number of training documents, and what each view that was tried adds."""
    rows = [
        *(
            (f"{text(name)}, {what}", *(f"{one:.2f}" for one in row))
            for name, slopes in blend.slopes.items()
            for what, row in (("log p", slopes.low), ("−log(1 − p)", slopes.high))
        ),
        ("bias", *(f"{one:+.2f}" for one in blend.biases)),
    ]
    shown = table(("weight of view", *GROUP_NAMES), rows, words=(0,), kind="plain")
    meaning = note(
        "The score of a label is σ(bias + Σ weight · log p − weight · log(1 − p)) over the scores p of the views,"
        " fitted to validation documents. Columns are numbers of training documents of a label."
    )
    tried = {entry["view"]: entry for entry in history if entry["phase"] == "view"}
    if not tried:
        return shown + meaning
    gains = [(text(name), f"{one['gain']:+.2f}", f"{one['error']:.2f}") for name, one in tried.items()]
    columns = ("view that was tried", "gain in mean P", "standard error")
    return side_by_side(shown + meaning, table(columns, gains, words=(0,), kind="plain"))


def _curve_table(symbol: str, points: Curve, chosen: float) -> str:
    # Half of the 21 values of β are enough.
    step = 2 if len(points) > 15 else 1
    rows = [
        [
            f"<b>{value:g} ✓</b>" if value == chosen else f"{value:g}",
            *(percent(one) for name in ("P", "PSP") for one in (found[f"{name}@1"], _mean(found, name))),
        ]
        for i, (value, found) in enumerate(points)
        if i % step == 0 or value == chosen
    ]
    return table((symbol, "P@1", "mean P", "PSP@1", "mean PSP"), rows)


def _mean(found: Mapping[str, float], name: str) -> float:
    return sum(found[f"{name}@{k}"] for k in CUTS) / len(CUTS)


def tail(history: History) -> str:
    """Return what `tail` gains for rare labels, and what it costs."""
    points: Curve = next((entry["curve"] for entry in reversed(history) if entry["phase"] == "tail"), ())
    if not points:
        return note("The model has no record of the effect of <code>tail</code>.")
    if all(found == points[0][1] for _, found in points):
        return note("Values of <code>tail</code> above 0 changed nothing on validation documents.")
    rows = [
        [f"{value:g}", *(percent(found[f"{name}@{k}"]) for name in ("P", "PSP") for k in CUTS)]
        for value, found in points
    ]
    meaning = note(
        "<code>tail</code> is an option of predict, evaluate and explain. It lowers the scores of frequent labels: at"
        " 0 as far as it costs no precision, above 0 further. All other sections of this report use 0."
    )
    chart = figures.trade_off("tail", points, "tail: 0 for precision, 1 for rare labels")
    columns = ("tail", *(f"{name}@{k}" for name in ("P", "PSP") for k in CUTS))
    return side_by_side(figure(chart, "Accuracy by tail on validation documents.") + meaning, table(columns, rows))


def phases(history: History) -> str:
    """Return how long each phase of training took, and the peak memory until its end."""
    spent = [phase for phase in log.phases(history) if phase.seconds > 0]
    if not spent:
        return note(_NO_HISTORY)
    total = sum(phase.seconds for phase in spent)
    rows = [
        (
            text(phase.name, NAME),
            phase.seconds,
            (
                duration(phase.seconds),
                f"{100 * phase.seconds / total:.1f}%",
                f"{phase.times:,}",
                "–" if phase.peak_mb is None else size(1e6 * phase.peak_mb),
            ),
        )
        for phase in spent
    ]
    explained = f"Total: {duration(total)}. Peak memory is that of the process from its start to the end of the phase."
    return bars(rows, ("phase", "time", "", "runs", "peak memory")) + note(explained)


def sizes(model: Model) -> str:
    """Return the size of each array of the model, the largest first."""
    arrays = sorted(model.arrays().items(), key=lambda item: -item[1].nbytes)
    rows = [
        (
            text(name, NAME),
            float(one.nbytes),
            (size(one.nbytes), " × ".join(f"{n:,}" for n in one.shape), str(one.dtype)),
        )
        for name, one in arrays
        if one.nbytes
    ]
    return bars(rows, ("array", "size", "shape", "type"))
