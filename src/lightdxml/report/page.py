"""The page of a report: HTML with everything in it. Whatever comes from outside goes through `text`."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lightdxml import __version__
from lightdxml.model import Model
from lightdxml.report import analysis, figures
from lightdxml.report.analysis import TOP, Measured, Outcome
from lightdxml.report.style import STYLE
from lightdxml.training.blend import THREE_VIEWS_TOLERANCE, TOLERANCE

_CUTS = (1, 3, 5)
_MEASURES = {
    "P": "the share of the first k that is true",
    "nDCG": "the first places count more",
    "PSP": "precision, rare labels count more",
    "PSnDCG": "nDCG, rare labels count more",
    "R": "the share of a document's labels that is found",
    "coverage": "the share of the labels ever got right",
    "macro-F1": "the mean over all labels of their F1",
}
_SAMPLES = 8
_TEXT, _NAME = 280, 90


@dataclass(frozen=True, eq=False)
class Subject:
    """What a report is about.

    Attributes
    ----------
    model_name, data_name
        What to call them.
    part
        Which documents these are, as in `test documents`.
    estimator
        The trained `LightDXML`.
    measured
        What it ranks first, next to what is true.
    metrics
        All measures at k from 1 to `analysis.DEPTH`, in percent.
    frequency
        How many training documents each label has.
    train_documents
        How many documents there were to train on; None where that is not known.
    texts, ids
        The documents' texts and names, where there are some.
    unseen_names
        The names of labels that the data has and the model does not.
    commands
        How to make model and report again.
    """

    model_name: str
    data_name: str
    part: str
    estimator: Any
    measured: Measured
    metrics: dict[str, float]
    frequency: NDArray[np.int64]
    train_documents: int | None = None
    texts: Sequence[str] | None = None
    ids: Sequence[str] | None = None
    unseen_names: Sequence[str] = ()
    commands: Sequence[str] = ()


def page(subject: Subject) -> str:
    """Return the whole page."""
    counted = analysis.outcome(subject.measured)
    sections = (
        _summary(subject),
        _section("Accuracy", _accuracy(subject)),
        _section("Training", _training(subject)),
        _section("How much each view counts", _shares(subject)),
        _section("Precision or rare labels", _tail(subject)),
        _section("From rare to frequent labels", _frequency(subject, counted)),
        _section("Most confused labels", _confusions(subject, counted)),
        _section("Time", _time(subject)),
        _section("Memory", _memory(subject)),
        _section("A few documents", _samples(subject)),
        _section("Again", _commands(subject)),
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


def text(value: object, limit: int | None = None) -> str:
    r"""Return anything as HTML text on one line, cut after so many characters.

    >>> text('<b> & "quotes"\n\x00', 10)
    '&lt;b&gt; &amp; &quot;quo…'
    """
    # Half a surrogate pair cannot be written, and a control character is no text in HTML.
    whole = str(value).encode("utf-8", "replace").decode("utf-8")
    line = "".join(c if c.isprintable() or not c.isascii() else " " for c in whole)
    line = "".join("\ufffd" if "\x7f" <= c < "\xa0" else c for c in " ".join(line.split()))
    if limit is not None and len(line) > limit:
        line = line[:limit].rstrip() + "…"
    return html.escape(line)


def _section(title: str, content: str) -> str:
    return f"<section>\n<h2>{title}</h2>\n{content}</section>\n"


def _note(sentence: str) -> str:
    return f'<p class="note">{sentence}</p>\n'


def _figure(svg: str, caption: str) -> str:
    return f"<figure>\n{svg}\n<figcaption>{caption}</figcaption>\n</figure>\n"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], words: Sequence[int] = (0,)) -> str:
    """Return a table of HTML cells; `words` are the columns that are not numbers."""
    kinds = ["" if i in words else ' class="number"' for i in range(len(columns))]
    head = "".join(f"<th{kind}>{name}</th>" for kind, name in zip(kinds, columns, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds, row, strict=True)) + "</tr>\n"
        for row in rows
    )
    return f'<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n'


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def duration(seconds: float) -> str:
    """Return a time as people say it.

    >>> duration(3.21), duration(80), duration(7384)
    ('3.2 s', '1 min 20 s', '2 h 3 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
    return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min"


def size(n_bytes: float) -> str:
    """Return a size as people say it.

    >>> size(999), size(12_345_678), size(3e9)
    ('999 B', '12.3 MB', '3.0 GB')
    """
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if n_bytes >= unit:
            return f"{n_bytes / unit:.1f} {name}"
    return f"{n_bytes:.0f} B"


def _label(subject: Subject, j: int) -> str:
    names = subject.estimator.model_.label_names
    n = subject.estimator.model_.n_labels
    if j >= n:
        return f"<bdi>{text(subject.unseen_names[j - n], _NAME)}</bdi>"
    return f"label {j}" if names is None else f"<bdi>{text(names[j], _NAME)}</bdi>"


def _history(subject: Subject) -> list[dict[str, Any]]:
    return [entry for entry in getattr(subject.estimator, "history_", []) if isinstance(entry, dict)]


def _summary(subject: Subject) -> str:
    measured, n_documents = subject.measured, subject.measured.Y.shape[0]
    tiles = "".join(
        f'<div class="tile"><b>{subject.metrics[f"{name}@{k}"]:.1f}</b><span>{name}@{k}</span></div>\n'
        for name in ("P", "PSP")
        for k in _CUTS
        if f"{name}@{k}" in subject.metrics
    )
    facts = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>\n" for name, value in _facts(subject))
    occurring = np.count_nonzero(np.diff(measured.Y.tocsc().indptr))
    return f"""<header>
<p class="kicker">lightdxml report</p>
<h1><bdi>{text(subject.model_name, _NAME)}</bdi> on <bdi>{text(subject.data_name, _NAME)}</bdi></h1>
<p>Measured on {n_documents:,} {subject.part}, in which {occurring:,} labels occur, in percent.</p>
<div class="tiles">
{tiles}</div>
<dl>
{facts}</dl>
</header>
"""


def _facts(subject: Subject) -> list[tuple[str, str]]:
    model, history = subject.estimator.model_, _history(subject)
    seconds = sum(phase.seconds for phase in analysis.phases(history))
    preset, changed = analysis.nearest_preset(model.config, subject.train_documents)
    settings = f"preset {text(preset)}"
    if changed:
        settings += " with " + ", ".join(f"{name} = {text(analysis.plain(value))}" for name, value in changed.items())
    facts = [
        ("Labels", f"{model.n_labels:,}"),
        ("Features" if model.vectorizer is None else "Words", f"{model.n_features:,}"),
        ("β, the classifier's share", f"{model.beta:g}"),
        *([] if model.sparse is None else [("γ, the sparse view's share", f"{model.gamma:g}")]),
        *([] if model.tree is None else [("the label tree beside it", f"{model.tree_share:g}")]),
        ("True labels among the candidates", f"{subject.measured.reach:.2f} %"),
        ("Size of the model", size(sum(array.bytes for array in analysis.arrays(model)))),
        ("Settings", settings),
    ]
    if subject.train_documents is not None:
        facts.insert(0, ("Training documents", f"{subject.train_documents:,}"))
    if history:
        facts.insert(3, ("Time in the phases of training", duration(seconds)))
    peak = _peak(history)
    if peak is not None:
        facts.insert(-1, ("Most memory in training", size(1e6 * peak)))
    return facts


def _peak(history: list[dict[str, Any]]) -> float | None:
    return max((peak for phase in analysis.phases(history) if (peak := phase.peak_mb) is not None), default=None)


def _accuracy(subject: Subject) -> str:
    measured = subject.metrics
    rows = [
        [name, *(f"{measured[f'{name}@{k}']:.2f}" for k in _CUTS), says]
        for name, says in _MEASURES.items()
        if f"{name}@1" in measured
    ]
    table = _table(("%", *(f"@{k}" for k in _CUTS), ""), rows, words=(0, 4))
    drawn = _figure(figures.metrics(measured, analysis.DEPTH), "How deep in the ranking the true labels stand.")
    return f'<div class="pair">\n{drawn}<div class="plain">{table}</div>\n</div>\n'


def _training(subject: Subject) -> str:
    history = _history(subject)
    drawn = ""
    epochs, losses = analysis.series(history, "classifier", "loss")
    if losses:
        drawn += _figure(figures.loss(epochs, losses), "The classifier's loss on training documents.")
    kept = analysis.kept_validation(history)
    lines = {name: analysis.series(history, "validation", name) for name in ("P@1", "PSP@1")}
    if kept is not None and lines["P@1"][1]:
        drawn += _figure(
            figures.validation({name: line for name, line in lines.items() if line[1]}, kept[0]),
            "On validation documents, at every refresh of the label embeddings; the best model was kept.",
        )
    if not drawn:
        return _note("The model has no record of its training.")
    return f'<div class="pair">\n{drawn}{_shortlist_figure(history)}</div>\n{_shortlist_note(history)}'


def _shortlist_figure(history: list[dict[str, Any]]) -> str:
    epochs, shares = analysis.series(history, "shortlist", "recall_of_exact")
    if not shares or min(shares) == 1:
        return ""
    return _figure(figures.shortlist(epochs, shares), "What the index finds of the labels that are nearest indeed.")


def _shortlist_note(history: list[dict[str, Any]]) -> str:
    _, shares = analysis.series(history, "shortlist", "recall_of_exact")
    if shares and min(shares) == 1:
        return _note("The index found all of the labels that were nearest: the recall of its shortlists was 100 %.")
    return ""


def _with_tree(model: Model) -> str:
    return "" if model.tree is None else f", to which label trees add {model.tree_share:g} · γ of their own opinion"


def _shares(subject: Subject) -> str:
    """Return what the views' shares in the score are, and what others would have given."""
    model = subject.estimator.model_
    history = _history(subject)
    if model.sparse is not None:
        curve, symbol, chosen = analysis.gamma_curve(history, model.beta), "γ", model.gamma
        ends, within = ("the dense views alone", "the sparse view alone"), f"{THREE_VIEWS_TOLERANCE:g} %"
        beside = ", in the mean with those of the shares beside them,"
        score = (
            "The logarithm of a label's score is γ · sparse view + (1 − γ) · (β · classifier + (1 − β) · nearness of "
            f"the label embedding), with β {model.beta:g}{_with_tree(model)}. Of the β and γ"
        )
    else:
        kept = analysis.kept_validation(history)
        curve, symbol, chosen = analysis.beta_curve(kept[1]) if kept is not None else [], "β", model.beta
        ends, within, beside = ("label embeddings alone", "classifier alone"), f"{TOLERANCE:g} points", ""
        score = "The score of a label is β · classifier + (1 − β) · nearness of the label embedding. Of the β"
    if len(curve) < 2:
        why = "no other was tried in training" if curve else "the model has no record of how it was chosen"
        return _note(f"{symbol} is {chosen:g}; {why}.")
    says = (
        f"{score} whose P@1, P@3 and P@5 on validation documents{beside} are within {within} of the best, the "
        "one with the highest mean PSP is taken."
    )
    shown = {0.0, 0.25, 0.5, 0.75, 1.0, chosen} if model.sparse is None else {value for value, _ in curve}
    rows = [
        [_chosen(value, chosen), *(_percent(f) for name in ("P", "PSP") for f in _first_and_mean(name, found))]
        for value, found in curve
        if value in shown
    ]
    table = _table((symbol, "P@1", "P, mean", "PSP@1", "PSP, mean"), rows)
    drawn = _figure(figures.share(curve, chosen, symbol, ends), "On validation documents; means over @1, @3 and @5.")
    return f'<div class="pair">\n{drawn}<div>{table}{_note(says)}</div>\n</div>\n'


def _tail(subject: Subject) -> str:
    """Return what `tail` gives for rare labels, and what it costs."""
    curve = analysis.tail_curve(_history(subject))
    if len(curve) < 2:
        return _note("The model has no record of what <code>tail</code> does.")
    if all(found == curve[0][1] for _, found in curve):
        return _note("On validation documents <code>tail</code> changed nothing.")
    says = (
        "<code>tail</code>, an option of predict, evaluate and explain, lowers the scores of frequent labels: from 0, "
        "where all of this report was measured, to 1. It can be set anew with every prediction."
    )
    rows = [
        [f"{value:g}", *(_percent(found[f"{name}@{k}"]) for name in ("P", "PSP") for k in _CUTS)]
        for value, found in curve
    ]
    table = _table(("tail", *(f"{name}@{k}" for name in ("P", "PSP") for k in _CUTS)), rows)
    drawn = _figure(figures.tail(curve), "On validation documents; each half has a scale of its own.")
    return f'<div class="pair">\n{drawn}<div>{table}{_note(says)}</div>\n</div>\n'


def _chosen(beta: float, chosen: float) -> str:
    return f"<b>{beta:g} ✓</b>" if beta == chosen else f"{beta:g}"


def _first_and_mean(name: str, found: dict[str, float]) -> tuple[float, float]:
    return found[f"{name}@1"], sum(found[f"{name}@{k}"] for k in _CUTS) / len(_CUTS)


def _frequency(subject: Subject, counted: Outcome) -> str:
    bins = analysis.by_frequency(counted, subject.frequency)
    rows = [
        [p.name, f"{p.labels:,}", f"{p.pairs:,}", _percent(p.recall), f"{p.predicted:,}", _percent(p.precision)]
        for p in bins
    ]
    columns = ("in training", "labels", "true", "recall", "given", "precision")
    says = (
        f"Recall: the share of the true pairs of document and label among the first {TOP}. Precision: the share of "
        f"the first {TOP} that is true. Both by how many training documents a label has."
    )
    drawn = _figure(figures.frequency(bins), says)
    return f'<div class="pair">\n{drawn}<div class="plain">{_table(columns, rows)}</div>\n</div>\n'


def _confusions(subject: Subject, counted: Outcome) -> str:
    if not counted.missed.any() and not counted.wrong.any():
        return _note("There are none: all that is true was given, and nothing else.")
    every = "" if counted.every == 1 else f" Counted on every {counted.every}th document."
    parts = [
        _note(f"The first label is true and missing from the first {TOP}, in which the second one is, wrongly.{every}"),
        _table(
            ("true, missed", "given, wrong", "documents"),
            [
                [_label(subject, one.missed), _label(subject, one.given), f"{one.documents:,}"]
                for one in counted.confusions
            ],
            words=(0, 1),
        ),
        '<div class="pair">\n',
        _label_table(subject, "Most often wrong", "wrong", counted.wrong, counted.predicted, "given"),
        _label_table(subject, "Most often missed", "missed", counted.missed, counted.true, "true"),
        "</div>\n",
    ]
    return "".join(parts)


def _label_table(
    subject: Subject, title: str, name: str, counts: NDArray[np.int64], of: NDArray[np.int64], of_name: str
) -> str:
    rows = [
        [_label(subject, j), f"{counts[j]:,}", f"{of[j]:,}", f"{subject.frequency[j]:,}"] for j in analysis.most(counts)
    ]
    return f"<div><h3>{title}</h3>\n{_table(('label', name, of_name, 'in training'), rows)}</div>\n"


def _bars(rows: Sequence[tuple[str, float, Sequence[str]]], columns: Sequence[str]) -> str:
    """Return a table with a bar in every row; a row is a name, how long its bar is, and further cells."""
    longest = max((length for _, length, _ in rows), default=0) or 1
    cells = [
        [name, f'<span class="bar" style="width:{100 * length / longest:.1f}%"></span>', *more]
        for name, length, more in rows
    ]
    return _table((columns[0], "", *columns[1:]), cells, words=(0, 1)).replace("<table>", '<table class="bars">')


def _time(subject: Subject) -> str:
    history = _history(subject)
    spent = [phase for phase in analysis.phases(history) if phase.seconds > 0]
    if not spent:
        return _note("The model has no record of its training.")
    total = sum(phase.seconds for phase in spent)
    rows = [
        (
            text(phase.name, _NAME),
            phase.seconds,
            (duration(phase.seconds), f"{100 * phase.seconds / total:.1f} %", f"{phase.times:,}"),
        )
        for phase in spent
    ]
    table = _bars(rows, ("phase", "time", "share", "times")) + _note(f"In all {duration(total)}.")
    first, cycles = _cycles(history)
    drawn = _figure(figures.time(cycles, first), "Every cycle: label embeddings, shortlists, classifier epochs.")
    return f'<div class="pair">\n{drawn}<div>{table}</div>\n</div>\n'


def _cycles(history: list[dict[str, Any]]) -> tuple[int, list[dict[str, float]]]:
    """Return the first cycle's number, and of every cycle the seconds by phase."""
    found: dict[int, dict[str, float]] = {}
    for entry in history:
        cycle = int(analysis.number(entry, "cycle") or 0)
        phase = entry.get("phase") if entry.get("phase") in figures.PHASES else "other"
        seconds = found.setdefault(cycle, {})
        seconds[str(phase)] = seconds.get(str(phase), 0.0) + (analysis.number(entry, "seconds") or 0.0)
    return min(found), [found[cycle] for cycle in sorted(found)]


def _memory(subject: Subject) -> str:
    rows = [
        (
            text(array.name, _NAME),
            float(array.bytes),
            (size(array.bytes), " × ".join(f"{n:,}" for n in array.shape), array.kind),
        )
        for array in analysis.arrays(subject.estimator.model_)
    ]
    parts = [_bars(rows, ("array of the model", "size", "shape", "type"))]
    peaks = [phase for phase in analysis.phases(_history(subject)) if phase.peak_mb is not None]
    if peaks:
        parts.append("<h3>In training, at most</h3>\n")
        parts.append(
            _bars(
                [(text(p.name, _NAME), p.peak_mb or 0.0, (size(1e6 * (p.peak_mb or 0.0)),)) for p in peaks],
                ("phase", "memory"),
            )
        )
    return "".join(parts)


def _samples(subject: Subject) -> str:
    n = subject.measured.Y.shape[0]
    rows = sorted({i * n // _SAMPLES for i in range(_SAMPLES)})
    return '<div class="samples">\n' + "".join(_sample(subject, i) for i in rows) + "</div>\n"


def _sample(subject: Subject, i: int) -> str:
    Y, ranked, scores = subject.measured.Y, subject.measured.ranked[i, :TOP], subject.measured.scores[i, :TOP]
    true = Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist()
    given = [(j, score) for j, score in zip(ranked.tolist(), scores.tolist(), strict=True) if j >= 0]
    chips = "".join(
        f'<li class="{"right" if j in true else "wrong"}">{"✓ " if j in true else ""}{_label(subject, j)} '
        f"<small>{score:.2f}</small></li>\n"
        for j, score in given
    )
    missed = [j for j in true if j not in {label for label, _ in given}]
    more = f" and {len(missed) - 10} more" if len(missed) > 10 else ""
    rest = "; ".join(_label(subject, j) for j in missed[:10]) + more
    missing = f'<p class="note">Missing: {rest}</p>\n' if missed else ""
    nothing = "" if true else _note("It has no labels.")
    return f"<article>\n<p>{_document(subject, i)}</p>\n<ul>\n{chips}</ul>\n{missing}{nothing}</article>\n"


def _document(subject: Subject, i: int) -> str:
    name = f"<b>{text(subject.ids[i], _NAME)}</b> " if subject.ids is not None else f"<b>Document {i:,}</b> "
    return name + (f"<bdi>{text(subject.texts[i][: 10 * _TEXT], _TEXT)}</bdi>" if subject.texts is not None else "")


def _commands(subject: Subject) -> str:
    lines = "".join(f"{text(command)}\n" for command in subject.commands)
    says = f"Made by lightdxml {text(__version__)}. The same data and settings give the same model, to the bit."
    return f"<pre>{lines}</pre>\n{_note(says)}"
