"""Published results: the tables of the LightDXML paper and of the Extreme Classification repository.

The paper's `WT-320K` is WikiSeeAlsoTitles-350K.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files


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
        Published values by the names that they have in measured cells. Times per query count as batch times; seconds
        of the modules M1, M2, M3+M4 and of the re-ranker are phases.
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

    @property
    def origin(self) -> str:
        """The footnote of the row."""
        return "; ".join((self.source, self.hardware or "hardware unknown", *self.notes))


def rows(data: str | None = None) -> list[Published]:
    """Return the published rows of all data sets or of one, by its letters and digits.

    >>> [(row.method, row.values["P@1"]) for row in rows("eurlex4k") if row.values.get("train_seconds") == 75]
    [('LightDXML', 82.38)]
    """
    content = json.loads(files(__package__).joinpath("published.json").read_text("utf-8"))
    return [Published(**row) for row in content if data is None or plain(row["data"]) == plain(data)]


def plain(name: str) -> str:
    """Return the letters and digits of a name, in lower case: names differ in the rest.

    >>> plain("PPD-Sparse")
    'ppdsparse'
    """
    return "".join(filter(str.isalnum, name.lower()))
