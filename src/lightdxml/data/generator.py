"""Data sets made up, of any size, that can be learnt: for trials of time and memory where no real set is at hand.

Labels belong to topics, and topics to themes, of which they have some of their words. A document is about a topic:
most of its labels are the topic's, and its words are those of its labels, those of the topic, and noise. Frequencies
of labels and of words fall as Zipf says; every label has at least one training document. Documents are made in chunks
that know nothing of each other, so nothing is ever held whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.data import registry, xc_text
from lightdxml.data.save import stale
from lightdxml.progress import Progress

_CHUNK = 8192
# Topics a theme, labels a topic; words that a theme, a topic and a label have.
_THEME, _TOPIC = 40, 8
_THEME_WORDS, _TOPIC_WORDS, _OWN_WORDS = 200, 8, 4
# What a label of the topic's is drawn with, another one being anything; and a topic's word being one of its theme's,
# and an own word one of its topic's.
_OF_TOPIC, _SHARED = 0.9, 0.5
# Zipf's exponents of labels and words, and by how much the first ranks are levelled.
_LABEL_EXPONENT, _WORD_EXPONENT, _LEVELLED = 0.6, 1.0, 10
# Of words that are no noise, the share that belong to labels, not to the topic.
_OF_LABELS = 0.5
_WORDS_OF_TITLES, _WORDS_OF_TEXTS = 7.0, 75.0
# So often is it tried how many labels to draw, as some of them come twice.
_TRIALS, _FEWEST_NEW = 12, 0.02


@dataclass(frozen=True)
class Recipe:
    """What to make.

    Attributes
    ----------
    documents, test_documents
        How many to train on, and how many to test with.
    labels, words
        How many there are: L and V.
    labels_per_document, words_per_document
        On average; words with those that come twice.
    noise
        The share of words that say nothing.
    seed
        The same recipe gives the same data, to the byte.

    Examples
    --------
    >>> Recipe(1000, 200, 50, 300).labels_per_document
    5.0
    >>> Recipe(0, 200, 50, 300)
    Traceback (most recent call last):
    ValueError: documents is 0: it must be a whole number from 1
    """

    documents: int
    test_documents: int
    labels: int
    words: int
    labels_per_document: float = 5.0
    words_per_document: float = _WORDS_OF_TITLES
    noise: float = 0.3
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("documents", 1), ("test_documents", 0), ("labels", 1), ("words", 1), ("seed", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} is {value!r}: it must be a whole number from {least}")
        for name in ("labels_per_document", "words_per_document"):
            if not 1 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)!r}: it must be a number from 1")
        if not 0 <= self.noise <= 1:
            raise ValueError(f"noise is {self.noise!r}: it must lie from 0 to 1")
        if self.labels > self.documents * self.labels_per_document:
            most = math.floor(self.documents * self.labels_per_document)
            raise ValueError(
                f"labels is {self.labels}: {self.documents} documents have places for {most} of them, so ask for more"
                f" documents, more labels a document, or fewer labels"
            )
        if self.labels_per_document > self.labels:
            raise ValueError(
                f"labels_per_document is {self.labels_per_document:g}: it must be at most the number of labels, which"
                f" is {self.labels}"
            )


def like(name: str) -> Recipe:
    """Return a recipe with the sizes of a data set of the Extreme Classification repository.

    >>> recipe = like("AmazonTitles-670K")
    >>> recipe.documents, recipe.labels, recipe.words, recipe.labels_per_document
    (485176, 670091, 66666, 5.39)
    """
    entry = registry.find(name)
    words = _WORDS_OF_TITLES if "titles" in entry.name.lower() else _WORDS_OF_TEXTS
    return Recipe(entry.n_train, entry.n_test, entry.n_labels, entry.n_features, entry.labels_per_point, words)


def make(recipe: Recipe, folder: Path, progress: Progress | None = None, *, overwrite: bool = False) -> Path:
    """Write `train.txt` and, if there are documents to test with, `test.txt` into a folder.

    Examples
    --------
    >>> import tempfile
    >>> from lightdxml.data import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = load(make(Recipe(100, 20, 30, 200), Path(folder) / "made"))
    ...     data.train.X.shape, data.test.Y.shape
    ((100, 200), (20, 30))
    """
    left = stale(folder, overwrite)
    written = []
    progress = progress or Progress(show=False)
    world = _World.of(recipe)
    for number, (part, n) in enumerate((("train", recipe.documents), ("test", recipe.test_documents))):
        if n == 0:
            continue
        written.append(folder / f"{part}.txt")
        with progress.phase(part, n) as bar:

            def chunks(number: int = number, n: int = n) -> Iterator[tuple[csr_matrix, csr_matrix]]:
                for start in range(0, n, _CHUNK):
                    stop = min(start + _CHUNK, n)
                    yield documents(recipe, world, number, start, stop)
                    bar.advance(stop - start)

            xc_text.write_chunks(written[-1], (n, recipe.words, recipe.labels), chunks())
    for path in left:
        if path not in written:
            path.unlink()
    return folder


@dataclass(frozen=True)
class _World:
    """What all documents share.

    Attributes
    ----------
    ids
        The number by which each label is known; inside, labels stand topic by topic.
    topics, ends
        The topic of each label, and where each topic's labels end.
    label_ends, word_ends
        Chances of labels and of words, summed up.
    topic_words, own_words
        The words of each topic and of each label.
    weights
        What a word counts: rare ones more.
    more
        How many labels are drawn for a document besides those that it must have, on average: in training, in testing.
    """

    ids: NDArray[np.int32]
    topics: NDArray[np.int32]
    ends: NDArray[np.int64]
    label_ends: NDArray[np.float64]
    word_ends: NDArray[np.float64]
    topic_words: NDArray[np.int32]
    own_words: NDArray[np.int32]
    weights: NDArray[np.float32]
    more: tuple[float, float] = (0.0, 0.0)

    @staticmethod
    def of(recipe: Recipe) -> _World:
        rng = np.random.default_rng([recipe.seed, 0])
        n, V = recipe.labels, recipe.words
        n_topics = max(1, n // _TOPIC)
        cuts = np.sort(rng.integers(0, n + 1, n_topics - 1))
        ends = np.concatenate([cuts, [n]]).astype(np.int64)
        topics = np.searchsorted(ends, np.arange(n), side="right").astype(np.int32)
        chances = (rng.permutation(n) + _LEVELLED) ** -_LABEL_EXPONENT
        falling = (np.arange(V) + _LEVELLED) ** -_WORD_EXPONENT
        # Topics have words of all ranks, but not the most frequent ones alone: the square root is flatter.
        flat = np.cumsum(np.sqrt(falling))
        n_themes = -(-n_topics // _THEME)
        theme_words = _drawn(flat, rng.random((n_themes, _THEME_WORDS)))
        topic_words = _drawn(flat, rng.random((n_topics, _TOPIC_WORDS)))
        shared = rng.random((n_topics, _TOPIC_WORDS)) < _SHARED
        picked = rng.integers(0, _THEME_WORDS, (n_topics, _TOPIC_WORDS))
        topic_words[shared] = theme_words[np.arange(n_topics)[:, None] // _THEME, picked][shared]
        own_words = rng.integers(0, V, (n, _OWN_WORDS)).astype(np.int32)
        shared = rng.random((n, _OWN_WORDS)) < _SHARED
        picked = rng.integers(0, _TOPIC_WORDS, (n, _OWN_WORDS))
        own_words[shared] = topic_words[topics[:, None], picked][shared]
        weights = np.log(1 + falling.sum() / falling / recipe.words_per_document)
        world = _World(
            rng.permutation(n).astype(np.int32), topics, ends, np.cumsum(chances), np.cumsum(falling), topic_words,
            own_words, weights.astype(np.float32),
        )  # fmt: skip
        return replace(world, more=(_more(recipe, world, 0), _more(recipe, world, 1)))


def _more(recipe: Recipe, world: _World, part: int) -> float:
    """Return how many labels to draw: more than are wanted, as some come twice. Found on the first documents."""
    numbers = np.arange(min(_CHUNK, recipe.documents))
    more, slope, before = 0.0, 1.0, (0.0, 0.0)
    for trial in range(_TRIALS):
        rng = np.random.default_rng([recipe.seed, 2, part])
        rows, labels = _labels(recipe, world, rng, numbers, more, training=part == 0)
        found = len(np.unique(rows * recipe.labels + labels)) / len(numbers)
        # The more there are, the fewer of those drawn are new.
        if trial and more != before[0]:
            slope = float(np.clip((found - before[1]) / (more - before[0]), _FEWEST_NEW, 1.0))
        before = more, found
        more = max(0.0, more + (recipe.labels_per_document - found) / slope)
    return more


def _drawn(ends: NDArray[np.float64], chances: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return what even chances from 0 to 1 draw from chances that are summed up."""
    found = np.searchsorted(ends, chances * ends[-1], side="right")
    drawn: NDArray[np.int32] = np.minimum(found, len(ends) - 1).astype(np.int32)
    return drawn


