"""`lightdxml compress`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from lightdxml.cli.output import ModelFolder, Threads, print_table

if TYPE_CHECKING:
    from lightdxml.data.dataset import Dataset
    from lightdxml.estimator import LightDXML

Out = Annotated[Path, typer.Argument(help="The folder for the smaller model.", show_default=False)]
Precision = Annotated[str, typer.Option("--precision", help="`int8`, or `float16` for a model of float32.")]
NewIndex = Annotated[
    str | None, typer.Option("--index", help="How labels are searched from then on: `exact`, `ivf` or `hnsw`.")
]
Data = Annotated[str | None, typer.Option("--data", help="A data set on whose test part to measure what it costs.")]
_MEASURES = ("P", "nDCG", "PSP")


def run(
    model: ModelFolder,
    out: Out,
    precision: Precision = "int8",
    index: NewIndex = None,
    data: Data = None,
    threads: Threads = None,
) -> None:
    """Make a model smaller: a byte a number in place of two, and say what that costs.

    Example: `lightdxml compress my-model my-small-model --data see-also`
    """
    from lightdxml.compression import compressed
    from lightdxml.data import load as load_data
    from lightdxml.estimator import load as load_model

    if precision not in ("int8", "float16"):
        raise ValueError(f"--precision {precision} is not known: it must be int8 or float16")
    if index not in (None, "exact", "ivf", "hnsw"):
        raise ValueError(f"--index {index} is not known: it must be exact, ivf or hnsw")
    loaded = None if data is None else load_data(data)
    before, small = load_model(model), load_model(model)
    small.model_ = compressed(before.model_, precision, index)  # type: ignore[arg-type]
    small.save(out)
    rows = [["megabytes", f"{_megabytes(model):,.1f}", f"{_megabytes(out):,.1f}"]]
    if loaded is not None:
        before.threads = small.threads = threads
        rows += _compared(before, small, loaded)
    print_table(f"{escape(str(model))} → {escape(str(out))}", ("", "before", "after"), rows)


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file()) / 1e6


def _compared(before: LightDXML, small: LightDXML, loaded: Dataset) -> list[list[Any]]:
    """Return what both models get right, and the time that they take."""
    from lightdxml.cli.measure import CUTS, measure

    first, second = measure(before, loaded), measure(small, loaded)
    names = [f"{name}@{k}" for name in _MEASURES for k in CUTS if f"{name}@{k}" in first.figures]
    rows: list[list[Any]] = [[name, f"{first.figures[name]:.2f}", f"{second.figures[name]:.2f}"] for name in names]
    return [*rows, ["ms a document", f"{first.milliseconds:.3f}", f"{second.milliseconds:.3f}"]]
