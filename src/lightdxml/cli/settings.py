"""The settings of a training run in words: all of them at the end of `lightdxml train --help`, and those of a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field
from typing import TYPE_CHECKING, Any, NamedTuple

import typer
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand

from lightdxml.cli.output import console

if TYPE_CHECKING:
    from lightdxml.config import Config
    from lightdxml.model.model import Model

# The fields of `TextOptions` that are options of `lightdxml train`.
TEXT_SETTINGS = ("ngrams", "min_df", "max_features", "title_weight", "language")


class Row(NamedTuple):
    """A setting for people: its full name, short name, default, possible values and meaning."""

    name: str
    short: str
    default: str
    values: str
    about: str


def rows() -> Iterator[Row]:
    """Yield all settings that `--set` takes.

    >>> next(rows()).name
    'dense.train'
    """
    from lightdxml.config import SHORT_NAMES, walk

    short_names = {full: short for short, full in SHORT_NAMES.items()}
    for name, field, _ in walk():
        yield row(name, field, short_names.get(name, ""))


def training_options(model: Model, preset: str, changed: dict[str, Any]) -> list[str]:
    """Return the options of `lightdxml train` that train a model again; FILE is its vocabulary, to be filled in."""
    words = [] if preset == "default" else ["--preset", preset]
    words += [word for name, value in changed.items() for word in ("--set", f"{name}={plain(value)}")]
    if model.vectorizer is not None:
        settings = model.vectorizer.settings
        for name in TEXT_SETTINGS:
            if (value := getattr(settings, name)) != getattr(type(settings), name):
                words += [f"--{name.replace('_', '-')}", plain(value)]
    words += [] if model.vocabulary is None else ["--vocabulary", "FILE"]
    return words + ([] if model.word_vectors is None else ["--word-vectors", model.word_vectors])


def row(name: str, field: Field[Any], short: str = "") -> Row:
    """Return a setting for people."""
    from lightdxml.settings import expected

    return Row(name, short, plain(field.default), expected(field), field.metadata["about"])


def plain(value: Any) -> str:
    """Return the value of a setting as the command line takes it.

    >>> plain(0.005), plain(True), plain(None), plain((0.25, 0.5))
    ('0.005', 'true', 'none', '0.25,0.5')
    """
    return ",".join(map(plain, value)) if isinstance(value, tuple) else str(value).lower()


def nearest_preset(config: Config, n_documents: int) -> tuple[str, dict[str, Any]]:
    """Return the preset that is closest to a configuration, and the settings that differ, by full name.

    >>> from lightdxml.config import configure
    >>> nearest_preset(configure("default", 100, {"dim": 7}), 100)
    ('default', {'dense.dim': 7})
    """
    from lightdxml.config import PRESETS, configure, walk

    found = []
    for preset in PRESETS:
        base = {name: value for name, _, value in walk(configure(preset, n_documents))}
        # What `auto` has become in training is no change.
        changes = {name: value for name, _, value in walk(config) if value != base[name] and base[name] != "auto"}
        found.append((preset, changes))
    return min(found, key=lambda one: len(one[1]))


class CommandWithSettings(TyperCommand):
    """A command whose help ends with a list of all settings."""

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Print the help and the list."""
        super().format_help(ctx, formatter)
        table = Table.grid(padding=(0, 2, 0, 0))
        for row in rows():
            table.add_row(Text(row.name, style="bold cyan"), Text(row.default), Text(row.values, style="dim"))
        title = "All settings for --set, with defaults and possible values"
        console.print(Panel(table, title=title, title_align="left", border_style="dim"))
        console.print(" The page 'Settings' in the documentation explains each setting.\n", highlight=False)