def documents(recipe: Recipe, world: _World, part: int, start: int, stop: int) -> tuple[csr_matrix, csr_matrix]:
    """Return features and labels of some documents of the training part (0) or of the test part (1)."""
    rng = np.random.default_rng([recipe.seed, 1, part, start])
    rows, labels = _labels(recipe, world, rng, np.arange(start, stop), world.more[part], training=part == 0)
    X = _features(recipe, world, rng, rows, labels, stop - start)
    shape = (stop - start, recipe.labels)
    Y = csr_matrix((np.ones(len(rows), dtype=np.float32), (rows, world.ids[labels])), shape=shape)
    Y.sum_duplicates()
    Y.data[:] = 1
    return X, Y


def _labels(
    recipe: Recipe, world: _World, rng: np.random.Generator, numbers: NDArray[np.int64], more: float, *, training: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return pairs of document (by place) and label (by topic); in training every label has a document of its own."""
    n, N = len(numbers), recipe.documents
    due = np.zeros(n, dtype=np.int64)
    first = _drawn(world.label_ends, rng.random(n)).astype(np.int64)
    if training:
        # Labels are handed out topic by topic to documents in a scattered order.
        turn = (numbers * _stride(N)) % N
        begin, end = turn * recipe.labels // N, (turn + 1) * recipe.labels // N
        due = end - begin
        first = np.where(due > 0, begin, first)
    wanted = 1 + rng.poisson(more, n)
    rows = np.repeat(np.arange(n), wanted)
    topic = world.topics[first[rows]]
    bounds = np.concatenate([[0.0], world.label_ends])
    low, high = bounds[np.concatenate([[0], world.ends])[topic]], bounds[world.ends[topic]]
    chances = rng.random(len(rows))
    inside = np.searchsorted(world.label_ends, low + chances * (high - low), side="right")
    anywhere = _drawn(world.label_ends, chances)
    drawn = np.where(rng.random(len(rows)) < _OF_TOPIC, np.minimum(inside, recipe.labels - 1), anywhere)
    starts = np.concatenate([[0], np.cumsum(wanted)[:-1]])
    drawn[starts] = first
    extra_rows = np.repeat(np.arange(n), np.maximum(due - 1, 0))
    extra = first[extra_rows] + 1 + _counting(np.maximum(due - 1, 0))
    return np.concatenate([rows, extra_rows]), np.concatenate([drawn, extra])


def _counting(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return 0, 1, … for each of these counts.

    >>> _counting(np.array([2, 0, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def _stride(n: int) -> int:
    """Return a step by which one goes through n places in a scattered order, coming to each once."""
    step = max(1, round(n * 0.618))
    while math.gcd(step, n) != 1:
        step += 1
    return step


def _features(
    recipe: Recipe,
    world: _World,
    rng: np.random.Generator,
    rows: NDArray[np.int64],
    labels: NDArray[np.int64],
    n: int,
) -> csr_matrix:
    """Return TF-IDF of words of labels, words of topics and noise; rows of length 1."""
    counts = 1 + rng.poisson(recipe.words_per_document - 1, n)
    of = np.repeat(np.arange(n), counts)
    order = np.argsort(rows, kind="stable")
    per_document = np.bincount(rows, minlength=n)
    begins = np.cumsum(per_document) - per_document
    # The label that each word stands for: any one of the document's.
    which = labels[order][begins[of] + (rng.random(len(of)) * per_document[of]).astype(np.int64)]
    words = world.own_words[which, rng.integers(0, _OWN_WORDS, len(of))]
    source = rng.random(len(of))
    topical = world.topic_words[world.topics[which], rng.integers(0, _TOPIC_WORDS, len(of))]
    words = np.where(source < recipe.noise + (1 - recipe.noise) * (1 - _OF_LABELS), topical, words)
    words = np.where(source < recipe.noise, _drawn(world.word_ends, rng.random(len(of))), words)
    X = csr_matrix((np.ones(len(of), dtype=np.float32), (of, words)), shape=(n, recipe.words))
    X.sum_duplicates()
    X.data = (1 + np.log(X.data)) * world.weights[X.indices]
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(lengths, np.diff(X.indptr)).astype(np.float32)
    return csr_matrix(X, dtype=np.float32)
