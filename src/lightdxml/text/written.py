"""The terms of a text as they are written in it. With a language, the vocabulary has base forms of words instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from lightdxml.data.dataset import Texts
from lightdxml.kernels import words
from lightdxml.text import tokenizer
from lightdxml.text.languages import base_forms
from lightdxml.text.tfidf import TextOptions
from lightdxml.text.tokenizer import Fields


class Word(NamedTuple):
    """A word of a text: in the form of the vocabulary, as it is written, in lower case, and where."""

    term: str
    written: str
    begin: int
    end: int


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
            for one in _terms(text, settings.language):
                forms.setdefault(one.term, one.written)
        found.append(forms)
    return found


def positions(text: str, terms: Mapping[str, str], settings: TextOptions) -> dict[str, list[tuple[int, int]]]:
    """Return where terms are in a text, by their written form: first character, and the one after the last.

    `terms` is what `written_terms` returns for a document with this text.

    >>> settings = TextOptions(language="en")
    >>> positions("Two Cats, one cat", written_terms(["Two Cats, one cat"], settings)[0], settings)["cats"]
    [(4, 8), (14, 17)]
    """
    found: dict[str, list[tuple[int, int]]] = {}
    for one in _terms(text, settings.language):
        if one.term in terms:
            found.setdefault(terms[one.term], []).append((one.begin, one.end))
    return found


def words_of(text: str, language: str = "") -> list[str]:
    """Return the words of a text in the form of the vocabulary.

    >>> words_of("Two Cats"), words_of("Two Cats", "en")
    (['two', 'cats'], ['two', 'cat'])
    """
    return [word.term for word in _words(text, language)]


def _terms(text: str, language: str) -> Iterator[Word]:
    """Yield the words of a text and, after its second word, each pair of neighbors."""
    previous: Word | None = None
    for word in _words(text, language):
        yield word
        if previous is not None:
            pair = f"{previous.term} {word.term}", f"{previous.written} {word.written}"
            yield Word(*pair, previous.begin, word.end)
        previous = word


def _words(text: str, language: str) -> Iterator[Word]:
    """Yield the words of a text."""
    known: dict[str, list[Word]] = {}
    for begin, end in _runs(text):
        run = text[begin:end]
        if run not in known:
            known[run] = _aligned(run, language)
        for word in known[run]:
            yield word._replace(begin=begin + word.begin, end=begin + word.end)


def _runs(text: str) -> list[tuple[int, int]]:
    """Return the parts of a text that no word reaches beyond: without punctuation and spaces."""
    codes = tokenizer.code_points(text)
    inside = tokenizer.characters(codes)[codes] >> words.KIND & 3 != words.OTHER
    bounds = np.flatnonzero(np.diff(inside, prepend=False, append=False)).tolist()
    return list(zip(bounds[::2], bounds[1::2], strict=True))


def _aligned(run: str, language: str) -> list[Word]:
    """Return the words of a run with their written forms and their places in it."""
    normal = tokenizer.normalize(run)
    written = tokenizer.words_in(normal)
    terms = tokenizer.words_in(tokenizer.normalize(base_forms(language, run))) if language else written
    if len(terms) != len(written) or len(normal) != len(run):
        # A base form may be several words, or one letter, which is no word; or lower case has other characters.
        same = written if len(terms) == len(written) else [normal] * len(terms)
        return [Word(term, one, 0, len(run)) for term, one in zip(terms, same, strict=True)]
    found, end = list[Word](), 0
    for term, one in zip(terms, written, strict=True):
        begin = normal.index(one, end)
        end = begin + len(one)
        found.append(Word(term, one, begin, end))
    return found
