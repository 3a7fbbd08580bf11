"""Word vectors to start training with (step 1 of the paper): read from a file, or trained on the corpus."""

from __future__ import annotations

import importlib
import io
import itertools
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from lightdxml.data.errors import DataError, excerpt
from lightdxml.data.files import byte_lines, reading
from lightdxml.kernels import blas
from lightdxml.text import fasttext_bin
from lightdxml.text.fasttext_bin import MOST_DIMENSIONS
from lightdxml.text.tokenizer import normalize

_LONGEST_LINE = 1 << 22
_FORMATS = "word2vec text, or fastText .vec or .bin"
_WORD = re.compile(r"\w\w+")
_LONGEST_SENTENCE = 10_000  # gensim ignores further words
_MIN_COUNT = 2
_SEEDS = 2**32  # the limit of NumPy's older generators, which gensim uses
# fastText's default of 2 million rows for n-grams takes gigabytes, and few corpora need them.
_BUCKETS = 100_000
# As many as the usual files of word vectors have; further dimensions start at random.
_TRAINED_DIMENSIONS = 100


@dataclass(frozen=True)
class WordVectors:
    """The vectors of the terms of a vocabulary.

    Attributes
    ----------
    matrix
        Terms × dimensions; rows of unknown terms are 0.
    known
        Whether each term has a vector.
    """

    matrix: NDArray[np.float32]
    known: NDArray[np.bool_]


def read(path: str | Path, vocabulary: Sequence[str]) -> WordVectors:
    r"""Read the vectors of the terms of a vocabulary; the content of the file tells its format.

    The file is text of word2vec, fastText or GloVe (`.vec`, `.txt`), plain, gzip or Zstandard, of which only the rows
    of the vocabulary are stored; or a fastText model (`.bin`), which requires `pip install "lightdxml[vectors]"`.

    A word of the file matches an equal term, or else a term that equals the word in lower case; the first match counts.
    A term of two words gets the mean of their vectors if both are known. With a fastText model, unknown words get the
    mean of their character n-grams.

    Parameters
    ----------
    path
        The file.
    vocabulary
        The terms, in lower case.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "tiny.vec"
    ...     _ = path.write_text("2 3\nCat 1 0 2\ndog 0 1 0\n")
    ...     found = read(path, ["cat", "cat dog", "cow"])
    >>> found.matrix.tolist(), found.known.tolist()
    ([[1.0, 0.0, 2.0], [0.5, 0.5, 1.0], [0.0, 0.0, 0.0]], [True, True, False])
    """
    path = Path(path)
    words = _split_terms(vocabulary)
    slots = _Slots(words)
    with reading(path) as stream:
        compressed = not isinstance(stream, io.BufferedReader)
        is_model = stream.read(len(fasttext_bin.MAGIC)) == fasttext_bin.MAGIC
        stream.seek(0)
        if not is_model:
            return _combine_words(vocabulary, words, _read_text(path, stream, slots), slots.known())
    if compressed:
        raise DataError(path, "a compressed model", "a plain file: decompress it")
    return _combine_words(vocabulary, words, *fasttext_bin.read(path, words, slots.claim))


def train(
    texts: Sequence[str], vocabulary: Sequence[str], dimensions: int, seed: int, *, epochs: int = 5
) -> WordVectors:
    """Train fastText's skip-gram on texts; this requires `pip install "lightdxml[vectors]"`.

    Training runs on one core, so that the same texts and seed give the same vectors. The texts are read `epochs` + 1
    times and never copied. A term of two words gets the mean of their vectors.

    Parameters
    ----------
    texts
        The corpus.
    vocabulary
        The terms, in lower case.
    dimensions
        The number of dimensions.
    seed
        The seed of the random numbers.
    epochs
        The number of passes over the texts.
    """
    try:
        models = importlib.import_module("gensim.models")
    except ImportError as error:
        message = 'training word vectors requires gensim: pip install "lightdxml[vectors]"'
        raise ImportError(message) from error
    words, sentences = _split_terms(vocabulary), _Sentences(texts)
    # One worker and a fixed hash make the result deterministic.
    model = models.FastText(
        sg=1, vector_size=dimensions, min_count=_MIN_COUNT, bucket=_BUCKETS, seed=seed % _SEEDS, workers=1,
        hashfxn=_hash,
    )  # fmt: skip
    model.build_vocab(sentences)
    if len(model.wv):
        model.train(sentences, total_examples=model.corpus_count, epochs=epochs)
    rows = np.array([model.wv.key_to_index.get(word, -1) for word in words], dtype=np.int64)
    known = rows >= 0
    matrix = np.zeros((len(words), dimensions), dtype=np.float32)
    if known.any():
        matrix[known] = model.wv.vectors[rows[known]]
    return _combine_words(vocabulary, words, matrix, known)


