"""The measured tables that come from runs of `lightdxml bench`: what each needs, and how it is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from lightdxml.experiments.bench import ablation, paper, tables
from lightdxml.experiments.bench.results import Group
from lightdxml.experiments.bench.tables import table

# The results of a run, by data set and method.
Groups = dict[str, dict[str, Group]]
SETS = ("eurlex57k", "citeulike-t", "wordnet", "debian-relations", "delicious", "bibtex")
SMALL = ("delicious", "bibtex")
# Methods of most tables, with the names that people know.
TITLES = {
    "lightdxml": "**LightDXML**",
    "lightdxml-fast": "**LightDXML, fast**",
    "xr-linear": "XR-Linear ×3",
    "xr-linear-1": "XR-Linear ×1",
    "bonsai": "Bonsai",
    "parabel": "Parabel",
}
PARTS = ("default", "without label tree", "without refit", "without linear view")
P, PSP = ("P@1", "P@3", "P@5"), ("PSP@1", "PSP@3", "PSP@5")


class BenchTable(NamedTuple):
    """A table of some methods, or variants of one, on some data sets; `folder` tells the runs apart.

    Without methods, the table is about all results that are there.
    """

    text: Callable[[Groups], str]
    sets: Sequence[str] = SETS
    methods: Sequence[str] = tuple(TITLES)
    folder: str = "bench"
    options: Sequence[str] = ("--timeout", "30m")


def three(group: Group, names: Sequence[str]) -> str:
    """Return three measures, such as `66.54 / 49.59 / 40.72`."""
    return " / ".join(f"{group.values[name].mean:.2f}" for name in names)


def seconds(value: float) -> str:
    return f"{value:.1f} s" if value < 20 else f"{value:.0f} s"


def size(value: float) -> str:
    return f"{value:.1f} MB" if value < 20 else f"{value:.0f} MB"


def readme(groups: Groups) -> str:
    """P@1, PSP@5 and seconds of training: one row per data set, one column per method."""
    rows = []
    for data, by_method in groups.items():
        cells = []
        for group in by_method.values():
            text = f"{group.values['P@1'].mean:.1f} / {group.values['PSP@5'].mean:.1f}"
            cells.append(f"{text}, {seconds(group.values['train_seconds'].mean)}")
        rows.append([data, f"{by_method['lightdxml'].cells[0]['sizes']['labels']:,}", *cells])
    return table(["Data set", "Labels", *(TITLES[method] for method in next(iter(groups.values())))], rows)


def summary(groups: Groups) -> str:
    """All measures of six methods."""
    rows = []
    for data, by_method in groups.items():
        for i, group in enumerate(by_method.values()):
            values = group.values
            costs = [seconds(values["train_seconds"].mean), size(values["size_mb"].mean)]
            times = [f"{values[name].mean:.2f}" for name in ("batch_ms", "single_ms.p50")]
            first = f"[{data}](results/{data}.md)" if i == 0 else ""
            rows.append([first, TITLES[group.method], three(group, P), three(group, PSP), *costs, *times])
    titles = ["Data set", "Method", "P@1 / 3 / 5", "PSP@1 / 3 / 5", "Training", "Model", "batch ms", "single ms"]
    return table(titles, rows)


def wins(groups: Groups, method: str, peers: Sequence[str]) -> str:
    """Compare a method with peers; the time is that beside the first of them."""
    rows, won, tied, of = [], 0, 0, 0
    for data, by_method in groups.items():
        ours, others = by_method[method], [by_method[peer] for peer in peers]
        notes = []
        for name, other in ((name, other) for name in (*P, *PSP) for other in others):
            gap = round(ours.values[name].mean, 2) - round(other.values[name].mean, 2)
            won, tied, of = won + (gap > 0), tied + (gap == 0), of + 1
            if gap <= 0:
                notes.append(f"{name} **{f'−{-gap:.2f}' if gap else 'tie'}** ({TITLES[other.method]})")
        costs = [("train_seconds", others[:1]), ("size_mb", others), ("batch_ms", others)]
        ratios = [
            ours.values[name].mean / min(other.values[name].mean for other in compared) for name, compared in costs
        ]
        shown = (f"**{ratio:.2f}**" if ratio > 1 else f"{ratio:.2f}" for ratio in ratios)
        rows.append([data, f"ahead in all but {', '.join(notes)}" if notes else "ahead in all", *shown])
    titles = ["Data set", f"Accuracy against {', '.join(TITLES[peer] for peer in peers)}", f"Time / {TITLES[peers[0]]}"]
    smallest, fastest = ("smallest of them", "fastest of them") if len(peers) > 1 else (TITLES[peers[0]],) * 2
    titles += [f"Size / {smallest}", f"ms per document / {fastest}"]
    # Words are on the left.
    aligned = table(titles, rows).replace("|---|--:|", "|---|---|", 1)
    ties = f" and ties in {tied}" if tied else ""
    return f"{aligned}\n\nOf {of} comparisons of accuracy, {TITLES[method].strip('*')} wins {won}{ties}."


def results(groups: Groups) -> str:
    """Everything that is measured on one data set."""
    ((_, by_method),) = groups.items()
    text = tables.measurements(list(by_method.values()))
    phases = {name: took for name, took in by_method["lightdxml"].done[0]["phases"].items() if name != "compile"}
    longest = {name: took for name, took in phases.items() if took >= 0.02 * sum(phases.values())}
    listed = ", ".join(f"{name} {longest[name]:.2g}" for name in sorted(longest, key=longest.__getitem__, reverse=True))
    rest = sum(phases.values()) - sum(longest.values())
    return f"{text}\n\nSeconds of `lightdxml` by phase: {listed}, others {rest:.2g}."


def papers_table(groups: Groups) -> str:
    """Methods of the paper's main table, on one data set."""
    ((_, by_method),) = groups.items()
    return paper.section(list(by_method.values()))


