"""Documents as examples of what a model predicts: right labels are marked, missed ones are named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lightdxml.cli.output import console, distinct_names, say

if TYPE_CHECKING:
    from lightdxml.cli.measure import Measured
    from lightdxml.model.model import Model

_EXAMPLES, _LABELS, _MISSED = 3, 5, 3
_INDENT = "    "


def show_examples(model: Model, found: Measured) -> None:
    """Show the documents of which the model is most certain, and some that are picked without regard to the model."""
    n = len(found.ranked)
    if found.documents.split.texts is None or model.label_names is None:
        return
    best = np.argsort(-found.scores[:, 0], kind="stable")[:_EXAMPLES].tolist()
    spaced = [i for i in range(0, n, max(1, n // _EXAMPLES))[:_EXAMPLES] if i not in best]
    say(f"\nExamples (✓ marks correct labels). The {len(best)} most confident of {n:,} documents:")
    for i in best:
        _show(model, found, i)
    if spaced:
        say(f"{len(spaced)} more documents, evenly spaced:")
    for i in spaced:
        _show(model, found, i)


def _show(model: Model, found: Measured, i: int) -> None:
    """Show one document: its beginning, its best labels, and those that it should have too."""
    documents = found.documents
    true = documents.Y.indices[documents.Y.indptr[i] : documents.Y.indptr[i + 1]].tolist()
    pairs = zip(found.ranked[i, :_LABELS].tolist(), found.scores[i, :_LABELS].tolist(), strict=True)
    best = [(j, score) for j, score in pairs if j >= 0]
    names = [" ".join(name.split()) for name in distinct_names([model.label(j) for j, _ in best])]
    right = [j in true for j, _ in best]
    labels = [f"{'✓ ' * hit}{name} {score:.2f}" for name, hit, (_, score) in zip(names, right, best, strict=True)] or [
        "no labels"
    ]
    assert documents.split.texts is not None
    say(f"- {shortened(documents.split.texts[i], console.width - 2)}")
    for line in wrapped([f"{sum(right)} of {len(true)} found: {labels[0]}", *labels[1:]], console.width - len(_INDENT)):
        say(f"{_INDENT}{line}")
    missed = [j for j in true if j not in [label for label, _ in best]]
    if missed:
        shown = [_name(model, documents.unknown_names, j) for j in missed[:_MISSED]]
        more = [f"{len(missed) - _MISSED} more"] if len(missed) > _MISSED else []
        for line in wrapped([f"missed: {shown[0]}", *shown[1:], *more], console.width - len(_INDENT)):
            say(f"{_INDENT}{line}")


def _name(model: Model, unknown: Sequence[str], j: int) -> str:
    """Return the name of a true label, which the model may not know."""
    return " ".join((model.label(j).name if j < model.n_labels else unknown[j - model.n_labels]).split())


def shortened(text: str, width: int) -> str:
    """Return the beginning of a text on one line.

    >>> shortened("a cat  and a dog", 8)
    'a cat…'
    """
    line = " ".join(text[: 4 * width].split())
    return line if len(line) <= width else f"{line[:width].rpartition(' ')[0] or line[: width - 1]}…"


def wrapped(items: Sequence[str], width: int) -> list[str]:
    """Return items separated by commas, in lines that are broken between items.

    >>> wrapped(["one", "two", "three"], 10)
    ['one, two,', 'three']
    """
    lines = [""]
    for i, item in enumerate(items):
        part = item + ("," if i < len(items) - 1 else "")
        if lines[-1] and len(lines[-1]) + 1 + len(part) > width:
            lines.append(part)
        else:
            lines[-1] = f"{lines[-1]} {part}".lstrip()
    return lines
