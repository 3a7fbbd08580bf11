"""The HTML report about a trained model that `lightdxml report` writes."""

from __future__ import annotations

import os
from pathlib import Path

from lightdxml.data.files import writing_text
from lightdxml.report.page import Subject, page

__all__ = ["Subject", "check_target", "write"]

_BEGINNING = b"<!DOCTYPE html>"


def check_target(path: Path) -> None:
    """Raise a `ValueError` if a report cannot be written to a path, or would replace something else."""
    nearest = next(folder for folder in path.absolute().parents if folder.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise ValueError(f"{path} cannot be written ({nearest} is read-only or not a folder): choose another file")
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give a file, such as --out {path / 'report.html'}")
    if path.is_file():
        with path.open("rb") as stream:
            if stream.read(len(_BEGINNING)) not in (_BEGINNING, b""):
                raise ValueError(f"{path} is not a report and would be lost: choose another file")


def write(path: Path, subject: Subject) -> None:
    """Write the report atomically; the same subject gives the same bytes."""
    check_target(path)
    content = page(subject)
    with writing_text(path) as stream:
        stream.write(content)
