"""Vocabularies of labels: what concepts are called, in which languages, and how they are ordered.

Files are TSV (`<uri>⇥label⇥notation`), CSV (`uri,label_en,label_fi,…,notation`) or SKOS in any syntax of RDF, plain or
compressed. `lightdxml.data.skos` reads RDF.
"""

from __future__ import annotations

import csv
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from lightdxml.data.errors import DataError, excerpt
from lightdxml.data.files import base_name, text_lines

# Names by language; the key is empty where a file names no language.
Names = Mapping[str, tuple[str, ...]]

_log = logging.getLogger("lightdxml")
_ANY = ""
_LABEL = "label"
_LONGEST_NAME, _MOST_NAMES = 1000, 1000
# Names of one concept that are looked for in texts.
_MOST_TEXTS = 16
_SUFFIXES = {
    ".ttl": "turtle", ".n3": "n3", ".nt": "nt", ".nq": "nquads", ".trig": "trig",
    ".rdf": "xml", ".xml": "xml", ".owl": "xml", ".skos": "xml", ".jsonld": "json-ld", ".json": "json-ld",
}  # fmt: skip


@dataclass(frozen=True)
class Concept:
    """A label of a vocabulary.

    Attributes
    ----------
    uri
        What identifies it; any string without spaces.
    names
        Preferred name and then all others, by language.
    notation
        Its number in a classification; empty if it has none.
    broader
        URIs of the concepts above it.
    """

    uri: str
    names: Names
    notation: str = ""
    broader: tuple[str, ...] = ()


