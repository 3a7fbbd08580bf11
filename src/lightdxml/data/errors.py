"""The one error that bad data raises."""

from __future__ import annotations

from pathlib import Path


class DataError(ValueError):
    """Data that cannot be read, said in one sentence.

    Parameters
    ----------
    path
        The file or folder that is at fault.
    found
        What stands there.
    expected
        What should stand there, or what to do.
    line
        The line at fault, counted from 1, where there is one.

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
        super().__init__(f"{place}: found {found}, expected {expected}")


def excerpt(text: str | bytes, limit: int = 60) -> str:
    r"""Quote the beginning of a text for an error message, with what cannot be printed escaped.

    >>> excerpt(b"3:x\n")
    "'3:x\\n'"
    """
    shown = text[: limit + 1]
    more = "…" if len(shown) > limit else ""
    if isinstance(shown, str):
        return repr(shown[:limit]) + more
    try:
        return repr(shown[:limit].decode()) + more
    except UnicodeDecodeError:
        # What is no UTF-8 is shown byte by byte.
        return repr(shown[:limit]).removeprefix("b") + more
