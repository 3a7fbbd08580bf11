"""The page of all settings: `python -m tests.support.settings_page > docs/reference/settings.md`."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import fields, is_dataclass

from lightdxml.cli.settings import Row, plain, row, rows
from lightdxml.config import PRESETS, SMALL_LIMIT, Config, configure, walk
from lightdxml.text.tfidf import TextOptions

_INTRODUCTION = """<!-- Generated: python -m tests.support.settings_page > docs/reference/settings.md -->

# Settings

The most important settings are options of `lightdxml train` and parameters of `LightDXML`. `--set` and `options` take
all of them, by their full or short name:

| Where | Example |
|---|---|
| command line | `lightdxml train my-data --model my-model --dim 256 --set dense.dropout=0.5` |
| Python | `LightDXML(dim=256, options={"dense.dropout": 0.5})` |
| [preset file](../how-to/tune.md#preset-files) | `{"settings": {"dense.dim": 256, "dense.dropout": 0.5}}` |
"""
_TEXTS = """## Texts

How texts become features. These are options (`--ngrams 1`) and parameters of `LightDXML`; `--set` does not take them.
"""
_PRESETS = """## Presets

The defaults above are for large data sets. For small ones, the default preset changes some of them.
"""
_PAPER = """
The presets of the paper use its hyperparameters and the training setup of the authors' code.
"""


def page() -> str:
    """Return the page."""
    known, parts = list(rows()), [_INTRODUCTION]
    for field in fields(Config):
        options = getattr(Config(), field.name)
        if is_dataclass(options):
            group = [one for one in known if one.name.startswith(f"{field.name}.")]
            parts += [f"## `{field.name}`\n\n{(type(options).__doc__ or '').splitlines()[0]}\n", _settings(group)]
    texts = [row(field.name, field) for field in fields(TextOptions)]
    parts += ["## General\n", _settings([one for one in known if "." not in one.name]), _TEXTS, _settings(texts)]
    sizes = {f"{SMALL_LIMIT:,} documents or more": Config()}
    sizes |= {f"{n:,} documents": configure("default", n) for n in (10_000, 1_000)}
    parts += [_PRESETS, _compared(sizes), _PAPER, _compared({f"`{name}`": one for name, one in PRESETS.items()})]
    return "\n".join(parts).replace("\n\n\n", "\n\n")


def _settings(known: Sequence[Row]) -> str:
    lines = [
        (
            f"`{one.name}`" + f", `{one.short}`" * bool(one.short),
            f"`{one.default}`" * bool(one.default),
            _in_short(one.values),
            one.about,
        )
        for one in known
    ]
    return _table(("Setting", "Default", "Values", "Meaning"), lines)


def _in_short(values: str) -> str:
    """Return which values a setting takes in the few words that fit into a column."""
    for words, short in (
        (r"^one of ", ""), (r"^an? ", ""), (r" of at least (\S+) and at most ", r" from \1 to "),
        (r" of at least ", " ≥ "), (r" above ", " > "), (r" and at most ", ", ≤ "),
    ):  # fmt: skip
        values = re.sub(words, short, values)
    return values


def _compared(configs: dict[str, Config]) -> str:
    """Return a table of the settings in which configurations differ."""
    values = [{name: plain(value) for name, _, value in walk(config)} for config in configs.values()]
    differing = [name for name in values[0] if len({one[name] for one in values}) > 1]
    return _table(("Setting", *configs), [(f"`{name}`", *(one[name] for one in values)) for name in differing])


def _table(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in (columns, ("---",) * len(columns), *lines))


if __name__ == "__main__":
    sys.stdout.write(page())
