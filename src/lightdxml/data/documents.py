"""Collect text documents one by one into a `Split`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lightdxml.data.dataset import Split, Texts
from lightdxml.data.errors import DataError, EmptyFileError, excerpt
from lightdxml.data.labels import LabelRows


class SplitBuilder:
    """Collects the documents of one file. Ids and titles are dropped if no document has one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ids: list[str] = []
        self._titles: list[str] = []
        self._bodies: list[str] = []
        self._labels = LabelRows()
        self._any_id = self._any_title = False

    def add(
        self,
        line: int,
        document_id: object,
        texts: tuple[str | None, str | None],
        labels: Iterable[int],
        weights: Iterable[float] = (),
    ) -> None:
        """Add the document of a line: its id (a string or an integer), title and body, and label ids."""
        if isinstance(document_id, bool) or not isinstance(document_id, str | int | None):
            found = f"id {excerpt(str(document_id))}"
            raise DataError(self._path, found, "a string or an integer as id", line=line)
        title, body = texts
        self._any_id |= document_id is not None
        self._any_title |= title is not None
        self._ids.append("" if document_id is None else str(document_id))
        self._titles.append(title or "")
        self._bodies.append(body or "")
        self._labels.add(labels, weights)

    def split(self, n_labels: int) -> Split:
        """Return the documents with a label matrix of this many columns."""
        if not self._bodies:
            raise EmptyFileError(self._path, "no documents", "one document per line")
        return Split(
            Y=self._labels.matrix(n_labels),
            texts=Texts(self._bodies, self._titles if self._any_title else None),
            ids=self._ids if self._any_id else None,
        )
