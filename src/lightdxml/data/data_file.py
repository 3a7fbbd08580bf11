"""One data file and how to read it, here or in another process."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from lightdxml.data import annif, annif_txt, arrow, jsonl, table, xc_text
from lightdxml.data.dataset import Split, Texts
from lightdxml.data.detect import Format
from lightdxml.data.errors import DataError
from lightdxml.data.files import reading_bytes
from lightdxml.data.labels import LabelIndex
from lightdxml.data.options import ReadOptions
from lightdxml.resources.system import check_memory

# Formats of a matrix, formats that state the number of features and labels, formats that give labels by name, formats
# of features, and those of which a split may be several files.
MATRICES = ("xc-matrix", "npz")
SIZED = ("xc-text", "xc-matrix", "npz")
NAMED = ("jsonl", "table", "parquet", "arrow", "annif-tsv", "annif-csv", "annif-jsonl", "annif-txt")
FEATURES = (*SIZED, "svmlight")
SEVERAL = ("jsonl", "xc-json", "table", "parquet", "xc-text", "svmlight", "annif-tsv", "annif-csv", "annif-jsonl")

_ANNIF_READERS: dict[Format, Callable[[Path, LabelIndex, str], Split]] = {
    "annif-tsv": annif.read_tsv,
    "annif-csv": annif.read_csv,
    "annif-jsonl": annif.read_jsonl,
    "annif-txt": annif_txt.read,
}


class DataFile(NamedTuple):
    """A file, its format and how it is read. A folder of documents, or a saved data set, counts as one."""

    path: Path
    format: Format
    options: ReadOptions

    @property
    def has_cells(self) -> bool:
        """Whether labels in cells are strings, which may have been split wrongly."""
        is_arrow = self.format in ("parquet", "arrow")
        return arrow.has_cells(self.contents[0], self.options.columns) if is_arrow else self.format == "table"

    @property
    def contents(self) -> list[Path]:
        """The files that it consists of."""
        if self.format == "arrow" and self.path.is_dir():
            return arrow.files(self.path)
        return annif_txt.files(self.path) if self.path.is_dir() else [self.path]

    def check_there(self) -> None:
        """Raise a `DataError` if this machine does not have the file."""
        if not self.path.exists():
            expected = "files on a disk that all machines of the cluster share, at the same path"
            raise DataError(self.path, f"no such file on {socket.gethostname()}", expected)

    def check_memory(self) -> None:
        """Raise a `MemoryLimitError` if reading it takes more memory than there is."""
        check_memory(f"reading {self.path}", reading_bytes(*self.contents), self.options.memory_limit)

    def read(self, index: LabelIndex) -> Split:
        """Read all documents; the index assigns ids to labels with names."""
        path, options = self.path, self.options
        if self.format in _ANNIF_READERS:
            return _ANNIF_READERS[self.format](path, index, options.encoding)
        if self.format in ("parquet", "arrow"):
            return arrow.read(self.contents, index, options)
        if self.format == "jsonl":
            return jsonl.read(path, index, options)
        if self.format == "table":
            return table.read(path, index, options)
        if self.format == "xc-json":
            return jsonl.read_xc(path, options.encoding)
        X, Y = xc_text.read_labeled(path)
        return Split(Y=Y, X=X)

    def read_texts(self) -> Texts | None:
        """Read the texts, wherever this process runs; None if there are features instead."""
        self.check_there()
        return self.read(LabelIndex()).texts
