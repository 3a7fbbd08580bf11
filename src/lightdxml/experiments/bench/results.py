"""The measured cells of a benchmark: read from a folder, kept from being mixed, repeats brought together."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lightdxml.data.errors import DataError

STATUSES = ("done", "failed", "timeout", "skipped")
# What a cell must have, and of which type.
_REQUIRED: dict[str, type] = {
    "data": str,
    "method": str,
    "repeat": int,
    "status": str,
    "settings": dict,
    "versions": dict,
    "machine": dict,
    "sizes": dict,
}
_REMEDY = "use another --out, or remove the old cells"


@dataclass(frozen=True)
class Value:
    """The mean of the repeats, and the lowest and highest of them."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Group:
    """All repeats of a method on a data set.

    Attributes
    ----------
    data, method
        What ran on what.
    done
        The cells that have results.
    rest
        Those that failed, ran out of time or were skipped.
    values
        What was measured, by flat name: `P@1`, `train_seconds`, `single_ms.p50`, `phases.M1`.
    """

    data: str
    method: str
    done: tuple[dict[str, Any], ...]
    rest: tuple[dict[str, Any], ...]
    values: dict[str, Value]

    def mean(self, name: str) -> float | None:
        """Return the mean of what was measured under this name, None where nothing was."""
        return self.values[name].mean if name in self.values else None


def read(folder: Path) -> list[dict[str, Any]]:
    """Return the cells of a folder, sorted by data set, method and repeat; none where there is no such folder.

    Raises
    ------
    DataError
        Where a file is damaged: a `ValueError` of one sentence.

    Examples
    --------
    >>> read(Path("there is no such folder"))
    []
    """
    # Files that begin with a dot are being written.
    paths = sorted(path for path in folder.glob("*.json") if not path.name.startswith("."))
    return sorted(map(_cell, paths), key=lambda cell: (cell["data"], cell["method"], cell["repeat"]))


def _cell(path: Path) -> dict[str, Any]:
    try:
        cell = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _damaged(path, "text that is no JSON") from error
    except OSError as error:
        raise DataError(path, f"no way to read it ({error.strerror})", "a file that you may read") from error
    if not isinstance(cell, dict):
        raise _damaged(path, "no JSON object")
    for name, kind in _REQUIRED.items():
        if not isinstance(cell.get(name), kind):
            raise _damaged(path, f"no {name!r}" if name not in cell else f"a bad {name!r}")
    if cell["status"] not in STATUSES:
        raise _damaged(path, f"the status {cell['status']!r}")
    if cell["status"] == "done" and not isinstance(cell.get("metrics"), dict):
        raise _damaged(path, "no 'metrics'")
    return cell


def _damaged(path: Path, found: str) -> DataError:
    return DataError(path, found, "a cell of a benchmark: remove the file, and run the benchmark again")


def check_alike(cells: Sequence[dict[str, Any]]) -> None:
    """Raise where cells cannot stand in one table.

    They must come from one machine, one number of threads and one version of each package, have one size of each data
    set, and one choice of settings for all repeats of a method on a data set.

    Raises
    ------
    ValueError
        It names two cells that differ, and says what to do.

    Examples
    --------
    >>> one = {"data": "bibtex", "method": "knn", "repeat": 0, "settings": {}, "sizes": {}, "machine": {}}
    >>> cells = [{**one, "versions": {"numpy": version}} for version in ("2.0", "2.1")]
    >>> check_alike(cells)
    Traceback (most recent call last):
    ValueError: bibtex.knn.0 has numpy 2.0, bibtex.knn.0 has numpy 2.1: use another --out, or remove the old cells
    """
    seen: dict[tuple[str, ...], tuple[str, str]] = {}
    for cell in cells:
        name = f"{cell['data']}.{cell['method']}.{cell['repeat']}"
        for subject, fact in _facts(cell):
            first, known = seen.setdefault(subject, (name, fact))
            if fact != known:
                raise ValueError(f"{first} has {known}, {name} has {fact}: {_REMEDY}")


def _facts(cell: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what must be the same in all cells that share the subject, in words."""
    yield ("machine",), f"the machine {machine(cell)}"
    for package, version in sorted(cell["versions"].items()):
        yield ("version", package), f"{package} {version}"
    if "threads" in cell:
        yield ("threads",), f"{cell['threads']} threads"
    yield ("sizes", cell["data"]), f"the sizes {_listed(cell['sizes'])}"
    yield ("settings", cell["data"], cell["method"]), f"the settings {_listed(cell['settings'])}"


def machine(cell: dict[str, Any]) -> str:
    """Say in words what a cell was measured on.

    >>> machine({"machine": {"processor": "EPYC", "cores": 2, "memory_gb": 23.98, "system": "Linux 6"}})
    'EPYC, 2 cores, 24 GB, Linux 6'
    """
    facts = cell["machine"]
    # How much memory a virtual machine reports moves by a little from one start to the next.
    words = {"cores": "{} cores", "memory_gb": "{:.0f} GB"}
    return ", ".join(words.get(name, "{}").format(value) for name, value in facts.items()) or "that nobody noted"


def _listed(values: dict[str, Any]) -> str:
    # As JSON: what comes from a file and what does not are written alike.
    return ", ".join(f"{name}={json.dumps(value)}" for name, value in sorted(values.items())) or "(none)"


def grouped(cells: Iterable[dict[str, Any]]) -> list[Group]:
    """Bring the repeats of each method on each data set together, in the order in which they first come.

    Examples
    --------
    >>> cell = {"data": "bibtex", "method": "knn", "status": "done"}
    >>> group, = grouped([{**cell, "metrics": {"P@1": 60.0}}, {**cell, "metrics": {"P@1": 62.0}}])
    >>> group.values["P@1"]
    Value(mean=61.0, low=60.0, high=62.0)
    """
    together: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for cell in cells:
        together.setdefault((cell["data"], cell["method"]), []).append(cell)
    groups = []
    for (data, method), same in together.items():
        done = tuple(cell for cell in same if cell["status"] == "done")
        rest = tuple(cell for cell in same if cell["status"] != "done")
        groups.append(Group(data, method, done, rest, _means(done)))
    return groups


def _means(cells: Sequence[dict[str, Any]]) -> dict[str, Value]:
    numbers: dict[str, list[float]] = {}
    for cell in cells:
        for name, number in _measured(cell):
            numbers.setdefault(name, []).append(number)
    return {name: Value(math.fsum(some) / len(some), min(some), max(some)) for name, some in numbers.items()}


def _measured(cell: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield all numbers of a cell that is done by flat name, without those that are missing."""
    named = [(name, cell.get(name)) for name in ("train_seconds", "peak_mb", "size_mb", "batch_ms")]
    named += list(cell["metrics"].items())
    for part in ("single_ms", "phases"):
        named += [(f"{part}.{name}", value) for name, value in (cell.get(part) or {}).items()]
    for name, value in named:
        if isinstance(value, int | float) and math.isfinite(value):
            yield name, float(value)


def names_of(cells: Iterable[dict[str, Any]], key: str) -> list[str]:
    """Return the data sets (`data`) or methods (`method`) of cells, in the order in which they first come.

    >>> names_of([{"data": "b"}, {"data": "a"}, {"data": "b"}], "data")
    ['b', 'a']
    """
    return list(dict.fromkeys(cell[key] for cell in cells))
