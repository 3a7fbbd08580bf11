"""What `lightdxml evaluate` measures of the labels that are kept: by a limit, by a threshold, by label."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from lightdxml.cli.output import print_table, printable, say

if TYPE_CHECKING:
    from lightdxml.cli.measure import Measured
    from lightdxml.model.model import Model

_PANEL = "Which labels to keep"
Threshold = Annotated[
    str | None,
    typer.Option(
        "--threshold",
        metavar="T",
        help="Keep labels with a probability of at least T: a number from 0 to 1, or a goal (`auto`, `micro-f1`,"
        " `macro-f1`, `samples-f1`, `precision=0.9`) whose best threshold on validation documents is used.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
ByFrequency = Annotated[
    bool,
    typer.Option(
        "--by-frequency", help="Use a threshold for each group of labels of similar frequency.", rich_help_panel=_PANEL
    ),
]
Grid = Annotated[
    bool,
    typer.Option("--grid", help="Show F1 for thresholds from 0 to 0.9 and 1 to 10 labels.", rich_help_panel=_PANEL),
]
PerLabel = Annotated[
    Path | None,
    typer.Option(
        "--per-label",
        metavar="FILE",
        help="Write precision, recall and F1 of each label to this TSV file.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
_AVERAGES = {"micro": "all pairs (micro)", "macro": "labels (macro)", "samples": "documents (samples)"}
_FIRST_COLUMN = "name"


@dataclass(frozen=True)
class Least:
    """The probability from which labels are kept.

    Attributes
    ----------
    shown
        What was asked for, and what it means.
    of_label
        One per label.
    """

    shown: str
    of_label: NDArray[np.float64]

    @classmethod
    def of(cls, model: Model, text: str | None, by_frequency: bool, n_labels: int) -> Least | None:
        """Return the thresholds that options ask for, None for none. Unknown labels are never predicted."""
        from lightdxml.model.model import label_thresholds

        if text is None:
            if by_frequency:
                raise ValueError("--by-frequency needs a threshold: give --threshold auto, too")
            return None
        given = parse_threshold(text)
        found = label_thresholds(model, given, by_frequency)
        low, high = float(found.min()), float(found.max())
        shown = f"{low:g}" if low == high else f"{low:g} to {high:g}"
        shown = shown if isinstance(given, float) else f"{shown} ({text})"
        return cls(shown, np.append(found, np.full(n_labels - len(found), high)))


def parse_threshold(text: str) -> float | str:
    """Return the threshold that an option gives: a number, or a measure to choose it for.

    >>> parse_threshold("0.3"), parse_threshold("auto")
    (0.3, 'auto')
    >>> parse_threshold("30%")
    Traceback (most recent call last):
    ValueError: threshold is '30%': give a number from 0 to 1, auto, micro-f1, macro-f1, samples-f1 or precision=0.9
    """
    from lightdxml.model.thresholds import check_threshold

    try:
        threshold: float | str = float(text)
    except ValueError:
        threshold = text
    check_threshold(threshold)
    return threshold


def check_per_label(path: Path) -> None:
    """Raise a `ValueError` if a table of labels cannot be written to a path, or would replace something else."""
    from lightdxml.data.files import check_replaceable

    check_replaceable(path, f"{_FIRST_COLUMN}\t".encode(), "a table of labels", "labels.tsv")


@dataclass(frozen=True)
class Decisions:
    """Measures of the labels that are kept.

    Attributes
    ----------
    k, threshold
        How many labels are kept at most; from which probability on, without such a limit, or None.
    at_k, at_threshold
        Averages of precision, recall and F1 of the two, in percent.
    calibration_error
        The expected calibration error of the first k labels, from 0 to 1.
    grid
        F1 for thresholds and limits, or None.
    """

    k: int
    threshold: Least | None
    at_k: dict[str, float]
    at_threshold: dict[str, float] | None
    calibration_error: float
    grid: dict[str, Any] | None

    def as_json(self) -> dict[str, Any]:
        """Return everything for JSON."""
        content: dict[str, Any] = {f"{name}@{self.k}": value for name, value in self.at_k.items()}
        content[f"ECE@{self.k}"] = self.calibration_error
        if self.at_threshold is not None and self.threshold is not None:
            low, high = float(self.threshold.of_label.min()), float(self.threshold.of_label.max())
            content["at_threshold"] = {"lowest": low, "highest": high, **self.at_threshold}
        return content if self.grid is None else {**content, "grid": self.grid}


def measure_decisions(found: Measured, k: int, threshold: Least | None, with_grid: bool) -> Decisions:
    """Measure the first k labels, those from a threshold on, and a grid of both."""
    from lightdxml.metrics import decision_measures, expected_calibration_error, first_labels

    Y, ignore = found.documents.Y, found.documents.ignore
    given = Y, found.ranked, found.scores
    at_threshold = None if threshold is None else decision_measures(*given, threshold.of_label, ignore=ignore)
    error = expected_calibration_error(*first_labels(*given, k, ignore))
    at_k = decision_measures(*given, k=k, ignore=ignore)
    return Decisions(k, threshold, at_k, at_threshold, error, _grid(found) if with_grid else None)


def _grid(found: Measured) -> dict[str, Any]:
    from lightdxml.metrics import decisions

    measured = decisions.threshold_grid(found.documents.Y, found.ranked, found.scores, ignore=found.documents.ignore)
    axes = {"thresholds": list(decisions.THRESHOLDS), "limits": list(decisions.LIMITS)}
    return axes | {name: values.tolist() for name, values in measured.items()}


def show_decisions(decisions: Decisions) -> None:
    """Print averages of precision, recall and F1, and the grid."""
    kept = {f"@{decisions.k}": decisions.at_k}
    if decisions.at_threshold is not None:
        kept[" ≥T"] = decisions.at_threshold
    rows = [
        [about, *(f"{found[f'{average}-{name}']:.2f}" for found in kept.values() for name in ("P", "R", "F1")), ""]
        for average, about in _AVERAGES.items()
    ]
    columns = ("% over", *(f"{name}{suffix}" for suffix in kept for name in ("P", "R", "F1")), "")
    title = f"Keeping the first {decisions.k} labels"
    if decisions.threshold is not None:
        title += f", or those with a probability of at least T = {decisions.threshold.shown}"
    print_table(title, columns, rows)
    if decisions.grid is not None:
        _show_grid(decisions.grid)


def _show_grid(grid: dict[str, Any]) -> None:
    columns = ("threshold", *("all" if limit is None else str(limit) for limit in grid["limits"]), "")
    for name in ("micro-F1", "samples-F1"):
        rows = [
            [f"{threshold:g}", *(f"{value:.2f}" for value in values), ""]
            for threshold, values in zip(grid["thresholds"], grid[name], strict=True)
        ]
        print_table(f"{name} by threshold and number of labels", columns, rows)
        best, threshold, limit = max(
            (
                (value, threshold, limit)
                for threshold, values in zip(grid["thresholds"], grid[name], strict=True)
                for limit, value in zip(grid["limits"], values, strict=True)
            ),
            key=lambda cell: float(cell[0]),
        )
        number = "any number of labels" if limit is None else f"at most {limit} label{'s' * (limit > 1)}"
        say(f"Best {name}: {best:.2f} at threshold {threshold:g} with {number}.")


def write_per_label(path: Path, model: Model, found: Measured, k: int, threshold: Least | None) -> int:
    """Write a row per label that is true or kept in some document; return how many there are.

    The most frequent labels come first. Labels are kept by the threshold or, without one, if they are among the first
    k. Percentages have two digits.
    """
    from lightdxml.data.files import writing_text
    from lightdxml.metrics import label_counts

    documents = found.documents
    kept: dict[str, Any] = {"k": k} if threshold is None else {"threshold": threshold.of_label}
    counts = label_counts(documents.Y, found.ranked, found.scores, ignore=documents.ignore, **kept)
    occurring = np.flatnonzero(counts.true + counts.predicted)
    labels = occurring[np.argsort(-counts.true[occurring], kind="stable")].tolist()
    uris = ["uri"] if model.vocabulary is not None else []
    numbers = ("support", "true_positives", "false_positives", "false_negatives", "precision", "recall", "F1")
    shares = counts.precision, counts.recall, counts.f1
    with writing_text(path) as stream:
        table = csv.writer(stream, delimiter="\t", lineterminator="\n")
        table.writerow([_FIRST_COLUMN, *uris, *numbers])
        for j in labels:
            uri, name = _names(model, documents.unknown_names, j)
            true, predicted, right = int(counts.true[j]), int(counts.predicted[j]), int(counts.right[j])
            cells = [_cell(name), *([_cell(uri)] if uris else []), true, right, predicted - right, true - right]
            table.writerow([*cells, *(f"{values[j]:.2f}" for values in shares)])
    return len(labels)


def _names(model: Model, unknown: list[str], j: int) -> tuple[str, str]:
    """Return the id and the name of a label; those that the model does not know come after its own."""
    if j >= model.n_labels:
        return unknown[j - model.n_labels], unknown[j - model.n_labels]
    label = model.label(j)
    return label.id, label.name


def _cell(text: str) -> str:
    return printable(" ".join(text.split()))