def ablations(groups: Groups) -> str:
    """Variants of the default on one data set."""
    ((_, by_variant),) = groups.items()
    return ablation.section(list(by_variant.values()))


def seeds(groups: Groups) -> str:
    """P@1 and PSP@5 of several seeds."""
    rows = []
    for data, by_method in groups.items():
        cells = []
        for group in by_method.values():
            values = (group.values[name] for name in ("P@1", "PSP@5"))
            cells.append(", ".join(f"{one.mean:.2f} ({one.low:.2f}–{one.high:.2f})" for one in values))
        rows.append([data, *cells])
    return table(["Data set", *(TITLES[method] for method in next(iter(groups.values())))], rows)


def runs(groups: Groups) -> str:
    """Versions of packages, and the settings of all methods."""
    cells = [cell for by_method in groups.values() for group in by_method.values() for cell in group.cells]
    versions = {name: version for cell in cells for name, version in cell["versions"].items() if version != "none"}
    listed = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    _, settings = tables.settings_list(cells).split("\n\n", 1)
    return f"**Versions.** {listed}. The suffix is a checksum of the source.\n\n{settings.rstrip()}"


def known_methods(data: str) -> tuple[str, ...]:
    """Return the methods of the page of a data set. The time of fastText grows with documents × labels."""
    return (*TITLES, "plt", "ova", "knn", *(("fasttext",) if data in SMALL else ()))


BENCH: dict[str, BenchTable] = {
    "readme": BenchTable(readme, methods=("lightdxml", "xr-linear", "bonsai", "parabel")),
    "summary": BenchTable(summary),
    "wins and losses": BenchTable(partial(wins, method="lightdxml", peers=("xr-linear", "bonsai", "parabel"))),
    "wins and losses of fast": BenchTable(partial(wins, method="lightdxml-fast", peers=("xr-linear-1",))),
    **{f"results {data}": BenchTable(results, [data], known_methods(data)) for data in SETS},
    **{
        f"ablation {data}": BenchTable(
            ablations,
            [data],
            [one.name for one in ablation.variants() if data in SMALL or one.name in PARTS],
            "ablation",
        )
        for data in SETS
    },
    "seeds": BenchTable(seeds, SMALL, ("lightdxml", "bonsai", "parabel"), "seeds", ("--repeat", "5")),
    **{f"paper {data}": BenchTable(papers_table, [data], paper.METHODS) for data in SETS},
    "runs": BenchTable(runs, methods=()),
}
