"""`lightdxml evaluate`."""

from __future__ import annotations

from typing import Any

from rich.markup import escape

from lightdxml.cli.measure import CUTS, measure, say_unseen
from lightdxml.cli.output import (
    Encoding,
    Json,
    ModelFolder,
    OldSplit,
    Separator,
    Source,
    Tail,
    Threads,
    console,
    print_json,
    print_table,
)

_SAMPLES = 3


def run(
    model: ModelFolder,
    data: Source,
    tail: Tail = 0.0,
    json: Json = False,
    threads: Threads = None,
    separator: Separator = "|",
    encoding: Encoding = "utf-8",
    old_split: OldSplit = 0,
) -> None:
    """Measure a model on the test part of a data set; of a single file, on all of it.

    Example: `lightdxml evaluate my-model see-also`
    """
    from lightdxml.data import load as load_data
    from lightdxml.estimator import load as load_model
    from lightdxml.model import check_tail

    check_tail(tail)
    estimator = load_model(model)
    estimator.threads = threads
    loaded = load_data(data, label_separator=separator, encoding=encoding, split=old_split)
    found = measure(estimator, loaded, tail)
    split, figures = found.split, found.figures
    say_unseen(loaded, estimator.model_)
    if json:
        print_json({"documents": len(split), "milliseconds_per_document": found.milliseconds, **figures})
        return
    rows = [
        [name, *(f"{figures[f'{name}@{k}']:.2f}" for k in CUTS), ""]
        for name in ("P", "nDCG", "PSP", "PSnDCG", "R", "coverage", "macro-F1")
        if f"{name}@1" in figures
    ]
    title = f"{len(split):,} documents of {escape(loaded.name)}, {found.milliseconds:.2f} ms each"
    print_table(title, ("%", *(f"@{k}" for k in CUTS), ""), rows)
    _show_samples(estimator, split, found.ranked[:, : max(CUTS)], found.scores[:, : max(CUTS)], found.Y)


def _show_samples(estimator: Any, split: Any, ranked: Any, scores: Any, Y: Any) -> None:
    """Show a few documents with what was predicted, right ones marked."""
    if split.texts is None or estimator.model_.label_names is None:
        return
    names = estimator.model_.label_names
    console.print("\nA few documents (✓ right):")
    for i in range(0, len(split), max(1, len(split) // _SAMPLES))[:_SAMPLES]:
        true = set(Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist())
        title = " ".join(split.texts[i][:200].split())[:70]
        best = zip(ranked[i].tolist(), scores[i].tolist(), strict=True)
        found = ", ".join(_one_line(names[j]) + " ✓" * (j in true) + f" {score:.2f}" for j, score in best if j >= 0)
        console.print(f"- {title}\n    → {found}", markup=False, soft_wrap=True)


def _one_line(name: str) -> str:
    return " ".join(name.split())
