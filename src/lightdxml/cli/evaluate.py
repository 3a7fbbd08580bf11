"""`lightdxml evaluate`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from lightdxml.cli.output import Encoding, Json, OldSplit, Separator, Source, console, print_json, print_table
from lightdxml.cli.train import features_of

_CUTS = (1, 3, 5)
_SAMPLES = 3


def run(
    model: Annotated[Path, typer.Argument(help="A folder that `lightdxml train` wrote.", show_default=False)],
    data: Source,
    json: Json = False,
    threads: Annotated[int | None, typer.Option("--threads", help="All cores unless given.")] = None,
    separator: Separator = "|",
    encoding: Encoding = "utf-8",
    old_split: OldSplit = 0,
) -> None:
    """Measure a model on the test part of a data set; of a single file, on all of it, without PSP and PSnDCG.

    Example: `lightdxml evaluate my-model see-also`
    """
    from lightdxml.data import load as load_data
    from lightdxml.estimator import load as load_model
    from lightdxml.metrics import evaluate, inverse_propensity

    estimator = load_model(model)
    estimator.threads = threads
    loaded = load_data(data, label_separator=separator, encoding=encoding, split=old_split)
    split = loaded.test if loaded.test is not None else loaded.train
    Y = _to_model(split.Y, loaded.label_names, estimator.model_)
    start = time.perf_counter()
    ranked, scores = estimator.rank(features_of(split), max(_CUTS))
    seconds = time.perf_counter() - start
    q = None
    if loaded.test is not None:
        # Propensities come from the labels' frequencies in training, which a file of test documents alone cannot tell.
        A, B = _propensity_constants(loaded.name)
        q = inverse_propensity(_to_model(loaded.train.Y, loaded.label_names, estimator.model_), A, B)
    figures = evaluate(Y, ranked, _CUTS, q, split.ignore)
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
    _show_samples(estimator, split, ranked, scores, Y)


def _to_model(Y: Any, names: Any, model: Any) -> Any:
    """Return labels with the model's columns: by name where both have names, else by number."""
    from scipy.sparse import csr_matrix

    if names is None or model.label_names is None or list(names) == model.label_names:
        if Y.shape[1] != model.n_labels:
            raise ValueError(f"the data has {Y.shape[1]} labels and the model {model.n_labels}: they must agree")
        return Y
    column = {name: j for j, name in enumerate(model.label_names)}
    missing = [name for name in names if name not in column]
    if missing:
        # Labels that the model never saw count as missed: they get columns of their own, behind the model's.
        column |= {name: model.n_labels + i for i, name in enumerate(missing)}
    Y = Y.tocoo()
    moved = [column[name] for name in names]
    columns = [moved[j] for j in Y.col.tolist()]
    return csr_matrix((Y.data, (Y.row, columns)), shape=(Y.shape[0], model.n_labels + len(missing)))


def _propensity_constants(name: str) -> tuple[float, float]:
    from lightdxml.data import registry

    for entry in registry.entries():
        if entry.name.lower() == name.lower():
            return entry.A, entry.B
    return 0.55, 1.5


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
        found = ", ".join(f"{names[j]}{' ✓' if j in true else ''} {score:.2f}" for j, score in best if j >= 0)
        console.print(f"- {title}\n    → {found}", markup=False, soft_wrap=True)
