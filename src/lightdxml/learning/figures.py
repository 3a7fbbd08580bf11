"""Checks of the figures in a journal: what commands and pages show of it must be numbers and names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from lightdxml.learning.learn import Learned
from lightdxml.learning.measured import METRICS

# The mean of many floats may be a little more than 100 percent.
_PERCENT = 100.001
# Characters of the name of a file that documents came from.
MAX_SOURCE = 1000
# Nothing that is counted is as many, and nothing takes as many seconds.
_MOST = 1 << 40
_COUNTS = ("documents", "corrected", "labels", "new_labels", "new_words")


def check_figures(kind: str, figures: dict[str, Any]) -> None:
    """Raise a `ValueError` if the figures of an entry are not those of its kind, and the name of a source."""
    source = figures.get("source", "")
    if not isinstance(source, str) or len(source) > MAX_SOURCE:
        raise ValueError("its journal has an entry from a source without a name")
    figures = {name: value for name, value in figures.items() if name != "source"}
    if not (is_number(figures["seconds"], _MOST) and _CHECKS[kind](figures)):
        raise ValueError(f"its journal has figures of another form than those of {kind}")


def _are_of_learning(figures: dict[str, Any]) -> bool:
    measured = figures["measured"]
    return (
        set(figures) == {one.name for one in fields(Learned)} | {"seconds"}
        and all(is_count(figures[name]) for name in _COUNTS)
        and figures["documents"] > 0
        and is_number(figures["unknown_words"], 1)
        and type(figures["recalibrated"]) is bool
        and set(measured) == {"documents", "metrics"}
        and is_count(measured["documents"])
        # Corrected documents are not measured.
        and figures["documents"] - figures["corrected"] <= measured["documents"] <= figures["documents"]
        and set(measured["metrics"]) == (set(METRICS) if measured["documents"] else set())
        and all(is_number(value, _PERCENT) for value in measured["metrics"].values())
    )


def _are_of_retiring(figures: dict[str, Any]) -> bool:
    names = figures["retired"]
    is_list = isinstance(names, list) and bool(names) and all(isinstance(one, str) for one in names)
    return set(figures) == {"retired", "seconds"} and is_list


def _are_of_merging(figures: dict[str, Any]) -> bool:
    names = figures["merged"], figures["into"]
    return set(figures) == {"merged", "into", "seconds"} and all(isinstance(one, str) for one in names)


def _are_of_forgetting(figures: dict[str, Any]) -> bool:
    return set(figures) == {"forgotten", "seconds"} and is_count(figures["forgotten"])


_CHECKS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "learn": _are_of_learning,
    "retire": _are_of_retiring,
    "merge": _are_of_merging,
    "forget": _are_of_forgetting,
}


def is_count(value: Any) -> bool:
    """Return whether a value is a number of things.

    >>> is_count(3), is_count(True), is_count(-1), is_count(10**400)
    (True, False, False, False)
    """
    return type(value) is int and 0 <= value <= _MOST


def is_number(value: Any, most: float) -> bool:
    """Return whether a value is a finite number from 0 to the most that it may be."""
    return type(value) in (int, float) and 0 <= value <= most
