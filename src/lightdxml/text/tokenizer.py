"""Texts to arrays of code points, and the role of each character in a word."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from lightdxml.data.dataset import Texts
from lightdxml.kernels import words
from lightdxml.text.languages import base_forms

# Scripts without spaces between words: Thai, Lao, Myanmar, Khmer, Kana, Han.
_WITHOUT_SPACES = (
    *((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3005, 0x3007), (0x3021, 0x3029)),
    *((0x3040, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xA9E0, 0xA9FF)),
    *((0xAA60, 0xAA7F), (0xF900, 0xFAFF), (0xFF66, 0xFF9D), (0x1B000, 0x1B16F), (0x20000, 0x3FFFF)),
)
# They select the shape of the character before, mostly of an emoji; the word stays the same.
_VARIATION_SELECTORS = slice(0xFE00, 0xFE0F + 1)
_HANGUL_JAMO = slice(0x1100, 0x11FF + 1)
# Code points from here on are selectors, tags and private use, not characters of words.
_ASSIGNED = 0x40000
_BASIC = 0x10000
# Without it, every thread would make the table that all of them need first.
_making_table = Lock()
_CODE_POINTS = 0x110000
_LONGEST = 2**31 - 1
_CHUNK_DOCUMENTS = 2048
_CHUNK_CHARACTERS = 1 << 19


@dataclass(frozen=True)
class Fields:
    """Titles and bodies of documents; nothing is copied. With a language, words are in their base form."""

    bodies: Sequence[str]
    titles: Sequence[str] | None
    language: str = ""

    @classmethod
    def of(cls, texts: Texts | Sequence[str], titles: bool = True, language: str = "") -> Fields:
        """Return the fields of texts, with or without their titles."""
        if isinstance(texts, str):
            raise ValueError("the texts are a single string: give a list of texts")
        if isinstance(texts, Texts):
            return cls(texts.bodies, texts.titles if titles else None, language)
        return cls(texts, None, language)

    def _text(self, text: str) -> str:
        return base_forms(self.language, text) if self.language else text

    def __len__(self) -> int:
        return len(self.bodies)

    def chunks(self) -> list[tuple[int, int]]:
        """Cut the documents into ranges by count and length. The ranges do not depend on the number of threads.

        >>> Fields.of(["a cat"] * 5000).chunks()
        [(0, 2048), (2048, 4096), (4096, 5000)]
        """
        cuts, characters = [0], 0
        for i in range(len(self)):
            length = self._length(i)
            if i > cuts[-1] and (characters + length > _CHUNK_CHARACTERS or i - cuts[-1] == _CHUNK_DOCUMENTS):
                cuts.append(i)
                characters = 0
            characters += length
        return list(zip(cuts, [*cuts[1:], len(self)], strict=True)) if len(self) else []

    def _length(self, i: int) -> int:
        body: object = self.bodies[i]
        title: object = "" if self.titles is None else self.titles[i]
        if not isinstance(body, str) or not isinstance(title, str):
            wrong = title if isinstance(body, str) else body
            raise ValueError(f"document {i} is {repr(wrong)[:40]}: each text must be a string")
        length = len(title) + 1 + len(body)
        if length > _LONGEST:
            raise ValueError(f"document {i} has {length:,} characters, more than {_LONGEST:,}: split it")
        return length

    def document(self, i: int) -> str:
        """Return the normalized text of a document, with the title first."""
        body = normalize(self._text(self.bodies[i]))
        return body if self.titles is None else f"{normalize(self._text(self.titles[i]))}\n{body}"

    def codes(self, start: int, stop: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Return the code points of documents, and the bounds of titles and bodies (see `kernels.words`)."""
        parts = []
        for i in range(start, stop):
            parts.append("" if self.titles is None else f"{self._text(self.titles[i])}\n")
            parts.append(self._text(self.bodies[i]))
        joined, bounds = join(parts)
        codes = code_points(joined)
        if joined.isascii():
            return codes, bounds
        awkward = np.empty(stop - start, np.bool_)
        words.find_awkward(codes, bounds, characters(codes), awkward)
        if not awkward.any():
            return codes, bounds
        for i in np.flatnonzero(awkward).tolist():
            parts[2 * i : 2 * i + 2] = normalize(parts[2 * i]), normalize(parts[2 * i + 1])
        joined, bounds = join(parts)
        return code_points(joined), bounds


