"""Options that say how data is read. Commands that read data share them, and models remember them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from lightdxml.model.model import Model

# Options of `lightdxml.data.load` that were given, by name.
Reading = Mapping[str, Any]

# Where there is a model, the defaults are what its training was given.
_HELP = {
    "label_separator": ("--separator", "Separates labels in a cell: `|` if not given. Lists in cells are recognized."),
    "encoding": ("--encoding", "Encoding of text files: `utf-8` if not given."),
    "text_column": ("--text-column", "Column of texts, or field of JSON: `text` if not given."),
    "title_column": ("--title-column", "Column of titles, if there are any: `title` if not given."),
    "label_column": ("--label-column", "Column of labels: `labels` if not given."),
    "id_column": ("--id-column", "Column of ids of documents, if there are any: `id` if not given."),
}


def with_reading(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of reading in place of its parameter `reading`: those that the user gives.

    Examples
    --------
    >>> @with_reading
    ... def show(file: str, reading: Reading) -> None:
    ...     print(file, reading)
    >>> show(file="my.csv", label_separator=";")
    my.csv {'label_separator': ';'}
    """
    signature = inspect.signature(command, eval_str=True)
    own = [one for one in signature.parameters.values() if one.name != "reading"]
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_annotation(option, text))
        for name, (option, text) in _HELP.items()
    ]

    @wraps(command)
    def run(*own: Any, **arguments: Any) -> None:
        given = {name: arguments.pop(name, None) for name in _HELP}
        command(*own, **arguments, reading={name: value for name, value in given.items() if value is not None})

    run.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in (*own, *options)}
    return run


def _annotation(option: str, text: str) -> Any:
    return Annotated[str | None, typer.Option(option, help=text, rich_help_panel="Reading data", show_default=False)]


def reading_for(model: Model, given: Reading) -> dict[str, Any]:
    """Return how to read data for a model: as the user says or, where they do not, as in training."""
    return {**model.reading, **given}


def reading_options(reading: Reading) -> list[str]:
    """Return options of the command line.

    >>> reading_options({"label_separator": ";"})
    ['--separator', ';']
    """
    return [word for name, value in reading.items() for word in (_HELP[name][0], value)]
