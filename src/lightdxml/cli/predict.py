"""`lightdxml predict`."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lightdxml.cli.opinions import SecondOpinion, With, WithWeight, check_options
from lightdxml.cli.output import (
    Encoding,
    ModelFolder,
    NJobs,
    Tail,
    distinct_names,
    json_line,
    label_as_json,
    note,
    printable,
    warn,
)
from lightdxml.cli.rules import Exclude, ExcludeBranch, Include, IncludeBranch, rules_of

if TYPE_CHECKING:
    from lightdxml.data.errors import DataError
    from lightdxml.model.model import Model

_WARNINGS = 10


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
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object per document.")] = False,
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
    encoding: Encoding = "utf-8",
) -> None:
    """Predict the labels of documents, one line of output per document.

    Texts are plain lines (one document per line), JSON Lines, or CSV with columns `text` and `title`, and `id` (Annif's
    `document_id`) if documents have one. A model that was trained on features reads the text format of the Extreme
    Classification repository (XC). Files may be compressed.

    Predictions are printed while documents are still being read. With `--with`, they are blended with those of another
    system: a document is found in its file by the id or, without ids there, by the place.

    If a document cannot be read, those before it are predicted. With `--on-error skip`, those after it are too: its
    answer is an empty line, or in JSON an object with `error`.

    Example: `echo "solve a linear system" | lightdxml predict my-model - -k 3`
    """
    from lightdxml.data import stream
    from lightdxml.data.read import ReadOptions
    from lightdxml.model.model import check_tail
    from lightdxml.predictor import Predictor

    ReadOptions(encoding=encoding)
    _check_file(model, file)
    check_tail(tail)
    check_options(other, weight)
    predictor = Predictor.load(model, n_jobs=n_jobs)
    trained = predictor.model
    rules = rules_of(trained, include, exclude, include_branch, exclude_branch)
    second = SecondOpinion.of(other, weight, trained, rules)
    show = _as_json if json else _as_text
    with stream.opened(file) as source:
        batches = (
            stream.feature_batches(file, source, trained.n_features)
            if trained.vectorizer is None
            else stream.text_batches(file, source, encoding, form)
        )
        predicted, skipped = 0, _Skipped()
        for batch in stream.until_error(batches) if on_error == "stop" else batches:
            predicted += len(batch.ids)
            ids = ["" if one is None else str(one) for one in batch.ids]
            depth = k if second is None else second.depth(k)
            labels, scores = predictor.rank(batch.documents, depth, tail=tail, ids=ids, **rules)
            if second is not None:
                labels, scores = second.combine((labels, scores), batch.ids, k)
            answers = enumerate(zip(batch.ids, labels.tolist(), scores.tolist(), strict=True))
            for i, (document, row, values) in answers:
                if i in batch.errors:
                    sys.stdout.write(skipped.answer(document, batch.errors[i], json) + "\n")
                    continue
                pairs = [(j, score) for j, score in zip(row, values, strict=True) if j >= 0 and score >= min_score]
                sys.stdout.write(show(trained, document, pairs) + "\n")
            sys.stdout.flush()
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

    def answer(self, document: Any, error: DataError, json: bool) -> str:
        """Warn of a document, and return the line that stands in the place of its labels."""
        self.count += 1
        if self.count <= _WARNINGS:
            warn(f"{error}; skipped")
        if not json:
            return ""
        return json_line({**({} if document is None else {"id": document}), "labels": [], "error": str(error)})

    def note_rest(self) -> None:
        """Say how many documents were skipped without a warning."""
        if self.count > _WARNINGS:
            warn(f"{self.count - _WARNINGS:,} more documents that cannot be read were skipped")


def _as_json(model: Model, document: Any, found: list[tuple[int, float]]) -> str:
    content: dict[str, Any] = {} if document is None else {"id": document}
    content["labels"] = [{**label_as_json(model, j), "score": round(score, 6)} for j, score in found]
    return json_line(content)


def _as_text(model: Model, document: Any, found: list[tuple[int, float]]) -> str:
    """Return labels and scores separated by tabs; tabs and line ends within names become spaces."""
    names = distinct_names([model.label(j) for j, _ in found])
    cells = [f"{_cell(name)} {score:.3f}" for name, (_, score) in zip(names, found, strict=True)]
    return "\t".join(cells if document is None else [_cell(document), *cells])


def _cell(name: Any) -> str:
    return printable(" ".join(str(name).split()))
