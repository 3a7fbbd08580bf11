"""Options that say how data is read. Commands that read data share them, and models remember them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from typer.models import ArgumentInfo

if TYPE_CHECKING:
    from lightdxml.model.model import Model

# Options of `lightdxml.data.load` that were given, by name.
Reading = Mapping[str, Any]

# The option, its help, and its default. Where there is a model, the defaults are what its training was given.
_HELP = {
    "label_separator": ("--separator", "Separator of labels in a cell. Cells may also hold lists.", "|"),
    "encoding": ("--encoding", "Encoding of text files.", "utf-8"),
    "text_column": ("--text-column", "Column of texts, or field of JSON.", "text"),
    "title_column": ("--title-column", "Column of titles, if there are any.", "title"),
    "label_column": ("--label-column", "Column of labels.", "labels"),
    "id_column": ("--id-column", "Column of document ids, if there are any.", "id"),
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
    has_model = any(_is_model(one) for one in own)
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_annotation(name, has_model))
        for name in _HELP
    ]

    @wraps(command)
    def run(*own: Any, **arguments: Any) -> None:
        given = {name: arguments.pop(name, None) for name in _HELP}
        command(*own, **arguments, reading={name: value for name, value in given.items() if value is not None})

    run.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in (*own, *options)}
    return run


def _is_model(parameter: inspect.Parameter) -> bool:
    """Return whether a parameter is the argument MODEL, a trained model: the model that `train` writes is an option."""
    return any(isinstance(one, ArgumentInfo) and one.metavar == "MODEL" for one in get_args(parameter.annotation))


def _annotation(name: str, has_model: bool) -> Any:
    option, text, usual = _HELP[name]
    about = f"{text} Default: as in training." if has_model else f"{text} Default: `{usual}`."
    return Annotated[str | None, typer.Option(option, help=about, rich_help_panel="Reading data", show_default=False)]


def reading_for(model: Model, given: Reading) -> dict[str, Any]:
    """Return how to read data for a model: as the user says or, where they do not, as in training."""
    return {**model.reading, **given}


def reading_options(reading: Reading) -> list[str]:
    """Return options of the command line.

    >>> reading_options({"label_separator": ";"})
    ['--separator', ';']
    """
    return [word for name, value in reading.items() for word in (_HELP[name][0], value)]
