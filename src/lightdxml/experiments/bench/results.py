"""Benchmark results: read and write cells, check that they are comparable, average repeats."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from lightdxml.data.errors import DataError
from lightdxml.data.files import writing_text

_STATUSES = ("done", "failed", "timeout", "skipped")
# Required fields of a cell and their types.
_FIELDS = {"data": str, "method": str, "repeat": int, "status": str}
_FIELDS |= dict.fromkeys(("settings", "versions", "machine", "sizes"), dict)


class Value(NamedTuple):
    """Mean, minimum and maximum over the repeats."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Group:
    """All repeats of one method on one data set.

    Attributes
    ----------
    data, method
        Names of the data set and the method.
    done
        Cells with results.
    rest
        Cells that failed, timed out or were skipped.
    values
        Measured values by flat name: `P@1`, `train_seconds`, `single_ms.p50`, `phases.M1`.
    """

    data: str
    method: str
    done: tuple[dict[str, Any], ...]
    rest: tuple[dict[str, Any], ...]
    values: dict[str, Value]

    def mean(self, name: str) -> float | None:
        """Return the mean of a value, or None if it was not measured."""
        return self.values[name].mean if name in self.values else None

    @property
    def title(self) -> str:
        """The method's name, with what went wrong if not all runs succeeded."""
        if not self.rest:
            return self.method
        runs = f"{len(self.done)} of {len(self.done) + len(self.rest)} runs"
        return f"{self.method} ({runs if self.done else self.rest[0]['status']})"


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file atomically."""
    with writing_text(path) as stream:
        json.dump(content, stream, indent=1, ensure_ascii=False)
        stream.write("\n")


def read(folder: Path) -> list[dict[str, Any]]:
    """Return the cells in a folder, sorted by data set, method and repeat.

    Examples
    --------
    >>> read(Path("no such folder"))
    []
    """
    # Names that start with a dot belong to files that are still being written.
    cells = [read_cell(path) for path in sorted(folder.glob("*.json")) if not path.name.startswith(".")]
    return sorted(cells, key=lambda cell: (cell["data"], cell["method"], cell["repeat"]))


def read_cell(path: Path) -> dict[str, Any]:
    """Read one cell and check its fields.

    Raises
    ------
    DataError
        If the file is damaged.
    """
    try:
        cell = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError):
        cell = None
    valid = (
        isinstance(cell, dict)
        and all(isinstance(cell.get(name), kind) for name, kind in _FIELDS.items())
        and cell["status"] in _STATUSES
        and (cell["status"] != "done" or isinstance(cell.get("metrics"), dict))
    )
    if not valid:
        raise DataError(path, "damaged content", "a benchmark cell: delete the file and run the benchmark again")
    found: dict[str, Any] = cell
    return found


def check_comparable(cells: Sequence[dict[str, Any]]) -> None:
    """Raise if cells must not appear in one table.

    All cells must share the machine, the number of threads and the version of each package. Cells of a data set must
    share its sizes. Repeats of a method on a data set must share the settings.

    Raises
    ------
    ValueError
        With the names of two cells that differ and what to do.

    Examples
    --------
    >>> one = {"data": "bibtex", "method": "knn", "repeat": 0, "settings": {}, "sizes": {}, "machine": {}}
    >>> cells = [{**one, "versions": {"numpy": version}} for version in ("2.0", "2.1")]
    >>> check_comparable(cells)
    Traceback (most recent call last):
    ValueError: bibtex.knn.0 has numpy 2.0, bibtex.knn.0 has numpy 2.1: use another --out or delete the old cells
    """
    seen: dict[tuple[str, ...], tuple[str, str]] = {}
    for cell in cells:
        name = f"{cell['data']}.{cell['method']}.{cell['repeat']}"
        for key, fact in _facts(cell):
            first, known = seen.setdefault(key, (name, fact))
            if fact != known:
                raise ValueError(f"{first} has {known}, {name} has {fact}: use another --out or delete the old cells")


def _facts(cell: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield pairs of a key and a description: cells that share the key must share the description."""
    yield ("machine",), f"the machine {machine(cell)}"
    for package, version in sorted(cell["versions"].items()):
        yield ("version", package), f"{package} {version}"
    if "threads" in cell:
        yield ("threads",), f"{cell['threads']} threads"
    yield ("sizes", cell["data"]), f"the sizes {_listed(cell['sizes'])}"
    yield ("settings", cell["data"], cell["method"]), f"the settings {_listed(cell['settings'])}"


def _listed(values: dict[str, Any]) -> str:
    # As JSON, so that values read from a file compare equal to values in memory.
    return ", ".join(f"{name}={json.dumps(value)}" for name, value in sorted(values.items())) or "(none)"


def machine(cell: dict[str, Any]) -> str:
    """Describe the machine of a cell.

    >>> machine({"machine": {"processor": "EPYC", "cores": 2, "memory_gb": 23.98, "system": "Linux 6"}})
    'EPYC, 2 cores, 24 GB, Linux 6'
    """
    # The memory that a virtual machine reports varies slightly between boots.
    formats = {"cores": "{} cores", "memory_gb": "{:.0f} GB"}
    return ", ".join(formats.get(name, "{}").format(value) for name, value in cell["machine"].items()) or "(unknown)"


def grouped(cells: Iterable[dict[str, Any]]) -> list[Group]:
    """Group the repeats of each method on each data set, in order of first appearance.

    Examples
    --------
    >>> cell = {"data": "bibtex", "method": "knn", "status": "done"}
    >>> group, = grouped([{**cell, "metrics": {"P@1": 60.0}}, {**cell, "metrics": {"P@1": 62.0}}])
    >>> group.values["P@1"]
    Value(mean=61.0, low=60.0, high=62.0)
    """
    repeats: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for cell in cells:
        repeats.setdefault((cell["data"], cell["method"]), []).append(cell)
    groups = []
    for (data, method), same in repeats.items():
        done = tuple(cell for cell in same if cell["status"] == "done")
        rest = tuple(cell for cell in same if cell["status"] != "done")
        groups.append(Group(data, method, done, rest, _values(done)))
    return groups


def _values(cells: Sequence[dict[str, Any]]) -> dict[str, Value]:
    numbers: dict[str, list[float]] = {}
    for cell in cells:
        for name, number in _measured(cell):
            numbers.setdefault(name, []).append(number)
    return {name: Value(math.fsum(some) / len(some), min(some), max(some)) for name, some in numbers.items()}


def _measured(cell: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the measured values of a cell by flat name; missing values are left out."""
    named = [(name, cell.get(name)) for name in ("train_seconds", "peak_mb", "size_mb", "batch_ms")]
    named += list(cell["metrics"].items())
    for part in ("single_ms", "phases"):
        named += [(f"{part}.{name}", value) for name, value in (cell.get(part) or {}).items()]
    for name, value in named:
        if isinstance(value, int | float) and math.isfinite(value):
            yield name, float(value)


def unique(cells: Iterable[dict[str, Any]], key: str) -> list[str]:
    """Return the distinct values of a field, in order of first appearance.

    >>> unique([{"data": "b"}, {"data": "a"}, {"data": "b"}], "data")
    ['b', 'a']
    """
    return list(dict.fromkeys(cell[key] for cell in cells))