def join(parts: Sequence[str]) -> tuple[str, NDArray[np.int64]]:
    """Join strings; return the result and the start of each part, with the end as the last entry."""
    bounds = np.zeros(len(parts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=bounds[1:])
    return "".join(parts), bounds


def code_points(text: str) -> NDArray[np.uint32]:
    """Return the code points of a string, including lone surrogates."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def normalize(text: str) -> str:
    """Return a text in lower case and in Unicode's normal form C."""
    text = text.lower()
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def characters(codes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return a table for these code points: lower case, role in a word, whether they are awkward (see `kernels.words`).

    A table of the basic plane, enough for most texts, is made in a quarter of the time.
    """
    with _making_table:
        return _characters(_BASIC if codes.max(initial=0) < _BASIC else _ASSIGNED)


@lru_cache(maxsize=2)
def _characters(assigned: int) -> NDArray[np.uint32]:
    """Return the table of the code points up to this one; those beyond it are in no word.

    Words consist of alphanumeric characters and underscores, as in scikit-learn, and of marks: without them, words of
    Hindi or Tamil would fall apart.
    """
    alphabet = np.arange(assigned, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    categories = np.frombuffer("".join(map(unicodedata.category, alphabet)).encode(), np.uint8)[::2]
    kinds = np.fromiter(map(str.isalnum, alphabet), np.bool_, assigned).astype(np.uint32)
    kinds[ord("_")] = words.LETTER
    letters, marks = (categories == ord("L")) | (categories == ord("N")), categories == ord("M")
    for first, last in _WITHOUT_SPACES:
        part = slice(first, last + 1)
        digits = np.fromiter(map(str.isdecimal, alphabet[part]), np.bool_)
        kinds[part][letters[part] & ~digits] = words.SIGN
    kinds[marks] = words.MARK
    kinds[_VARIATION_SELECTORS] = words.OTHER
    # The lower case of the dotted capital I has two characters; that of sigma depends on its position in the word.
    lower = code_points(alphabet.replace("İ", "i").replace("Σ", "σ").lower())
    composed = np.fromiter((not unicodedata.is_normalized("NFC", c) for c in alphabet), np.bool_, assigned)
    awkward = marks | composed
    awkward[[ord("İ"), ord("Σ")]] = True
    awkward[_HANGUL_JAMO] = True
    table = np.arange(_CODE_POINTS, dtype=np.uint32)
    table[:assigned] = lower | kinds << words.KIND | awkward.astype(np.uint32) * np.uint32(words.AWKWARD)
    table.flags.writeable = False
    return table


def term_at(text: str, codes: NDArray[np.uint32], table: NDArray[np.uint32], at: int, pair: bool) -> str:
    """Return the word of a normalized text at a position, or that word and the next with a space between them.

    >>> codes = code_points("the black cat")
    >>> term_at("the black cat", codes, characters(codes), 4, pair=True)
    'black cat'
    """
    begin, end, _ = words.next_word(codes, at, codes.size, table)
    if not pair:
        return text[begin:end]
    next_begin, next_end, _ = words.next_word(codes, end, codes.size, table)
    return f"{text[begin:end]} {text[next_begin:next_end]}"


def words_in(text: str) -> list[str]:
    """Return the words of a normalized text.

    >>> words_in("the black cat, 1 dog")
    ['the', 'black', 'cat', 'dog']
    """
    codes = code_points(text)
    table, end = characters(codes), 0
    found: list[str] = []
    while True:
        begin, end, _ = words.next_word(codes, end, codes.size, table)
        if begin == codes.size:
            return found
        found.append(text[begin:end])
