"""The terms of a text as they are written in it. With a language, the vocabulary has base forms of words instead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lightdxml.data.dataset import Texts
from lightdxml.kernels import words
from lightdxml.text import tokenizer
from lightdxml.text.languages import base_forms
from lightdxml.text.tfidf import TextOptions
from lightdxml.text.tokenizer import Fields


def written_terms(texts: Texts | Sequence[str], settings: TextOptions) -> list[dict[str, str]]:
    """Return, for every text, its words and pairs of words: the form of the vocabulary, and the first written one.

    >>> written_terms(["Two Cats, one cat"], TextOptions(language="en"))[0]["two cat"]
    'two cats'
    """
    fields = Fields.of(texts, settings.title_weight > 0)
    found: list[dict[str, str]] = []
    for i in range(len(fields)):
        forms: dict[str, str] = {}
        for text in ("" if fields.titles is None else fields.titles[i], fields.bodies[i]):
            previous: tuple[str, str] | None = None
            for term, written in _words(text, settings.language):
                forms.setdefault(term, written)
                if previous is not None:
                    forms.setdefault(f"{previous[0]} {term}", f"{previous[1]} {written}")
                previous = term, written
        found.append(forms)
    return found


def words_of(text: str, language: str = "") -> list[str]:
    """Return the words of a text in the form of the vocabulary.

    >>> words_of("Two Cats"), words_of("Two Cats", "en")
    (['two', 'cats'], ['two', 'cat'])
    """
    return [term for term, _ in _words(text, language)]


def _words(text: str, language: str) -> Iterator[tuple[str, str]]:
    """Yield the words of a text in the form of the vocabulary and as they are written, in lower case."""
    if not language:
        for word in tokenizer.words_in(tokenizer.normalize(text)):
            yield word, word
        return
    known: dict[str, list[tuple[str, str]]] = {}
    for run in _runs(text.lower()):
        if run not in known:
            known[run] = _aligned(run, language)
        yield from known[run]


def _runs(text: str) -> list[str]:
    """Return the parts of a text that no word reaches beyond: without punctuation and spaces."""
    codes = tokenizer.code_points(text)
    inside = tokenizer.characters(codes)[codes] >> words.KIND & 3 != words.OTHER
    bounds = np.flatnonzero(np.diff(inside, prepend=False, append=False)).tolist()
    return [text[first:last] for first, last in zip(bounds[::2], bounds[1::2], strict=True)]


def _aligned(run: str, language: str) -> list[tuple[str, str]]:
    """Return the words of a run with their written forms."""
    terms = tokenizer.words_in(tokenizer.normalize(base_forms(language, run)))
    written = tokenizer.words_in(tokenizer.normalize(run))
    if len(terms) != len(written):
        # A base form may be several words, or one letter, which is no word.
        written = [tokenizer.normalize(run)] * len(terms)
    return list(zip(terms, written, strict=True))
