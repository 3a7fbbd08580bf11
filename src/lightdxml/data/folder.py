"""Find the files of a data set in a folder; their names tell their roles."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from lightdxml.data.detect import Part, detect_or_none, name_words, part_of
from lightdxml.data.errors import DataError
from lightdxml.data.files import base_name

_LABEL_NAMES = re.compile(r"(labels?|label_names|lbl(\.raw)?|yf)\.(txt|json)|output-items\.txt")
_FEATURE_NAMES = re.compile(r"(vocab|vocabulary|features|feature_names|xf)\.(txt|json)")
_FILTERS = re.compile(r"filter.*\.txt")
_SPLITS = re.compile(r".*(?P<part>trn?|tst|te|train|test)_?split.*\.txt")
_NOT_DATA = re.compile(r"(read.?me|licen[sc]e|copying|notice|change(s|log)|about|citation).*")
_DATA_SUFFIX = re.compile(r".*\.(txt|svm|svmlight|libsvm|dat|data|npz|jsonl|ndjson|json|csv|tsv)")


@dataclass
class FolderFiles:
    """The files of a folder by role; files without a role, such as a README, are left out."""

    label_names: Path | None = None
    feature_names: Path | None = None
    filters: dict[Part, Path] = field(default_factory=dict)  # pairs that evaluation ignores
    splits: dict[Part, Path] = field(default_factory=dict)  # lists of documents, in the old form
    parts: dict[Part, list[Path]] = field(default_factory=dict)  # data files
    others: list[Path] = field(default_factory=list)  # data files whose names indicate no split

    def add(self, path: Path) -> None:
        """Add a file under the role that its name indicates."""
        name, part = base_name(path), part_of(path)
        if _LABEL_NAMES.fullmatch(name):
            self.label_names = path
        elif _FEATURE_NAMES.fullmatch(name):
            self.feature_names = path
        elif _FILTERS.fullmatch(name):
            if part:
                self.filters[part] = path
        elif match := _SPLITS.fullmatch(name):
            self.splits["train" if match["part"].startswith("tr") else "test"] = path
        elif part:
            self.parts.setdefault(part, []).append(path)
        elif "lbl" not in name_words(path):
            self.others.append(path)


def scan(folder: Path, encoding: str = "utf-8") -> FolderFiles:
    """Return the files of a folder by role."""
    files = FolderFiles()
    for path in entries(folder):
        name = base_name(path)
        if not _DATA_SUFFIX.fullmatch(name) or name.startswith(".") or _NOT_DATA.fullmatch(name):
            continue
        if path.is_symlink() and not path.exists():
            raise DataError(path, "a broken symbolic link", "a file: repair or remove the link")
        if path.is_file():
            files.add(path)
    if not files.parts and not files.splits:
        # No name indicates a split: a single data file, or a single pair of matrices, is the training split.
        data = [path for path in files.others if detect_or_none(path, encoding)]
        if data or len(files.others) == 1:
            files.parts["train"] = data or files.others
    return files


def entries(folder: Path) -> list[Path]:
    """Return the entries of a folder in sorted order."""
    try:
        return sorted(folder.iterdir())
    except PermissionError as error:
        raise DataError(folder, "no permission to list it", "a folder that you may read") from error


def innermost(folder: Path) -> Path:
    """Return the folder that holds the files: archives often wrap them in another folder."""
    inside = [entry for entry in entries(folder) if not entry.name.startswith((".", "__"))]
    folders = [entry for entry in inside if entry.is_dir()]
    if len(folders) == 1 and all(entry.is_dir() or _NOT_DATA.fullmatch(base_name(entry)) for entry in inside):
        return innermost(folders[0])
    return folder
