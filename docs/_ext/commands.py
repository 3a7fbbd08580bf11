"""The page of all commands, from the commands themselves: it is never out of date."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from itertools import groupby
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import typer
from sphinx.application import Sphinx

from lightdxml.cli import application

PAGE = "reference/cli"


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the commands to the source of the page when Sphinx reads it."""
    app.connect("source-read", _add)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _add(app: Sphinx, name: str, source: list[str]) -> None:
    if name == PAGE:
        source[0] += f"\n{markdown()}"


def markdown() -> str:
    """Return the Markdown of all commands."""
    root: Any = typer.main.get_command(application())
    return "\n".join(part for one in root.commands.values() for part in _parts(one, "lightdxml"))


def _parts(command: Any, parents: str) -> Iterator[str]:
    """Yield the Markdown of a command and its subcommands."""
    path = f"{parents} {command.name}"
    yield f"{'#' * len(path.split())} {path}\n"
    yield f"{_text(command.help)}\n"
    yield from _options(command)
    for one in getattr(command, "commands", {}).values():
        yield from _parts(one, path)


def _options(command: Any) -> Iterator[str]:
    """Yield a table of each group of options."""
    # `with_reading` adds options: their types are those of the function that it returns, not of the one that it wraps.
    callback = command.callback and inspect.unwrap(command.callback, stop=lambda one: hasattr(one, "__signature__"))
    types = get_type_hints(callback) if callback else {}
    shown = [one for one in command.params if one.name in types and not getattr(one, "hidden", False)]
    shown.sort(key=_group)
    for title, group in groupby(shown, _title):
        yield "\n".join((f"| {title} | Meaning |", "|---|---|", *(_row(one, types[one.name]) for one in group), ""))


def _title(parameter: Any) -> str:
    return "Argument" if parameter.param_type_name == "argument" else (parameter.rich_help_panel or "Option")


def _group(parameter: Any) -> tuple[bool, bool, str]:
    return parameter.param_type_name != "argument", parameter.rich_help_panel is not None, _title(parameter)


def _row(parameter: Any, kind: Any) -> str:
    if parameter.param_type_name == "argument":
        names = f"`{parameter.metavar or parameter.name.upper()}`"
    else:
        shown = [*parameter.opts, *parameter.secondary_opts]
        shown[-1] = f"{shown[-1]} {_value(parameter, kind)}".rstrip()
        names = ", ".join(f"`{name}`" for name in shown)
    cells = names, f"{_text(parameter.help)}{_default(parameter)}"
    return "| {} | {} |".format(*(cell.replace("|", r"\|") for cell in cells))


def _value(parameter: Any, kind: Any) -> str:
    """Return what stands for the value of an option; nothing for a flag."""
    if get_origin(kind) in (Union, UnionType):
        kind = next(one for one in get_args(kind) if one is not type(None))
    if get_origin(kind) is Literal:
        return "|".join(map(str, get_args(kind)))
    return str(parameter.metavar or {bool: "", int: "N", float: "X", str: "TEXT"}.get(kind, "PATH"))


def _default(parameter: Any) -> str:
    value, shown = parameter.default, getattr(parameter, "show_default", False)
    if not shown or value in (None, (), [], "") or isinstance(value, bool) or callable(value):
        return ""
    return f" Default: {shown if isinstance(shown, str) else value}."


def _text(text: str | None) -> str:
    """Return a help text with one line per paragraph, and with options as code."""
    paragraphs = [" ".join(one.split()) for one in (text or "").split("\n\n")]
    return re.sub(r"(`[^`]*`)|(?<!\w)(--[a-z-]+)", lambda m: m[1] or f"`{m[2]}`", "\n\n".join(paragraphs))
