"""`lightdxml data convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from lightdxml.cli.output import Encoding, OldSplit, Separator, Source, console
from lightdxml.data import load, save

Target = Annotated[Path, typer.Argument(help="The folder to write.", show_default=False)]
To = Annotated[Literal["xc", "npz", "jsonl"], typer.Option("--to", help="xc and npz hold features, jsonl holds text.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the data set in a folder that is not empty.")]
Compress = Annotated[Literal["none", "gz", "zst"], typer.Option("--compress", help="Compress the text files.")]


def run(
    source: Source,
    target: Target,
    to: To,
    compress: Compress = "none",
    force: Force = False,
    separator: Separator = "|",
    encoding: Encoding = "utf-8",
    old_split: OldSplit = 0,
) -> None:
    """Read a data set in any known format and write it in another one.

    Example: `lightdxml data convert my.csv my-folder --to jsonl`
    """
    data = load(source, label_separator=separator, encoding=encoding, split=old_split)
    save(data, target, to, "" if compress == "none" else compress, overwrite=force)
    parts = ", ".join(f"{len(split):,} {part}" for part, split in data.splits.items())
    console.print(f"{data.name}: {parts} documents written to {target}", markup=False, soft_wrap=True)
