"""`lightdxml predict`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from lightdxml.cli.opinions import SecondOpinion, With, WithWeight, check_options
from lightdxml.cli.output import ModelFolder, NJobs, Tail, note
from lightdxml.cli.predictions import To, check_target, writing
from lightdxml.cli.reading import Reading, reading_for, with_reading
from lightdxml.cli.rules import Exclude, ExcludeBranch, Include, IncludeBranch, rules_of


@with_reading
def run(
    model: ModelFolder,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="File of documents; `-` reads them from standard input.", show_default=False
        ),
    ],
    k: Annotated[int, typer.Option("-k", help="Labels per document, at most.", min=1)] = 5,
    min_score: Annotated[float, typer.Option("--min-score", help="Omit labels with a lower score.")] = 0.0,
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

    Example: `echo "solve a linear system" | lightdxml predict my-model - -k 3`
    """
    from lightdxml.data import stream
    from lightdxml.data.options import ReadOptions
    from lightdxml.model.model import check_tail
    from lightdxml.predictor import Predictor

    if json and to not in (None, "jsonl"):
        raise ValueError(f"--json is the same as --to jsonl, and --to is {to}: give one of them")
    form_of_output: To = "jsonl" if json else to or "text"
    check_target(form_of_output, out)
    ReadOptions(**reading)
    check_tail(tail)
    check_options(other, weight)
    predictor = Predictor.load(model, n_jobs=n_jobs)
    trained = predictor.model
    rules = rules_of(trained, include, exclude, include_branch, exclude_branch)
    second = SecondOpinion.of(other, weight, trained, rules)
    options = ReadOptions(**reading_for(trained, reading))
    assert options.label_separator is not None
    with (
        stream.opened(file) as source,
        writing(form_of_output, out, trained, options.label_separator) as write,
    ):
        batches = (
            stream.feature_batches(file, source, trained.n_features)
            if trained.vectorizer is None
            else stream.text_batches(file, source, options, form)
        )
        predicted = 0
        for batch in batches:
            predicted += len(batch.ids)
            ids = ["" if one is None else str(one) for one in batch.ids]
            depth = k if second is None else second.depth(k)
            labels, scores = predictor.rank(batch.documents, depth, tail=tail, ids=ids, **rules)
            if second is not None:
                labels, scores = second.combine((labels, scores), batch.ids, k)
            rows = [
                [(j, score) for j, score in zip(row, values, strict=True) if j >= 0 and score >= min_score]
                for row, values in zip(labels.tolist(), scores.tolist(), strict=True)
            ]
            write(batch.ids, rows)
    if predicted == 0:
        note(f"{file} has no documents")
    elif second is not None:
        second.note_missing()