class _Sentences:
    """The lower-case words of texts, computed again on each pass: there is no second copy of the corpus."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts

    def __iter__(self) -> Iterator[list[str]]:
        for text in self.texts:
            words = _WORD.findall(normalize(text))
            for first in range(0, len(words), _LONGEST_SENTENCE):
                yield words[first : first + _LONGEST_SENTENCE]


def _hash(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def initial_vectors(
    source: str | Path | NDArray[np.float32] | None,
    texts: Sequence[str] | None,
    vocabulary: Sequence[str] | None,
    dim: int,
    seed: int,
) -> NDArray[np.float32] | None:
    """Return the word vectors that training starts from, None for random ones.

    `source` is a file, `"train"` to train them on the texts, an array of them, or None.

    >>> initial_vectors(None, None, None, 100, 0) is None
    True
    """
    if source is None or isinstance(source, np.ndarray):
        return source
    if texts is None or vocabulary is None:
        raise ValueError(
            "word_vectors need texts, and X is a matrix: give texts, or an array of features × dim as word_vectors"
        )
    if source == "train":
        found = train(texts, vocabulary, min(_TRAINED_DIMENSIONS, dim), seed)
    else:
        found = read(source, vocabulary)
    return starting_vectors(found, dim, np.random.default_rng(seed))


def starting_vectors(found: WordVectors, D: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return vectors of D dimensions to start training with.

    Known vectors are scaled to an average length of 1 and fill the first dimensions; if they have more than D, they
    are projected on their D principal directions. Unknown terms and the remaining dimensions are random.

    Examples
    --------
    >>> found = WordVectors(np.array([[3, 4], [0, 0]], dtype=np.float32), np.array([True, False]))
    >>> starting_vectors(found, 3, np.random.default_rng(0))[0, :2].tolist()
    [0.6000000238418579, 0.800000011920929]
    """
    n = len(found.known)
    vectors: NDArray[np.float32] = rng.standard_normal((n, D), dtype=np.float32) / np.float32(np.sqrt(D))
    rows = found.matrix[found.known].astype(np.float64)
    if rows.shape[1] > D:
        rows = _project(rows, D)
    length = np.linalg.norm(rows, axis=1).mean() if len(rows) else 0
    if length > 0:
        vectors[found.known, : rows.shape[1]] = rows / length
    return vectors


def _project(rows: NDArray[np.float64], D: int) -> NDArray[np.float64]:
    """Project rows on their D principal directions."""
    # On one thread: with several, the last bits of the sums could differ.
    with blas.on_one_thread():
        _, directions = np.linalg.eigh(rows.T @ rows)
        main = directions[:, ::-1][:, :D]
        # The sign of an eigenvector is arbitrary: make its largest coordinate positive.
        signs = np.sign(main[np.abs(main).argmax(axis=0), np.arange(D)])
        projected: NDArray[np.float64] = rows @ (main * signs)
    return projected


class _Slots:
    """Matches the words of a file to the positions of wanted words."""

    def __init__(self, words: Sequence[str]) -> None:
        self._slots = {word: i for i, word in enumerate(words)}
        self._ranks = bytearray(len(words))

    def __len__(self) -> int:
        return len(self._ranks)

    def claim(self, word: str) -> int | None:
        """Return the position that a word of the file fills; an exact match overwrites a lower-case match."""
        slot, rank = self._slots.get(word), 2
        if slot is None:
            slot, rank = self._slots.get(normalize(word)), 1
        if slot is None or self._ranks[slot] >= rank:
            return None
        self._ranks[slot] = rank
        return slot

    def known(self) -> NDArray[np.bool_]:
        """Return which positions were filled."""
        return np.frombuffer(self._ranks, dtype=np.uint8) > 0


