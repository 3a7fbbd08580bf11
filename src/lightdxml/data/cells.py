"""The labels of a cell: a list, as JSON or Python writes it, or names with a separator between them."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Collection, Iterable
from typing import Any

SEPARATOR = "|"
# What else may separate labels in a cell, and the fraction of labels that make it likely.
_SEPARATORS, _MANY = (";", "|", ","), 0.5
_ITEM = re.compile(r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|-?\d{1,4000}""")
# NumPy writes blanks between the items where Python writes commas.
_LIST = re.compile(rf"\[\s*(?:(?:{_ITEM.pattern})(?:(?:\s*,\s*|\s+)(?:{_ITEM.pattern}))*(?:\s*,)?\s*)?\]")


def listed(cell: str) -> list[str] | list[int] | None:
    """Return the labels of a cell that is a list of strings or integers, as JSON, Python or NumPy write it; else None.

    >>> listed("['x', 'y']"), listed('["x", "y"]'), listed("['x' 'y']"), listed("[7, 12]"), listed("[PAD]")
    (['x', 'y'], ['x', 'y'], ['x', 'y'], [7, 12], None)
    """
    start = cell.strip()
    if not (start.startswith("[") and start.endswith("]")):
        return None
    try:
        found = json.loads(start)
    except (ValueError, RecursionError):
        found = _python_list(start)
    if isinstance(found, list) and any(all(type(one) is kind for one in found) for kind in (str, int)):
        return found
    return None


def _python_list(cell: str) -> list[Any] | None:
    if not _LIST.fullmatch(cell):
        return None
    try:
        with warnings.catch_warnings():
            # Backslashes in front of other letters, which stay as they are.
            warnings.simplefilter("ignore")
            return [ast.literal_eval(item) for item in _ITEM.findall(cell)]
    except (ValueError, SyntaxError):
        return None


def labels_of_cell(cell: str, separator: str | None = None) -> list[str]:
    """Return the labels of a cell, without blanks around them; None is the usual separator.

    >>> labels_of_cell("cat | dog"), labels_of_cell("['cat', 'dog']"), labels_of_cell("")
    (['cat', 'dog'], ['cat', 'dog'], [])
    """
    found = listed(cell)
    names: Iterable[Any] = cell.split(separator or SEPARATOR) if found is None else found
    return [name for one in names if (name := str(one).strip())]


def likely_separator(labels: Collection[str]) -> str | None:
    """Return the mark that seems to separate several labels in these strings; None if each seems to be one label.

    More than half of them contain it, or most that contain it consist of others for the most part.

    >>> likely_separator(["cat;dog", "dog;cow", "cow"]), likely_separator(["cat", "dog", "cow", "cow,dog"])
    (';', ',')
    >>> likely_separator(["cat", "dog", "Smith, John"]) is None, likely_separator(["art", "art, French"]) is None
    (True, True)
    >>> likely_separator(["cat", "dog", "cow", "ant", "bee", "cat, dog, owl"])
    ','
    """
    known = set(labels)
    for mark in _SEPARATORS:
        joined = [label for label in labels if mark in label]
        parts = [[part.strip() in known for part in label.split(mark)] for label in joined]
        composed = sum(sum(are_labels) > _MANY * len(are_labels) for are_labels in parts)
        if len(joined) > _MANY * len(labels) or composed > _MANY * max(1, len(joined)):
            return mark
    return None
