"""The page of a report: one HTML file without scripts or external files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml import __version__
from lightdxml.metrics import recall_by_frequency
from lightdxml.model.model import Label, Model
from lightdxml.plotting import BLUE, GREEN, ORANGE, PURPLE
from lightdxml.report import analysis, figures, probabilities, training
from lightdxml.report.analysis import DEPTH, TOP, Measured, Outcome
from lightdxml.report.history import phases
from lightdxml.report.markup import NAME, duration, figure, note, percent, section, side_by_side, size, table, text
from lightdxml.report.style import STYLE
from lightdxml.report.training import CUTS

_MEASURES = {
    "P": "precision: fraction of the first k labels that are true",
    "nDCG": "like P, with more weight on the first positions",
    "PSP": "like P, with more weight on rare labels",
    "PSnDCG": "like nDCG, with more weight on rare labels",
    "R": "recall: fraction of a document's labels among the first k",
    "RP": "like R, where a document counts as having k labels at most",
    "coverage": "fraction of labels that are predicted correctly at least once",
    "macro-F1": "F1 of each label, averaged over all labels",
}
_COLORS = {"P": BLUE, "nDCG": GREEN, "PSP": ORANGE, "R": PURPLE}
_SAMPLES, _TEXT = 8, 280
_MAX_MISSED = 10


@dataclass(frozen=True, eq=False)
class Subject:
    """A model, the documents it is measured on, and the results.

    Attributes
    ----------
    model_name, data_name
        Their names, for titles.
    part
        What the documents are, such as `test documents`.
    model, history
        The model and what happened in its training.
    measured
        The predictions and the true labels.
    metrics
        All measures at k from 1 to `analysis.DEPTH`, or up to the last cut-off, in percent.
    frequency
        Training documents per label.
    settings
        How the model was configured, in words.
    texts, ids
        The texts and ids of the documents, or None.
    unknown_names
        Names of labels that the data has and the model does not.
    commands
        The commands that make model and report again.
    cuts
        The cut-offs of measures in tables, ascending. Sections about single labels are about the first labels, up to
        the last cut-off.
    """

    model_name: str
    data_name: str
    part: str
    model: Model
    history: Sequence[dict[str, Any]]
    measured: Measured
    metrics: dict[str, float]
    frequency: NDArray[np.int64]
    settings: str = ""
    texts: Sequence[str] | None = None
    ids: Sequence[str] | None = None
    unknown_names: Sequence[str] = ()
    commands: Sequence[str] = ()
    cuts: Sequence[int] = CUTS

    @property
    def k(self) -> int:
        """The last cut-off."""
        return self.cuts[-1]

    def label(self, j: int) -> str:
        """Return a label as HTML: its name and, if it has them, its notation and its URI."""
        return self._label(j, True)

    def chip(self, j: int) -> str:
        """Return a label as HTML where space is short: its URI is shown only if another label has the same name."""
        return self._label(j, self._shown(j).name in self._shared_names)

    def _label(self, j: int, with_uri: bool) -> str:
        shown = self._shown(j)
        if self.model.label_names is None or self.model.integer_labels:
            return f"label {shown.name}"
        has_uri = shown.id != shown.name
        more = [shown.notation] * bool(shown.notation) + [shown.id] * (has_uri and with_uri)
        hint = f' title="{text(shown.id)}"' if has_uri else ""
        details = "".join(f" <small><bdi>{text(one, NAME)}</bdi></small>" for one in more)
        return f"<bdi{hint}>{text(shown.name, NAME)}</bdi>{details}"

    def _shown(self, j: int) -> Label:
        n = self.model.n_labels
        return self.model.label(j) if j < n else Label(self.unknown_names[j - n], self.unknown_names[j - n])

    @cached_property
    def _shared_names(self) -> set[str]:
        """The names that several labels have."""
        if self.model.vocabulary is None:
            return set()
        counts = Counter(self.model.label(j).name for j in range(self.model.n_labels))
        return {name for name, count in counts.items() if count > 1}


def page(subject: Subject) -> str:
    """Return the whole page, without the history if it is not as training writes it: it is read from a file."""
    try:
        return _page(subject)
    except (TypeError, ValueError, LookupError, ArithmeticError):
        return _page(replace(subject, history=()))


def _page(subject: Subject) -> str:
    counted, model, history = analysis.outcome(subject.measured, subject.k), subject.model, subject.history
    sections = (
        _summary(subject),
        section("Accuracy", _accuracy(subject)),
        section("Probabilities", probabilities.probabilities(subject.measured, subject.k)),
        section("Rare and frequent labels", _frequency(subject, counted)),
        section("Precision or rare labels", training.tail(history)),
        section("Confused labels", _confusions(subject, counted)),
        section("Examples", _samples(subject)),
        section("Training", training.training(history)),
        section("Weights of the views", training.weights(model, history)),
        section("Time and memory", training.phases(history)),
        section("Size of the model", training.sizes(model)),
        section("Reproduce", _commands(subject)),
    )
    title = f"{text(subject.model_name)} on {text(subject.data_name)}"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="lightdxml report">
<title>{title}</title>
<style>{STYLE}</style>
</head>
<body>
<main>
{"".join(sections)}</main>
</body>
</html>
"""


