"""Published results: the tables of the LightDXML paper and of the Extreme Classification repository."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

Three = tuple[float | None, float | None, float | None]


@dataclass(frozen=True)
class Published:
    """One published row. None means that the value was not published.

    Attributes
    ----------
    data, method
        Names as published.
    kind
        `Embd`, `Tree` or `DL` as in the paper, or `OVA` (one-vs-all).
    P, PSP
        At 1, 3 and 5, in percent.
    train_seconds, size_mb, query_ms
        Training time, model size (1 GB is 1,000 MB) and prediction time per query.
    source
        Where it was published.
    hardware
        The hardware it ran on.
    notes
        Cautions for comparisons.
    """

    data: str
    kind: str
    method: str
    P: Three
    PSP: Three
    train_seconds: float | None
    size_mb: float | None
    query_ms: float | None
    source: str
    hardware: str | None
    notes: tuple[str, ...]

    def value(self, name: str) -> float | None:
        """Return a value by the name it has in a measured cell. Published query times count as batch times.

        >>> row = rows("EURLex-4K")[-1]
        >>> row.method, row.value("P@3"), row.value("train_seconds"), row.value("peak_mb")
        ('MatchXML', 76.02, 720.0, None)
        """
        values = {f"{metric}@{k}": self.__dict__[metric][i] for metric in ("P", "PSP") for i, k in enumerate((1, 3, 5))}
        values |= {"train_seconds": self.train_seconds, "size_mb": self.size_mb, "batch_ms": self.query_ms}
        return values.get(name)


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

    >>> [(row.method, row.P[0]) for row in rows("eurlex-4k") if row.train_seconds == 75]
    [('LightDXML', 82.38)]
    """
    return [
        Published(**{**row, "P": tuple(row["P"]), "PSP": tuple(row["PSP"]), "notes": tuple(row["notes"])})
        for row in _content()["rows"]
        if data is None or same_name(row["data"], data)
    ]


def module_times(data: str | None = None) -> list[ModuleTimes]:
    """Return the paper's module times. The paper's `WT-320K` is WikiSeeAlsoTitles-350K.

    >>> [times.seconds["M1"] for times in module_times("Wiki10-31K")]
    [186.0, 84.1]
    """
    return [ModuleTimes(**row) for row in _content()["modules"] if data is None or same_name(row["data"], data)]


def same_name(one: str, other: str) -> bool:
    """Return whether two names denote the same data set. Only letters and digits count.

    >>> same_name("EURLex-4K", "eurlex4k"), same_name("EURLex-4K", "EURLex-4.3K")
    (True, False)
    """
    return _alphanumeric(one) == _alphanumeric(other)


def _alphanumeric(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())


def _content() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(files(__package__).joinpath("published.json").read_text("utf-8"))
    return content
