"""The files of a folder, by the role that their names give them."""

from __future__ import annotations

import re
from pathlib import Path

from lightdxml.data.errors import DataError
from lightdxml.data.files import base_name
from lightdxml.data.recognise import Format, Part, part_of, recognise, words_of

_LABEL_NAME_FILES = re.compile(r"(labels?|label_names|lbl(\.raw)?|yf)\.(txt|json)|output-items\.txt")
_FEATURE_NAME_FILES = re.compile(r"(vocab|vocabulary|features|feature_names|xf)\.(txt|json)")
_FILTER_FILES = re.compile(r"filter.*\.txt")
_SPLIT_FILES = re.compile(r".*(?P<part>trn?|tst|te|train|test)_?split.*\.txt")
_PAPERS = re.compile(r"(read.?me|licen[sc]e|copying|notice|change(s|log)|about|citation).*")
_SUFFIXES = re.compile(r".*\.(txt|svm|svmlight|libsvm|dat|data|npz|jsonl|ndjson|json|csv|tsv)")


class Files:
    """What lies in a folder; what plays no part, such as a README, is left out.

    Attributes
    ----------
    label_names, feature_names
        The files that name labels and features.
    filters
        Files of pairs to ignore, by the part that they are for.
    splits
        The old form's split files.
    parts
        Data files by the part that they are.
    others
        Data files whose names say no part.
    """

    def __init__(self, folder: Path, encoding: str = "utf-8") -> None:
        self.folder = folder
        self.encoding = encoding
        self.label_names: Path | None = None
        self.feature_names: Path | None = None
        self.filters: dict[Part, Path] = {}
        self.splits: dict[Part, Path] = {}
        self.parts: dict[Part, list[Path]] = {}
        self.others: list[Path] = []
        for path in entries(folder):
            name = base_name(path)
            if _SUFFIXES.fullmatch(name) and not name.startswith(".") and not _PAPERS.fullmatch(name):
                self._sort_in(path, name)
        if not self.parts and not self.splits:
            # Nothing says train: a single data file is it, or a single pair of matrices.
            data = [path for path in self.others if format_or_none(path, encoding)]
            if data or len(self.others) == 1:
                self.parts["train"] = data or self.others

    def _sort_in(self, path: Path, name: str) -> None:
        if path.is_symlink() and not path.exists():
            raise DataError(path, "a link to nothing", "a file: mend or remove the link")
        if not path.is_file():
            return
        part = part_of(path)
        if _LABEL_NAME_FILES.fullmatch(name):
            self.label_names = path
        elif _FEATURE_NAME_FILES.fullmatch(name):
            self.feature_names = path
        elif _FILTER_FILES.fullmatch(name):
            if part:
                self.filters[part] = path
        elif match := _SPLIT_FILES.fullmatch(name):
            self.splits["train" if match["part"].startswith("tr") else "test"] = path
        elif part:
            self.parts.setdefault(part, []).append(path)
        elif "lbl" not in words_of(path):
            self.others.append(path)


def entries(folder: Path) -> list[Path]:
    """Return what a folder holds, in order."""
    try:
        return sorted(folder.iterdir())
    except PermissionError as error:
        raise DataError(folder, "no permission to look into it", "a folder that you may read") from error


def format_or_none(path: Path, encoding: str) -> Format | None:
    """Return the format of a file, None where it is no data."""
    try:
        return recognise(path, encoding)
    except DataError:
        return None


def innermost(folder: Path) -> Path:
    """Return the folder that holds the files: archives often wrap them in one folder more."""
    inside = [entry for entry in entries(folder) if not entry.name.startswith((".", "__"))]
    folders = [entry for entry in inside if entry.is_dir()]
    if len(folders) == 1 and all(entry.is_dir() or _PAPERS.fullmatch(base_name(entry)) for entry in inside):
        return innermost(folders[0])
    return folder