def _summary(subject: Subject) -> str:
    measured = subject.measured
    tiles = "".join(
        f'<div class="tile"><b>{subject.metrics[f"{name}@{k}"]:.1f}</b><span>{name}@{k}</span></div>\n'
        for name in ("P", "PSP")
        for k in subject.cuts
        if f"{name}@{k}" in subject.metrics
    )
    facts = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>\n" for name, value in _facts(subject).items())
    occurring = np.count_nonzero(np.diff(measured.Y.tocsc().indptr))
    return f"""<header>
<p class="kicker">lightdxml report</p>
<h1><bdi>{text(subject.model_name, NAME)}</bdi> on <bdi>{text(subject.data_name, NAME)}</bdi></h1>
<p>Measured on {measured.Y.shape[0]:,} {subject.part} with {occurring:,} different labels, in percent.</p>
<div class="tiles">
{tiles}</div>
<dl>
{facts}</dl>
</header>
"""


def _facts(subject: Subject) -> dict[str, str]:
    model, spent = subject.model, phases(subject.history)
    peaks = [phase.peak_mb for phase in spent if phase.peak_mb is not None]
    facts = {
        "Training documents": f"{model.n_documents:,}",
        "Labels": f"{model.n_labels:,}",
        "Features" if model.vectorizer is None else "Words": f"{model.n_features:,}",
        "True labels among the candidates": f"{subject.measured.reach:.2f}%",
        "Training time": duration(sum(phase.seconds for phase in spent)) if spent else "",
        "Peak memory in training": size(1e6 * max(peaks)) if peaks else "",
        "Size of the model": size(sum(array.nbytes for array in model.arrays().values())),
        "Settings": text(subject.settings),
    }
    return {name: value for name, value in facts.items() if value}


def _accuracy(subject: Subject) -> str:
    metrics, cuts = subject.metrics, range(1, max(DEPTH, subject.k) + 1)
    rows = [
        [name, *(f"{metrics[f'{name}@{k}']:.2f}" for k in subject.cuts), about]
        for name, about in _MEASURES.items()
        if f"{name}@1" in metrics
    ]
    lines = {
        f"{name}@k": (cuts, [metrics[f"{name}@{k}"] for k in cuts], color)
        for name, color in _COLORS.items()
        if f"{name}@1" in metrics
    }
    chart = figures.lines("metrics", "P, nDCG, PSP and R by k", lines, ("k", "%"), ylim=(0, None))
    shown = table(("%", *(f"@{k}" for k in subject.cuts), ""), rows, words=(0, len(subject.cuts) + 1), kind="plain")
    return side_by_side(figure(chart, "Accuracy of the first k labels."), shown)


def _frequency(subject: Subject, counted: Outcome) -> str:
    bins = analysis.by_frequency(counted, subject.frequency)
    rows = [
        [p.name, f"{p.labels:,}", f"{p.pairs:,}", percent(p.recall), f"{p.predicted:,}", percent(p.precision)]
        for p in bins
    ]
    columns = ("training documents per label", "labels", "true", "recall", "predicted", "precision")
    caption = (
        f"Recall: percentage of true labels that are among the first {subject.k} predictions of their documents."
        f" Precision: percentage of the first {subject.k} predictions that are true."
    )
    tables = table(columns, rows, kind="plain") + _rare(subject)
    return side_by_side(figure(figures.frequency(bins, subject.k), caption), tables)


