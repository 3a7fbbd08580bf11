"""The error that unreadable data raises."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class DataError(ValueError):
    """Data that cannot be read: where, what was found there, and what was expected.

    Parameters
    ----------
    path
        The file or folder.
    found
        What it contains.
    expected
        What it should contain, or what to do.
    line
        The line number, counted from 1.

    Examples
    --------
    >>> print(DataError("train.txt", "feature '7'", "feature:value", line=3))
    train.txt, line 3: found feature '7', expected feature:value
    """

    def __init__(self, path: str | Path, found: str, expected: str, *, line: int | None = None) -> None:
        self.path = Path(path)
        self.line = line
        self.found = found
        self.expected = expected
        place = f"{path}, line {line}" if line is not None else f"{path}"
        super().__init__(_on_one_line(f"{place}: found {found}, expected {expected}"))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to make it again: it may come from another process."""
        return partial(type(self), line=self.line), (self.path, self.found, self.expected)


class EmptyFileError(DataError):
    """A file without documents. If a split is several files, some of them may be empty."""


def _on_one_line(text: str) -> str:
    r"""Return a text with line ends and other control characters as escapes: names in files and of files have them too.

    >>> _on_one_line("the field a\nb")
    'the field a\\nb'
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def excerpt(text: str | bytes, limit: int = 60) -> str:
    r"""Quote the beginning of a text for an error message; unprintable characters are escaped.

    >>> excerpt(b"3:x\n")
    "'3:x\\n'"
    """
    start = text[:limit]
    more = "…" if len(text) > limit else ""
    if isinstance(start, bytes):
        try:
            start = start.decode()
        except UnicodeDecodeError:
            return repr(start).removeprefix("b") + more
    return repr(start) + more


def shortened(text: str, limit: int = 200) -> str:
    """Return the beginning of a text for an error message.

    >>> shortened("title, text", 5)
    'title…'
    """
    return text if len(text) <= limit else f"{text[:limit]}…"
