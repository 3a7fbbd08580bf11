"""Options that say which labels may be suggested."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

if TYPE_CHECKING:
    from lightdxml.model.model import Model


class Rules(TypedDict, total=False):
    """Labels to include and to exclude, as `rank` and `allowed_labels` take them."""

    include: list[str] | None
    exclude: list[str] | None


_rule = partial(typer.Option, metavar="URI", rich_help_panel="Labels", show_default=False)
Include = Annotated[list[str] | None, _rule("--include", help="Suggest only this label. Repeatable.")]
Exclude = Annotated[list[str] | None, _rule("--exclude", help="Do not suggest this label. Repeatable.")]
IncludeBranch = Annotated[
    list[str] | None,
    _rule("--include-branch", help="Suggest only this concept and those below it. Repeatable."),
]
ExcludeBranch = Annotated[
    list[str] | None,
    _rule("--exclude-branch", help="Suggest neither this concept nor those below it. Repeatable."),
]


def rules_of(
    model: Model,
    include: list[str] | None,
    exclude: list[str] | None,
    include_branch: list[str] | None,
    exclude_branch: list[str] | None,
) -> Rules:
    """Return the labels to include and to exclude, branches as the labels in them; None without such rules."""
    return {
        "include": _labels(model, "include", include, include_branch),
        "exclude": _labels(model, "exclude", exclude, exclude_branch),
    }


def _labels(model: Model, rule: str, labels: list[str] | None, above: list[str] | None) -> list[str] | None:
    from lightdxml.model.rules import branches

    if not labels and not above:
        return None
    return [*(labels or ()), *branches(model, above or (), f"--{rule}-branch")]
