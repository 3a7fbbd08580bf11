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
        root: Any = typer.main.get_command(application())
        source[0] += "\n" + "\n".join(part for one in root.commands.values() for part in _parts(one, "lightdxml"))


def _parts(command: Any, parents: str) -> Iterator[str]:
    """Yield the Markdown of a command and its subcommands."""
    path = f"{parents} {command.name}"
    yield f"{'#' * len(path.split())} {path}\n"
    yield f"{_text(command.help)}\n"
    if hasattr(command, "commands"):
        for one in command.commands.values():
            yield from _parts(one, path)
        return
    types = get_type_hints(inspect.unwrap(command.callback))
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
        names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
        value = _value(parameter, kind)
        names += f" `{value}`" if value else ""
    meaning = f"{_text(parameter.help)}{_default(parameter)}".replace("|", "\\|")
    return f"| {names} | {meaning} |"


def _value(parameter: Any, kind: Any) -> str:
    """Return what stands for the value of an option; nothing for a flag."""
    if get_origin(kind) in (Union, UnionType):
        kind = next(one for one in get_args(kind) if one is not type(None))
    if get_origin(kind) is Literal:
        return ", ".join(map(str, get_args(kind)))
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
