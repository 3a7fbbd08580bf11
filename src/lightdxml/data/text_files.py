"""Texts that stay in their files: they are read file by file when they are asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast, overload

import numpy as np
from numpy.typing import NDArray

from lightdxml.data.dataset import Texts
from lightdxml.data.errors import DataError

if TYPE_CHECKING:
    from lightdxml.data.data_file import DataFile


@dataclass(frozen=True, eq=False)
class FilePart:
    """Documents of one file: all of them, or some rows in ascending order.

    Attributes
    ----------
    file
        The file.
    n_documents
        How many documents it has.
    rows
        The rows that count; None for all.
    """

    file: DataFile
    n_documents: int
    rows: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return self.n_documents if self.rows is None else len(self.rows)

    def take(self, rows: NDArray[np.int64]) -> FilePart:
        """Return these of its documents."""
        return replace(self, rows=rows if self.rows is None else self.rows[rows])

    def read(self) -> Texts:
        """Read the texts."""
        found = self.file.read_texts()
        n = 0 if found is None else len(found)
        if found is None or n != self.n_documents:
            expected = f"{self.n_documents:,}, as before: files must not change while they are used"
            raise DataError(self.file.path, f"{n:,} documents", expected)
        return found if self.rows is None else found.take(self.rows)


class TextFiles(Texts):
    """The texts of documents in several files, of which no more than one is in memory at a time.

    They are a sequence as others are. Read in ascending order, each file is read once. Whoever can work on files one by
    one takes `parts`.

    Parameters
    ----------
    parts
        The documents of each file.
    empty
        The numbers of documents without a text.
    characters
        The length of all texts.
    has_titles
        Whether any document has a title.
    """

    __slots__ = ("_latest", "_starts", "characters", "empty", "parts")

    def __init__(
        self, parts: Sequence[FilePart], empty: NDArray[np.int64], characters: int, *, has_titles: bool
    ) -> None:
        self.parts, self.empty, self.characters = parts, empty, characters
        self._starts = np.cumsum([0, *map(len, parts)]).tolist()
        self._latest: tuple[int, Texts] | None = None
        super().__init__(_Column(self, "bodies"), _Column(self, "titles") if has_titles else None)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __repr__(self) -> str:
        return f"<TextFiles: {len(self)} documents in {len(self.parts)} files>"

    def take(self, rows: NDArray[np.int64]) -> Texts:
        """Return the texts of these rows; they stay in their files if they keep their order."""
        if (np.diff(rows) <= 0).any():
            return super().take(rows)
        cuts = np.searchsorted(rows, self._starts)
        some = [rows[a:b] - start for a, b, start in zip(cuts, cuts[1:], self._starts, strict=False)]
        parts = [part.take(own) for part, own in zip(self.parts, some, strict=True) if len(own)]
        empty = np.flatnonzero(np.isin(rows, self.empty))
        characters = round(self.characters * len(rows) / max(1, len(self)))
        return TextFiles(parts, empty, characters, has_titles=self.titles is not None)

    def located(self, row: int) -> tuple[Texts, int]:
        """Return the texts of the file that has a document, and its place among them."""
        number = bisect_right(self._starts, row) - 1
        latest = self._latest
        if latest is None or latest[0] != number:
            # Dropped before the next file is read.
            latest = self._latest = None
            latest = self._latest = number, self.parts[number].read()
        return latest[1], row - self._starts[number]


class _Column(Sequence[str]):
    """The bodies or the titles of texts in files."""

    def __init__(self, texts: TextFiles, name: str) -> None:
        self.texts, self.name = texts, name

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        rows = range(len(self))[index]
        if isinstance(rows, range):
            return [self[row] for row in rows]
        texts, place = self.texts.located(rows)
        values = cast("Sequence[str] | None", getattr(texts, self.name))
        return "" if values is None else values[place]
