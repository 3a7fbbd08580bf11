"""Whether names of labels are words, or only ids."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

# Names and documents that are compared, and the share of names that must have a word in common with the documents.
_NAMES, _TEXTS, _SHARE = 2000, 5000, 0.1
_WORD = re.compile(r"\w\w+")
_URI = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:\S+")


def are_words(names: Sequence[str], known: AbstractSet[str]) -> bool:
    """Return whether names of labels share words with documents; ids and URIs do not.

    `known` are the words of documents: of every `sample_step`-th one.

    >>> known = words_of("A cat and a dog n01")
    >>> are_words(["cat", "big dog"], known), are_words(["n01", "urn:a"], known)
    (True, False)
    """
    some = names[:: max(1, len(names) // _NAMES)]
    shared = sum(not known.isdisjoint(words_of(name)) for name in some if not _URI.fullmatch(name))
    return shared >= _SHARE * len(some) and shared > 0


def sample_step(n_documents: int) -> int:
    """Return how far apart the documents are whose words are compared.

    >>> sample_step(100), sample_step(1_000_000)
    (1, 200)
    """
    return max(1, n_documents // _TEXTS)


def sample_words(texts: Sequence[str], rows: Iterable[int]) -> frozenset[str]:
    """Return the words of some texts."""
    return frozenset(word for row in rows for word in words_of(texts[row]))


def words_of(text: str) -> set[str]:
    """Return the words of a text, without those that are a number or a code: a letter and a number."""
    return {word for word in _WORD.findall(text.lower()) if sum(map(str.isalpha, word)) > 1}


def is_word(name: str) -> bool:
    """Return whether a name is a single word.

    >>> is_word("cat"), is_word("a cat"), is_word("")
    (True, False, False)
    """
    return _WORD.fullmatch(name.lower()) is not None
