"""`lightdxml bench` and `lightdxml bench ablate`."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lightdxml.cli.output import errors, note, print_table, require_plots, say, seconds_of

if TYPE_CHECKING:
    from lightdxml.experiments.bench.grid import Plan, Variant

app = typer.Typer(invoke_without_command=True, rich_markup_mode="markdown")

Cells = Sequence[dict[str, Any]]
Data = Annotated[
    str | None, typer.Option("--data", help="Names or paths of data sets, separated by commas.", show_default=False)
]
Out = Annotated[Path | None, typer.Option("--out", help="Output folder.", show_default=False)]
Methods = Annotated[
    str | None, typer.Option("--methods", help="Methods, separated by commas. Default: all.", show_default=False)
]
Paper = Annotated[
    bool, typer.Option("--paper", help="Run the methods of the paper's main table, and write that table to `paper.md`.")
]
Repeat = Annotated[int, typer.Option("--repeat", help="Runs per cell, each with its own seed.")]
Timeout = Annotated[str, typer.Option("--timeout", help="Time limit per cell, such as 30s, 5m or 1h.")]
NJobs = Annotated[int | None, typer.Option("--n-jobs", help="Number of threads. Default: all cores.")]
Ngrams = Annotated[int, typer.Option("--ngrams", help="1 for single words, 2 for pairs of neighboring words as well.")]
RandomState = Annotated[
    int, typer.Option("--random-state", help="Random seed of the first run. Each further run adds 1.", min=0, max=2**31)
]
Only = Annotated[str, typer.Option("--only", help="Variants, separated by commas, or `all`. A wrong name lists them.")]
Retry = Annotated[bool, typer.Option("--retry", help="Run failed and timed-out cells again.")]


@app.callback()
def run(
    context: typer.Context,
    data: Data = None,
    methods: Methods = None,
    paper: Paper = False,
    out: Out = None,
    repeat: Repeat = 1,
    timeout: Timeout = "1h",
    n_jobs: NJobs = None,
    ngrams: Ngrams = 1,
    random_state: RandomState = 0,
    retry: Retry = False,
) -> None:
    """Compare methods on the same features: accuracy, training time, prediction time, peak memory, model size.

    Each cell (one method on one data set) runs in its own process. Finished cells are not run again, so the same
    command resumes an interrupted benchmark. Results are JSON, CSV, plots and Markdown: a summary in `results.md`, and
    a page per data set in `results/`.

    Example: `lightdxml bench --data see-also --methods lightdxml,parabel,knn --out bench`

    The paper's table: `lightdxml bench --paper --data see-also --out bench`
    """
    if context.invoked_subcommand is not None:
        return
    require_plots()
    from lightdxml.experiments.baselines import METHODS
    from lightdxml.experiments.bench import grid
    from lightdxml.experiments.bench import paper as paper_table

    if paper and methods is not None:
        raise ValueError("--paper runs the methods of the paper: leave out --methods or --paper")
    names = METHODS if methods is None or methods.strip() == "all" else _listed(methods, "--methods")
    variants = [grid.Variant(name, name) for name in (paper_table.METHODS if paper else names)]
    _run(_plan(context.params, variants), paper_table.write_reports if paper else grid.write_reports)


@app.command("ablate")
def ablate(
    context: typer.Context,
    data: Data = None,
    only: Only = "all",
    out: Out = None,
    repeat: Repeat = 1,
    timeout: Timeout = "1h",
    n_jobs: NJobs = None,
    ngrams: Ngrams = 1,
    random_state: RandomState = 0,
    retry: Retry = False,
) -> None:
    """Run LightDXML with one setting changed at a time.

    The variants leave out the label tree, the refit, the linear view or the refresh, add a re-ranker, or change β, the
    number of epochs, the shortlist size or the refresh interval.

    Example: `lightdxml bench ablate --data see-also --only "default,without label tree" --out ablation`
    """
    require_plots()
    from lightdxml.experiments.bench import ablation

    variants = ablation.variants(None if only.strip() == "all" else _listed(only, "--only"))
    _run(_plan(context.params, variants), ablation.write_reports)


def _plan(options: dict[str, Any], variants: Sequence[Variant]) -> Plan:
    """Return what to run, from the options that both commands have."""
    from lightdxml.experiments.bench.grid import Plan
    from lightdxml.kernels.parallel import thread_count, use_threads
    from lightdxml.text.tfidf import TextOptions

    out = options["out"]
    if out is None:
        raise ValueError("no output folder: give --out FOLDER")
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file: choose another folder for --out")
    with use_threads(options["n_jobs"]):
        return Plan(
            _listed(options["data"] or "", "--data"),
            variants,
            out,
            options["repeat"],
            seconds_of(options["timeout"], "--timeout"),
            thread_count(),
            TextOptions(ngrams=options["ngrams"]),
            options["random_state"],
            options["retry"],
        )


def _listed(names: str, option: str) -> list[str]:
    """Split a comma-separated list and drop duplicates.

    >>> _listed("a, b,a", "--data")
    ['a', 'b']
    """
    listed = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    if not listed:
        raise ValueError(f"{option} is empty: give one or more names, separated by commas")
    return listed


def _run(plan: Plan, write_reports: Callable[[Cells, Path, str], list[Path]]) -> None:
    """Run a plan, print tables and write reports; exit with code 1 if there are no results."""
    from lightdxml.experiments.bench import grid

    # Like Ctrl-C, these stop the running cell too. nohup ignores SIGHUP; Windows does not have it.
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    note("reading the data")
    try:
        cells = grid.run(plan, lambda text: errors.print(text, end="", markup=False, soft_wrap=True))
    except KeyboardInterrupt:
        note(f"\nstopped: finished cells are in {plan.out}; run the same command to resume")
        raise
    _show(cells)
    for path in write_reports(cells, plan.out, shlex.join(["lightdxml", *sys.argv[1:]])):
        say(f"written: {path}")
    if not any(cell["status"] == "done" for cell in cells):
        note("no cell has results: see the reasons above; --retry runs failed cells again")
        raise typer.Exit(1)


def _show(cells: Cells) -> None:
    from lightdxml.experiments.bench.results import grouped
    from lightdxml.experiments.bench.tables import COSTS, METRICS

    columns = (*METRICS, *COSTS)
    for data, groups in grouped(cells).items():
        rows = [[group.title, *(column.text(group.mean(column.name)) for column in columns), ""] for group in groups]
        print_table(data, ("", *(column.title for column in columns), ""), rows)
