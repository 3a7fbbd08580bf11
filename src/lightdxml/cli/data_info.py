"""`lightdxml data info`."""

from __future__ import annotations

from dataclasses import asdict

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
from lightdxml.data import load
from lightdxml.data.statistics import Statistics, describe


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
    figures = describe(load(source, label_separator=separator, encoding=encoding, split=old_split))
    counts = [count for _, count in figures.curve()]
    if json:
        content = asdict(figures) | {"label_frequency_curve": figures.curve(), "sparkline": sparkline(counts)}
        del content["frequencies"]
        print_json(content)
        return
    print_table(figures.name, ("", "", ""), _rows(figures))
    if counts:
        console.print("\nTraining documents per label, most frequent label first (both axes logarithmic):")
        console.print(f"{counts[0]:,} {sparkline(counts)} {counts[-1]:,}", highlight=False)


def _rows(figures: Statistics) -> list[tuple[str, str, str]]:
    features = "text" if figures.n_features is None else f"{figures.n_features:,}"
    rows = [("training documents", f"{figures.n_train:,}", "")]
    rows += [("dev documents", f"{figures.n_dev:,}", "")] if figures.n_dev else []
    rows += [("test documents", f"{figures.n_test:,}", "")] if figures.n_test else []
    return [
        *rows,
        ("features", features, ""),
        ("labels", f"{figures.n_labels:,}", f"{figures.unseen_labels:,} without a training document"),
        ("labels per document", f"{figures.labels_per_point:.2f}", ""),
        ("documents per label", f"{figures.points_per_label:.2f}", ""),
        (
            "tail",
            f"{100 * figures.share_of_labels_below_5:.1f} %",
            "of labels have fewer than 5 training documents",
        ),
    ]
