"""fastText trained on the corpus itself, by gensim.

gensim, as its wheels work under NumPy 2 on every Python from 3.10 to 3.13 (from 4.4 on); fastText's own package is
archived and fails under NumPy 2, and those that repackage it carry the same code.
"""

from __future__ import annotations

import importlib
import re
import unicodedata
import zlib
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

_WORD = re.compile(r"\w\w+")
_LONGEST_SENTENCE = 10_000  # gensim passes over what goes beyond
_FEWEST = 2
_SEEDS = 2**32  # the most that NumPy's older generators, which gensim uses, take
# fastText's 2 million rows for n-grams would take gigabytes, for corpora that are rarely that rich.
_BUCKETS = 100_000


class Sentences:
    """The words of texts, lower-cased, made anew on each pass: no second copy of the corpus is held.

    >>> list(Sentences(["A black cat", "Two dogs!"]))
    [['black', 'cat'], ['two', 'dogs']]
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts

    def __iter__(self) -> Iterator[list[str]]:
        for text in self.texts:
            words = _WORD.findall(unicodedata.normalize("NFC", text.lower()))
            for first in range(0, len(words), _LONGEST_SENTENCE):
                yield words[first : first + _LONGEST_SENTENCE]


def train(
    texts: Sequence[str], words: Sequence[str], dimensions: int, seed: int, epochs: int
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return the words' vectors, and which of them the texts hold twice or more; the others' are 0."""
    try:
        models = importlib.import_module("gensim.models")
    except ImportError as error:
        message = 'training word vectors needs gensim: pip install "lightdxml[vectors]"'
        raise ImportError(message) from error
    sentences = Sentences(texts)
    # One worker, and a hash that is the same in every process: the same texts give the same vectors.
    model = models.FastText(
        sg=1, vector_size=dimensions, min_count=_FEWEST, bucket=_BUCKETS, seed=seed % _SEEDS, workers=1, hashfxn=_hash
    )  # fmt: skip
    model.build_vocab(sentences)
    matrix = np.zeros((len(words), dimensions), dtype=np.float32)
    if not len(model.wv):
        return matrix, np.zeros(len(words), dtype=np.bool_)
    model.train(sentences, total_examples=model.corpus_count, epochs=epochs)
    rows = np.array([model.wv.key_to_index.get(word, -1) for word in words], dtype=np.int64)
    known = rows >= 0
    matrix[known] = model.wv.vectors[rows[known]]
    return matrix, known


def _hash(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))
