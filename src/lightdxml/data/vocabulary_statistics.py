"""Statistics of a vocabulary: how many concepts and names it has, in which languages, and its hierarchy."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from lightdxml.data.vocabulary import Vocabulary


@dataclass(frozen=True)
class VocabularyStatistics:
    """What a vocabulary contains.

    Attributes
    ----------
    concepts, names
        Number of concepts, and of their names in all languages, preferred and alternative ones.
    languages
        Number of concepts that have a name in each language; the key is empty where a file names no language.
    notations
        Number of concepts with a notation.
    narrower
        Number of concepts that are below another one.
    ambiguous
        Number of concepts whose preferred name another concept has too.
    cycle
        A concept that is below itself; None if there is none.
    """

    concepts: int
    names: int
    languages: dict[str, int]
    notations: int
    narrower: int
    ambiguous: int
    cycle: str | None


def describe(vocabulary: Vocabulary) -> VocabularyStatistics:
    """Return the statistics of a vocabulary.

    Examples
    --------
    >>> from lightdxml.data.vocabulary import Concept
    >>> animal, cat = Concept("urn:a", {"en": ("animal",)}), Concept("urn:c", {"en": ("cat", "kitty")}, "", ("urn:a",))
    >>> found = describe(Vocabulary([animal, cat]))
    >>> found.concepts, found.names, found.narrower, found.cycle
    (2, 3, 1, None)
    """
    concepts = vocabulary.concepts
    counts = Counter(language for one in concepts for language in one.names)
    preferred = [{names[0] for names in one.names.values()} for one in concepts]
    owners = Counter(name for names in preferred for name in names)
    return VocabularyStatistics(
        concepts=len(concepts),
        names=sum(len(names) for one in concepts for names in one.names.values()),
        languages={language: counts[language] for language in vocabulary.languages},
        notations=sum(bool(one.notation) for one in concepts),
        narrower=sum(any(uri in vocabulary for uri in one.broader) for one in concepts),
        ambiguous=sum(any(owners[name] > 1 for name in names) for names in preferred),
        cycle=vocabulary.cycle(),
    )
