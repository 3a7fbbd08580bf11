"""Whether names of labels are words, or only ids."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Names and documents that are compared, and the share of names that must have a word in common with the documents.
_NAMES, _TEXTS, _SHARE = 2000, 5000, 0.1
_WORD = re.compile(r"\w\w+")
_URI = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:\S+")


def are_words(names: Sequence[str], texts: Sequence[str]) -> bool:
    """Return whether names of labels share words with documents; ids and URIs do not.

    >>> are_words(["cat", "big dog"], ["A cat and a dog"]), are_words(["n01", "urn:a"], ["A cat and a dog n01"])
    (True, False)
    """
    known = {word for i in range(0, len(texts), max(1, len(texts) // _TEXTS)) for word in _words(texts[i])}
    some = names[:: max(1, len(names) // _NAMES)]
    shared = sum(not known.isdisjoint(_words(name)) for name in some if not _URI.fullmatch(name))
    return shared >= _SHARE * len(some) and shared > 0


def _words(text: str) -> set[str]:
    """Return the words of a text, without those that are a number or a code: a letter and a number."""
    return {word for word in _WORD.findall(text.lower()) if sum(map(str.isalpha, word)) > 1}


def is_word(name: str) -> bool:
    """Return whether a name is a single word.

    >>> is_word("cat"), is_word("a cat"), is_word("")
    (True, False, False)
    """
    return _WORD.fullmatch(name.lower()) is not None
