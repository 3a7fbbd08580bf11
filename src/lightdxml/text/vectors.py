"""Word vectors to begin training with (the paper's step 1): read from a file, or trained on the corpus."""

from __future__ import annotations

import io
import itertools
import tokenize
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from lightdxml.data.errors import DataError, excerpt
from lightdxml.data.files import UTF8_BOM, check_encoding, reading, text_lines
from lightdxml.text import fasttext_bin, train_vectors
from lightdxml.text.fasttext_bin import MOST_DIMENSIONS

_NPY_MAGIC = b"\x93NUMPY"
_LONGEST_LINE = 1 << 22
_A_ROW = "a word and its numbers, separated by single spaces"
_VOCABULARY = "vocabulary.txt"
_CONVERT = "word2vec's text form, fastText's .vec or .bin, or a NumPy .npy"
# What NumPy is known to raise on damaged files.
_UNREADABLE = (ValueError, OSError, EOFError, OverflowError, SyntaxError, TypeError, tokenize.TokenError)


@dataclass(frozen=True)
class WordVectors:
    """The vectors of a vocabulary's terms.

    Attributes
    ----------
    matrix
        Terms × dimensions; rows of unknown terms are 0.
    known
        Which terms have a vector.
    """

    matrix: NDArray[np.float32]
    known: NDArray[np.bool_]


def read(path: str | Path, vocabulary: Sequence[str]) -> WordVectors:
    r"""Read the vectors of a vocabulary's terms; what the file is, its content says.

    The file may be word2vec's, fastText's or GloVe's text (`.vec`, `.txt`) or a fastText model (`.bin`), each plain,
    gzip or Zstandard; or a NumPy `X.npy`, or the folder of one, with its words, one a line, in `X.txt`, `X.vocab` or
    `vocabulary.txt` beside it. No more than the terms' rows are held, and only these rows' numbers are looked at.

    A word of the file stands for a term that equals it, or else for one that equals it in lower case; of several, the
    first. A term of two words gets the mean of theirs, if both are known. With a fastText model, words that it does not
    know get the mean of their character n-grams.

    Parameters
    ----------
    path
        A file or a folder.
    vocabulary
        Terms, in lower case.

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
    words = _single_words(vocabulary)
    places = _Places(words)
    if path.is_dir():
        path = _only_array(path)
    with reading(path) as stream:
        plain = isinstance(stream, io.BufferedReader)
        magic = stream.read(len(_NPY_MAGIC))
        stream.seek(0)
        if magic.startswith(fasttext_bin.MAGIC):
            return _of_terms(vocabulary, words, *fasttext_bin.read(path, stream, words, places.claim))
        if not magic.startswith(_NPY_MAGIC):
            return _of_terms(vocabulary, words, _read_text(path, stream, places), places.known())
    if not plain:
        raise DataError(path, "a compressed NumPy array", "a plain one, which can be mapped: decompress it")
    return _of_terms(vocabulary, words, _read_array(path, places), places.known())


def train(
    texts: Sequence[str], vocabulary: Sequence[str], dimensions: int, seed: int, *, epochs: int = 5
) -> WordVectors:
    """Train fastText's skip-gram on the texts; needs `pip install "lightdxml[vectors]"`.

    It runs on one core, so that the same texts give the same vectors; the texts are passed over `epochs` + 1 times and
    never copied. Terms of two words get the mean of theirs.

    Parameters
    ----------
    texts
        The corpus.
    vocabulary
        Terms, in lower case.
    dimensions
        Those of the vectors.
    seed
        The same seed gives the same vectors.
    epochs
        How often to go through the texts.
    """
    words = _single_words(vocabulary)
    return _of_terms(vocabulary, words, *train_vectors.train(texts, words, dimensions, seed, epochs))


def starting_vectors(found: WordVectors, D: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return vectors of D dimensions to begin training with: those found, and random ones elsewhere.

    Those found are brought to length 1 on average and stand in the first dimensions; where there are more than D, the D
    main ones are kept. Unknown terms and the dimensions that remain are random, as all are without word vectors.

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
        rows = _main_dimensions(rows, D)
    length = np.linalg.norm(rows, axis=1).mean() if len(rows) else 0
    if length > 0:
        vectors[found.known, : rows.shape[1]] = rows / length
    return vectors


def _main_dimensions(rows: NDArray[np.float64], D: int) -> NDArray[np.float64]:
    """Return the rows' coordinates along the D directions in which they extend most."""
    # On one thread: the sums of several could differ in their last bits.
    with threadpool_limits(limits=1, user_api="blas"):
        _, directions = np.linalg.eigh(rows.T @ rows)
        main = directions[:, ::-1][:, :D]
        # An eigenvector is one up to its sign: the largest coordinate is made positive.
        signs = np.sign(main[np.abs(main).argmax(axis=0), np.arange(D)])
        turned: NDArray[np.float64] = rows @ (main * signs)
    return turned