def _split_terms(vocabulary: Sequence[str]) -> list[str]:
    """Return the distinct words of the terms."""
    return list(dict.fromkeys(word for term in vocabulary for word in term.split(" ")))


def _combine_words(
    vocabulary: Sequence[str], words: list[str], matrix: NDArray[np.float32], known: NDArray[np.bool_]
) -> WordVectors:
    """Return the vectors of terms from those of their words."""
    if words == list(vocabulary):
        return WordVectors(matrix, known)
    row = {word: i for i, word in enumerate(words)}
    first, last = (np.array([row[term.split(" ")[end]] for term in vocabulary], dtype=np.int64) for end in (0, -1))
    means = matrix[first] / np.float32(2)
    means += matrix[last] / np.float32(2)
    both = known[first] & known[last]
    means[~both] = 0
    return WordVectors(means, both)


def _read_text(path: Path, stream: BinaryIO, slots: _Slots) -> NDArray[np.float32]:
    """Read lines of a word and its vector, with or without a header of two counts."""
    lines = _lines(path, stream)
    number, line = next(lines, (1, b""))
    if not line:
        raise DataError(path, "an empty file", _FORMATS)
    header = _parse_header(line)
    D = header[1] if header else _count_numbers(line)
    if header is None:
        lines = itertools.chain([(number, line)], lines)
        if D == 0:
            raise DataError(path, excerpt(line), f"word vectors ({_FORMATS})", line=number)
    if not 1 <= D <= MOST_DIMENSIONS:
        raise DataError(path, f"{D:,} dimensions", f"1 to {MOST_DIMENSIONS:,}", line=number)
    matrix = np.zeros((len(slots), D), dtype=np.float32)
    n = 0
    for number, line in lines:
        n += 1
        word = _parse_word(path, number, line, D)
        slot = slots.claim(word.decode("utf-8", "replace"))
        if slot is not None:
            matrix[slot] = _parse_vector(path, number, line[len(word) + 1 :])
    if header and header[0] != n:
        expected = f"the {header[0]:,} of the header: download or copy the file again"
        raise DataError(path, f"{n:,} vectors", expected)
    return matrix


def _lines(path: Path, stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank with their numbers, without line ends."""
    for number, line in byte_lines(path, stream, _LONGEST_LINE):
        if line := line.rstrip(b" \r\n"):
            yield number, line


def _parse_header(line: bytes) -> tuple[int, int] | None:
    """Return the numbers of words and dimensions, or None if the line is not a header."""
    fields = line.split(b" ")
    if len(fields) != 2 or not all(field.isdigit() and len(field) < 19 for field in fields):
        return None
    return int(fields[0]), int(fields[1])


def _count_numbers(line: bytes) -> int:
    """Return the number of numbers at the end of a line; the first field is a word."""
    fields = line.split(b" ")[1:]
    return sum(1 for _ in itertools.takewhile(_is_number, reversed(fields)))


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _parse_word(path: Path, number: int, line: bytes, D: int) -> bytes:
    """Return what comes before the last D fields; a word may contain spaces."""
    n = line.count(b" ")
    if n == D:
        return line[: line.index(b" ")]
    if n < D and b"\0" in line:
        raise DataError(path, "binary data (word2vec's binary format?)", "word2vec's text format", line=number)
    word = line.rsplit(b" ", D)[0]
    # Decimal numbers are not a part of a word: there are too many of them.
    if n < D or all(b"." in field and _is_number(field) for field in word.split(b" ")[1:]):
        raise DataError(path, f"{n:,} numbers after {excerpt(line, 20)}", f"a word and {D:,} numbers", line=number)
    return word


def _parse_vector(path: Path, number: int, fields: bytes) -> NDArray[np.float32]:
    parts = fields.split(b" ")
    try:
        with np.errstate(over="ignore"):
            row = np.array(list(map(float, parts)), dtype=np.float64).astype(np.float32)
    except ValueError as error:
        wrong = next(part for part in parts if not _is_number(part))
        raise DataError(path, excerpt(wrong), "a number", line=number) from error
    if not np.isfinite(row).all():
        wrong = parts[int(np.argmin(np.isfinite(row)))]
        raise DataError(path, excerpt(wrong), "a finite number that fits into a float32", line=number)
    return row
