"""Lessons in a few words, for people."""

from __future__ import annotations

from collections.abc import Sequence

from lightdxml.learning.journal import Entry

_SHOWN = 3


def summary(entry: Entry) -> str:
    """Return what an entry of the journal has changed, in a few words.

    >>> summary(Entry(2, "", "merge", {"merged": "cat", "into": "pet"}))
    'merged cat into pet'
    """
    figures = entry.figures
    if entry.kind == "retire":
        return f"retired {some(figures['retired'])}"
    if entry.kind == "merge":
        return f"merged {figures['merged']} into {figures['into']}"
    if entry.kind == "forget":
        return f"forgot {count(figures['forgotten'], 'document')}"
    parts = [f"learned {count(figures['documents'], 'document')}"]
    parts += [f"{figures['corrected']:,} corrected"] if figures["corrected"] else []
    parts += [count(figures[f"new_{one}s"], f"new {one}") for one in ("label", "word") if figures[f"new_{one}s"]]
    return ", ".join(parts)


def count(n: int, what: str) -> str:
    """Return a number with what is counted.

    >>> count(1, "step"), count(2000, "step")
    ('1 step', '2,000 steps')
    """
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def some(names: Sequence[str], n: int | None = None) -> str:
    """Return the first few names, and how many more there are; `n` is the number of all names if some are not given.

    >>> some(["a", "b", "c", "d"]), some(["a"])
    ('a, b, c and 1 more', 'a')
    """
    rest = (len(names) if n is None else n) - _SHOWN
    return f"{', '.join(names[:_SHOWN])} and {rest:,} more" if rest > 0 else ", ".join(names)
