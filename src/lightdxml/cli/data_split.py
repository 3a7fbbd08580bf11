"""`lightdxml data split`."""

from __future__ import annotations

from typing import Annotated

import typer

from lightdxml.cli.data_convert import Compress, Force, Target
from lightdxml.cli.output import Encoding, OldSplit, Separator, Source, console
from lightdxml.data import load, save
from lightdxml.data.save import SaveFormat
from lightdxml.data.split import split


def run(
    source: Source,
    target: Target,
    test: Annotated[float, typer.Option("--test", help="The share of documents for testing.")] = 0.2,
    dev: Annotated[float, typer.Option("--dev", help="The share of documents for development.")] = 0.0,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same split.")] = 0,
    compress: Compress = "none",
    force: Force = False,
    separator: Separator = "|",
    encoding: Encoding = "utf-8",
    old_split: OldSplit = 0,
) -> None:
    """Set documents aside for testing: write a folder with train, test and, if asked for, dev.

    Example: `lightdxml data split my.csv my-folder --test 0.2`
    """
    data = split(load(source, label_separator=separator, encoding=encoding, split=old_split), test, dev, seed)
    format: SaveFormat = "jsonl" if data.train.X is None else "xc"
    save(data, target, format, "" if compress == "none" else compress, overwrite=force)
    parts = ", ".join(f"{len(part):,} {name}" for name, part in data.splits.items())
    console.print(f"{data.name}: {parts} documents written to {target}", markup=False, soft_wrap=True)