class _Places:
    """Where in a list of words each word of a file belongs."""

    def __init__(self, words: Sequence[str]) -> None:
        self._place = {word: i for i, word in enumerate(words)}
        self._claimed = bytearray(len(words))

    def claim(self, word: str) -> int | None:
        """Return the place that the next word of a file fills, or fills anew: a word as it stands wins."""
        place = self._place.get(word)
        rank = 2
        if place is None:
            place = self._place.get(_folded(word))
            rank = 1
        if place is None or self._claimed[place] >= rank:
            return None
        self._claimed[place] = rank
        return place

    def known(self) -> NDArray[np.bool_]:
        """Return which places were claimed."""
        return np.frombuffer(self._claimed, dtype=np.uint8) > 0


def _folded(word: str) -> str:
    return word.lower() if word.isascii() else unicodedata.normalize("NFC", word.lower())


def _single_words(vocabulary: Sequence[str]) -> list[str]:
    """Return the words of the terms, each once."""
    return list(dict.fromkeys(word for term in vocabulary for word in term.split(" ")))


def _of_terms(
    vocabulary: Sequence[str], words: list[str], matrix: NDArray[np.float32], known: NDArray[np.bool_]
) -> WordVectors:
    """Return the terms' vectors from their words'."""
    if words == list(vocabulary):
        return WordVectors(matrix, known)
    place = {word: i for i, word in enumerate(words)}
    first, last = (np.array([place[term.split(" ")[end]] for term in vocabulary], dtype=np.int64) for end in (0, -1))
    of_terms = matrix[first] / np.float32(2)
    of_terms += matrix[last] / np.float32(2)
    both = known[first] & known[last]
    of_terms[~both] = 0
    return WordVectors(of_terms, both)


def _read_text(path: Path, stream: BinaryIO, places: _Places) -> NDArray[np.float32]:
    """Read rows of a word and its numbers, with or without a first line that says how many of each."""
    lines = _lines(path, stream)
    number, line = next(lines, (1, b""))
    if not line:
        raise DataError(path, "an empty file", _CONVERT)
    announced = _announced(line)
    D = announced[1] if announced else _count_numbers(line)
    if announced is None and D == 0:
        raise DataError(path, excerpt(line), f"word vectors ({_CONVERT})", line=number)
    if not 1 <= D <= MOST_DIMENSIONS:
        raise DataError(path, f"{D:,} dimensions", f"1 to {MOST_DIMENSIONS:,}", line=number)
    matrix = np.zeros((len(places.known()), D), dtype=np.float32)
    n = 0
    rows = lines if announced else itertools.chain([(number, line)], lines)
    for number, line in rows:
        n += 1
        word = _word(path, number, line, D)
        place = places.claim(word.decode("utf-8", "replace"))
        if place is not None:
            matrix[place] = _numbers(path, number, line[len(word) + 1 :])
    if announced and announced[0] != n:
        raise DataError(path, f"{n:,} vectors", f"the {announced[0]:,} that line 1 announces: fetch or copy it again")
    return matrix


