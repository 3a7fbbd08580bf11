"""Labels as JSON: URI, name, notation and broader concepts."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote, unquote

from lightdxml.model.model import Model
from lightdxml.serve.problems import Problem
from lightdxml.serve.registry import ServedModel

# The prefix of URIs for labels that have none.
_URN = "urn:lightdxml:label:"
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
# The most broader concepts to show.
_DEPTH = 20


def uri_of(model: Model, j: int) -> str:
    """Return the URI of a label, made from its name if it has none.

    >>> from lightdxml import LightDXML
    >>> trained = LightDXML(dim=8, epochs=2).fit(["red rose", "white wine"] * 10, [["red rose"], ["urn:wine"]] * 10)
    >>> uri_of(trained.model_, 0), uri_of(trained.model_, 1)
    ('urn:lightdxml:label:red%20rose', 'urn:wine')
    """
    name = model.label(j).id
    return name if _URI.fullmatch(name) else _URN + quote(name, safe="")


def name_of(label: str) -> str:
    """Return the label's name in the model, given its URI or name.

    >>> name_of("urn:lightdxml:label:red%20rose"), name_of("urn:wine")
    ('red rose', 'urn:wine')
    """
    return unquote(label[len(_URN) :]) if label.startswith(_URN) else label


def check_language(served: ServedModel, language: str | None) -> str:
    """Return the requested language, or the default one; raise a `Problem` if the vocabulary does not have it."""
    if not language:
        return served.language
    if language not in served.languages:
        known = ", ".join(served.languages)
        raise Problem(400, f"language {language[:20]!r} is not one of the vocabulary's: {known[:200]}")
    return language


def label_name(model: Model, j: int, language: str) -> str:
    """Return the name of a label in a language, or in another one if it has none there."""
    label = model.label(j)
    if model.vocabulary is None or label.id not in model.vocabulary:
        return label.name
    return model.vocabulary.name(label.id, language)


def label_json(served: ServedModel, language: str, j: int, score: float) -> str:
    """Return a label and its score as JSON."""
    # Frequent labels are suggested often: cache all but the score.
    start: str = served.cached((language, j), lambda: json.dumps(_named(served.model, j, language))[:-1])
    return f'{start}, "score": {round(score, 6)!r}}}'


def _named(model: Model, j: int, language: str) -> dict[str, Any]:
    notation = model.label(j).notation or None
    return {"uri": uri_of(model, j), "label": label_name(model, j, language), "notation": notation}


def broader(model: Model, j: int, language: str) -> list[dict[str, str]]:
    """Return one path of broader concepts, the top concept first."""
    vocabulary, uri = model.vocabulary, model.label(j).id
    path: list[dict[str, str]] = []
    visited = {uri}
    while vocabulary is not None and uri in vocabulary and len(path) < _DEPTH:
        above = [one for one in vocabulary[uri].broader if one in vocabulary and one not in visited]
        if not above:
            break
        uri = above[0]
        visited.add(uri)
        path.append({"uri": uri, "label": vocabulary.name(uri, language)})
    return path[::-1]


def described(served: ServedModel, language: str, j: int, score: float) -> dict[str, Any]:
    """Return a suggested label with all details."""
    return {
        **_named(served.model, j, language),
        "score": round(score, 6),
        "training_documents": int(served.model.label_frequency[j]),
        "broader": broader(served.model, j, language),
    }
