"""Which labels may be suggested: rules of the caller, and labels that were retired."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from lightdxml.model.model import Model

# Labels of a rule: one or several of them, by URI, name or id; None for no rule.
Labels = str | int | Iterable[str | int] | None


def allowed_labels(model: Model, include: Labels = None, exclude: Labels = None) -> NDArray[np.bool_] | None:
    """Return which labels rules allow, one value per label; None if there are no rules.

    Parameters
    ----------
    model
        A trained model.
    include
        The only labels that may be suggested; None for all. Retired labels never are.
    exclude
        Labels that may not be suggested, included or not.

    Examples
    --------
    >>> from lightdxml import LightDXML
    >>> model = LightDXML(dim=8, epochs=2).fit(["red rose", "white wine"] * 10, [["rose"], ["wine"]] * 10).model_
    >>> allowed_labels(model, exclude="rose").tolist()
    [False, True]
    """
    if include is None and exclude is None:
        return None
    allowed = np.full(model.n_labels, include is None)
    if include is not None:
        allowed[_ids(model, include, "include")] = True
    if exclude is not None:
        allowed[_ids(model, exclude, "exclude")] = False
    allowed[model.retired] = False
    if not allowed.any():
        raise ValueError("the rules leave no label that could be suggested: include more, or exclude less")
    return allowed


def branches(model: Model, concepts: Iterable[str], option: str) -> list[str]:
    """Return concepts, by URI or name, and all concepts below them; raise a `ValueError` if there is no hierarchy.

    `option` is what the caller calls the rule.
    """
    above = list(concepts)
    if not above:
        return []
    vocabulary = model.vocabulary
    if vocabulary is None or not vocabulary.has_hierarchy:
        raise ValueError(f"{option} needs a vocabulary with a hierarchy, and the model has none: SKOS files have one")
    return sorted(set().union(*(vocabulary.branch(uri) for uri in set(vocabulary.uris(above)))))


def _ids(model: Model, labels: str | int | Iterable[str | int], rule: str) -> list[int]:
    several = [labels] if isinstance(labels, str | int | np.integer) else list(labels)
    # A branch may have thousands of labels: those that are named as the model names them take no function call each.
    places = [model.label_ids.get(label) for label in several]  # type: ignore[arg-type]
    pairs = zip(several, places, strict=True)
    return [_id(model, label, rule) if place is None else place for label, place in pairs]


def _id(model: Model, label: str | int, rule: str) -> int:
    found = None
    if isinstance(label, int | np.integer) and not isinstance(label, bool):
        found = model.label_ids.get(str(label)) if model.integer_labels else int(label)
    elif not isinstance(label, str):
        pass
    elif model.label_names is None:
        found = int(label) if label.isdecimal() else None
    elif model.vocabulary is not None:
        found = model.label_ids.get(model.vocabulary.uris([label])[0])
    if found is None or not 0 <= found < model.n_labels:
        raise ValueError(f"there is no label {label!r} to {rule}: give URIs, names or ids of labels of the model")
    return found
