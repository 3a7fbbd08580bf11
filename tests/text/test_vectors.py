"""Word vectors: every format gives the right vectors, or is rejected with a one-line message."""

from __future__ import annotations

import gzip
import os
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightdxml.data import DataError, files
from lightdxml.data.dataset import Texts
from lightdxml.text import vectors
from lightdxml.text.vectors import WordVectors

TINY = "2 3\ncat 1 2 3\ndog -1 0.5 1e-1\n"


def write(folder: Path, content: str | bytes, name: str = "tiny.vec") -> Path:
    with files.writing(folder / name) as stream:
        stream.write(content if isinstance(content, bytes) else content.encode())
    return folder / name


def rejected(path: Path, vocabulary: Sequence[str] = ("cat", "dog")) -> str:
    with pytest.raises(DataError) as caught:
        vectors.read(path, vocabulary)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(path.parent))
    return message.replace(f"{path.parent}{os.sep}", "")


# --- text


@pytest.mark.parametrize("name", ["tiny.vec", "tiny.vec.gz", "tiny.txt.zst", "no suffix"])
def test_rows_are_those_of_the_vocabulary_in_its_order(tmp_path: Path, name: str) -> None:
    found = vectors.read(write(tmp_path, TINY, name), ["dog", "cow", "cat"])
    assert found.matrix.dtype == np.float32
    assert found.matrix.tolist() == [[-1, 0.5, np.float32(0.1)], [0, 0, 0], [1, 2, 3]]
    assert found.known.tolist() == [True, False, True]


@pytest.mark.parametrize(
    "content",
    [
        "cat 1 2 3\ndog 4 5 6\n",
        "cat 1 2 3\ndog 4 5 6",
        "\ufeffcat 1 2 3\r\ndog 4 5 6\r\n",
        "2 3\ncat 1 2 3 \ndog 4 5 6 \n\n",
        ". . . 0 0 0\ncat 1 2 3\na b 9 9 9\ndog 4 5 6\n",
        b"4 3\nbad\xff\xe2\x80 0 0 0\n\xc2\x85 7 7 7\ncat 1 2 3\ndog 4 5 6\n",
    ],
    ids=["glove", "no last line end", "windows", "trailing spaces", "words with spaces", "odd bytes"],
)
def test_text_variants_of_other_programs_are_read(tmp_path: Path, content: str | bytes) -> None:
    found = vectors.read(write(tmp_path, content), ["cat", "dog"])
    assert found.matrix.tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    ("content", "row"),
    [
        ("CAT 1 1\nCat 2 2\n", [1, 1]),
        ("CAT 1 1\ncat 2 2\ncat 3 3\n", [2, 2]),
        ("cat 2 2\nCAT 1 1\n", [2, 2]),
    ],
)
def test_exact_match_wins_over_lower_case_and_the_first_of_equals_wins(
    tmp_path: Path, content: str, row: list[float]
) -> None:
    assert vectors.read(write(tmp_path, content), ["cat"]).matrix.tolist() == [row]


def test_unicode_forms_of_a_word_match(tmp_path: Path) -> None:
    assert vectors.read(write(tmp_path, "CAFE\u0301 1 2\n"), ["caf\u00e9"]).known.all()


def test_pair_has_the_mean_of_its_words_if_both_are_known(tmp_path: Path) -> None:
    found = vectors.read(write(tmp_path, "cat 1 2\ndog 3 6\n"), ["cat dog", "cat", "cat cow", "cat cat"])
    assert found.matrix.tolist() == [[2, 4], [1, 2], [0, 0], [1, 2]]
    assert found.known.tolist() == [True, True, False, True]


def test_empty_vocabulary_has_no_vectors(tmp_path: Path) -> None:
    assert vectors.read(write(tmp_path, TINY), []).matrix.shape == (0, 3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("2 3\ncat 1 2 3\ncow 1 2\n", "line 3: found 2 numbers after 'cow 1 2', expected a word and 3 numbers"),
        ("cat 1.0 2.0\ncow 1.0 2.0 3.0\n", "line 2: found 3 numbers after 'cow 1.0 2.0 3.0', expected a word and 2"),
        ("cat 1 2\ndog 1 x\n", "line 2: found 'x', expected a number"),
        ("cat 1 2\ndog  1\n", "line 2: found '', expected a number"),
        ("cat 1 nan\n", "line 1: found 'nan', expected a finite number"),
        ("cat 1 -inf\n", "line 1: found '-inf', expected a finite number"),
        ("cat 1 1e39\n", "line 1: found '1e39', expected a finite number"),
        ("3 3\ncat 1 2 3\n", "found 1 vectors, expected the 3 of the header"),
        ("1 2\ncat 1 2\ndog 1 2\n", "found 2 vectors, expected the 1 of the header"),
        ("2 0\ncat\ndog\n", "line 1: found 0 dimensions, expected 1 to 10,000"),
        ("2 999999999999\ncat 1\n", "line 1: found 999,999,999,999 dimensions"),
        ("", "found an empty file"),
        ("\n\n", "found an empty file"),
        ("a text about cats\n", "line 1: found 'a text about cats', expected word vectors"),
        ('{"cat": [1, 2]}\n', "expected word vectors"),
        (b"\xff\xfec\x00a\x00", "UTF-16 text"),
        (b"PK\x03\x04\x00\x00", "expected word vectors"),
        (b"1 2\ncat \x00\x00\x80\x3f\x00\x00\x80\x3f", "line 2: found binary data (word2vec's binary format?)"),
        (b"x" * (1 << 22), "line 1: found a line of more than 4 MB"),
    ],
)
def test_invalid_text_is_rejected_with_its_line(tmp_path: Path, content: str | bytes, message: str) -> None:
    assert message in rejected(write(tmp_path, content))


