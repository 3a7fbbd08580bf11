"""The history of a training run as series and totals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Entry = dict[str, Any]
History = Sequence[Entry]
# Values of a weight or option, and the metrics at each.
Curve = Sequence[tuple[float, Mapping[str, float]]]


@dataclass(frozen=True)
class Phase:
    """All entries of one phase: their number, their total time, and the highest memory, or None if it is unknown."""

    name: str
    times: int
    seconds: float
    peak_mb: float | None


def phases(history: History) -> list[Phase]:
    """Return the phases of a training run, in the order in which they began.

    >>> phases([{"phase": "index", "seconds": 1.0}, {"phase": "index", "seconds": 2.5}])
    [Phase(name='index', times=2, seconds=3.5, peak_mb=None)]
    """
    found: dict[str, list[Entry]] = {}
    for entry in history:
        found.setdefault(entry["phase"], []).append(entry)
    return [
        Phase(
            name,
            len(entries),
            seconds=sum(entry["seconds"] for entry in entries),
            peak_mb=max((entry["peak_mb"] for entry in entries if "peak_mb" in entry), default=None),
        )
        for name, entries in found.items()
    ]


def series(history: History, phase: str, name: str) -> tuple[list[int], list[float]]:
    """Return a figure of all entries of a phase, with the classifier epochs completed by then.

    >>> series([{"phase": "classifier", "loss": 2.0}, {"phase": "validation", "P@1": 50.0}], "validation", "P@1")
    ([1], [50.0])
    """
    found = [(done, entry[name]) for done, entry in _with_epochs(history) if entry["phase"] == phase]
    return [done for done, _ in found], [value for _, value in found]


def kept_validation(history: History) -> tuple[int, Entry] | None:
    """Return the validation whose model was kept, with the classifier epochs completed by then; None if unknown.

    >>> old, new = {"phase": "validation", "kept": True}, {"phase": "validation", "kept": False}
    >>> kept_validation([old, {"phase": "classifier"}, new])
    (0, {'phase': 'validation', 'kept': True})
    """
    kept = [(done, entry) for done, entry in _with_epochs(history) if entry["phase"] == "validation" and entry["kept"]]
    return kept[-1] if kept else None


def _with_epochs(history: History) -> Iterator[tuple[int, Entry]]:
    """Yield each entry with the classifier epochs completed by then."""
    done = 0
    for entry in history:
        done += entry["phase"] == "classifier"
        yield done, entry
