"""`lightdxml compress`."""

from __future__ import annotations

import copy
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from lightdxml.cli.output import Encoding, ModelFolder, OldSplit, Separator, Threads, print_table

if TYPE_CHECKING:
    from lightdxml.cli.measure import Measured
    from lightdxml.data.dataset import Dataset
    from lightdxml.estimator import LightDXML

Out = Annotated[
    Path,
    typer.Argument(help="The folder for the smaller model; a model that is there is replaced.", show_default=False),
]
NewPrecision = Annotated[str, typer.Option("--precision", help="`int8`, or `float16` for a model of float32.")]
NewIndex = Annotated[
    str | None,
    typer.Option(
        "--index",
        help="How labels are searched from then on: `exact`, `sketch` (fast, and a byte a number larger), `ivf`, or"
        " `hnsw` (larger, and long in the making); as before unless given. With `--precision float16` a model of"
        " float16 changes that alone.",
    ),
]
Data = Annotated[str | None, typer.Option("--data", help="A data set on whose test part to measure what it costs.")]
_MEASURES = ("P", "nDCG", "PSP")
_QUERIES = 2000


def run(
    model: ModelFolder,
    out: Out,
    precision: NewPrecision = "int8",
    index: NewIndex = None,
    data: Data = None,
    threads: Threads = None,
    separator: Separator = "|",
    encoding: Encoding = "utf-8",
    old_split: OldSplit = 0,
) -> None:
    """Make a model smaller: a byte a number in place of two, and say what that costs.

    Example: `lightdxml compress my-model my-small-model --data see-also`
    """
    from lightdxml import storage
    from lightdxml.cli.measure import measure, say_unseen
    from lightdxml.data import load as load_data
    from lightdxml.estimator import load as load_model
    from lightdxml.kernels.parallel import use_threads
    from lightdxml.shortlist import check_kind

    _check(model, out, precision, index, data)
    storage.check_target(out)
    loaded = None
    if data is not None:
        loaded = load_data(data, label_separator=separator, encoding=encoding, split=old_split)
    before, size = load_model(model), _megabytes(model)
    check_kind(index, before.model_.config.D)
    measured = []
    with use_threads(threads):
        if loaded is not None:
            say_unseen(loaded, before.model_)
            measured.append(measure(before, loaded))
        _compress(before, out, precision, index, loaded)
        if loaded is not None:
            measured.append(measure(load_model(out), loaded))
    rows = [["megabytes", f"{size:,.1f}", f"{_megabytes(out):,.1f}", ""], *_compared(measured)]
    print_table(f"{escape(str(model))} → {escape(str(out))}", ("", "before", "after", ""), rows)


def _check(model: Path, out: Path, precision: str, index: str | None, data: str | None) -> None:
    """Raise where what is wanted cannot be done, before anything is read."""
    from lightdxml.shortlist import KINDS

    if precision not in ("int8", "float16"):
        raise ValueError(f"--precision {precision} is not known: it must be int8 or float16")
    if index not in (None, *KINDS):
        raise ValueError(f"--index {index} is not known: it must be {', '.join(KINDS[:-1])} or {KINDS[-1]}")
    if index in ("sketch", "ivf") and data is None:
        raise ValueError(f"--index {index} needs documents, to see how many labels to compare them with: give --data")
    if out.resolve() == model.resolve():
        raise ValueError(f"{out} is the model itself, which is kept: choose another folder for the smaller one")


def _compress(before: LightDXML, out: Path, precision: Any, index: Any, loaded: Dataset | None) -> None:
    """Write the smaller model, with a note of what was done in its history."""
    from lightdxml.compression import compressed

    start = time.perf_counter()
    small = copy.copy(before)
    queries = None if loaded is None else _directions(before, loaded)
    small.model_ = compressed(before.model_, precision, index, queries)
    note = {"phase": "compression", "precision": precision, "index": small.model_.shortlist.kind}
    small.history_ = [*before.history_, {"cycle": 0, "seconds": time.perf_counter() - start, **note}]
    small.save(out)


def _directions(estimator: LightDXML, loaded: Dataset) -> Any:
    """Return the embeddings, at length 1, of some documents to train on: such as will be searched for."""
    from lightdxml.cli.matching import features_of
    from lightdxml.encoder import encode, unit_rows
    from lightdxml.model import check_features
    from lightdxml.text import tfidf

    part, model = features_of(loaded.train)[:_QUERIES], estimator.model_
    X = part if model.vectorizer is None else tfidf.transform(model.vectorizer, part)
    return unit_rows(encode(model.encoder, check_features(X, model.n_features)))


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file()) / 1e6


def _compared(measured: list[Measured]) -> list[list[str]]:
    """Return what both models get right, and the time that they take; nothing where that was not measured."""
    if not measured:
        return []
    from lightdxml.cli.measure import CUTS

    first, second = measured
    names = [f"{name}@{k}" for name in _MEASURES for k in CUTS if f"{name}@{k}" in first.figures]
    rows = [[name, f"{first.figures[name]:.2f}", f"{second.figures[name]:.2f}", ""] for name in names]
    return [*rows, ["ms a document", f"{first.milliseconds:.3f}", f"{second.milliseconds:.3f}", ""]]
