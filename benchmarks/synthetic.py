"""Generate synthetic data sets of any size that can be learned, to measure time and memory.

Labels belong to topics and topics to themes. A label shares words with its topic, a topic with its theme. A document
is about one topic: most of its labels belong to that topic, and its words are those of its labels, those of the topic,
and noise. Label and word frequencies follow Zipf's law, and every label has at least one training document. Chunks of
documents are independent of each other: more documents do not change the first ones.

`python benchmarks/synthetic.py FOLDER --like AmazonTitles-670K` writes a data set that `lightdxml` reads.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from lightdxml.data import Dataset, Split, registry, save

_CHUNK = 8192
_TOPICS_PER_THEME, _LABELS_PER_TOPIC = 40, 8
_THEME_WORDS, _TOPIC_WORDS, _LABEL_WORDS = 200, 8, 4
# The chance that a further label is one of the topic.
_SAME_TOPIC = 0.9
# The chance that a word of a topic is one of its theme, and a word of a label one of its topic.
_SHARED = 0.5
# Zipf's exponents, and the offset that flattens the first ranks.
_LABEL_EXPONENT, _WORD_EXPONENT, _OFFSET = 0.6, 1.0, 10
# Of the words that are not noise, the share of label words; the rest are topic words.
_LABEL_WORD_SHARE = 0.5
_WORDS_PER_TITLE, _WORDS_PER_TEXT = 7.0, 75.0
# Steps of the search for the number of labels to draw, and the smallest slope that it assumes.
_SEARCH_STEPS, _SMALLEST_SLOPE = 12, 0.02


@dataclass(frozen=True)
class Recipe:
    """The size and shape of a synthetic data set.

    Attributes
    ----------
    documents, test_documents
        The number of training and test documents.
    labels, words
        The number of labels and of features.
    labels_per_document, words_per_document
        Averages; repeated words count.
    noise
        The share of words that are noise.
    seed
        The same recipe gives the same bytes.

    Examples
    --------
    >>> Recipe(1000, 200, 50, 300).labels_per_document
    5.0
    >>> Recipe(0, 200, 50, 300)
    Traceback (most recent call last):
    ValueError: documents is 0: it must be an integer of at least 1
    """

    documents: int
    test_documents: int
    labels: int
    words: int
    labels_per_document: float = 5.0
    words_per_document: float = _WORDS_PER_TITLE
    noise: float = 0.3
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("documents", 1), ("test_documents", 0), ("labels", 1), ("words", 1), ("seed", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} is {value!r}: it must be an integer of at least {least}")
        for name in ("labels_per_document", "words_per_document"):
            if not 1 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)!r}: it must be a finite number of at least 1")
        if not 0 <= self.noise <= 1:
            raise ValueError(f"noise is {self.noise!r}: it must be from 0 to 1")
        if self.labels > (most := math.floor(self.documents * self.labels_per_document)):
            raise ValueError(
                f"labels is {self.labels}: {self.documents} documents have at most {most} labels, so give more"
                " documents, more labels per document, or fewer labels"
            )
        if self.labels_per_document > self.labels:
            raise ValueError(
                f"labels_per_document is {self.labels_per_document:g}: it must be at most the number of labels,"
                f" {self.labels}"
            )


def like(name: str) -> Recipe:
    """Return a recipe with the sizes of a data set of the Extreme Classification repository.

    >>> recipe = like("AmazonTitles-670K")
    >>> recipe.documents, recipe.labels, recipe.words, recipe.labels_per_document
    (485176, 670091, 66666, 5.39)
    """
    entry = registry.find(name)
    words = _WORDS_PER_TITLE if "titles" in entry.name.lower() else _WORDS_PER_TEXT
    return Recipe(entry.n_train, entry.n_test, entry.n_labels, entry.n_features, entry.labels_per_point, words)


def make(recipe: Recipe, folder: Path, *, overwrite: bool = False) -> Path:
    """Write `train.txt` and, if there are test documents, `test.txt` to a folder, and return it."""
    model = _Model.create(recipe)
    train = _split(recipe, model, 0, recipe.documents)
    test = _split(recipe, model, 1, recipe.test_documents) if recipe.test_documents else None
    return save(Dataset(folder.name, train, test), folder, "xc", overwrite=overwrite)


def _split(recipe: Recipe, model: _Model, part: int, n: int) -> Split:
    chunks = [_documents(recipe, model, part, start, min(start + _CHUNK, n)) for start in range(0, n, _CHUNK)]
    X, Y = (vstack(side, format="csr") for side in zip(*chunks, strict=True))
    return Split(Y=Y, X=X)


@dataclass(frozen=True)
class _Model:
    """The generative model that all documents share. It orders labels by topic."""

    ids: NDArray[np.int32]  # the public id of each label
    topics: NDArray[np.int32]  # the topic of each label
    topic_ends: NDArray[np.int64]  # the end of each topic's range of labels
    label_cdf: NDArray[np.float64]  # cumulative frequencies
    word_cdf: NDArray[np.float64]
    topic_words: NDArray[np.int32]  # the words of each topic
    label_words: NDArray[np.int32]  # the words of each label
    weights: NDArray[np.float32]  # the inverse document frequency of each word
    further_labels: tuple[float, float] = (0.0, 0.0)  # labels to draw after the first, on average, in train and test

    @staticmethod
    def create(recipe: Recipe) -> _Model:
        rng = np.random.default_rng([recipe.seed, 0])
        n, V = recipe.labels, recipe.words
        n_topics = max(1, n // _LABELS_PER_TOPIC)
        topic_ends = np.concatenate([np.sort(rng.integers(0, n + 1, n_topics - 1)), [n]]).astype(np.int64)
        topics = np.searchsorted(topic_ends, np.arange(n), side="right").astype(np.int32)
        label_frequency = (rng.permutation(n) + _OFFSET) ** -_LABEL_EXPONENT
        word_frequency = (np.arange(V) + _OFFSET) ** -_WORD_EXPONENT
        # The square root is flatter: topics must not all have the same frequent words.
        flat_cdf = np.cumsum(np.sqrt(word_frequency))
        n_themes = -(-n_topics // _TOPICS_PER_THEME)
        theme_words = _sample(flat_cdf, rng.random((n_themes, _THEME_WORDS)))
        topic_words = _sample(flat_cdf, rng.random((n_topics, _TOPIC_WORDS)))
        _share_words(rng, topic_words, theme_words, np.arange(n_topics) // _TOPICS_PER_THEME)
        label_words = rng.integers(0, V, (n, _LABEL_WORDS)).astype(np.int32)
        _share_words(rng, label_words, topic_words, topics)
        weights = np.log(1 + word_frequency.sum() / word_frequency / recipe.words_per_document).astype(np.float32)
        ids = rng.permutation(n).astype(np.int32)
        cdfs = np.cumsum(label_frequency), np.cumsum(word_frequency)
        model = _Model(ids, topics, topic_ends, *cdfs, topic_words, label_words, weights)
        return replace(model, further_labels=(_count_to_draw(recipe, model, 0), _count_to_draw(recipe, model, 1)))


def _share_words(
    rng: np.random.Generator, words: NDArray[np.int32], parent_words: NDArray[np.int32], parents: NDArray[np.integer]
) -> None:
    """Replace some words of each row by words of its parent."""
    shared = rng.random(words.shape) < _SHARED
    picked = rng.integers(0, parent_words.shape[1], words.shape)
    words[shared] = parent_words[parents[:, None], picked][shared]


def _count_to_draw(recipe: Recipe, model: _Model, part: int) -> float:
    """Return the mean number of labels to draw per document.

    It exceeds the wanted number because labels repeat. A secant search on the first documents finds it.
    """
    rows = np.arange(min(_CHUNK, recipe.documents))
    count, slope, before = 0.0, 1.0, (0.0, 0.0)
    for step in range(_SEARCH_STEPS):
        rng = np.random.default_rng([recipe.seed, 2, part])
        pairs, labels = _labels(recipe, model, rng, rows, count, training=part == 0)
        found = len(np.unique(pairs * recipe.labels + labels)) / len(rows)
        if step and count != before[0]:
            slope = float(np.clip((found - before[1]) / (count - before[0]), _SMALLEST_SLOPE, 1.0))
        before = count, found
        count = max(0.0, count + (recipe.labels_per_document - found) / slope)
    return count


def _sample(cdf: NDArray[np.float64], uniform: NDArray[np.float64]) -> NDArray[np.int32]:
    """Map uniform random numbers from 0 to 1 to indices with these cumulative probabilities."""
    found = np.searchsorted(cdf, uniform * cdf[-1], side="right")
    sampled: NDArray[np.int32] = np.minimum(found, len(cdf) - 1).astype(np.int32)
    return sampled


def _documents(recipe: Recipe, model: _Model, part: int, start: int, stop: int) -> tuple[csr_matrix, csr_matrix]:
    """Return features and labels of training documents (part 0) or test documents (part 1)."""
    rng = np.random.default_rng([recipe.seed, 1, part, start])
    rows = np.arange(start, stop)
    pairs, labels = _labels(recipe, model, rng, rows, model.further_labels[part], training=part == 0)
    X = _features(recipe, model, rng, pairs, labels, stop - start)
    shape = (stop - start, recipe.labels)
    Y = csr_matrix((np.ones(len(pairs), dtype=np.float32), (pairs, model.ids[labels])), shape=shape)
    Y.sum_duplicates()
    Y.data[:] = 1
    return X, Y


def _labels(
    recipe: Recipe, model: _Model, rng: np.random.Generator, rows: NDArray[np.int64], further: float, *, training: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return pairs (position in rows, label). In training, every label is assigned to at least one document."""
    n, N = len(rows), recipe.documents
    assigned = np.zeros(n, dtype=np.int64)
    first = _sample(model.label_cdf, rng.random(n)).astype(np.int64)
    if training:
        # Assign consecutive labels, which share topics, to documents in a scattered order.
        turn = (rows * _stride(N)) % N
        begin, end = turn * recipe.labels // N, (turn + 1) * recipe.labels // N
        assigned = end - begin
        first = np.where(assigned > 0, begin, first)
    drawn = 1 + rng.poisson(further, n)
    documents = np.repeat(np.arange(n), drawn)
    topic = model.topics[first[documents]]
    bounds = np.concatenate([[0.0], model.label_cdf])
    low, high = bounds[np.concatenate([[0], model.topic_ends])[topic]], bounds[model.topic_ends[topic]]
    uniform = rng.random(len(documents))
    of_topic = np.searchsorted(model.label_cdf, low + uniform * (high - low), side="right")
    of_any = _sample(model.label_cdf, uniform)
    labels = np.where(rng.random(len(documents)) < _SAME_TOPIC, np.minimum(of_topic, recipe.labels - 1), of_any)
    labels[np.cumsum(drawn) - drawn] = first
    extra = np.maximum(assigned - 1, 0)
    extra_documents = np.repeat(np.arange(n), extra)
    extra_labels = first[extra_documents] + 1 + _count_within(extra)
    return np.concatenate([documents, extra_documents]), np.concatenate([labels, extra_labels])


