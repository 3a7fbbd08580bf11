"""All settings of a training as a list: at the end of `lightdxml train --help`, and as `docs/settings.md`.

`python -m lightdxml.cli.settings > docs/settings.md` writes the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import typer
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand

from lightdxml.cli.output import console

if TYPE_CHECKING:
    from lightdxml.config import Config

# Settings of the vectorizer, which have options of their own.
TEXT_SETTINGS = {
    "ngrams": ("1 or 2", "1 for single words, 2 for pairs of neighboring words as well."),
    "min_df": ("an integer of at least 1", "Ignore words that occur in fewer training documents."),
    "max_features": ("an integer of at least 1", "Keep this many words and pairs, the most frequent ones."),
    "title_weight": ("a number of at least 0", "Weight of a word in the title; a word in the text has weight 1."),
}


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
    'dense.dim'
    """
    from lightdxml.config import SHORT_NAMES, walk
    from lightdxml.settings import expected

    short_names = {full: short for short, full in SHORT_NAMES.items()}
    for name, field, value in walk():
        yield Row(name, short_names.get(name, ""), plain(value), expected(field), field.metadata["about"])


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
        found.append((preset, {name: value for name, _, value in walk(config) if value != base[name]}))
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
        console.print(" docs/settings.md explains each setting.\n", highlight=False)


def page() -> str:
    """Return `docs/settings.md`."""
    from lightdxml.config import SMALL_LIMIT, Config, configure
    from lightdxml.text.tfidf import TextOptions

    known = list(rows())
    parts = [_INTRODUCTION]
    for field in fields(Config):
        value = getattr(Config(), field.name)
        if is_dataclass(value):
            about = (type(value).__doc__ or "").splitlines()[0]
            parts.append(
                _section(f"`{field.name}`", about, [row for row in known if row.name.startswith(f"{field.name}.")])
            )
    parts.append(_section("General", "", [row for row in known if "." not in row.name]))
    text = [Row(name, "", plain(getattr(TextOptions, name)), *one) for name, one in TEXT_SETTINGS.items()]
    about = "How texts become features. `--set` does not take these: they are options (`--ngrams 1`) and parameters."
    parts.append(_section("Texts", about, text))
    small = _differences(
        {"default": Config(), f"below {SMALL_LIMIT:,} documents": configure("default", SMALL_LIMIT - 1)}
    )
    parts.append(f"## Presets\n\nThe default preset adapts to small data sets.\n\n{small}")
    parts.append(f"The presets of the paper follow its Table of hyperparameters and the authors' code.\n\n{_presets()}")
    return "\n".join(parts)


_INTRODUCTION = """# Settings

This page is generated: `python -m lightdxml.cli.settings > docs/settings.md`.

Set a value on the command line by its full or short name: `lightdxml train … --set dense.dropout=0.5`. The most
important settings have options: `--dim 256`. In Python, they are parameters of `LightDXML`; all others go into
`options`: `LightDXML(dim=256, options={"dense.dropout": 0.5})`.
"""


def _section(title: str, about: str, known: list[Row]) -> str:
    lines = [
        (f"`{row.name}`", f"`{row.short}`" if row.short else "", row.default, row.values, row.about) for row in known
    ]
    text = f"{about}\n\n" if about else ""
    return f"## {title}\n\n{text}{_table(('Name', 'Short name', 'Default', 'Values', 'Meaning'), lines)}"


def _presets() -> str:
    from lightdxml.config import PRESETS

    return _differences(PRESETS)


def _differences(configs: dict[str, Any]) -> str:
    """Return a table of the settings in which configurations differ."""
    from lightdxml.config import walk

    values = [{name: plain(value) for name, _, value in walk(config)} for config in configs.values()]
    differing = [name for name in values[0] if len({one[name] for one in values}) > 1]
    lines = [(f"`{name}`", *(one[name] for one in values)) for name in differing]
    return _table(("Setting", *(f"`{name}`" for name in configs)), lines)


def _table(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    cells = [columns, ("---",) * len(columns), *lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


if __name__ == "__main__":
    typer.echo(page(), nl=False)
