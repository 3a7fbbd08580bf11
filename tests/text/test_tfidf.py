"""TF-IDF: equal to scikit-learn's, correct for many scripts, and the same at any number of threads."""

from __future__ import annotations

import json
import math
import sys
import unicodedata
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer

from lightdxml.data import load
from lightdxml.data.dataset import Dataset, Texts
from lightdxml.data.text_files import TextFiles
from lightdxml.executor import Threads
from lightdxml.kernels import parallel, words
from lightdxml.kernels.sparse import FeatureRows
from lightdxml.resources.system import MemoryLimitError
from lightdxml.text import tfidf, tokenizer
from lightdxml.text.rare import count_words
from lightdxml.text.tfidf import TextOptions, Vectorizer

LATIN = ["Über die Größe", "naïve CAFÉ, café!", "ÅNGSTRÖM and café x y", "über naïve_2 größe 42", "", "... !"]


def same_bits(one: csr_matrix, other: csr_matrix) -> None:
    assert one.shape == other.shape
    for name in ("indptr", "indices", "data"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes()


def is_canonical_with_unit_rows(X: csr_matrix) -> None:
    assert (X.dtype, X.indices.dtype) == (np.float32, np.int32)
    unflagged = csr_matrix((X.data, X.indices, X.indptr), shape=X.shape)
    assert unflagged.has_canonical_format
    lengths = np.sqrt(X.multiply(X).sum(axis=1))
    np.testing.assert_allclose(lengths[np.diff(X.indptr) > 0], 1, rtol=1e-5)


def agrees_with_sklearn(texts: list[str], options: TextOptions) -> None:
    learner = TfidfVectorizer(
        ngram_range=(1, options.ngrams), min_df=options.min_df, sublinear_tf=True, dtype=np.float32
    )
    try:
        expected = csr_matrix(learner.fit_transform(texts))
    except ValueError:
        with pytest.raises(ValueError, match="no word occurs in"):
            tfidf.fit(texts, options)
        return
    vectorizer, X = tfidf.fit(texts, options)
    assert vectorizer.vocabulary == learner.get_feature_names_out().tolist()
    np.testing.assert_allclose(vectorizer.idf, learner.idf_, rtol=1e-6)
    expected.sort_indices()
    is_canonical_with_unit_rows(X)
    np.testing.assert_array_equal(X.indptr, expected.indptr)
    np.testing.assert_array_equal(X.indices, expected.indices)
    np.testing.assert_allclose(X.data, expected.data, rtol=0, atol=1e-6)


@pytest.mark.parametrize("ngrams", [1, 2])
@pytest.mark.parametrize("min_df", [1, 2])
def test_values_equal_sklearn_on_accented_latin(ngrams: int, min_df: int) -> None:
    agrees_with_sklearn(LATIN * 2 + ["one more café"], TextOptions(ngrams, min_df))


@pytest.mark.parametrize("ngrams", [1, 2])
def test_values_equal_sklearn_on_see_also(see_also: Dataset, ngrams: int) -> None:
    assert see_also.train.texts is not None
    agrees_with_sklearn(list(see_also.train.texts), TextOptions(ngrams, max_features=10**9))


@given(st.lists(st.text("abcÀé_ß 1-\n", max_size=25), min_size=1, max_size=8), st.sampled_from([1, 2]))
def test_values_equal_sklearn_on_any_latin_text(texts: list[str], ngrams: int) -> None:
    agrees_with_sklearn(texts, TextOptions(ngrams, min_df=1))


@given(st.lists(st.text(max_size=30), min_size=1, max_size=6))
def test_any_text_gives_unit_rows_and_a_sorted_vocabulary(texts: list[str]) -> None:
    options = TextOptions(ngrams=2, min_df=1)
    try:
        vectorizer, X = tfidf.fit(texts, options)
    except ValueError:
        return
    assert vectorizer.vocabulary == sorted(set(vectorizer.vocabulary))
    assert np.bincount(X.indices, minlength=X.shape[1]).min() > 0
    is_canonical_with_unit_rows(X)
    same_bits(tfidf.transform(Vectorizer(vectorizer.vocabulary, vectorizer.idf, options), texts), X)


def test_every_character_is_lowered_and_normalized_as_in_python() -> None:
    table = tokenizer.characters(tokenizer.code_points(chr(sys.maxunicode)))
    plain = np.flatnonzero(table & words.AWKWARD == 0)
    plain = plain[(plain < 0xD800) | (plain > 0xDFFF)]
    # A letter on both sides: neither context nor merging with a letter may matter.
    text = "".join(f"a{chr(code)}b" for code in plain.tolist())
    lowered = "".join(f"a{chr(code)}b" for code in (table[plain] & words.LOWER).tolist())
    assert unicodedata.normalize("NFC", text.lower()) == lowered
    assert len(table) == sys.maxunicode + 1


def test_normalization_is_idempotent() -> None:
    for code in range(0x30000):
        once = tokenizer.normalize(chr(code))
        assert tokenizer.normalize(once) == once


def test_texts_without_known_words_are_empty_rows() -> None:
    vectorizer, X = tfidf.fit(["cat dog", "cat dog", "", "?!,", "unknown"], TextOptions(ngrams=1))
    assert np.diff(X.indptr).tolist() == [2, 2, 0, 0, 0]
    assert tfidf.transform(vectorizer, ["", "--", "bird", "\x00"]).nnz == 0
    assert tfidf.transform(vectorizer, []).shape == (0, 2)


def test_composed_and_decomposed_accents_are_the_same_word() -> None:
    vectorizer, X = tfidf.fit(["café crème", "cafe\u0301 cre\u0300me", "CAFE\u0301"], TextOptions(ngrams=1))
    assert vectorizer.vocabulary == ["café", "crème"]
    assert np.diff(X.indptr).tolist() == [2, 2, 1]


@pytest.mark.parametrize(
    ("text", "vocabulary"),
    [
        ("हिन्दी भाषा", ["भाषा", "भाषा हिन्दी", "हिन्दी", "हिन्दी भाषा"]),
        ("中文", ["中", "中 文", "文", "文 中"]),
        ("İZMİR ΟΔΟΣ", ["i̇zmi̇r", "i̇zmi̇r οδος", "οδος", "οδος i̇zmi̇r"]),
        ("\ud800 hello\x00world 👍", ["hello", "hello world", "world", "world hello"]),
        ("각 갂\u11a8 ab", ["ab"]),
    ],
)
def test_terms_of_any_script_survive_storage(text: str, vocabulary: list[str]) -> None:
    vectorizer, X = tfidf.fit([f"{text} {text}", text], TextOptions(ngrams=2, min_df=1))
    assert set(vocabulary) <= set(vectorizer.vocabulary)
    assert X.nnz > 0
    stored = json.loads(json.dumps(vectorizer.vocabulary))
    same_bits(tfidf.transform(Vectorizer(stored, vectorizer.idf, vectorizer.settings), [f"{text} {text}", text]), X)


def test_values_equal_sklearn_with_a_very_long_document() -> None:
    rng = np.random.default_rng(0)
    long = " ".join(f"w{n}" for n in rng.integers(0, 20_000, 250_000))
    assert len(long) > 1_500_000
    agrees_with_sklearn([*(["w1 w2"] * 3000), long, "w3 w4"], TextOptions(ngrams=2))


def corpus() -> Texts:
    rng = np.random.default_rng(1)
    bodies = [" ".join(f"wörd{n}" for n in rng.zipf(1.4, 40) % 3000) for _ in range(5000)]
    return Texts(bodies, titles=[body[:20].upper() for body in bodies])


def test_threads_and_batches_do_not_change_the_bits() -> None:
    texts, options = corpus(), TextOptions(ngrams=2, max_features=3000, title_weight=1.7)
    assert len(tokenizer.Fields.of(texts).chunks()) > 2
    with parallel.use_threads(1):
        vectorizer, X = tfidf.fit(texts, options)
    for threads in (2, 4):
        with parallel.use_threads(threads):
            other, Z = tfidf.fit(texts, options)
            same_bits(X, Z)
            same_bits(tfidf.transform(vectorizer, texts), X)
        assert other.vocabulary == vectorizer.vocabulary
        assert other.idf.tobytes() == vectorizer.idf.tobytes()
    for i in (0, 2047, 2048, 4999):
        same_bits(tfidf.transform(vectorizer, texts[i : i + 1]), X[i])


def test_title_words_have_the_title_weight() -> None:
    texts = Texts(["dog bird", "cat"], titles=["Cat dog", "Cat"])
    vectorizer, X = tfidf.fit(texts, TextOptions(ngrams=1, min_df=1, title_weight=0.5))
    assert vectorizer.vocabulary == ["bird", "cat", "dog"]
    idf = [math.log(3 / 2) + 1, 1, math.log(3 / 2) + 1]
    np.testing.assert_allclose(vectorizer.idf, idf, rtol=1e-6)
    raw = np.array([1 * idf[0], 0.5 * idf[1], (1 + math.log(1.5)) * idf[2]])
    np.testing.assert_allclose(X.toarray(), [raw / np.linalg.norm(raw), [0, 1, 0]], rtol=1e-6)


def test_titles_of_weight_0_are_ignored() -> None:
    texts = Texts(["dog", "dog"], titles=["cat", "cat"])
    vectorizer, X = tfidf.fit(texts, TextOptions(title_weight=0))
    assert vectorizer.vocabulary == ["dog"]
    same_bits(X, tfidf.fit(texts.bodies)[1])


def test_pairs_do_not_span_title_and_body() -> None:
    vectorizer, _ = tfidf.fit(Texts(["red hat"], titles=["big cat"]), TextOptions(ngrams=2, min_df=1))
    assert vectorizer.vocabulary == ["big", "big cat", "cat", "hat", "red", "red hat"]


def test_max_features_keeps_the_largest_counts_then_the_first_in_the_alphabet() -> None:
    texts = ["zz zz zz bb aa", "zz dd bb aa cc", "dd yy yy yy yy yy", "cc"]
    options = TextOptions(ngrams=1, max_features=3)
    assert tfidf.fit(texts, options)[0].vocabulary == ["aa", "bb", "zz"]
    assert tfidf.fit(texts, TextOptions(ngrams=1, min_df=1, max_features=1))[0].vocabulary == ["yy"]
    assert tfidf.fit(texts, TextOptions(ngrams=1))[0].vocabulary == ["aa", "bb", "cc", "dd", "zz"]


@pytest.mark.parametrize(
    ("texts", "min_df", "message"),
    [
        ([], 2, "no word occurs in two documents"),
        (["one", "two"], 2, "no word occurs in two documents"),
        (["one one", "one"], 3, "no word occurs in 3 documents"),
        (["", "?"], 1, "no word occurs in any document"),
    ],
)
def test_texts_without_enough_words_are_rejected(texts: list[str], min_df: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tfidf.fit(texts, TextOptions(min_df=min_df))


@pytest.mark.parametrize("texts", [["cat", None], ["cat", 7], Texts(["cat", "dog"], titles=["a", None])])  # type: ignore[list-item]
def test_text_that_is_not_a_string_is_rejected_with_its_index(texts: Any) -> None:
    with pytest.raises(ValueError, match=r"document 1 is .*: each text must be a string"):
        tfidf.fit(texts, TextOptions(min_df=1))
    with pytest.raises(ValueError, match=r"document 1 is .*: each text must be a string"):
        tfidf.transform(Vectorizer(["cat"], np.ones(1, np.float32)), texts)


def test_single_string_is_rejected() -> None:
    with pytest.raises(ValueError, match="a single string"):
        tfidf.fit("a cat and a cat")


def test_invalid_terms_of_a_vocabulary_match_nothing() -> None:
    vocabulary = ["cat", "Cat", "cat", "my--cat", "", "my cat", "\ud800"]
    vectorizer = Vectorizer(vocabulary, np.ones(7, np.float32), TextOptions(ngrams=2))
    assert tfidf.transform(vectorizer, ["My cat! \ud800"]).indices.tolist() == [0, 5]
    with pytest.raises(ValueError, match="2 terms and 3 weights: there must be one weight per term"):
        Vectorizer(["a", "b"], np.ones(3, np.float32))


@pytest.mark.parametrize(
    "setting",
    [
        {"ngrams": 0},
        {"ngrams": True},
        {"min_df": 0},
        {"min_df": 0.5},
        {"max_features": 0},
        {"max_features": None},
        {"title_weight": -1},
        {"title_weight": math.nan},
        {"title_weight": "2"},
    ],
    ids=str,
)
def test_invalid_options_are_rejected_by_name(setting: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(setting))):
        TextOptions(**setting)


def test_options_survive_json() -> None:
    options = TextOptions(ngrams=2, title_weight=2.5)
    assert TextOptions(**json.loads(json.dumps(asdict(options)))) == options


def test_a_memory_limit_is_checked_while_terms_are_counted() -> None:
    """Random words have far more pairs than an estimate from the length of the texts expects."""
    with pytest.raises(MemoryLimitError, match=r"counting the words of the texts needs .* left of the limit: raise it"):
        tfidf.fit(["a black cat", "a white cat"] * 10, memory_limit=1_000_000)


def test_the_table_of_the_basic_plane_is_a_part_of_the_full_one() -> None:
    full = tokenizer.characters(tokenizer.code_points("\U0001f600"))
    basic = tokenizer.characters(tokenizer.code_points("a\uffee"))
    np.testing.assert_array_equal(basic[:0x10000], full[:0x10000])
    # Its normal form is beyond the basic plane.
    vectorizer, X = tfidf.fit(["\ufacf cat", "\U0002284a cat"], TextOptions(min_df=2))
    assert vectorizer.vocabulary == ["cat", "\U0002284a"]
    assert X.nnz == 4


def test_features_without_scipy_are_those_of_the_matrix() -> None:
    texts = ["my black cat", "my white cat", "", "my white dog"]
    vectorizer, X = tfidf.fit(texts)
    rows = tfidf.features(vectorizer, texts)
    assert (rows.shape, rows.nnz) == (X.shape, X.nnz)
    for part in (slice(0, 2), slice(1, None), slice(2, 2), slice(3, 1), slice(-2, None)):
        same_bits(as_matrix(rows[part]), X[part])
    for i in (0, 2, -1):
        same_bits(as_matrix(rows[i]), X[i])


def as_matrix(rows: FeatureRows) -> csr_matrix:
    return csr_matrix((rows.data, rows.indices, rows.indptr), shape=rows.shape)


def in_files(folder: Path, texts: Texts, size: int) -> TextFiles:
    """Return texts in files of so many documents."""
    folder.mkdir()
    for first in range(0, len(texts), size):
        with (folder / f"train-{first:05}.jsonl").open("w", encoding="utf-8") as file:
            for i in range(first, min(first + size, len(texts))):
                title = {} if texts.titles is None or not texts.titles[i] else {"title": texts.titles[i]}
                file.write(json.dumps(title | {"text": texts.bodies[i], "labels": ["a"]}) + "\n")
    found = load(folder, executor=Threads()).train.texts
    assert isinstance(found, TextFiles)
    return found


@pytest.mark.parametrize("options", [TextOptions(), TextOptions(2, min_df=1, max_features=300, title_weight=2.5)])
def test_texts_in_files_give_the_same_bits(see_also: Dataset, tmp_path: Path, options: TextOptions) -> None:
    texts = see_also.train.texts
    assert texts is not None
    # Texts without a title come first, so that the first file has none.
    texts = Texts(list(texts.bodies)[:300], ["" if i < 120 else f"title {i % 7}" for i in range(300)])
    names = ["array of zeros", "an unseen name"]
    vectorizer, X = tfidf.fit(texts, options, names=names)
    for size in (299, 97):
        other, same = tfidf.fit(in_files(tmp_path / str(size), texts, size), options, names=names, executor=Threads())
        assert other.vocabulary == vectorizer.vocabulary
        assert other.idf.tobytes() == vectorizer.idf.tobytes()
        same_bits(X, same)


def test_words_of_texts_in_files_are_those_of_texts(tmp_path: Path) -> None:
    texts = Texts(["a black cat", "one white cat", "white dogs", "a cow, a cat"])
    assert count_words(in_files(tmp_path / "data", texts, 3), TextOptions()) == count_words(texts, TextOptions())
