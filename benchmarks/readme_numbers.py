"""The tables of README and docs, measured again: `python benchmarks/readme_numbers.py [NAME ...] [--write]`.

Each measured table has a name, in a comment before it. Without names, this script measures the tables that come from
the bench of six data sets, README's among them: about 40 minutes on two cores. `--list` shows all names, pages and
commands. `--write` replaces the tables in their pages, otherwise they are printed. The bench works in `--out`, and
goes on there after an interruption. Its pages with all measures, one per data set, are there too.

XR-Linear is measured if `LIGHTDXML_PECOS` names a Python that has libpecos (see the page on benchmarks).
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from lightdxml.experiments.bench import results
from lightdxml.experiments.bench.results import Group, grouped
from lightdxml.experiments.bench.tables import table

ROOT = Path(__file__).parents[1]
SETS = ("eurlex57k", "citeulike-t", "wordnet", "debian-relations", "delicious", "bibtex")
# Methods of the tables, with the names that people know.
TITLES = {
    "lightdxml": "**LightDXML**",
    "lightdxml-fast": "**LightDXML, fast**",
    "xr-linear": "XR-Linear ×3",
    "xr-linear-1": "XR-Linear ×1",
    "bonsai": "Bonsai",
    "parabel": "Parabel",
}
P, PSP = ("P@1", "P@3", "P@5"), ("PSP@1", "PSP@3", "PSP@5")


class Table(NamedTuple):
    """A command that prints tables, and which of them is meant, from 0."""

    command: str
    number: int = 0


# The folders `see-also-model` and `OUT` are the user's.
PRINTED = {
    "annif": Table("benchmarks/annif.py DATA OUT"),
    "cluster faults": Table("-m tests.faults --only killed_nodes,killed_workers,killed_drivers"),
    "cluster memory": Table("benchmarks/cluster.py memory"),
    "cluster overhead": Table("benchmarks/cluster.py overhead wordnet debian-relations"),
    "cluster plan": Table("benchmarks/cluster_plan.py"),
    "cluster steps": Table("benchmarks/cluster.py steps"),
    "decisions": Table("benchmarks/decisions.py"),
    "faults": Table("-m tests.faults --kills 20"),
    "fidelity": Table("benchmarks/fidelity.py"),
    "goals": Table("benchmarks/scale.py goals DATA MODEL"),
    "growth": Table("benchmarks/scale.py growth OUT"),
    "labels": Table("benchmarks/scale.py labels OUT"),
    "learning": Table("benchmarks/learn.py --seeds 3 --only accuracy"),
    "learning times": Table("benchmarks/learn.py --only times"),
    "memory": Table("benchmarks/memory.py"),
    "names": Table("benchmarks/names.py"),
    "roof": Table("benchmarks/roof.py DATA"),
    "splits": Table("benchmarks/fidelity.py fastxml pfastrexml craftml sleec --sets delicious --splits 3"),
    "startup": Table("benchmarks/startup.py MODEL"),
}


def three(group: Group, names: Sequence[str]) -> str:
    """Return three measures, such as `66.54 / 49.59 / 40.72`."""
    return " / ".join(f"{group.values[name].mean:.2f}" for name in names)


def seconds(value: float) -> str:
    return f"{value:.1f} s" if value < 20 else f"{value:.0f} s"


def size(value: float) -> str:
    return f"{value:.1f} MB" if value < 20 else f"{value:.0f} MB"


def readme(groups: dict[str, dict[str, Group]]) -> str:
    """P@1, PSP@5 and seconds of training: one row per data set, one column per method."""
    methods = ("lightdxml", "xr-linear", "bonsai", "parabel")
    rows = []
    for data, by_method in groups.items():
        known = [by_method[method] for method in methods if method in by_method]
        cells = []
        for group in known:
            text = f"{group.values['P@1'].mean:.1f} / {group.values['PSP@5'].mean:.1f}"
            cells.append(f"{text}, {seconds(group.values['train_seconds'].mean)}")
        rows.append([data, f"{known[0].cells[0]['sizes']['labels']:,}", *cells])
    shown = [method for method in methods if method in next(iter(groups.values()))]
    return table(["Data set", "Labels", *(TITLES[method] for method in shown)], rows)


def summary(groups: dict[str, dict[str, Group]]) -> str:
    """All measures of six methods."""
    rows = []
    for data, by_method in groups.items():
        sizes = next(iter(by_method.values())).cells[0]["sizes"]
        known = [by_method[method] for method in TITLES if method in by_method]
        for i, group in enumerate(known):
            first = [f"[{data}](results/{data}.md)", f"{sizes['train']:,}", f"{sizes['labels']:,}"]
            values = group.values
            costs = [seconds(values["train_seconds"].mean), size(values["size_mb"].mean)]
            times = [f"{values[name].mean:.2f}" for name in ("batch_ms", "single_ms.p50")]
            title = TITLES[group.method]
            rows.append(
                [*(first if i == 0 else ["", "", ""]), title, three(group, P), three(group, PSP), *costs, *times]
            )
    titles = ["Data set", "Documents", "Labels", "Method", "P@1 / 3 / 5", "PSP@1 / 3 / 5", "Training", "Model"]
    return table([*titles, "ms per document", "single ms"], rows)


def beside(ours: Group, others: Sequence[Group], timed: Group | None) -> tuple[list[str], int]:
    """Return a row of `wins`, and the number of comparisons of accuracy that are won."""
    lost, won = [], 0
    for name in (*P, *PSP):
        for other in others:
            gap = round(ours.values[name].mean, 2) - round(other.values[name].mean, 2)
            won += gap >= 0
            if gap < 0:
                lost.append(f"{name} **−{-gap:.2f}** against {TITLES[other.method]}")
    ratios = []
    if timed is not None:
        ratio = ours.values["train_seconds"].mean / timed.values["train_seconds"].mean
        ratios.append(f"**{ratio:.2f}**" if ratio > 1 else f"{ratio:.2f}")
    for name in ("size_mb", "batch_ms"):
        ratio = ours.values[name].mean / min(other.values[name].mean for other in others)
        ratios.append(f"**{ratio:.2f}**" if ratio > 1 else f"{ratio:.2f}")
    return [f"ahead in all but {', '.join(lost)}" if lost else "ahead in all", *ratios], won


def wins(method: str, peers: Sequence[str]) -> Callable[[dict[str, dict[str, Group]]], str]:
    """Return a function that compares a method with peers; the time is that beside the first of them."""

    def compared(groups: dict[str, dict[str, Group]]) -> str:
        rows, won, of = [], 0, 0
        for data, by_method in groups.items():
            others = [by_method[peer] for peer in peers if peer in by_method]
            row, n_won = beside(by_method[method], others, by_method.get(peers[0]))
            rows.append([data, *row])
            won, of = won + n_won, of + 6 * len(others)
        known = [peer for peer in peers if peer in next(iter(groups.values()))]
        names = [TITLES[peer] for peer in known]
        titles = ["Data set", f"Accuracy against {', '.join(names)}"]
        titles += [f"Time / {TITLES[peers[0]]}"] if peers[0] in known else []
        titles += ["Size / smallest of them", "ms per document / fastest of them"]
        # Words are on the left.
        aligned = table(titles, rows).replace("|---|--:|", "|---|---|", 1)
        return f"{aligned}\n\nOf {of} comparisons of accuracy, {TITLES[method].strip('*')} wins {won}."

    return compared


BENCH: dict[str, Callable[[dict[str, dict[str, Group]]], str]] = {
    "readme": readme,
    "summary": summary,
    "wins and losses": wins("lightdxml", ("xr-linear", "bonsai", "parabel")),
    "wins and losses of fast": wins("lightdxml-fast", ("xr-linear-1",)),
}


def bench(out: Path, data: Path) -> dict[str, dict[str, Group]]:
    """Run the bench of six data sets, and return its results by data set and method."""
    methods = [method for method in TITLES if "LIGHTDXML_PECOS" in os.environ or not method.startswith("xr-linear")]
    sets = ",".join(str(data / name) for name in SETS)
    arguments = ["bench", "--data", sets, "--methods", ",".join(methods), "--ngrams", "1", "--timeout", "10m"]
    subprocess.run([sys.executable, "-m", "lightdxml", *arguments, "--out", str(out)], check=True)
    found = grouped(results.read(out / "cells"))
    return {data: {group.method: group for group in found[data] if group.done} for data in SETS}


def printed(name: str) -> str:
    """Return the table that a command prints."""
    command = PRINTED[name]
    shown = subprocess.run(
        [sys.executable, *shlex.split(command.command)], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    found: list[str] = re.findall(r"(?:^\|.*\n?)+", shown, flags=re.M)
    return found[command.number].rstrip()


def pages() -> dict[str, Path]:
    """Return the page of each measured table."""
    files = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {
        name: page
        for page in files
        for name in re.findall(r"<!-- measured numbers: (.+), begin -->", page.read_text("utf-8"))
    }


def write(name: str, text: str) -> None:
    """Replace the table of this name in its page; what stands around it stays."""
    page = pages()[name]
    begin, end = (f"<!-- measured numbers: {name}, {where} -->" for where in ("begin", "end"))
    before, rest = page.read_text("utf-8").split(begin)
    block, after = rest.split(end)
    first, *_ = re.findall(r"(?:^\|.*\n?)+", block, flags=re.M)
    note = r"\n\nOf \d+ comparisons.*"
    block = re.sub(note, "", block).replace(first.rstrip(), text)
    page.write_text(before + begin + block + end + after, "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(BENCH))
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("LIGHTDXML_DATA", "../shared/data")))
    parser.add_argument("--out", type=Path, default=Path("bench"))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    if given.list:
        for name, page in sorted(pages().items()):
            command = f"python {PRINTED[name].command}" if name in PRINTED else "the bench of six data sets"
            print(f"{name}: {page.relative_to(ROOT)}, {command}")
        return
    unknown = [name for name in given.names if name not in BENCH and name not in PRINTED]
    if unknown:
        parser.error(f"no table is called {', '.join(unknown)}: see --list")
    groups = bench(given.out, given.data) if set(given.names) & set(BENCH) else {}
    for name in given.names:
        text = BENCH[name](groups) if name in BENCH else printed(name)
        if given.write:
            write(name, text)
        else:
            print(f"{name}\n\n{text}\n", flush=True)


if __name__ == "__main__":
    main()
