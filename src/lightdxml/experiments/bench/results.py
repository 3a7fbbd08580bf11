"""Benchmark results: read and write cells, check that they are comparable, average repeats."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from lightdxml.data.errors import DataError
from lightdxml.data.files import writing_text

# The modules of the paper; all other phases of a training run are summed up.
MODULES = ("M1", "M2", "M3+M4", "re-ranker")
# Every cell has these fields.
_FIELDS = {"data", "method", "repeat", "seed", "threads", "status", "settings", "versions", "machine", "sizes"}

Cell = dict[str, Any]


class Value(NamedTuple):
    """Mean, minimum and maximum over the repeats."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Group:
    """All repeats of one method on one data set."""

    data: str
    method: str
    cells: Sequence[Cell]

    @cached_property
    def done(self) -> list[Cell]:
        """Cells with results."""
        return [cell for cell in self.cells if cell["status"] == "done"]

    @cached_property
    def rest(self) -> list[Cell]:
        """Cells that failed, timed out or were skipped."""
        return [cell for cell in self.cells if cell["status"] != "done"]

    @cached_property
    def values(self) -> dict[str, Value]:
        """Measured values by flat name: `P@1`, `train_seconds`, `single_ms.p50`, `phases.M1`."""
        numbers: dict[str, list[float]] = {}
        for cell in self.done:
            for name, number in _measured(cell):
                numbers.setdefault(name, []).append(number)
        return {name: Value(math.fsum(some) / len(some), min(some), max(some)) for name, some in numbers.items()}

    def mean(self, name: str) -> float | None:
        """Return the mean of a value, or None if it was not measured."""
        return self.values[name].mean if name in self.values else None

    @property
    def title(self) -> str:
        """The method's name, with what went wrong if not all runs succeeded."""
        if not self.rest:
            return self.method
        runs = f"{len(self.done)} of {len(self.cells)} runs"
        return f"{self.method} ({runs if self.done else self.rest[0]['status']})"


def grouped(cells: Iterable[Cell]) -> dict[str, list[Group]]:
    """Return the repeats of each method, by data set, in order of first appearance.

    Examples
    --------
    >>> cell = {"data": "bibtex", "method": "knn", "status": "done"}
    >>> groups = grouped([{**cell, "metrics": {"P@1": 60.0}}, {**cell, "metrics": {"P@1": 62.0}}])
    >>> groups["bibtex"][0].values["P@1"]
    Value(mean=61.0, low=60.0, high=62.0)
    """
    repeats: dict[str, dict[str, list[Cell]]] = {}
    for cell in cells:
        repeats.setdefault(cell["data"], {}).setdefault(cell["method"], []).append(cell)
    return {data: [Group(data, name, some) for name, some in methods.items()] for data, methods in repeats.items()}


def _measured(cell: Cell) -> Iterator[tuple[str, float]]:
    """Yield the measured values of a cell by flat name; missing values are left out."""
    phases = {name: value for name, value in (cell.get("phases") or {}).items() if name != "compile"}
    modules = {name: phases.pop(name) for name in MODULES if name in phases}
    if phases:
        modules["other"] = math.fsum(phases.values())
    named = {name: cell.get(name) for name in ("train_seconds", "peak_mb", "size_mb", "batch_ms", "single_ms")}
    for name, value in flat({**named, **cell["metrics"], "phases": modules}):
        if isinstance(value, int | float) and math.isfinite(value):
            yield name, float(value)


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield nested values by names such as `metrics.P@1`.

    >>> dict(flat({"data": "bibtex", "metrics": {"P@1": 60.5}}))
    {'data': 'bibtex', 'metrics.P@1': 60.5}
    """
    for name, value in values.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file atomically."""
    with writing_text(path) as stream:
        json.dump(content, stream, indent=1, ensure_ascii=False)
        stream.write("\n")


def read(folder: Path) -> list[Cell]:
    """Return the cells in a folder; raise a `DataError` if a file is damaged.

    >>> read(Path("no such folder"))
    []
    """
    # Names that start with a dot belong to files that are still being written.
    return [_read_cell(path) for path in sorted(folder.glob("*.json")) if not path.name.startswith(".")]


def _read_cell(path: Path) -> Cell:
    try:
        cell = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError):
        cell = None
    if not isinstance(cell, dict) or not cell.keys() >= _FIELDS:
        raise DataError(path, "damaged content", "a benchmark cell: delete the file and run the benchmark again")
    return cell


def check_comparable(cells: Sequence[Cell]) -> None:
    """Raise a `ValueError` if cells must not appear in one table.

    All cells must share the machine, the number of threads and the version of each package; repeats of the same number
    their seed; cells of a data set its sizes; repeats of a method on a data set the settings.

    Examples
    --------
    >>> one = {"data": "bibtex", "method": "knn", "repeat": 0, "settings": {}, "sizes": {}, "machine": "EPYC"}
    >>> cells = [{**one, "seed": 0, "threads": 2, "versions": {"numpy": version}} for version in ("2.0", "2.1")]
    >>> check_comparable(cells)
    Traceback (most recent call last):
    ValueError: bibtex.knn.0 has numpy 2.0, bibtex.knn.0 has numpy 2.1: use another --out or delete the old cells
    """
    seen: dict[tuple[str, ...], tuple[str, str]] = {}
    for cell in cells:
        for key, fact in _facts(cell):
            first, known = seen.setdefault(key, (title(cell), fact))
            if fact != known:
                names = f"{first} has {known}, {title(cell)} has {fact}"
                raise ValueError(f"{names}: use another --out or delete the old cells")


def title(cell: Cell) -> str:
    """Return the name of a cell, which is also that of its file."""
    return f"{cell['data']}.{cell['method']}.{cell['repeat']}"


def _facts(cell: Cell) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield pairs of a key and a description: cells that share the key must share the description."""
    yield ("machine",), f"the machine {cell['machine']}"
    for package, version in sorted(cell["versions"].items()):
        yield ("version", package), f"{package} {version}"
    yield ("threads",), f"{cell['threads']} threads"
    yield ("seed", str(cell["repeat"])), f"the seed {cell['seed']}"
    yield ("sizes", cell["data"]), f"the sizes {_listed(cell['sizes'])}"
    yield ("settings", cell["data"], cell["method"]), f"the settings {_listed(cell['settings'])}"


def _listed(values: dict[str, Any]) -> str:
    # As JSON, so that values read from a file compare equal to values in memory.
    return ", ".join(f"{name}={json.dumps(value)}" for name, value in sorted(values.items())) or "(none)"