def _lines(path: Path, stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank with their numbers, without what ends them."""
    plain = isinstance(stream, io.BufferedReader)
    # Lines of a compressed stream cost less when a buffer in C cuts them.
    buffered = stream if plain else io.BufferedReader(cast("io.RawIOBase", stream), 1 << 20)
    for number, line in enumerate(iter(partial(buffered.readline, _LONGEST_LINE), b""), start=1):
        if len(line) == _LONGEST_LINE:
            raise DataError(path, f"more than {_LONGEST_LINE:,} bytes", _A_ROW, line=number)
        if number == 1:
            check_encoding(path, line)
            line = line.removeprefix(UTF8_BOM)
        line = line.rstrip(b" \r\n")
        if line:
            yield number, line


def _announced(line: bytes) -> tuple[int, int] | None:
    """Return the numbers of words and of dimensions if the line is nothing but these."""
    fields = line.split(b" ")
    if len(fields) != 2 or not all(field.isdigit() and len(field) < 19 for field in fields):
        return None
    return int(fields[0]), int(fields[1])


def _count_numbers(line: bytes) -> int:
    """Return how many of the last fields are numbers; the first field is a word at any rate."""
    fields = line.split(b" ")[1:]
    return sum(1 for _ in itertools.takewhile(_is_number, reversed(fields)))


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _word(path: Path, number: int, line: bytes, D: int) -> bytes:
    """Return what stands before the last D fields; a word may hold spaces."""
    n = line.count(b" ")
    if n == D:
        return line[: line.index(b" ")]
    if n < D and b"\0" in line:
        raise DataError(path, "binary data (word2vec's binary form?)", "its text form: save it so", line=number)
    word = line.rsplit(b" ", D)[0]
    # More numbers than there should be are no part of a word.
    if n < D or all(b"." in field and _is_number(field) for field in word.split(b" ")[1:]):
        raise DataError(path, f"{n:,} numbers after {excerpt(line, 20)}", f"a word and {D:,} numbers", line=number)
    return word


def _numbers(path: Path, number: int, fields: bytes) -> NDArray[np.float32]:
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


def _only_array(folder: Path) -> Path:
    arrays = sorted(path for path in folder.iterdir() if path.suffix == ".npy")
    if len(arrays) != 1:
        raise DataError(folder, f"{len(arrays)} NumPy arrays", "a folder with one .npy, or the path of a file")
    return arrays[0]


def _read_array(path: Path, places: _Places) -> NDArray[np.float32]:
    """Read the rows that are wanted from a mapped array with its words beside it."""
    try:
        table = np.load(path, mmap_mode="r", allow_pickle=False)
    except _UNREADABLE as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise DataError(path, f"no as_bits NumPy array ({reason})", "a file of numpy.save") from error
    if table.ndim != 2 or table.dtype.kind != "f" or not 1 <= table.shape[1] <= MOST_DIMENSIONS:
        found = f"an array of shape {table.shape} and type {table.dtype}"
        raise DataError(path, found, f"floating-point numbers, words × 1 to {MOST_DIMENSIONS:,} dimensions")
    beside = _words_beside(path)
    chosen = np.full(len(places.known()), -1, dtype=np.int64)
    n = 0
    for n, line in text_lines(beside):
        place = places.claim(line.rstrip("\r\n"))
        if place is not None:
            chosen[place] = n - 1
    if n != len(table):
        raise DataError(beside, f"{n:,} words", f"{len(table):,}, one for each row of {path.name}")
    matrix = np.zeros((len(chosen), table.shape[1]), dtype=np.float32)
    with np.errstate(over="ignore"):
        matrix[chosen >= 0] = table[chosen[chosen >= 0]]
    wrong = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if len(wrong):
        found = f"NaN, or a number beyond float32, in row {chosen[wrong[0]]:,} (from 0)"
        raise DataError(path, found, "finite numbers")
    return matrix


def _words_beside(path: Path) -> Path:
    candidates = [path.with_suffix(".txt"), path.with_suffix(".vocab"), path.with_name(_VOCABULARY)]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    names = " or ".join(candidate.name for candidate in candidates)
    raise DataError(path, "an array without its words", f"{names} beside it, one word a line")
