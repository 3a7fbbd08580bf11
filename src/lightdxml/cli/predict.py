"""`lightdxml predict`."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import typer

from lightdxml.cli.decisions import ByFrequency, Least, Threshold, parse_threshold
from lightdxml.cli.opinions import SecondOpinion, With, WithWeight, check_options
from lightdxml.cli.output import ModelFolder, NJobs, Tail, note, warn
from lightdxml.cli.predictions import To, check_target, form_of, writing
from lightdxml.cli.reading import Reading, reading_for, with_reading
from lightdxml.cli.rules import Exclude, ExcludeBranch, Include, IncludeBranch, rules_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lightdxml.data.errors import DataError

# Documents that cannot be read of which each is named.
_WARNINGS = 10


@with_reading
def run(
    model: ModelFolder,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="File of documents; `-` reads them from standard input.", show_default=False
        ),
    ],
    k: Annotated[
        int | None,
        typer.Option(
            "-k", help="Labels per document, at most. Default: 5; 100 with a threshold.", min=1, show_default=False
        ),
    ] = None,
    threshold: Threshold = None,
    by_frequency: ByFrequency = False,
    form: Annotated[
        Literal["auto", "lines", "jsonl", "csv"],
        typer.Option("--format", help="Format of texts; `auto` detects it."),
    ] = "auto",
    to: Annotated[
        To | None,
        typer.Option(help="Format of predictions: `text` (default), `jsonl`, `csv` or `parquet`.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write. Default: standard output.", metavar="FILE", show_default=False)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The same as `--to jsonl`.")] = False,
    tail: Tail = 0.0,
    n_jobs: NJobs = None,
    include: Include = None,
    exclude: Exclude = None,
    include_branch: IncludeBranch = None,
    exclude_branch: ExcludeBranch = None,
    other: With = None,
    weight: WithWeight = None,
    on_error: Annotated[
        Literal["stop", "skip"],
        typer.Option(
            "--on-error", help="At a document that cannot be read: stop, or skip it with a warning and an empty answer."
        ),
    ] = "stop",
    *,
    reading: Reading,
) -> None:
    """Predict the labels of documents, one line of output per document.

    Texts are plain lines (one document per line), JSON Lines, or CSV or Parquet with columns `text` and `title`, and
    `id` (Annif's `document_id`) if documents have one. The names of columns that training was given are the defaults.
    A model that was trained on features reads the text format of the Extreme Classification repository (XC). Text files
    may be compressed.

    Predictions are printed while documents are still being read. With `--with`, they are blended with those of another
    system: a document is found in its file by the id or, without ids there, by the place.

    If a document cannot be read, those before it are predicted. With `--on-error skip`, those after it are too: its
    answer is an empty line, or in JSON an object with `error`.

    Example: `echo "solve a linear system" | lightdxml predict my-model - -k 3`
    """
    from lightdxml.data import stream
    from lightdxml.data.cells import SEPARATOR
    from lightdxml.data.options import ReadOptions
    from lightdxml.model.model import check_tail
    from lightdxml.model.thresholds import DEPTH
    from lightdxml.predictor import DEFAULT_K, Predictor

    if json and to not in (None, "jsonl"):
        raise ValueError(f"--json is the same as --to jsonl, and --to is {to}: give one of them")
    form_of_output: To = "jsonl" if json else to or form_of(out)
    check_target(form_of_output, file, out)
    ReadOptions(**reading)
    _check_file(model, file)
    if threshold is not None:
        parse_threshold(threshold)
    check_tail(tail)
    check_options(other, weight, tail, threshold)
    predictor = Predictor.load(model, n_jobs=n_jobs)
    trained = predictor.model
    rules = rules_of(trained, include, exclude, include_branch, exclude_branch)
    second = SecondOpinion.of(other, weight, trained, rules)
    limit = k or (DEFAULT_K if threshold is None else DEPTH)
    found = Least.of(trained, threshold, by_frequency, trained.n_labels)
    least = None if found is None else found.of_label.astype(np.float32).tolist()
    options = ReadOptions(**reading_for(trained, reading))
    with (
        stream.opened(file) as source,
        writing(form_of_output, out, trained, options.label_separator or SEPARATOR) as write,
    ):
        batches = (
            stream.feature_batches(file, source, trained.n_features)
            if trained.vectorizer is None
            else stream.text_batches(file, source, options, form)
        )
        predicted, skipped = 0, _Skipped()
        for batch in stream.until_error(batches) if on_error == "stop" else batches:
            predicted += len(batch.ids)
            ids = ["" if one is None else str(one) for one in batch.ids]
            depth = limit if second is None else second.depth(limit)
            labels, scores = predictor.rank(batch.documents, depth, tail=tail, ids=ids, **rules)
            if second is not None:
                labels, scores = second.combine((labels, scores), batch.ids, limit)
            rows = [
                [
                    (j, score)
                    for j, score in zip(row, values, strict=True)
                    if j >= 0 and (least is None or score >= least[j])
                ]
                for row, values in zip(labels.tolist(), scores.tolist(), strict=True)
            ]
            errors = {place: str(error) for place, error in batch.errors.items()}
            write(batch.ids, [[] if i in errors else row for i, row in enumerate(rows)], errors)
            skipped.warn_of(batch.errors.values())
        skipped.note_rest()
    if predicted == 0:
        note(f"{file} has no documents")
    elif second is not None:
        second.note_missing()


def _check_file(model: Path, file: Path) -> None:
    """Raise a `ValueError` that says how to predict a text, if there is no such file."""
    if str(file) != "-" and not os.path.lexists(file):
        command = shlex.join(["lightdxml", "predict", str(model), "-"])
        raise ValueError(f"there is no file {file}; if it is a text: echo {shlex.quote(str(file))} | {command}")


class _Skipped:
    """Documents that cannot be read: the first ones are named, the others counted."""

    def __init__(self) -> None:
        self.count = 0

    def warn_of(self, errors: Iterable[DataError]) -> None:
        """Warn of documents."""
        for error in errors:
            self.count += 1
            if self.count <= _WARNINGS:
                warn(f"{error}; skipped")

    def note_rest(self) -> None:
        """Say how many documents were skipped without a warning."""
        if self.count > _WARNINGS:
            warn(f"{self.count - _WARNINGS:,} more documents that cannot be read were skipped")
