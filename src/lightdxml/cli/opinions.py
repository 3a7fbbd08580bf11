"""Options that blend the scores of another system with those of a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lightdxml.cli.output import note

if TYPE_CHECKING:
    from lightdxml.cli.rules import Rules
    from lightdxml.model.model import Model
    from lightdxml.model.opinions import Opinions, Ranking

WITH_HELP = (
    "Labels and scores from another system{documents}: JSON Lines with one document per line, as `lightdxml predict"
    " --json` writes it or Annif's REST API returns it. Documents are matched by `id` or, if FILE has no ids, by order."
)
_PANEL = "Another system"
With = Annotated[
    Path | None,
    typer.Option(
        "--with", metavar="FILE", help=WITH_HELP.format(documents=""), rich_help_panel=_PANEL, show_default=False
    ),
]
WithWeight = Annotated[
    float | None,
    typer.Option(
        "--with-weight",
        help="Weight of the other system, from 0 to 1. `lightdxml weigh` finds the best one.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]


def check_options(path: Path | None, weight: float | None, tail: float = 0.0, threshold: str | None = None) -> None:
    """Raise a `ValueError` if only one of the options is given, the weight is none, or others do not go with them."""
    from lightdxml.cli.decisions import parse_threshold
    from lightdxml.model.opinions import check_weight

    if path is not None and tail:
        raise ValueError("--tail orders the labels of the model alone: leave it out with --with")
    if path is not None and threshold is not None and isinstance(parse_threshold(threshold), str):
        raise ValueError(f"--threshold {threshold} is chosen for the model alone: give a number with --with")
    if path is not None and weight is None:
        raise ValueError("--with needs a weight: give --with-weight, which `lightdxml weigh` finds")
    if path is None and weight is not None:
        raise ValueError("--with-weight needs the scores of another system: give their file as --with")
    if weight is not None:
        check_weight(weight)


def read_opinions(path: Path, model: Model, rules: Rules) -> Opinions:
    """Read the scores of another system for the labels that rules allow, and say which the model does not know."""
    from lightdxml.model import opinions
    from lightdxml.model.rules import allowed_labels

    found = opinions.load(path, model, allowed_labels(model, **rules))
    if found.unknown:
        labels = "1 label" if len(found.unknown) == 1 else f"{len(found.unknown):,} labels"
        note(f"the model does not know {labels} of {path}, such as {found.unknown[0]}: left out")
    return found


def note_missing(opinions: Opinions, missing: int, n_documents: int) -> None:
    """Say how many documents the other system has no scores for; raise a `ValueError` if these are all."""
    opinions.check_count(n_documents)
    if n_documents and missing == n_documents:
        raise ValueError(f"{opinions.path} has none of the {n_documents:,} documents: check that the ids are the same")
    if missing:
        _note_missing(opinions, missing, n_documents)


def _note_missing(opinions: Opinions, missing: int, n_documents: int) -> None:
    which = f"{missing:,} of {n_documents:,} documents"
    note(f"{opinions.path} has no scores for {which}: they keep the model's scores")


class SecondOpinion:
    """Another system's scores with their weight, for documents that come one batch after the other."""

    def __init__(self, opinions: Opinions, weight: float) -> None:
        self._opinions, self._weight = opinions, weight
        self._first = self._documents = self._missing = 0
        self._is_part = False

    @classmethod
    def of(cls, path: Path | None, weight: float | None, model: Model, rules: Rules) -> SecondOpinion | None:
        """Return what the options ask for; None without them."""
        return None if path is None or weight is None else cls(read_opinions(path, model, rules), weight)

    def begin_at(self, first: int, total: int) -> None:
        """Take the documents from a number on, of so many in total: the next ones are a part of them."""
        self._opinions.check_count(total)
        self._first, self._documents, self._missing, self._is_part = first, 0, 0, True

    def depth(self, k: int) -> int:
        """Return how many labels the model must rank for k blended ones."""
        from lightdxml.model.opinions import DEPTH

        return max(k, DEPTH)

    def combine(self, ours: Ranking, ids: Sequence[Any] | None, k: int) -> Ranking:
        """Return the k best labels of both systems for the next documents."""
        from lightdxml.model.opinions import combine

        places = self._opinions.places(ids, len(ours[0]), self._first + self._documents)
        self._documents += len(places)
        self._missing += int((places < 0).sum())
        return combine(ours, self._opinions.of(places), self._weight, k)

    def note_missing(self) -> None:
        """Say how many documents had no scores; these may be all of a part."""
        if not self._is_part:
            note_missing(self._opinions, self._missing, self._documents)
        elif self._missing:
            _note_missing(self._opinions, self._missing, self._documents)
