"""`lightdxml data`: list, inspect, fetch, convert and split data sets."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer

from lightdxml.cli.output import (
    Json,
    RandomState,
    Source,
    download_bar,
    print_json,
    print_table,
    say,
    sparkline,
)
from lightdxml.cli.reading import Reading, with_reading
from lightdxml.data import Dataset, load, registry, save
from lightdxml.data.catalog import BUILDERS, find_cached
from lightdxml.data.split import split as split_at_random
from lightdxml.data.statistics import Statistics, describe
from lightdxml.data.write import SaveFormat

app = typer.Typer(
    help="List, inspect, fetch, convert and split data sets.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

Target = Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder to write.", show_default=False)]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing data set.")]
Compress = Annotated[Literal["none", "gz", "zst"], typer.Option("--compress", help="Compression of text files.")]

_SHOWN_LABELS = 5


@app.command("list")
def list_sets(json: Json = False) -> None:
    """List the data sets that commands accept by name.

    Example: `lightdxml data list`
    """
    rows = [{"name": name, "status": "fetched" if find_cached(name) else "built-in"} for name in BUILDERS]
    rows += [
        asdict(entry) | {"status": "fetched" if find_cached(entry.name) else "to fetch"} for entry in registry.entries()
    ]
    if json:
        print_json(rows)
        return
    shown = ("n_train", "n_test", "n_features", "n_labels")
    cells = [
        [str(row["name"]), *(f"{row[key]:,}" if key in row else "" for key in shown), str(row["status"])]
        for row in rows
    ]
    print_table("Data sets", ("name", "train", "test", "features", "labels", "status"), cells)
    say("\nFetch a data set, such as Bibtex: lightdxml data get Bibtex")
    say("Show its statistics: lightdxml data info Bibtex")
    say(f"Fetched data sets are in {registry.cache_folder()}. Set LIGHTDXML_DATA to use another folder.")


@app.command()
@with_reading
def info(
    source: Source,
    json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Show the statistics of a data set: documents, labels per document, documents per label.

    Example: `lightdxml data info see-also`
    """
    data = load(source, **reading)
    figures = describe(data)
    counts = [count for _, count in figures.curve()]
    if json:
        content = asdict(figures) | {"label_frequency_curve": figures.curve(), "sparkline": sparkline(counts)}
        del content["frequencies"]
        print_json(content)
        return
    print_table(figures.name, ("", "", ""), [*_statistics(figures), *_samples(data)])
    if counts:
        say("\nTraining documents per label, most frequent label first (logarithmic axes):")
        say(f"{counts[0]:,} {sparkline(counts)} {counts[-1]:,}")


def _statistics(figures: Statistics) -> list[tuple[str, str, str]]:
    parts = (("training", figures.n_train), ("dev", figures.n_dev), ("test", figures.n_test))
    problems = (("labels", figures.unlabeled), ("content", figures.empty))
    tail = f"{100 * figures.share_of_labels_below_5:.1f}%"
    return [
        *((f"{name} documents", f"{count:,}", "") for name, count in parts if count),
        *((f"without {what}", f"{count:,}", "training documents") for what, count in problems if count),
        ("features", "text" if figures.n_features is None else f"{figures.n_features:,}", ""),
        ("labels", f"{figures.n_labels:,}", f"{figures.unseen_labels:,} without training documents"),
        ("labels per document", f"{figures.labels_per_point:.2f}", "in train and test together"),
        ("documents per label", f"{figures.points_per_label:.2f}", "in train and test together"),
        ("tail", tail, "of labels have fewer than 5 training documents"),
    ]


def _samples(data: Dataset) -> list[tuple[str, str, str]]:
    """Return some names and a text: they reveal a wrong separator or encoding."""
    rows = []
    if data.label_names is not None and data.n_labels:
        order = np.argsort(-np.bincount(data.train.Y.indices, minlength=data.n_labels), kind="stable")[:_SHOWN_LABELS]
        rows.append(("frequent labels", "", " · ".join(_short(data.label_names[i], 30) for i in order)))
    if data.train.texts:
        rows.append(("first document", "", _short(data.train.texts[0], 100)))
    return rows


def _short(text: str, limit: int) -> str:
    """Return the beginning of a text on one line.

    >>> _short("one  two three", 8)
    'one two…'
    """
    line = " ".join(text[: 2 * limit].split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


@app.command()
def get(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name from `lightdxml data list`.", show_default=False)],
    raw: Annotated[bool, typer.Option("--raw", help="Fetch raw texts instead of the bag of words.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Fetch the data set again if it is already there.")] = False,
    url: Annotated[str | None, typer.Option("--url", help="Address of the archive. Default: the known one.")] = None,
    sha256: Annotated[str | None, typer.Option("--sha256", help="SHA-256 checksum that the archive must have.")] = None,
) -> None:
    """Fetch a data set into the cache folder and check its sizes.

    An interrupted download resumes where it stopped.

    Example: `lightdxml data get EURLex-4K`
    """
    from lightdxml.data import download

    if name.lower() in BUILDERS:
        path = _build(name.lower(), force)
    else:
        with download_bar(name) as progress:
            path = download.get(registry.find(name), raw=raw, force=force, url=url, sha256=sha256, progress=progress)
    say(f"{name} is in {path}")


def _build(name: str, force: bool) -> Path:
    cached = find_cached(name)
    if cached is not None and not force:
        return cached
    return save(BUILDERS[name](), registry.cache_folder() / name, "jsonl", "gz", overwrite=True)


@app.command()
@with_reading
def convert(
    source: Source,
    target: Target,
    to: Annotated[
        SaveFormat,
        typer.Option("--to", help="Format. `xc` and `npz` hold features, `jsonl` and Annif's corpora hold texts."),
    ],
    compress: Compress = "none",
    force: Force = False,
    *,
    reading: Reading,
) -> None:
    """Convert a data set to another format.

    Example: `lightdxml data convert my.csv my-folder --to jsonl`
    """
    data = load(source, **reading)
    _write(data, target, to, compress, force)


@app.command()
@with_reading
def split(
    source: Source,
    target: Target,
    test: Annotated[float, typer.Option("--test", help="Fraction of documents for testing.")] = 0.2,
    dev: Annotated[float, typer.Option("--dev", help="Fraction of documents for development (validation).")] = 0.0,
    random_state: RandomState = 0,
    compress: Compress = "none",
    force: Force = False,
    *,
    reading: Reading,
) -> None:
    """Split a data set at random into a train part, a test part and, with `--dev`, a dev part.

    Example: `lightdxml data split my.csv my-folder --test 0.2`
    """
    whole = load(source, **reading)
    data = split_at_random(whole, test, dev, random_state)
    _write(data, target, "jsonl" if data.train.X is None else "xc", compress, force)


def _write(data: Dataset, target: Path, form: SaveFormat, compress: Compress, force: bool) -> None:
    save(data, target, form, "" if compress == "none" else compress, overwrite=force)
    parts = ", ".join(f"{len(part):,} {name}" for name, part in data.splits.items())
    say(f"{data.name}: {parts} documents written to {target}")
