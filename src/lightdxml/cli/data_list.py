"""`lightdxml data list`."""

from __future__ import annotations

from dataclasses import asdict

from lightdxml.cli.output import Json, console, print_json, print_table
from lightdxml.data import registry
from lightdxml.data.catalog import BUILDERS, find_cached


def run(json: Json = False) -> None:
    """List the known data sets: those built here, those fetched, those to fetch.

    Example: `lightdxml data list`
    """
    rows = [{"name": name, "status": "fetched" if find_cached(name) else "built here"} for name in BUILDERS]
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
    console.print(
        "\nFetch one with [bold]lightdxml data get NAME[/], look at one with [bold]lightdxml data info NAME[/]."
    )
    console.print(
        f"Fetched sets lie in {registry.cache_folder()} (LIGHTDXML_DATA moves it).",
        highlight=False,
        soft_wrap=True,
    )
