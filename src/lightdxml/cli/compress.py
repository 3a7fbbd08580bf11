"""`lightdxml compress`."""

from __future__ import annotations

import copy
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from lightdxml.cli.output import Cutoff, Force, ModelFolder, NJobs, print_table
from lightdxml.cli.reading import Reading, reading_for, reading_options, with_reading

if TYPE_CHECKING:
    from lightdxml.cli.measure import Measured
    from lightdxml.estimator import LightDXML

Out = Annotated[
    Path,
    typer.Argument(metavar="OUT", help="Folder for the smaller model.", show_default=False),
]
NewPrecision = Annotated[
    Literal["int8", "float16"],
    typer.Option("--precision", help="Number format: `int8` (1 byte per number) or `float16` (2 bytes)."),
]
Data = Annotated[
    str | None,
    typer.Option("--data", help="Measure both models on the test documents of this data set.", show_default=False),
]


@with_reading
def run(
    model: ModelFolder,
    out: Out,
    precision: NewPrecision = "int8",
    data: Data = None,
    k: Cutoff = 5,
    n_jobs: NJobs = None,
    force: Force = False,
    *,
    reading: Reading,
) -> None:
    """Make a model smaller: store its numbers in fewer bytes.

    With --data, the command also shows how accuracy and prediction time change. The original model stays as it is.

    Example: `lightdxml compress my-model my-small-model --data see-also`
    """
    from lightdxml.cli.measure import measure, warn_of_training_documents
    from lightdxml.data import load as load_data
    from lightdxml.estimator import load as load_model
    from lightdxml.model.store import check_absent, check_target
    from lightdxml.persistence.lock import writing

    if out.resolve() == model.resolve():
        raise ValueError(f"{out} is the model itself: choose another folder for the smaller one")
    check_target(out)
    if not force:
        check_absent(out)
    # What a model needs to learn must be that of the same model.
    with writing(model, out):
        before = load_model(model).set_params(n_jobs=n_jobs)
        loaded = None if data is None else load_data(data, **reading_for(before.model_, reading))
        _quantized(before, model, precision).save(out)
    rows = [["size in MB", *(f"{_megabytes(folder):,.1f}" for folder in (model, out)), ""]]
    if loaded is not None:
        after = load_model(out).set_params(n_jobs=n_jobs)
        found = measure(before, loaded, k=k)
        warn_of_training_documents(
            found.documents, loaded, data or "", reading_options(reading_for(before.model_, reading))
        )
        rows += _compared(found, measure(after, loaded, k=k), k)
    print_table(f"{model} → {out}", ("", "before", "after", ""), rows)


def _quantized(estimator: LightDXML, folder: Path, precision: str) -> LightDXML:
    """Return an estimator with a smaller model; its history has an entry about it."""
    start = time.perf_counter()
    small = copy.copy(estimator)
    small.model_ = estimator.model_.quantize(precision)
    before, after = (sum(array.nbytes for array in one.model_.arrays().values()) for one in (estimator, small))
    if after >= before:
        has_embeddings = {"nearness", "classifier"} & estimator.model_.views.keys()
        why = "already has this precision or a lower one" if has_embeddings else "has no embeddings to quantize"
        raise ValueError(f"{precision} would not make {folder} smaller: it {why}")
    entry = {"refresh": 0, "phase": "quantize", "seconds": time.perf_counter() - start, "precision": precision}
    small.history_ = [*estimator.history_, entry]
    return small


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file()) / 1e6


def _compared(before: Measured, after: Measured, k: int) -> list[list[str]]:
    from lightdxml.cli.measure import cuts_up_to

    names = [f"{name}@{cut}" for name in ("P", "nDCG", "PSP") for cut in cuts_up_to(k)]
    rows = [[name, *(f"{one.metrics[name]:.2f}" for one in (before, after)), ""] for name in names]
    return [*rows, ["ms per document", *(f"{one.milliseconds:.3f}" for one in (before, after)), ""]]
