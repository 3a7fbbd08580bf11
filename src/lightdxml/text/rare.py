"""Words that are too rare for the vocabulary: they join it when further documents have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lightdxml.data.dataset import Texts
from lightdxml.text import tfidf
from lightdxml.text.terms import Corpus, by_place, document_counts, occurrences
from lightdxml.text.tfidf import TextOptions, Vectorizer

if TYPE_CHECKING:
    pass

# Words that join a vocabulary may double the largest number of features.
_LARGEST = 2
# Characters of a word, at most: longer ones are data in a text.
_LONGEST = 1000


class Rare(NamedTuple):
    """A rare word: the number of documents that have it, how often it occurs in them, and one of these documents."""

    documents: int
    occurrences: int
    document: int


_NOWHERE = Rare(0, 0, 0)


@dataclass(frozen=True)
class RareWords:
    """Rare words, and how often a word must occur to join the vocabulary.

    Attributes
    ----------
    words
        The rare words.
    min_count
        Occurrences of a word in the vocabulary, at least.
    """

    words: dict[str, Rare]
    min_count: int = 1


class Joined(NamedTuple):
    """A word that joins the vocabulary: it, its number of documents, and where it occurred before."""

    word: str
    documents: int
    before: Rare | None


def rare_words(texts: Texts | Sequence[str], vectorizer: Vectorizer) -> RareWords:
    """Return the words of texts that are not in the vocabulary that was learned from them.

    Examples
    --------
    >>> texts = ["a black cat", "a white cat", "a cat"]
    >>> vectorizer, _ = tfidf.fit(texts)
    >>> rare_words(texts, vectorizer).words
    {'black': Rare(documents=1, occurrences=1, document=0), 'white': Rare(documents=1, occurrences=1, document=1)}
    """
    settings, found = vectorizer.settings, count_words(texts, vectorizer.settings)
    known = set(vectorizer.vocabulary)
    # If the vocabulary is full, rare words must become as frequent as its rarest one.
    is_full = len(known) >= settings.max_features
    counts = [found[word].occurrences for word in known if word in found] if is_full else []
    words = {word: rare for word, rare in found.items() if word not in known}
    return RareWords(words, min(counts, default=1))


def count_words(texts: Texts | Sequence[str], settings: TextOptions) -> dict[str, Rare]:
    """Return the words of texts, in the order of the alphabet, with the first document that has each.

    Words of more than 1,000 characters are left out.
    """
    corpus = Corpus.of(texts, replace(settings.form, pairs=False), None)
    terms = by_place(corpus.count().rows())
    counts, documents = (one.tolist() for one in (occurrences(terms), document_counts(terms)))
    places = (terms[:, 2] >> np.uint64(32)).tolist()
    found = {
        word: Rare(n, count, place)
        for word, n, count, place in zip(corpus.spell(terms), documents, counts, places, strict=True)
        if len(word) <= _LONGEST
    }
    return dict(sorted(found.items()))


def join(
    rare: RareWords, counted: Mapping[str, Rare], vectorizer: Vectorizer, first: int, names: Sequence[str] = ()
) -> tuple[list[Joined], RareWords]:
    """Return the words that join the vocabulary with new documents, and the words that are still rare.

    Parameters
    ----------
    rare
        Words that are rare so far.
    counted
        The words of the new documents, as `count_words` returns them. These documents are numbered from `first` on.
    vectorizer
        The vocabulary so far.
    first
        The number of documents so far.
    names
        Names whose words join the vocabulary however rare they are.

    Examples
    --------
    >>> known, before = Vectorizer(["cat"], np.ones(1, dtype=np.float32)), RareWords({"cow": Rare(1, 1, 5)})
    >>> joined, still = join(before, count_words(["a cat, a cow and a horse"], known.settings), known, 9)
    >>> [one.word for one in joined], list(still.words)
    (['cow'], ['and', 'horse'])
    >>> [one.word for one in join(before, {}, known, 9, ["a yak"])[0]]
    ['yak']
    """
    settings, known = vectorizer.settings, set(vectorizer.vocabulary)
    room, joined, still = _LARGEST * settings.max_features - len(known), list[Joined](), dict(rare.words)
    wanted = set(tfidf.words_of_names(names, settings))
    for word in sorted((counted.keys() | wanted) - known):
        before, new = rare.words.get(word), counted.get(word, _NOWHERE)
        earlier = before or Rare(0, 0, first + new.document)
        documents, count = earlier.documents + new.documents, earlier.occurrences + new.occurrences
        is_frequent = documents >= settings.min_df and count >= rare.min_count
        if (is_frequent or word in wanted) and len(joined) < room:
            joined.append(Joined(word, documents, before))
            still.pop(word, None)
        elif documents:
            still[word] = Rare(documents, count, earlier.document)
    return joined, RareWords(still, rare.min_count)


def with_joined(vectorizer: Vectorizer, joined: Sequence[Joined], n_documents: int) -> Vectorizer:
    """Return a vectorizer whose last features are these words, with the weights of their document frequencies.

    Examples
    --------
    >>> known = Vectorizer(["cat", "dog"], np.array([1, 2], dtype=np.float32))
    >>> with_joined(known, [Joined("cow", 2, None)], 10).vocabulary
    ['cat', 'dog', 'cow']
    """
    df = np.array([one.documents for one in joined], dtype=np.float64)
    idf = (np.log((1 + n_documents) / (1 + df)) + 1).astype(np.float32)
    words = [*vectorizer.vocabulary, *(one.word for one in joined)]
    return Vectorizer(words, np.append(vectorizer.idf, idf).astype(np.float32), vectorizer.settings)