def test_truncated_compressed_text_is_rejected(tmp_path: Path) -> None:
    packed = gzip.compress(os.urandom(5000).hex().encode())
    assert "truncated" in rejected(write(tmp_path, packed[:-1000], "cut.vec"))


def test_missing_file_is_rejected(tmp_path: Path) -> None:
    assert rejected(tmp_path / "none.vec") == "none.vec: found no such file, expected an existing file"


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_rejected(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.vec"
    path.write_bytes(content)
    try:
        found = vectors.read(path, ["a", "0"])
    except DataError:
        return
    assert np.isfinite(found.matrix).all()


# --- fastText models


def model(
    *,
    version: int = 12,
    dimensions: int = 2,
    longest: int = 4,
    counts: tuple[int, int, int] = (2, 2, 0),
    pruned: int = -1,
    quantized: bool = False,
    shape: tuple[int, int] = (9, 2),
    value: float = 1,
) -> bytes:
    """Return a fastText model of the words cat and Zürich and 7 rows for n-grams, byte by byte."""
    settings = (dimensions, 5, 5, 1, 5, 1, 2, 2, 7, 3, longest, 100)
    parts = [
        struct.pack("<2i12id3i2q", 793712314, version, *settings, 1e-4, *counts, 1000, pruned),
        *(word.encode() + b"\0" + struct.pack("<qb", 10, 0) for word in ("cat", "Zürich")),
        struct.pack("<b2q", quantized, *shape),
        np.full((9, 2), value, dtype="<f4").tobytes(),
    ]
    return b"".join(parts)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (model(quantized=True), "found a quantized fastText model, expected the model before quantization"),
        (model(pruned=3), "found a quantized fastText model"),
        (model(version=13), "found a fastText model of version 13"),
        (model(dimensions=2**31 - 1), "2,147,483,647 dimensions"),
        (model(dimensions=0, shape=(9, 0)), "0 dimensions"),
        (model(longest=2**31 - 1), "found a fastText model of version 12"),
        (model(shape=(5, 2)), "5 rows"),
        (model(shape=(2**62, 2)), "found a truncated fastText model"),
        (model(counts=(2**31 - 1, 2**31 - 1, 0)), "found a truncated fastText model"),
        (model(counts=(2, -1, 3)), "-1 words"),
        (model(counts=(2, 1, 1)), "expected an intact model that is not a classifier"),
    ],
)
def test_invalid_model_is_rejected(tmp_path: Path, content: bytes, message: str) -> None:
    assert message in rejected(write(tmp_path, content, "tiny.bin"))


def test_truncated_and_compressed_models_are_rejected(tmp_path: Path) -> None:
    whole = model()
    for n in range(6, len(whole), 7):
        assert "found a truncated fastText model" in rejected(write(tmp_path, whole[:n], "tiny.bin"))
    assert "decompress it" in rejected(write(tmp_path, whole, "tiny.bin.gz"))


def test_without_gensim_a_model_gives_the_install_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim.models.fasttext", None)
    with pytest.raises(ImportError, match=r'pip install "lightdxml\[vectors\]", or use the \.vec file'):
        vectors.read(write(tmp_path, model(), "tiny.bin"), ["cat"])


@pytest.mark.parametrize("value", [np.nan, 3e38])
def test_model_with_vectors_that_are_not_finite_is_rejected(tmp_path: Path, value: float) -> None:
    pytest.importorskip("gensim")
    assert "the vector of 'cat'" in rejected(write(tmp_path, model(value=value), "tiny.bin"))