@dataclass(frozen=True)
class Vocabulary:
    """Concepts in the order of a file.

    Parameters
    ----------
    concepts
        The concepts; every URI occurs once.

    Examples
    --------
    >>> cat = Concept("urn:cat", {"en": ("cat", "house cat"), "fi": ("kissa",)}, broader=("urn:animal",))
    >>> vocabulary = Vocabulary([Concept("urn:animal", {"en": ("animal",)}), cat])
    >>> vocabulary.name("urn:cat", "fi"), vocabulary.names("urn:cat", "en"), sorted(vocabulary.branch("urn:animal"))
    ('kissa', ('cat', 'house cat'), ['urn:animal', 'urn:cat'])
    """

    concepts: Sequence[Concept]
    _positions: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        positions: dict[str, int] = {}
        for i, concept in enumerate(self.concepts):
            if concept.uri in positions:
                raise ValueError(f"the vocabulary has two concepts {concept.uri}: a URI names one concept")
            positions[concept.uri] = i
        object.__setattr__(self, "_positions", positions)

    def __len__(self) -> int:
        return len(self.concepts)

    def __contains__(self, uri: object) -> bool:
        return uri in self._positions

    def __getitem__(self, uri: str) -> Concept:
        return self.concepts[self._positions[uri]]

    @classmethod
    def load(cls, path: str | Path, *, encoding: str = "utf-8") -> Vocabulary:
        """Read a vocabulary; the ending of the file's name tells TSV, CSV and the syntaxes of RDF apart.

        Parameters
        ----------
        path
            The file, plain or compressed.
        encoding
            The encoding of TSV and CSV.
        """
        from lightdxml.data.options import ReadOptions

        ReadOptions(encoding=encoding)
        path = Path(path)
        suffix = Path(base_name(path)).suffix
        if suffix in _SUFFIXES:
            from lightdxml.data.skos import read

            concepts = read(path, _SUFFIXES[suffix])
        else:
            lines = _read_csv(path, encoding) if suffix == ".csv" else _read_tsv(path, encoding)
            concepts = _each_once(path, lines)
        if not concepts:
            raise DataError(path, "no concepts", "a URI and a label per line, or concepts of SKOS")
        vocabulary = cls(concepts)
        if (uri := vocabulary.cycle()) is not None:
            _log.info("%s: the hierarchy has a cycle, which does no harm: %s is below itself", path, uri)
        return vocabulary

    @cached_property
    def languages(self) -> list[str]:
        """The languages of names, the most frequent one first; an empty one where files name none."""
        counts = Counter(language for concept in self.concepts for language in concept.names)
        return [language for language, _ in sorted(counts.items(), key=lambda one: (-one[1], one[0]))]

    @cached_property
    def has_hierarchy(self) -> bool:
        """Whether a concept has a broader one."""
        return any(concept.broader for concept in self.concepts)

    def name(self, uri: str, language: str | None = None) -> str:
        """Return the preferred name of a concept in a language, or in another; its URI if it has none."""
        names = self.names(uri, language) or self.names(uri)
        return names[0] if names else uri

    def names(self, uri: str, language: str | None = None) -> tuple[str, ...]:
        """Return all names of a concept in a language, the preferred one first; None for its first language."""
        names = self[uri].names
        if language is None:
            return next((names[one] for one in self.languages if one in names), ())
        return names.get(language, names.get(_ANY, ()))

    def texts(self, uri: str, language: str | None = None) -> tuple[str, ...]:
        """Return the first names of a concept by which texts may call it: in one language, or in all of them."""
        if uri not in self:
            return ()
        if language:
            return self.names(uri, language)[:_MOST_TEXTS]
        names = dict.fromkeys(name for names in self[uri].names.values() for name in names)
        return tuple(names)[:_MOST_TEXTS]

    def all_labels(self, names: Sequence[str]) -> tuple[list[str], list[int]]:
        """Return the labels of data with this vocabulary, and where each of the data's own labels is among them.

        The concepts come first, in their order, then labels that are no concept. A label of the data is a concept if it
        is its URI or, as people write it, its preferred name.

        Examples
        --------
        >>> Vocabulary([Concept("urn:cat", {"en": ("cat",)})]).all_labels(["dog", "cat"])
        (['urn:cat', 'dog'], [1, 0])
        """
        labels = dict(self._positions)
        places = [labels.setdefault(uri, len(labels)) for uri in self.uris(names)]
        return list(labels), places

    def uris(self, names: Iterable[str]) -> list[str]:
        """Return the URIs of labels of data; a label that is no concept stays as it is."""
        return [self._uri(name) for name in names]

    def _uri(self, name: str) -> str:
        uri = name.removeprefix("<").removesuffix(">")
        if uri in self:
            return uri
        owners = self._owners.get(name, ())
        if len(owners) > 1:
            raise ValueError(f"the label {name!r} is the name of {owners[0]} and {owners[1]}: give URIs as labels")
        return owners[0] if owners else name

    @cached_property
    def _owners(self) -> dict[str, list[str]]:
        """The concepts that have a preferred name, in any language."""
        owners: dict[str, list[str]] = {}
        for concept in self.concepts:
            for name in dict.fromkeys(names[0] for names in concept.names.values()):
                owners.setdefault(name, []).append(concept.uri)
        return owners

    @cached_property
    def _narrower(self) -> dict[str, list[str]]:
        below: dict[str, list[str]] = {}
        for concept in self.concepts:
            for uri in concept.broader:
                below.setdefault(uri, []).append(concept.uri)
        return below

    def branch(self, uri: str) -> set[str]:
        """Return a concept with all concepts below it; cycles do no harm."""
        if uri not in self:
            raise ValueError(f"the vocabulary has no concept {uri}")
        found, open_ends = {uri}, [uri]
        while open_ends:
            fresh = [one for one in self._narrower.get(open_ends.pop(), ()) if one not in found]
            found.update(fresh)
            open_ends.extend(fresh)
        return found

    def cycle(self) -> str | None:
        """Return a concept that is below itself, by whatever way; None if there is none.

        >>> Vocabulary([Concept("a", {"": ("a",)}, broader=("b",)), Concept("b", {"": ("b",)}, broader=("a",))]).cycle()
        'a'
        """
        # Concepts are left out one by one, once nothing above them is left. What remains is in a cycle, or below one.
        above = {one.uri: {uri for uri in one.broader if uri in self} for one in self.concepts}
        open_ends = [uri for uri, some in above.items() if not some]
        while open_ends:
            top = open_ends.pop()
            del above[top]
            for one in self._narrower.get(top, ()):
                if top in above[one]:
                    above[one].remove(top)
                    if not above[one]:
                        open_ends.append(one)
        visited, uri = set[str](), next(iter(above), None)
        while uri is not None and uri not in visited:
            visited.add(uri)
            uri = min(above[uri])
        return uri

    def to_json(self) -> list[dict[str, Any]]:
        """Return the concepts as JSON has them."""
        return [
            {
                "uri": one.uri,
                "names": {language: list(names) for language, names in one.names.items()},
                **({"notation": one.notation} if one.notation else {}),
                **({"broader": list(one.broader)} if one.broader else {}),
            }
            for one in self.concepts
        ]

    @classmethod
    def from_json(cls, content: Any) -> Vocabulary:
        """Return the vocabulary that `to_json` described; raise a `ValueError` if it is damaged."""
        try:
            concepts = [
                Concept(
                    _string(one["uri"]),
                    {_string(language): tuple(map(_string, names)) for language, names in one["names"].items()},
                    _string(one.get("notation", "")),
                    tuple(map(_string, one.get("broader", ()))),
                )
                for one in content
            ]
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError("its vocabulary has another form") from error
        return cls(concepts)


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.30} is not a string")
    return value


