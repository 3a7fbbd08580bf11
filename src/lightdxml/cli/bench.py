"""`lightdxml bench` and `lightdxml bench ablate`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lightdxml.cli.output import Threads, console, errors, seconds_of

if TYPE_CHECKING:
    from lightdxml.experiments.bench.grid import Event, Plan

app = typer.Typer(invoke_without_command=True, rich_markup_mode="markdown")

Data = Annotated[
    str | None,
    typer.Option("--data", help="Data sets, by name or path, separated by commas.", show_default=False),
]
Out = Annotated[Path | None, typer.Option("--out", help="The folder for the results.", show_default=False)]
Methods = Annotated[str, typer.Option("--methods", help="Methods, separated by commas; `all` for all.")]
Repeat = Annotated[int, typer.Option("--repeat", help="Runs of each cell, each with a seed of its own.")]
Timeout = Annotated[str, typer.Option("--timeout", help="The most time for a cell, as 30s, 5m or 1h.")]
Ngrams = Annotated[int | None, typer.Option("--ngrams", help="Of texts: 1 for words, 2 for pairs of words too.")]
Seed = Annotated[int, typer.Option("--seed", help="The first run's; those after it count on.")]
_SOME = "Variants, separated by commas, as `as it is,without label tree,k=50`; an unknown one lists all."
Only = Annotated[str, typer.Option("--only", help=_SOME)]
Retry = Annotated[bool, typer.Option("--retry", help="Run what failed or took too long once more.")]


@app.callback()
def run(
    context: typer.Context,
    data: Data = None,
    methods: Methods = "all",
    out: Out = None,
    repeat: Repeat = 1,
    timeout: Timeout = "1h",
    threads: Threads = None,
    ngrams: Ngrams = None,
    seed: Seed = 0,
    retry: Retry = False,
) -> None:
    """Run methods side by side on the same features: accuracy, time by phase, memory, size on disk, time a query.

    Each runs in a process of its own. Results are JSON, CSV, a table in the layout of the paper's, and plots. What has
    been run is not run again: the same command goes on where it was stopped.

    Example: `lightdxml bench --data see-also --methods lightdxml,parabel,knn --out bench`
    """
    if context.invoked_subcommand is not None:
        return
    from lightdxml.experiments.baselines import METHODS
    from lightdxml.experiments.bench import grid
    from lightdxml.experiments.bench.grid import Variant

    names = list(METHODS) if methods.strip() == "all" else _listed(methods, "--methods")
    variants = tuple(Variant(name, name) for name in names)
    plan = _plan(data, variants, out, repeat, timeout, threads, ngrams, seed, retry)
    cells = _run(plan)
    _show(cells)
    for path in grid.write_reports(cells, plan.out):
        console.print(f"written: {path}", markup=False, soft_wrap=True)
    _fail_without_result(cells)


@app.command("ablate")
def ablate(
    data: Data = None,
    only: Only = "all",
    out: Out = None,
    repeat: Repeat = 1,
    timeout: Timeout = "1h",
    threads: Threads = None,
    ngrams: Ngrams = None,
    seed: Seed = 0,
    retry: Retry = False,
) -> None:
    """Run LightDXML with one thing changed at a time: trees, documents set aside, sparse view; β, e_model, k, ê_label.

    Without the sparse view it is run with a re-ranker and without refresh too.

    Example: `lightdxml bench ablate --data see-also --only "as it is,without label tree" --out ablation`
    """
    from lightdxml.experiments.bench import ablation

    variants = ablation.variants() if only.strip() == "all" else ablation.only(_listed(only, "--only"))
    plan = _plan(data, variants, out, repeat, timeout, threads, ngrams, seed, retry)
    cells = _run(plan)
    _show(cells)
    for path in ablation.write_reports(cells, plan.out):
        console.print(f"written: {path}", markup=False, soft_wrap=True)
    _fail_without_result(cells)


def _fail_without_result(cells: list[dict[str, Any]]) -> None:
    """End with exit code 1 where nothing could be measured: whoever runs this in a script is to notice."""
    if not any(cell["status"] == "done" for cell in cells):
        errors.print("nothing was measured: a longer --timeout or --retry runs what failed once more", soft_wrap=True)
        raise typer.Exit(1)


def _plan(
    data: str | None,
    variants: tuple[Any, ...],
    out: Path | None,
    repeat: int,
    timeout: str,
    threads: int | None,
    ngrams: int | None,
    seed: int,
    retry: bool,
) -> Plan:
    from lightdxml.experiments.bench.grid import Plan
    from lightdxml.kernels.parallel import thread_count, use_threads
    from lightdxml.text.tfidf import TextOptions

    if out is None:
        raise ValueError("there is no folder for the results: give --out FOLDER")
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file: choose another folder for --out")
    text = TextOptions() if ngrams is None else TextOptions(ngrams=ngrams)
    sources = tuple(_listed(data or "", "--data"))
    limit = seconds_of(timeout, "--timeout")
    with use_threads(threads):
        return Plan(sources, variants, out, repeat, limit, thread_count(), text, seed, retry)


def _listed(names: str, option: str) -> list[str]:
    """Return names that commas separate, each once.

    >>> _listed("a, b,a", "--data")
    ['a', 'b']
    """
    listed = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    if not listed:
        raise ValueError(f"{option} names nothing: give one or several, separated by commas")
    return listed


def _run(plan: Plan) -> list[dict[str, Any]]:
    from lightdxml.experiments.bench import grid

    try:
        with _progress() as listen:
            return grid.run(plan, listen)
    except KeyboardInterrupt:
        where = f"stopped: what was done is kept in {plan.out}, and the same command goes on from there"
        errors.print(where, markup=False, highlight=False, soft_wrap=True)
        raise


@contextmanager
def _progress() -> Iterator[Any]:
    """Show on a terminal how far the grid is and what runs; elsewhere a line for each cell that has ended."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("grid"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=errors, disable=not errors.is_terminal) as display:
        task = display.add_task("reading the data", total=None)

        def listen(event: Event) -> None:
            what = f"{event.data}, {event.name}" + (f", run {event.repeat + 1}" if event.repeat else "")
            if event.outcome is None:
                display.update(
                    task, total=event.total, completed=event.number - 1, description=f"{what}: {event.seconds:,.0f} s"
                )
                return
            display.update(task, completed=event.number)
            display.console.print(f"{what}: {_said(event)}", markup=False, highlight=False, soft_wrap=True)

        yield listen


def _said(event: Event) -> str:
    outcome = event.outcome or {}
    if outcome["status"] != "done":
        return f"{outcome['status']}: {outcome['message']}"
    there = " (from an earlier run)" if event.was_there else ""
    return f"P@1 {outcome['metrics']['P@1']:.2f}, trained in {outcome['train_seconds']:,.1f} s{there}"


def _show(cells: list[dict[str, Any]]) -> None:
    from lightdxml.experiments.bench.results import grouped
    from lightdxml.experiments.bench.tables import megabytes, seconds
    from lightdxml.cli.output import print_table

    columns = ("", "P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5", "train", "size", "")
    for data in dict.fromkeys(cell["data"] for cell in cells):
        rows = []
        for group in grouped(cell for cell in cells if cell["data"] == data):
            if not group.done:
                rows.append([group.method, *[""] * 8, group.rest[0]["status"]])
                continue
            figures = [f"{group.values[name].mean:.2f}" for name in columns[1:7]]
            costs = [seconds(group.values["train_seconds"].mean), megabytes(group.values["size_mb"].mean)]
            rows.append([group.method, *figures, *costs, ""])
        print_table(data, columns, rows)
