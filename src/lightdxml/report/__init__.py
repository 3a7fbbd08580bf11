"""The HTML report about a trained model that `lightdxml report` writes."""

from __future__ import annotations

from pathlib import Path

from lightdxml.data.files import check_replaceable, writing_text
from lightdxml.report.page import Subject, page

__all__ = ["Subject", "check_target", "write"]

_BEGINNING = b"<!DOCTYPE html>"


def check_target(path: Path) -> None:
    """Raise a `ValueError` if a report cannot be written to a path, or would replace something else."""
    check_replaceable(path, _BEGINNING, "a report", "report.html")


def write(path: Path, subject: Subject) -> None:
    """Write the report atomically; the same subject gives the same bytes."""
    check_target(path)
    content = page(subject)
    with writing_text(path) as stream:
        stream.write(content)
