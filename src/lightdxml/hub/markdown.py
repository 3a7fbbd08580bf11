"""Building blocks of a model card. Everything that comes from a model goes through `inline`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#&~$!])")
# The longest name that is shown.
NAME = 90


def inline(value: object, limit: int = NAME) -> str:
    r"""Return anything as Markdown text on one line, without markup and HTML, cut after `limit` characters.

    >>> inline("<b>_a_ | [b]\n`c`")
    '\\<b\\>\\_a\\_ \\| \\[b\\] \\`c\\`'
    """
    return _SPECIAL.sub(r"\\\1", one_line(value, limit))


def one_line(value: object, limit: int = NAME) -> str:
    r"""Return anything as text on one line, without control characters, cut after `limit` characters.

    >>> one_line("a\n---\x1bb")
    'a --- b'
    """
    whole = str(value).encode("utf-8", "replace").decode("utf-8")
    line = " ".join("".join(c if c.isprintable() else " " for c in whole).split())
    return line if len(line) <= limit else line[:limit].rstrip() + "…"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], words: Sequence[int] = (0,)) -> str:
    """Return a table of Markdown cells; `words` are the columns that are not numbers.

    >>> print(table(("a", "b"), [("x", "1")]))
    | a | b |
    |---|---:|
    | x | 1 |
    """
    rule = "|".join("---" if i in words else "---:" for i in range(len(columns)))
    return "\n".join(_row(cells) if cells else f"|{rule}|" for cells in (columns, (), *rows))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def section(title: str, *blocks: str) -> str:
    r"""Return a section with a heading; empty blocks are left out.

    >>> section("Use", "", "Like this.")
    '## Use\n\nLike this.'
    """
    return "\n\n".join([f"## {title}", *filter(None, blocks)])


def bullets(lines: Iterable[str]) -> str:
    r"""Return a list.

    >>> bullets(["one", "two"])
    '- one\n- two'
    """
    return "\n".join(f"- {line}" for line in lines)