def _count_within(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return 0, 1, … for each of these counts: 0 1 0 1 2 for 2, 0 and 3."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def _stride(n: int) -> int:
    """Return a step that visits each of n positions once, in a scattered order."""
    step = max(1, round(n * 0.618))
    while math.gcd(step, n) != 1:
        step += 1
    return step


def _features(
    recipe: Recipe,
    model: _Model,
    rng: np.random.Generator,
    pairs: NDArray[np.int64],
    labels: NDArray[np.int64],
    n: int,
) -> csr_matrix:
    """Return unit rows of TF-IDF over label words, topic words and noise."""
    counts = 1 + rng.poisson(recipe.words_per_document - 1, n)
    rows = np.repeat(np.arange(n), counts)
    order = np.argsort(pairs, kind="stable")
    per_document = np.bincount(pairs, minlength=n)
    begins = np.cumsum(per_document) - per_document
    # Each word stands for one label of its document.
    label = labels[order][begins[rows] + (rng.random(len(rows)) * per_document[rows]).astype(np.int64)]
    words = model.label_words[label, rng.integers(0, _LABEL_WORDS, len(rows))]
    source = rng.random(len(rows))
    topic_words = model.topic_words[model.topics[label], rng.integers(0, _TOPIC_WORDS, len(rows))]
    words = np.where(source < recipe.noise + (1 - recipe.noise) * (1 - _LABEL_WORD_SHARE), topic_words, words)
    words = np.where(source < recipe.noise, _sample(model.word_cdf, rng.random(len(rows))), words)
    X = csr_matrix((np.ones(len(rows), dtype=np.float32), (rows, words)), shape=(n, recipe.words))
    X.sum_duplicates()
    X.data = (1 + np.log(X.data)) * model.weights[X.indices]
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(lengths, np.diff(X.indptr)).astype(np.float32)
    return csr_matrix(X, dtype=np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a synthetic data set in the format xc.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--like", default="AmazonTitles-670K", help="the data set whose sizes it has")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    make(replace(like(arguments.like), seed=arguments.seed), arguments.folder)


if __name__ == "__main__":
    main()