def _each_once(path: Path, lines: Iterable[tuple[int, Concept]]) -> list[Concept]:
    """Return the concepts of lines; raise a `DataError` if one occurs twice."""
    first: dict[str, int] = {}
    concepts = []
    for number, concept in lines:
        if concept.uri in first:
            found = f"{concept.uri}, which is in line {first[concept.uri]} too"
            raise DataError(path, found, "each concept once", line=number)
        first[concept.uri] = number
        concepts.append(concept)
    return concepts


def _read_tsv(path: Path, encoding: str) -> Iterator[tuple[int, Concept]]:
    """Yield line and concept of lines `<uri>⇥label⇥notation`; the notation may be missing."""
    for number, line in text_lines(path, encoding):
        cells = [cell.strip() for cell in line.rstrip("\r\n").split("\t")]
        if not any(cells):
            continue
        if len(cells) not in (2, 3):
            expected = "a URI, a label and, if there is one, a notation, with tabs between them"
            raise DataError(path, excerpt(line), expected, line=number)
        uri, name = cells[0].removeprefix("<").removesuffix(">"), cells[1]
        yield number, _concept(path, number, uri, {_ANY: (name,)}, cells[2] if len(cells) == 3 else "")


def _read_csv(path: Path, encoding: str) -> Iterator[tuple[int, Concept]]:
    """Yield line and concept of a table with columns `uri`, `label_en` (and so on, or just `label`) and `notation`."""
    lines = text_lines(path, encoding)
    header = next(lines, (1, ""))
    reader = csv.reader((line for _, line in chain([header], lines)), strict=True)
    try:
        columns = [name.strip().lower() for name in next(reader, [])]
        languages = {i: name[len(_LABEL) + 1 :] for i, name in enumerate(columns) if _is_label(name)}
        if "uri" not in columns or not languages:
            raise DataError(path, excerpt(header[1]), "columns named uri and label_en, label_fi, …", line=1)
        at, notation = columns.index("uri"), columns.index("notation") if "notation" in columns else None
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(columns):
                found = f"{len(cells)} cells: {excerpt(','.join(cells))}"
                raise DataError(path, found, f"{len(columns)}, as in the header", line=reader.line_num)
            names = {language: (cells[i].strip(),) for i, language in languages.items() if cells[i].strip()}
            own = cells[notation].strip() if notation is not None else ""
            uri, line = cells[at].strip().removeprefix("<").removesuffix(">"), reader.line_num
            yield line, _concept(path, line, uri, names, own)
    except csv.Error as error:
        raise DataError(path, f"a malformed line ({error})", "balanced quotes", line=reader.line_num) from error


def _is_label(column: str) -> bool:
    return column == _LABEL or column.startswith(f"{_LABEL}_")


def _concept(path: Path, line: int, uri: str, names: Names, notation: str) -> Concept:
    if not uri or any(character.isspace() for character in uri):
        raise DataError(path, f"the URI {excerpt(uri)}", "a URI without spaces", line=line)
    checked = checked_names(names)
    if not checked:
        raise DataError(path, f"no label for {uri}", "a label after the URI", line=line)
    return Concept(uri, checked, notation)


def checked_names(names: Mapping[str, Iterable[str]]) -> Names:
    """Return names without empty ones and repeats; very long ones are cut, very many are left out."""
    kept: dict[str, tuple[str, ...]] = {}
    for language, some in names.items():
        own = dict.fromkeys(name for name in map(_shortened, some) if name)
        if own:
            kept[language] = tuple(own)[:_MOST_NAMES]
    return kept


def _shortened(name: str) -> str:
    return " ".join(name.split())[:_LONGEST_NAME].strip()
