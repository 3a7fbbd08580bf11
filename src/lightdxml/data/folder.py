"""Find the files of a data set in a folder; their names tell their roles."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from lightdxml.data import annif_txt, arrow
from lightdxml.data.detect import Part, detect_or_none, is_about, is_data, name_words, part_of
from lightdxml.data.files import base_name, check_link, entries
from lightdxml.data.options import ReadOptions

_LABEL_NAMES = re.compile(r"(labels?|label_names|lbl(\.raw)?|yf)\.(txt|json)|output-items\.txt")
_FEATURE_NAMES = re.compile(r"(vocab|vocabulary|features|feature_names|xf)\.(txt|json)")
_FILTERS = re.compile(r"filter.*\.txt")
_SPLITS = re.compile(r".*(?P<part>trn?|tst|te|train|test)_?split.*\.txt")
_DATA_SUFFIX = re.compile(r".*\.(txt|svm|svmlight|libsvm|dat|data|npz|jsonl|ndjson|json|csv|tsv|parquet)")


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


def scan(folder: Path, options: ReadOptions) -> FolderFiles:
    """Return the files of a folder by role. A folder of documents, or a saved data set, is a part as a file is."""
    if saved := arrow.saved_parts(folder):
        return FolderFiles(parts={part: [path] for name, path in saved.items() if (part := part_of(Path(name)))})
    files = _by_names(folder)
    if _is_document_folder(folder, files, options):
        return FolderFiles(parts={"train": [folder]})
    if not files.parts and not files.splits:
        # No name indicates a split: a single data file, or a single pair of matrices, is the training split.
        kinds = {path: detect_or_none(path, options) for path in files.others}
        older = [path for path, kind in kinds.items() if kind and not kind.startswith("annif")]
        if data := older or [path for path, kind in kinds.items() if kind]:
            files.parts["train"] = data
        else:
            files.parts = _document_parts(folder)
    if "train" not in files.parts and not files.splits:
        for part, paths in _folders_of_files(folder).items():
            files.parts.setdefault(part, paths)
    if not files.parts and not files.splits and len(files.others) == 1:
        files.parts["train"] = files.others
    return files


def _by_names(folder: Path) -> FolderFiles:
    files = FolderFiles()
    for path in entries(folder):
        name = base_name(path)
        if not _DATA_SUFFIX.fullmatch(name) or name.startswith(".") or is_about(path):
            continue
        check_link(path)
        if path.is_file():
            files.add(path)
    return files


def _is_document_folder(folder: Path, files: FolderFiles, options: ReadOptions) -> bool:
    """Return whether the files of a folder are documents with their labels, and not files of another format."""
    if not annif_txt.holds_documents(folder):
        return False
    candidates = chain(*files.parts.values(), files.splits.values(), files.others)
    return not any(is_data(path, options) for path in candidates)


def _document_parts(folder: Path) -> dict[Part, list[Path]]:
    """Return the sub-folders of documents by the parts that their names indicate."""
    parts: dict[Part, list[Path]] = {}
    for path in entries(folder):
        # Annif's tutorial calls its dev part so.
        part = "dev" if path.name.lower() == "validate" else part_of(path)
        if part and path.is_dir() and annif_txt.files(path):
            parts.setdefault(part, []).append(path)
    return parts if any(annif_txt.holds_documents(one) for some in parts.values() for one in some) else {}


def _folders_of_files(folder: Path) -> dict[Part, list[Path]]:
    """Return the data files of sub-folders, such as `train/part-0.jsonl`, by the parts that the folders' names say."""
    parts: dict[Part, list[Path]] = {}
    for path in entries(folder):
        part = part_of(path)
        if part and path.is_dir() and not path.name.startswith(".") and not annif_txt.holds_documents(path):
            found = _by_names(path)
            parts.setdefault(part, []).extend(sorted([*found.parts.get(part, []), *found.others]))
    return {part: paths for part, paths in parts.items() if paths}


def innermost(folder: Path) -> Path:
    """Return the folder that holds the files: archives often wrap them in another folder."""
    inside = [entry for entry in entries(folder) if not entry.name.startswith((".", "__"))]
    folders = [entry for entry in inside if entry.is_dir()]
    if len(folders) == 1 and all(entry.is_dir() or is_about(entry) for entry in inside):
        return innermost(folders[0])
    return folder
