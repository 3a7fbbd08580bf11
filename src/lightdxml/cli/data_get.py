"""`lightdxml data get`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lightdxml.cli.output import console, download_bar
from lightdxml.data import download, registry, save
from lightdxml.data.catalog import BUILDERS, find_cached
from lightdxml.data.load import load_path


def run(
    name: Annotated[str, typer.Argument(help="A name from `lightdxml data list`.", show_default=False)],
    raw: Annotated[bool, typer.Option("--raw", help="The raw text instead of the bag of words.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Fetch again what is there already.")] = False,
    url: Annotated[str | None, typer.Option("--url", help="Fetch the archive from another address.")] = None,
) -> None:
    """Fetch a data set into the cache folder, with its sizes checked; an interrupted download goes on where it broke.

    Example: `lightdxml data get EURLex-4K`
    """
    if name.lower() in BUILDERS:
        path = _build(name.lower(), force)
    else:
        with download_bar(name) as progress:
            path = download.get(name, raw=raw, force=force, url=url, progress=progress, verify=_sizes)
    console.print(f"{name} is in {path}", markup=False, soft_wrap=True)


def _build(name: str, force: bool) -> Path:
    cached = find_cached(name)
    if cached is not None and not force:
        return cached
    return save(BUILDERS[name](), registry.cache_folder() / name, "jsonl", "gz", overwrite=True)


def _sizes(folder: Path) -> tuple[int, int, int, int]:
    data = load_path(folder)
    n_test = len(data.test) if data.test is not None else 0
    return len(data.train), n_test, data.n_features or 0, data.n_labels
