"""`lightdxml evaluate`."""

from __future__ import annotations

import time
from typing import Any

from rich.markup import escape

from lightdxml.cli import matching
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
    errors,
    print_json,
    print_table,
)

_CUTS = (1, 3, 5)
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
    import numpy as np

    from lightdxml.data import load as load_data
    from lightdxml.estimator import load as load_model
    from lightdxml.metrics import evaluate
    from lightdxml.model import check_tail

    check_tail(tail)
    estimator = load_model(model)
    estimator.threads = threads
    loaded = load_data(data, label_separator=separator, encoding=encoding, split=old_split)
    split = loaded.test if loaded.test is not None else loaded.train
    Y = matching.to_model(split.Y, loaded.label_names, estimator.model_)
    ignore = matching.ignored(split, loaded.label_names, estimator.model_)
    # What is ignored is taken out of the ranking, and what follows moves up: enough must follow.
    depth = max(_CUTS) + (0 if ignore is None else int(np.diff(ignore.tocsr().indptr).max()))
    # Compiled code is loaded with the first document: that is not part of what a document takes.
    estimator.rank(matching.features_of(split)[:1], 1, tail=tail)
    start = time.perf_counter()
    ranked, scores = estimator.rank(matching.features_of(split), depth, tail=tail)
    seconds = time.perf_counter() - start
    frequency, n_documents = matching.frequency_of(loaded, estimator.model_, Y.shape[1])
    q = matching.inverse_propensity_of(loaded.name, frequency, n_documents)
    figures = evaluate(Y, ranked, _CUTS, q, ignore)
    if missing := matching.unseen_names(loaded.label_names, estimator.model_):
        errors.print(
            f"{len(missing):,} of {loaded.n_labels:,} labels of this data are not in the model, and count as missed",
            soft_wrap=True,
        )
    if json:
        print_json({"documents": len(split), "milliseconds_per_document": 1000 * seconds / len(split), **figures})
        return
    rows = [
        [name, *(f"{figures[f'{name}@{k}']:.2f}" for k in _CUTS), ""]
        for name in ("P", "nDCG", "PSP", "PSnDCG", "R", "coverage", "macro-F1")
        if f"{name}@1" in figures
    ]
    title = f"{len(split):,} documents of {escape(loaded.name)}, {1000 * seconds / len(split):.2f} ms each"
    print_table(title, ("%", *(f"@{k}" for k in _CUTS), ""), rows)
    _show_samples(estimator, split, ranked[:, : max(_CUTS)], scores[:, : max(_CUTS)], Y)


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
