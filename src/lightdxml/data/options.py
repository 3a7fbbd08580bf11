"""What files cannot tell about themselves: separator, encoding and names of columns."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import NamedTuple

# The options that a model remembers from its training.
REMEMBERED = ("label_separator", "encoding", "text_column", "title_column", "label_column", "id_column")

# Names that are looked for and need not exist: our own, and Annif's for ids.
_USUAL = ("id", "title", "text", "labels", "document_id")


class Columns(NamedTuple):
    """The names of columns of a table, or of fields of JSON; None for a column that is not used."""

    id: str | None = "id"
    title: str | None = "title"
    text: str = "text"
    labels: str = "labels"

    def lowered(self) -> Columns:
        """Return the names as tables are searched for them: the case of letters does not matter there.

        >>> Columns(text="Full Text").lowered().text
        'full text'
        """
        id_, title, text, labels = (None if name is None else name.strip().lower() for name in self)
        return Columns(id_, title, text or "", labels or "")

    def missing_in(self, names: Container[str]) -> list[str]:
        """Return the columns that were asked for by name and are not among these names.

        >>> Columns(text="body", title="headline").missing_in(["body", "labels"])
        ['headline']
        """
        asked = (self.text, self.labels, self.title, self.id)
        return [name for name in asked if name is not None and name not in _USUAL and name not in names]

    def to_predict(self) -> Columns:
        """Return the columns that documents must have to predict their labels: no labels and no ids."""
        return self._replace(labels=DEFAULT_COLUMNS.labels, id=DEFAULT_COLUMNS.id)

    def are_in(self, names: Container[str]) -> bool:
        """Return whether a text or a title is among these names, and all columns that were asked for by name."""
        any_text = self.text in names or (self.title is not None and self.title in names)
        return any_text and not self.missing_in(names)


DEFAULT_COLUMNS = Columns()


def expected_columns(columns: Columns, names: Container[str], with_labels: bool = True) -> str:
    """Return what data with columns of these names lacks, and what to do, for an error.

    >>> expected_columns(Columns(text="body"), ["text", "labels"])
    'a column named body: check --text-column'
    """
    if missing := columns.missing_in(names):
        option = {columns.id: "id", columns.title: "title", columns.text: "text", columns.labels: "label"}[missing[0]]
        return f"a column named {missing[0]}: check --{option}-column"
    texts = columns.text if columns.title is None else f"{columns.text} (or {columns.title})"
    if not with_labels:
        return f"a column named {texts}: give its name, as in --text-column NAME"
    return f"columns named {texts} and {columns.labels}: give theirs, as in --text-column NAME --label-column NAME"


@dataclass(frozen=True)
class ReadOptions:
    """How to read data.

    Attributes
    ----------
    label_separator
        The separator of labels in a cell. None is `|`, and an error if another one seems to separate them.
    encoding
        The encoding of text files.
    text_column, title_column, label_column, id_column
        The names of columns, or of fields of JSON; None for `text`, `title`, `labels` and `id`.
    split
        The column of old split files.
    memory_limit
        The most memory that the process may take, None for what the machine has.
    """

    label_separator: str | None = None
    encoding: str = "utf-8"
    text_column: str | None = None
    title_column: str | None = None
    label_column: str | None = None
    id_column: str | None = None
    split: int = 0
    memory_limit: int | None = None

    def __post_init__(self) -> None:
        for name in REMEMBERED:
            if getattr(self, name) == "":
                raise ValueError(f"{name} is empty: give at least one character")
        if self.split < 0:
            raise ValueError(f"split is {self.split}: splits are counted from 0")
        try:
            b"a".decode(self.encoding)
        except UnicodeDecodeError:
            pass  # a known encoding with more than one byte per character
        except LookupError as error:
            message = f"encoding {self.encoding!r} is unknown: common ones are utf-8, latin-1 and cp1252"
            raise ValueError(message) from error

    @property
    def columns(self) -> Columns:
        """The names of columns: those that were given, and defaults. A column with the text is no title as well."""
        text, labels = self.text_column or "text", self.label_column or "labels"
        title = self.title_column or ("title" if "title" not in (text, labels) else None)
        return Columns(self.id_column or ("id" if "id" not in (text, labels) else None), title, text, labels)
