"""The history of a training as series and curves. It is read from a file, so any part of it may be missing or odd."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Entry = dict[str, Any]
History = Sequence[Entry]
Curve = list[tuple[float, dict[str, float]]]

_MEASURES = tuple(f"{name}@{k}" for name in ("P", "PSP") for k in (1, 3, 5))


@dataclass(frozen=True)
class Phase:
    """All entries of one phase: their number, their total time, and the highest memory, or None if it is unknown."""

    name: str
    times: int
    seconds: float
    peak_mb: float | None


def phases(history: History) -> list[Phase]:
    """Return the phases of a training, in the order in which they began.

    >>> phases([{"phase": "index", "seconds": 1.0}, {"phase": "index", "seconds": 2.5}])
    [Phase(name='index', times=2, seconds=3.5, peak_mb=None)]
    """
    found: dict[str, list[Entry]] = {}
    for entry in history:
        found.setdefault(str(entry.get("phase", "?")), []).append(entry)
    return [
        Phase(name, len(entries), sum(_seconds(entry) for entry in entries), _peak(entries))
        for name, entries in found.items()
    ]


def _seconds(entry: Entry) -> float:
    return number(entry, "seconds") or 0.0


def _peak(entries: list[Entry]) -> float | None:
    return max((peak for entry in entries if (peak := number(entry, "peak_mb")) is not None), default=None)


def number(entry: Entry, name: str) -> float | None:
    """Return a number of an entry, None if there is none or it is not finite."""
    value = entry.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def series(history: History, phase: str, name: str) -> tuple[list[int], list[float]]:
    """Return a figure of all entries of a phase, with the classifier epochs completed by then.

    >>> series([{"phase": "classifier", "loss": 2.0}, {"phase": "validation", "P@1": 50.0}], "validation", "P@1")
    ([1], [50.0])
    """
    epochs, values, done = [], [], 0
    for entry in history:
        done += entry.get("phase") == "classifier"
        value = number(entry, name)
        if entry.get("phase") == phase and value is not None:
            epochs.append(done)
            values.append(value)
    return epochs, values


def kept_validation(history: History) -> tuple[int, Entry] | None:
    """Return the validation whose model was kept, with the classifier epochs completed by then; None if unknown.

    >>> old, new = {"phase": "validation", "kept": True}, {"phase": "validation", "kept": False}
    >>> kept_validation([old, {"phase": "classifier"}, new])
    (0, {'phase': 'validation', 'kept': True})
    """
    kept, done = None, 0
    for entry in history:
        done += entry.get("phase") == "classifier"
        if entry.get("phase") == "validation" and entry.get("kept") is True:
            kept = done, entry
    return kept


def chosen_blend(history: History) -> Entry | None:
    """Return the entry of the β and γ that were chosen; None if there was no such choice."""
    entries = [entry for entry in history if entry.get("phase") == "blend"]
    # A later view with which γ would be 0 is not kept, and the choice before it stays.
    return next((entry for entry in reversed(entries) if number(entry, "gamma")), entries[-1] if entries else None)


def curve(points: Any) -> Curve:
    """Return values with the measures for each; empty if they are incomplete.

    >>> curve([[0.5, {"P@1": 60}]])
    []
    """
    try:
        found = [(float(value), {name: float(metrics[name]) for name in _MEASURES}) for value, metrics in points]
    except (TypeError, ValueError, LookupError):
        return []
    return found


def gamma_curve(blend: Entry) -> Curve:
    """Return each γ with its measures, at the β that was chosen."""
    try:
        return curve([(gamma, metrics) for (beta, gamma), metrics in blend["grid"] if beta == blend["beta"]])
    except (TypeError, ValueError, LookupError):
        return []