@given(st.data())
def test_damaged_model_is_read_or_rejected(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    pytest.importorskip("gensim")
    content = bytearray(model())
    for _ in range(3):
        content[data.draw(st.integers(4, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "any.bin"
    path.write_bytes(content)
    try:
        found = vectors.read(path, ["cat", "dog"])
    except DataError:
        return
    assert np.isfinite(found.matrix).all()


@pytest.mark.parametrize("ngrams", [True, False])
def test_model_gives_the_vectors_of_its_words_and_of_ngrams(tmp_path: Path, ngrams: bool) -> None:
    fasttext = pytest.importorskip("gensim.models.fasttext")
    texts = [text.replace("purrs", "Öppnar").split() for text in PETS]
    bucket = 50 if ngrams else 0
    trained = fasttext.FastText(texts, vector_size=5, min_count=1, bucket=bucket, max_n=6 * ngrams, workers=1, epochs=1)
    fasttext.save_facebook_model(trained, str(tmp_path / "model.bin"))
    found = vectors.read(tmp_path / "model.bin", ["cat", "öppnar", "sleeps", "öppnad"])
    known = [trained.wv[word] for word in ("cat", "Öppnar", "sleeps")]
    unknown = trained.wv["öppnad"] if ngrams else np.zeros(5)
    np.testing.assert_allclose(found.matrix, [*known, unknown], rtol=1e-4, atol=1e-6)
    assert found.known.tolist() == [True, True, True, ngrams]


# --- starting vectors


def found_vectors(n: int, d: int) -> WordVectors:
    matrix = np.random.default_rng(5).standard_normal((n, d)).astype(np.float32) * 7
    known = np.arange(n) % 3 > 0
    matrix[~known] = 0
    return WordVectors(matrix, known)


def test_known_vectors_keep_their_directions_and_have_length_1_on_average() -> None:
    found = found_vectors(30, 4)
    start = vectors.starting_vectors(found, 4, np.random.default_rng(0))
    lengths = np.linalg.norm(start[found.known], axis=1)
    np.testing.assert_allclose(lengths.mean(), 1, rtol=1e-5)
    cosines = np.einsum("ij,ij->i", start, found.matrix)[found.known]
    np.testing.assert_allclose(cosines, lengths * np.linalg.norm(found.matrix[found.known], axis=1), rtol=1e-4)


def test_unknown_terms_and_further_dimensions_are_random_and_reproducible() -> None:
    found = found_vectors(3000, 4)
    start = vectors.starting_vectors(found, 64, np.random.default_rng(0))
    assert start.dtype == np.float32
    np.testing.assert_allclose(start[~found.known].std(), 1 / 8, rtol=0.02)
    np.testing.assert_allclose(start[:, 4:].std(), 1 / 8, rtol=0.02)
    np.testing.assert_array_equal(start, vectors.starting_vectors(found, 64, np.random.default_rng(0)))


def test_surplus_dimensions_are_projected_on_the_principal_directions() -> None:
    plane = found_vectors(40, 2)
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((6, 6)))[0][:2].astype(np.float32)
    start = vectors.starting_vectors(WordVectors(plane.matrix @ turn, plane.known), 2, np.random.default_rng(0))
    given = vectors.starting_vectors(plane, 2, np.random.default_rng(0))
    known = plane.known
    np.testing.assert_allclose(start[known] @ start[known].T, given[known] @ given[known].T, atol=1e-4)


def test_numbers_near_the_limit_of_float32_are_scaled() -> None:
    found = WordVectors(np.full((2, 3), 3e38, dtype=np.float32), np.ones(2, dtype=np.bool_))
    start = vectors.starting_vectors(found, 3, np.random.default_rng(0))
    np.testing.assert_allclose(start, np.full((2, 3), 3**-0.5), rtol=1e-6)


@pytest.mark.parametrize("known", [False, True])
def test_without_known_vectors_the_start_is_random(known: bool) -> None:
    found = WordVectors(np.zeros((5, 3), dtype=np.float32), np.full(5, known))
    start = vectors.starting_vectors(found, 4, np.random.default_rng(0))
    expected = np.random.default_rng(0).standard_normal((5, 4), dtype=np.float32) / np.float32(2)
    np.testing.assert_array_equal(start, expected)


# --- training

PETS = ["the cat purrs and sleeps", "a dog barks and sleeps", "the Cat purrs", "my dog barks"] * 30

TRAINED = """
from tests.text.test_vectors import PETS
from lightdxml.text import vectors
print(vectors.train(PETS, ["cat", "dog"], 8, 3, epochs=2).matrix.tobytes().hex())
"""


def test_words_of_the_corpus_get_trained_vectors() -> None:
    pytest.importorskip("gensim")
    texts = Texts(PETS, ["title"] * len(PETS))
    found = vectors.train(texts, ["cat", "title", "cow", "cat dog"], 8, seed=3, epochs=2)
    assert found.matrix.shape == (4, 8)
    assert found.known.tolist() == [True, True, False, True]
    assert np.isfinite(found.matrix).all()
    assert np.abs(found.matrix[0]).sum() > 0
    other = vectors.train(texts, ["cat", "title", "cow", "cat dog"], 8, seed=4, epochs=2)
    assert not np.array_equal(found.matrix, other.matrix)


def test_training_gives_the_same_vectors_in_every_process() -> None:
    pytest.importorskip("gensim")
    here = vectors.train(PETS, ["cat", "dog"], 8, 3, epochs=2).matrix.tobytes().hex()
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", TRAINED]
    there = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert there.strip() == here


def test_texts_without_words_give_no_vectors() -> None:
    pytest.importorskip("gensim")
    assert not vectors.train(["", "?"], ["cat"], 8, seed=2**40).known.any()


def test_without_gensim_the_error_gives_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim", None)
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(ImportError, match=r'pip install "lightdxml\[vectors\]"'):
        vectors.train(PETS, ["cat"], 8, seed=0)
