"""Published results: the tables of the LightDXML paper and of the Extreme Classification repository."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Published:
    """One published row.

    Attributes
    ----------
    data, method
        Names as published.
    kind
        `Embd`, `Tree` or `DL` as in the paper, or `OVA` (one-vs-all).
    values
        Published values by the names that they have in measured cells. Times per query count as batch times.
    source, hardware, notes
        Where it was published, the hardware it ran on, and cautions for comparisons.
    """

    data: str
    kind: str
    method: str
    values: dict[str, float]
    source: str
    hardware: str | None
    notes: list[str]


@dataclass(frozen=True)
class ModuleTimes:
    """Published training seconds per module: M1, M2, M3+M4 and the re-ranker."""

    data: str
    method: str
    seconds: dict[str, float]
    source: str
    hardware: str | None


def rows(data: str | None = None) -> list[Published]:
    """Return the published rows of all data sets or of one.

    >>> [(row.method, row.values["P@1"]) for row in rows("eurlex-4k") if row.values.get("train_seconds") == 75]
    [('LightDXML', 82.38)]
    """
    return [Published(**row) for row in _read("rows") if data is None or same_name(row["data"], data)]


def module_times() -> list[ModuleTimes]:
    """Return the paper's module times. The paper's `WT-320K` is WikiSeeAlsoTitles-350K.

    >>> [times.seconds["M1"] for times in module_times() if times.data == "Wiki10-31K"]
    [186.0, 84.1]
    """
    return [ModuleTimes(**row) for row in _read("modules")]


def same_name(one: str, other: str) -> bool:
    """Return whether two names denote the same data set. Only letters and digits count.

    >>> same_name("EURLex-4K", "eurlex4k"), same_name("EURLex-4K", "EURLex-4.3K")
    (True, False)
    """
    first, second = ([character for character in name.lower() if character.isalnum()] for name in (one, other))
    return first == second


def _read(part: str) -> list[dict[str, Any]]:
    content = json.loads(files(__package__).joinpath("published.json").read_text("utf-8"))
    rows: list[dict[str, Any]] = content[part]
    return rows
