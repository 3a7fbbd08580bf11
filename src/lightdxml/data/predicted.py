"""Predictions as `lightdxml predict` writes them: a JSON Lines or Parquet file, or a folder of its parts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lightdxml.data import arrow, scores
from lightdxml.data.errors import DataError
from lightdxml.data.files import base_name, entries, first_line
from lightdxml.data.scores import ScoredDocument, ScoredLabel

_ENDINGS = (".jsonl", ".parquet")
_FORM = "predictions as `lightdxml predict --to jsonl` or `--to parquet` writes them"


def is_predictions(path: Path) -> bool:
    """Return whether a path is a file, or a folder of predictions: it has files of JSON Lines or Parquet."""
    return bool(files(path)) if path.is_dir() else path.is_file()


def files(path: Path) -> list[Path]:
    """Return the files of predictions, sorted by name."""
    return [one for one in entries(path) if _is_part(one)] if path.is_dir() else [path]


def _is_part(path: Path) -> bool:
    return path.is_file() and not path.name.startswith((".", "_")) and base_name(path).endswith(_ENDINGS)


def read(path: Path) -> Iterator[ScoredDocument]:
    """Yield the predictions for documents, file by file. A part may have no documents."""
    for file in files(path):
        if arrow.is_parquet(file):
            yield from _parquet(file)
        elif start := first_line(file).lstrip():
            if not start.startswith(b"{"):
                raise DataError(file, "something else", _FORM)
            yield from scores.read(file)


def _parquet(file: Path) -> Iterator[ScoredDocument]:
    for number, row in arrow.predictions(file):
        names, values = row["labels"] or [], row["scores"] or []
        uris = row.get("uris") or [""] * len(names)
        if not len(names) == len(values) == len(uris):
            raise DataError(file, f"{len(names)} labels with {len(values)} scores", "a score for each", line=number)
        found = [ScoredLabel(uri, str(name), score) for uri, name, score in zip(uris, names, values, strict=True)]
        yield ScoredDocument(row["id"], found)
