"""Concepts of SKOS, in any syntax of RDF that rdflib reads. Nothing is fetched: the file is all there is."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lightdxml.data.errors import DataError, excerpt
from lightdxml.data.files import reading
from lightdxml.data.vocabulary import Concept, checked_names

# References to other files, which a reader of XML might follow, and entities, which may grow without end.
_UNSAFE = (b"<!ENTITY", b"<!DOCTYPE")


def read(path: Path, syntax: str) -> list[Concept]:
    """Return the concepts that are not deprecated, in the order of their URIs."""
    with warnings.catch_warnings():
        # rdflib itself uses what its next version will not have.
        warnings.simplefilter("ignore", DeprecationWarning)
        return _concepts(_graph(path, syntax))


def _concepts(graph: Any) -> list[Concept]:
    from rdflib import URIRef
    from rdflib.namespace import OWL, RDF, SKOS

    deprecated = {uri for uri, _, value in graph.triples((None, OWL.deprecated, None)) if str(value).lower() == "true"}
    concepts = {uri for uri, _, _ in graph.triples((None, RDF.type, SKOS.Concept))}
    # Some files give no types. What has another type, such as the vocabulary itself, is no concept.
    concepts |= {uri for uri, _, _ in graph.triples((None, SKOS.prefLabel, None))} - _others(graph)
    above: dict[Any, set[Any]] = {}
    for uri, _, other in graph.triples((None, SKOS.broader, None)):
        above.setdefault(uri, set()).add(other)
    for uri, _, other in graph.triples((None, SKOS.narrower, None)):
        above.setdefault(other, set()).add(uri)
    found = []
    # A concept without a URI would get another id every time.
    for uri in sorted((uri for uri in concepts - deprecated if isinstance(uri, URIRef)), key=str):
        names: dict[str, list[str]] = {}
        for kind in (SKOS.prefLabel, SKOS.altLabel, SKOS.hiddenLabel):
            for language, name in sorted(_labels(graph, uri, kind)):
                names.setdefault(language, []).append(name)
        notation = min((str(value) for value in graph.objects(uri, SKOS.notation)), default="")
        broader = sorted(str(other) for other in above.get(uri, ()) if other in concepts)
        if names:
            found.append(Concept(str(uri), checked_names(names), notation, tuple(broader)))
    return found


def _others(graph: Any) -> set[Any]:
    """Return what has a preferred label and is no concept: vocabularies and collections."""
    from rdflib.namespace import RDF, SKOS

    kinds = (SKOS.ConceptScheme, SKOS.Collection, SKOS.OrderedCollection)
    return {uri for kind in kinds for uri, _, _ in graph.triples((None, RDF.type, kind))}


def _labels(graph: Any, uri: Any, kind: Any) -> Iterator[tuple[str, str]]:
    for value in graph.objects(uri, kind):
        yield (getattr(value, "language", None) or "").lower(), str(value)


def _graph(path: Path, syntax: str) -> Any:
    try:
        import rdflib
    except ImportError as error:
        raise ValueError('reading SKOS needs rdflib: pip install "lightdxml[skos]"') from error
    with reading(path) as stream:
        content = stream.read()
    if syntax == "xml" and any(mark in content for mark in _UNSAFE):
        raise DataError(path, "a document type with entities", "plain RDF: entities and external files are not read")
    if syntax == "xml" and b"\0" in content:
        raise DataError(path, "XML in UTF-16", "UTF-8: convert the file")
    if syntax == "json-ld" and _has_remote_context(content):
        raise DataError(path, "a @context on another server", "a @context in the file: nothing is fetched")
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(path, "text that is not UTF-8", "RDF in UTF-8: convert the file") from error
    # Concepts may lie in named graphs.
    graph = rdflib.Dataset(default_union=True)
    try:
        graph.parse(data=content, format=syntax, publicID=path.resolve().as_uri())
    except Exception as error:  # every syntax has its own kind
        raise DataError(path, f"no valid RDF ({excerpt(str(error), 100)})", f"RDF in the syntax {syntax}") from error
    return graph


def _has_remote_context(content: bytes) -> bool:
    import json

    def remote(node: Any) -> bool:
        if isinstance(node, list):
            return any(map(remote, node))
        if not isinstance(node, dict):
            return False
        return "@import" in node or named(node.get("@context")) or any(remote(value) for value in node.values())

    def named(context: Any) -> bool:
        return isinstance(context, str) or (isinstance(context, list) and any(map(named, context)))

    try:
        return remote(json.loads(content))
    except (ValueError, RecursionError):
        return True
