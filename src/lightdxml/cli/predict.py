"""`lightdxml predict`."""

from __future__ import annotations

import json as json_format
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from lightdxml.cli.output import Encoding, ModelFolder, Tail, Threads


def run(
    model: ModelFolder,
    file: Annotated[Path, typer.Argument(help="Documents; `-` for standard input.", show_default=False)],
    k: Annotated[int, typer.Option("-k", help="How many labels a document gets at most.", min=1)] = 5,
    least: Annotated[float, typer.Option("--min-score", help="Leave out labels that score lower.")] = 0.0,
    form: Annotated[
        Literal["auto", "lines", "jsonl", "csv"],
        typer.Option("--format", help="What texts come as; seen unless given."),
    ] = "auto",
    json: Annotated[bool, typer.Option("--json", help="Print a JSON object for each document.")] = False,
    tail: Tail = 0.0,
    threads: Threads = None,
    encoding: Encoding = "utf-8",
) -> None:
    """Predict the labels of documents, as they come: one line in, one line out.

    Reads one text a line, JSON Lines or CSV with title and text; for a model of features, XC text. Plain or compressed.

    Example: `echo "solve a linear system" | lightdxml predict my-model - -k 3`
    """
    from lightdxml.data import stream
    from lightdxml.data.load import ReadOptions
    from lightdxml.estimator import load
    from lightdxml.model import check_tail

    ReadOptions(encoding=encoding)
    check_tail(tail)
    estimator = load(model)
    estimator.threads = threads
    trained = estimator.model_
    show = _as_json if json else _as_text
    with stream.opened(file) as source:
        batches = (
            stream.feature_batches(file, source, trained.n_features)
            if trained.vectorizer is None
            else stream.text_batches(file, source, encoding, form)
        )
        for batch in batches:
            labels, scores = estimator.rank(batch.documents, min(k, trained.n_labels), tail=tail)
            for document, row, values in zip(batch.ids, labels.tolist(), scores.tolist(), strict=True):
                sys.stdout.write(show(document, list(_named(trained, row, values, least))) + "\n")
            sys.stdout.flush()


def _named(model: Any, labels: list[int], scores: list[float], least: float) -> Iterator[tuple[Any, float]]:
    for label, score in zip(labels, scores, strict=True):
        if label >= 0 and score >= least:
            yield label if model.label_names is None else model.label_names[label], score


def _as_json(document: Any, found: list[tuple[Any, float]]) -> str:
    content: dict[str, Any] = {} if document is None else {"id": document}
    content["labels"] = [{"label": label, "score": round(score, 6)} for label, score in found]
    return json_format.dumps(content, ensure_ascii=False)


def _as_text(document: Any, found: list[tuple[Any, float]]) -> str:
    """Return labels and scores between tabs; tabs and line ends within a name become spaces."""
    cells = [f"{' '.join(str(label).split())} {score:.3f}" for label, score in found]
    return "\t".join(cells if document is None else [" ".join(str(document).split()), *cells])
