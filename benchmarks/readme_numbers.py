"""Measure the tables of README and docs: `python benchmarks/readme_numbers.py [NAME ...] [--write]`.

Every measured table stands in its page between two comments with its name. `--list` shows names, pages and commands.
Without names, all tables are measured, which takes about six hours on two cores. `--write` puts them into their pages,
each with its commit, date, machine and command; otherwise they are printed.

What is measured stays in `--out`: results, data and models. Nothing there is measured again, so the same command
continues after an interruption. The folder belongs to one state of the code.

XR-Linear and Annif need environments of their own: see the page on benchmarks.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from bench_tables import BENCH, SMALL, BenchTable, Groups

from lightdxml.data.files import writing_text
from lightdxml.experiments.bench import ablation, machine, plots, results
from lightdxml.experiments.bench.results import grouped

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "images"


class Printed(NamedTuple):
    """The tables that a command prints; `{data}` and `{out}` are the folders of this script.

    `failure` is an exit code with which the tables are complete, and say what has failed.
    """

    command: str
    n_tables: int = 1
    failure: int = 0


PRINTED = {
    "annif": Printed("benchmarks/annif.py {data} {out}/annif", 2),
    "cluster memory": Printed("benchmarks/cluster.py memory"),
    "cluster overhead": Printed("benchmarks/cluster.py overhead wordnet debian-relations --data {data}"),
    "cluster plan": Printed("benchmarks/cluster_plan.py", 2),
    "cluster steps": Printed("benchmarks/cluster.py steps", 2),
    "decisions": Printed("benchmarks/decisions.py --data {data} --logistic bibtex"),
    "faults": Printed("-m tests.faults --kills 20 --skip full_memory", failure=1),
    "fidelity": Printed("benchmarks/fidelity.py --data {data}"),
    "goals": Printed("benchmarks/scale.py goals {out}/scale"),
    "growth": Printed("benchmarks/scale.py growth {out}/growth"),
    "labels": Printed("benchmarks/scale.py labels {out}/labels"),
    "learning": Printed("benchmarks/learn.py --data {data} --seeds 3 --only accuracy"),
    "learning times": Printed("benchmarks/learn.py --data {data} --only times"),
    "memory": Printed("benchmarks/memory.py --data {data}"),
    "names": Printed("benchmarks/names.py --data {data}"),
    "roof": Printed("benchmarks/roof.py --data {data}"),
    "service": Printed("benchmarks/serve.py {data} {out}/serve", 4),
    "service beside annif": Printed("benchmarks/serve.py {data} {out}/serve --annif {out}/annif/eurlex57k"),
    "splits": Printed(
        "benchmarks/fidelity.py fastxml pfastrexml craftml sleec --data {data} --sets delicious --splits 3"
    ),
    "startup": Printed("benchmarks/startup.py {data} {out}/startup", 2),
}


def bench(table: BenchTable, data: Path, out: Path) -> None:
    """Run `lightdxml bench` for a table; what has failed before runs again."""
    arguments = ["ablate", "--only"] if table.folder == "ablation" else ["--methods"]
    arguments += [",".join(table.methods), "--data", ",".join(str(data / name) for name in table.sets)]
    arguments += ["--ngrams", "1", "--out", str(out / table.folder), "--retry", *table.options]
    subprocess.run([sys.executable, "-m", "lightdxml", "bench", *arguments], check=True, stdout=sys.stderr)


def cells(table: BenchTable, out: Path) -> Groups:
    """Return the results for a table, in its order."""
    found = grouped(results.read(out / table.folder / "cells"))
    known = {name: {group.method: group for group in found[name]} for name in table.sets}
    if not table.methods:
        return known
    return {name: {method: by_method[method] for method in table.methods} for name, by_method in known.items()}


def printed(wanted: Printed, data: Path, out: Path, log: Path) -> str:
    """Return the tables that a command prints; `log` receives all that it prints."""
    command = [sys.executable, *(word.format(data=data, out=out) for word in shlex.split(wanted.command))]
    with log.open("w", encoding="utf-8") as stream:
        code = subprocess.run(command, cwd=ROOT, stdout=stream).returncode
    found = tables_in(log.read_text("utf-8"))
    if code not in (0, wanted.failure) or len(found) != wanted.n_tables:
        raise SystemExit(f"{shlex.join(command)} ended with {code} and {len(found)} tables: see {log}")
    return "\n\n".join(found)


def tables_in(text: str) -> list[str]:
    """Return the Markdown tables of a text."""
    return [found.rstrip() for found in re.findall(r"(?:^\|.*\n?)+", text, flags=re.M)]


def measured(name: str, data: Path, out: Path) -> str:
    """Return the text of a table, with a line that says how it was measured; what is in `out` is not measured again."""
    file = out / "tables" / f"{name}.md"
    if not file.exists():
        check_environment(name)
        claim(out)
        if name in BENCH:
            if BENCH[name].methods:
                bench(BENCH[name], data, out)
            text, command = BENCH[name].text(cells(BENCH[name], out)), f'benchmarks/readme_numbers.py "{name}"'
        else:
            text = printed(PRINTED[name], data, out, out / "tables" / f"{name}.log")
            command = PRINTED[name].command.format(data="DATA", out="OUT")
        claim(out)
        day = datetime.datetime.now(datetime.timezone.utc).date()
        commit = (out / "commit").read_text("utf-8")
        note = f"Measured with the code of `{commit}` ({day}) on {machine.describe()}: `python {command}`"
        with writing_text(file) as stream:
            stream.write(f"{text}\n\n{note}\n")
    return file.read_text("utf-8").rstrip()


def check_environment(name: str) -> None:
    """Raise if a table needs an environment of its own that is not there."""
    needs_pecos = name in BENCH and any(method.startswith("xr-linear") for method in BENCH[name].methods)
    variable = "LIGHTDXML_PECOS" if needs_pecos else "LIGHTDXML_ANNIF" if name.endswith("annif") else None
    if variable is not None and not os.environ.get(variable):
        raise SystemExit(f"{name}: set {variable}, as the page on benchmarks says")


def claim(out: Path) -> None:
    """Make `out` the folder of this state of the code; raise if it belongs to another one."""
    # In a process of its own: the checksum is that of the files as they are now.
    code = "from lightdxml.experiments.bench import machine; print(machine.versions()['lightdxml'], end='')"
    shown = subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    if not (out / "code").exists():
        (out / "tables").mkdir(parents=True, exist_ok=True)
        command = ["git", "describe", "--always", "--dirty"]
        commit = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        (out / "commit").write_text(commit, "utf-8")
        (out / "code").write_text(shown, "utf-8")
    elif (found := (out / "code").read_text("utf-8")) != shown:
        raise SystemExit(f"{out} has measurements of lightdxml {found}, this is {shown}: choose another folder")


def pages() -> dict[str, Path]:
    """Return the page of each measured table."""
    files = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {
        name: page
        for page in files
        for name in re.findall(r"<!-- measured numbers: (.+), begin -->", page.read_text("utf-8"))
    }


def write(name: str, text: str) -> None:
    """Replace a table in its page; what stands around it stays."""
    page = pages()[name]
    begin, end = (f"<!-- measured numbers: {name}, {where} -->" for where in ("begin", "end"))
    before, rest = page.read_text("utf-8").split(begin)
    _, after = rest.split(end)
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", "utf-8")


def draw(name: str, out: Path) -> None:
    """Draw the pictures that belong to a table."""
    if name == "summary":
        known = [group.cells for by_method in cells(BENCH[name], out).values() for group in by_method.values()]
        for picture in plots.write_all([cell for some in known for cell in some], out):
            shutil.copy(picture, PICTURES / f"bench-{picture.name}")
    elif name in (f"ablation {small}" for small in SMALL):
        ((small, by_variant),) = cells(BENCH[name], out).items()
        groups = list(by_variant.values())
        ablation.draw(groups, PICTURES / f"bench-ablation-{small}.png")
    elif name == "growth":
        shutil.copy(out / "growth" / "growth.png", PICTURES / "growth.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=[*BENCH, *PRINTED])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("LIGHTDXML_DATA", "../shared/data")))
    parser.add_argument("--out", type=Path, default=Path("measured"))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    if given.list:
        for name, page in sorted(pages().items()):
            print(f"{name}: {page.relative_to(ROOT)}, {PRINTED[name].command if name in PRINTED else 'bench'}")
        return
    if unknown := [name for name in given.names if name not in BENCH and name not in PRINTED]:
        parser.error(f"no table is called {', '.join(unknown)}: see --list")
    data, out = given.data.absolute(), given.out.absolute()
    for name in given.names:
        text = measured(name, data, out)
        if given.write:
            write(name, text)
            draw(name, out)
        else:
            print(f"{name}\n\n{text}\n", flush=True)


if __name__ == "__main__":
    main()
