"""Building blocks of the page as HTML. Everything that comes from data goes through `text`."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

# The longest name that is shown.
NAME = 90


def text(value: object, limit: int | None = None) -> str:
    r"""Return anything as HTML text on one line, cut after `limit` characters.

    >>> text('<b> & "quotes"\n\x00', 10)
    '&lt;b&gt; &amp; &quot;quo…'
    """
    # Lone surrogates cannot be encoded, and HTML does not allow control characters.
    whole = str(value).encode("utf-8", "replace").decode("utf-8")
    line = "".join(c if c.isprintable() or not c.isascii() else " " for c in whole)
    line = "".join("\ufffd" if "\x7f" <= c < "\xa0" else c for c in " ".join(line.split()))
    if limit is not None and len(line) > limit:
        line = line[:limit].rstrip() + "…"
    return html.escape(line)


def section(title: str, content: str) -> str:
    """Return a section with a heading."""
    return f"<section>\n<h2>{title}</h2>\n{content}</section>\n"


def note(sentence: str) -> str:
    """Return a paragraph of small text."""
    return f'<p class="note">{sentence}</p>\n'


def figure(svg: str, caption: str) -> str:
    """Return a chart with its caption."""
    return f"<figure>\n{svg}\n<figcaption>{caption}</figcaption>\n</figure>\n"


def side_by_side(*blocks: str) -> str:
    """Return blocks next to each other if there is space."""
    return '<div class="pair">\n' + "".join(f"<div>{block}</div>\n" for block in blocks) + "</div>\n"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], words: Sequence[int] = (0,), kind: str = "") -> str:
    """Return a table of HTML cells; `words` are the columns that are not numbers."""
    classes = ["" if i in words else ' class="number"' for i in range(len(columns))]
    head = "".join(f"<th{one}>{name}</th>" for one, name in zip(classes, columns, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{one}>{cell}</td>" for one, cell in zip(classes, row, strict=True)) + "</tr>\n"
        for row in rows
    )
    start = f'<table class="{kind}">' if kind else "<table>"
    return f'<div class="scroll">{start}\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n'


def bars(rows: Sequence[tuple[str, float, Sequence[str]]], columns: Sequence[str]) -> str:
    """Return a table with a bar in every row; a row is a name, the length of its bar, and more cells."""
    longest = max((length for _, length, _ in rows), default=0) or 1
    cells = [
        [name, f'<span class="bar" style="width:{100 * length / longest:.1f}%"></span>', *more]
        for name, length, more in rows
    ]
    return table((columns[0], "", *columns[1:]), cells, words=(0, 1), kind="bars")


def percent(value: float | None) -> str:
    """Return a percentage; a dash for None."""
    return "–" if value is None else f"{value:.2f}"


def duration(seconds: float) -> str:
    """Return a time with suitable units.

    >>> duration(3.21), duration(80), duration(7384)
    ('3.2 s', '1 min 20 s', '2 h 3 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
    return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min"


def size(n_bytes: float) -> str:
    """Return a size with a suitable unit.

    >>> size(999), size(12_345_678), size(3e9)
    ('999 B', '12.3 MB', '3.0 GB')
    """
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if n_bytes >= unit:
            return f"{n_bytes / unit:.1f} {name}"
    return f"{n_bytes:.0f} B"
