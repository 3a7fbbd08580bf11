"""A trained model on one page: what `lightdxml report` writes."""

from __future__ import annotations

import os
from pathlib import Path

from lightdxml.data.files import writing_text
from lightdxml.report.page import Subject, page

__all__ = ["Subject", "check_target", "write"]

_BEGINNING = b"<!DOCTYPE html>"


def check_target(path: Path) -> None:
    """Raise where a report cannot or must not be written: over a folder, or over a file that is no page."""
    nearest = next(folder for folder in path.absolute().parents if folder.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise ValueError(f"{path} cannot be written ({nearest} takes no new files): choose another place")
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give the name of a file, as in --out {path / 'report.html'}")
    if path.is_file():
        with path.open("rb") as stream:
            if stream.read(len(_BEGINNING)) not in (_BEGINNING, b""):
                raise ValueError(f"{path} holds something that is no report: choose another name")


def write(path: Path, subject: Subject) -> None:
    """Write the report, whole or not at all; the same subject gives the same bytes."""
    check_target(path)
    content = page(subject)
    try:
        with writing_text(path) as stream:
            stream.write(content)
    except OSError as error:
        raise ValueError(f"{path} cannot be written ({error.strerror}): choose another place") from error