def _rare(subject: Subject) -> str:
    """Return the recall of labels with no, few and more training documents, as `lightdxml evaluate` shows it."""
    cuts = TOP, max(DEPTH, subject.k)
    groups = recall_by_frequency(subject.measured.Y, subject.measured.ranked, subject.frequency, cuts)
    rows = [
        [one.documents, f"{one.labels:,}", f"{one.pairs:,}", *(percent(value) for value in one.recall.values())]
        for one in groups
        if one.pairs
    ]
    columns = ("training documents per label", "labels that occur", "true", *groups[0].recall)
    return "<h3>Labels with no, few and more training documents</h3>\n" + table(columns, rows, kind="plain")


def _confusions(subject: Subject, counted: Outcome) -> str:
    if not counted.missed.any() and not counted.wrong.any():
        return note("There are none: all true labels are predicted, and no others.")
    step = "" if counted.step == 1 else f" Counted on one in {counted.step:,} documents."
    rows = [[subject.label(missed), subject.label(wrong), f"{n:,}"] for missed, wrong, n in counted.confusions]
    return (
        note(
            f"The first label is true, but not among the first {subject.k} predictions."
            f" The second is, but it is wrong.{step}"
        )
        + table(("missed", "predicted instead", "documents"), rows, words=(0, 1))
        + side_by_side(
            "<h3>Most often wrong</h3>\n" + _labels(subject, ("wrong", "predicted"), counted.wrong, counted.predicted),
            "<h3>Most often missed</h3>\n" + _labels(subject, ("missed", "true"), counted.missed, counted.true),
        )
    )


def _labels(subject: Subject, names: tuple[str, str], counts: NDArray[np.int64], of: NDArray[np.int64]) -> str:
    """Return a table of the labels with the highest counts."""
    rows = [
        [subject.label(j), f"{counts[j]:,}", f"{of[j]:,}", f"{subject.frequency[j]:,}"] for j in analysis.most(counts)
    ]
    return table(("label", *names, "in training"), rows)


def _samples(subject: Subject) -> str:
    n = subject.measured.Y.shape[0]
    rows = sorted({i * n // _SAMPLES for i in range(_SAMPLES)})
    return '<div class="samples">\n' + "".join(_sample(subject, i) for i in rows) + "</div>\n"


def _sample(subject: Subject, i: int) -> str:
    Y, k = subject.measured.Y, subject.k
    ranked, scores = subject.measured.ranked[i, :k], subject.measured.scores[i, :k]
    true = Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist()
    predicted = {j: score for j, score in zip(ranked.tolist(), scores.tolist(), strict=True) if j >= 0}
    chips = "".join(
        f'<li class="{"right" if j in true else "wrong"}">{"✓ " if j in true else ""}{subject.chip(j)} '
        f"<small>{score:.2f}</small></li>\n"
        for j, score in predicted.items()
    )
    missed = [j for j in true if j not in predicted]
    more = f" and {len(missed) - _MAX_MISSED:,} more" if len(missed) > _MAX_MISSED else ""
    missing = note("Missed: " + "; ".join(subject.chip(j) for j in missed[:_MAX_MISSED]) + more) if missed else ""
    nothing = "" if true else note("This document has no labels.")
    return f"<article>\n<p>{_document(subject, i)}</p>\n<ul>\n{chips}</ul>\n{missing}{nothing}</article>\n"


def _document(subject: Subject, i: int) -> str:
    name = f"Document {i:,}" if subject.ids is None else text(subject.ids[i], NAME)
    content = "" if subject.texts is None else f"<bdi>{text(subject.texts[i][: 10 * _TEXT], _TEXT)}</bdi>"
    return f"<b>{name}</b> {content}"


def _commands(subject: Subject) -> str:
    lines = "".join(f"{text(command)}\n" for command in subject.commands)
    version = f"Written by lightdxml {text(__version__)}. The same data and settings give the same model, bit for bit."
    return f"<pre>{lines}</pre>\n{note(version)}"
