"""`lightdxml data info`."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
from rich.markup import escape

from lightdxml.cli.output import (
    Encoding,
    Json,
    OldSplit,
    Separator,
    Source,
    console,
    print_json,
    print_table,
    sparkline,
)
from lightdxml.data import Dataset, load
from lightdxml.data.statistics import Statistics, describe

_SHOWN_LABELS = 5


def run(
    source: Source,
    json: Json = False,
    separator: Separator = "|",
    encoding: Encoding = "utf-8",
    old_split: OldSplit = 0,
) -> None:
    """Read a data set and show its sizes, labels per document, documents per label, head and tail.

    Example: `lightdxml data info see-also`
    """
    data = load(source, label_separator=separator, encoding=encoding, split=old_split)
    figures = describe(data)
    counts = [count for _, count in figures.curve()]
    if json:
        content = asdict(figures) | {"label_frequency_curve": figures.curve(), "sparkline": sparkline(counts)}
        del content["frequencies"]
        print_json(content)
        return
    print_table(escape(figures.name), ("", "", ""), [*_rows(figures), *_samples(data)])
    if counts:
        console.print("\nTraining documents per label, most frequent label first (both axes logarithmic):")
        console.print(f"{counts[0]:,} {sparkline(counts)} {counts[-1]:,}")


def _rows(figures: Statistics) -> list[tuple[str, str, str]]:
    features = "text" if figures.n_features is None else f"{figures.n_features:,}"
    rows = [("training documents", f"{figures.n_train:,}", "")]
    rows += [("dev documents", f"{figures.n_dev:,}", "")] if figures.n_dev else []
    rows += [("test documents", f"{figures.n_test:,}", "")] if figures.n_test else []
    faults = [
        (f"without {what}", f"{count:,}", "training documents")
        for what, count in (("labels", figures.unlabeled), ("content", figures.empty))
        if count
    ]
    return [
        *rows,
        *faults,
        ("features", features, ""),
        ("labels", f"{figures.n_labels:,}", f"{figures.unseen_labels:,} without a training document"),
        ("labels per document", f"{figures.labels_per_point:.2f}", "train and test together"),
        ("documents per label", f"{figures.points_per_label:.2f}", "train and test together"),
        (
            "tail",
            f"{100 * figures.share_of_labels_below_5:.1f} %",
            "of labels have fewer than 5 training documents",
        ),
    ]


def _samples(data: Dataset) -> list[tuple[str, str, str]]:
    """Show names and a text: a wrong separator or encoding is seen at once."""
    rows = []
    if data.label_names is not None and data.n_labels:
        order = np.argsort(-np.bincount(data.train.Y.indices, minlength=data.n_labels), kind="stable")[:_SHOWN_LABELS]
        rows.append(("frequent labels", "", " · ".join(_short(data.label_names[i], 30) for i in order)))
    if data.train.texts:
        rows.append(("first document", "", _short(data.train.texts[0], 100)))
    return rows


def _short(text: str, limit: int) -> str:
    """Return a text on one line, cut to the limit, safe to show."""
    line = escape(" ".join(text[: 2 * limit].split()))
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
