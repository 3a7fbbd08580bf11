"""Words, tables and weights against plain Python."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from lightdxml.kernels import words
from lightdxml.text import tokenizer


def found(text: str) -> list[str]:
    codes = tokenizer.code_points(text)
    table = tokenizer.characters(codes)
    at = 0
    parts: list[str] = []
    while True:
        begin, at, _ = words.next_word(codes, at, len(text), table)
        if begin == len(text):
            return parts
        parts.append(text[begin:at])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("a cat, 2 dogs_and x9", ["cat", "dogs_and", "x9"]),
        ("naïve café", ["naïve", "café"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("中文abc字", ["中", "文", "abc", "字"]),
        ("ที่นี่ ๑๒", ["ที่", "นี่", "๑๒"]),
        ("❤\ufe0fhello 👍🏽", ["hello"]),
        ("q\u0323x\u0323y \u0301ab", ["q\u0323x\u0323y", "ab"]),
        ("\ud800ab\x00cd", ["ab", "cd"]),
    ],
)
def test_words_of_many_scripts(text: str, expected: list[str]) -> None:
    assert found(text) == expected


def test_case_does_not_change_a_hash_and_order_does() -> None:
    def hashes(text: str) -> set[int]:
        codes, bounds = tokenizer.code_points(text), np.array([0, 0, len(text)])
        return set(words.count_terms(codes, bounds, tokenizer.characters(codes), True, 0)[0][:, 0].tolist())

    assert hashes("Black CAT Éa") == hashes("black cat éa")
    assert len(hashes("cat dog") | hashes("dog cat")) == 4
    assert len(hashes("catdog") | hashes("cat dog")) == 4
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    many = " ".join(a + b + c for a in letters for b in letters for c in letters)
    assert len(hashes(many)) == 2 * len(letters) ** 3 - 1


def test_counts_documents_and_first_occurrences_do_not_depend_on_the_order_of_merging() -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{n}" for n in rng.zipf(1.3, 200) % 5000) for _ in range(60)]
    totals: Counter[str] = Counter()
    documents: Counter[str] = Counter()
    for text in texts:
        totals.update(text.split())
        documents.update(set(text.split()))
    expected = sorted(totals[word] << 32 | documents[word] for word in totals)
    parts = []
    for start in range(0, 60, 20):
        joined, bounds = tokenizer.join([part for text in texts[start : start + 20] for part in ("", text)])
        codes = tokenizer.code_points(joined)
        parts.append(words.count_terms(codes, bounds, tokenizer.characters(codes), False, start))
    results = []
    for order in ([0, 1, 2], [2, 0, 1]):
        table, n = np.zeros((8, words.COLUMNS), np.uint64), 0
        for i in order:
            terms, indptr = parts[i]
            for shard in range(words.SHARDS):
                table, n = words.merge(table, n, terms, indptr[shard], indptr[shard + 1])
        rows = table[table[:, 0] != 0]
        assert len(rows) == n == len(expected)
        results.append(sorted(rows.tolist()))
    assert results[0] == results[1]
    assert sorted(row[1] for row in results[0]) == expected
    for _, _, occurrence in results[0]:
        document, position = occurrence >> 32, (occurrence & 0xFFFFFFFF) // 2
        word = texts[document][position:].split()[0]
        assert document == next(i for i, text in enumerate(texts) if word in text.split())


def test_a_vocabulary_has_slots_only_for_terms_that_a_text_can_have() -> None:
    vocabulary = [
        "cat",
        "black cat",
        "Cat",
        "black  cat",
        "black-cat",
        " cat",
        "cat ",
        "a",
        "",
        "cat",
        "a b c",
        "ab cd ef",
    ]
    joined, bounds = tokenizer.join(vocabulary)
    codes = tokenizer.code_points(joined)
    table = words.vocabulary_table(codes, bounds, tokenizer.characters(codes), 32)
    assert sorted(table[table[:, 0] != 0, 1].tolist()) == [0, 1]


def test_rows_are_sorted_weighted_and_of_unit_length() -> None:
    indptr, found_columns = np.array([0, 3, 3, 4]), np.array([4, 0, 2, 4], np.int32)
    counts, idf = np.array([3.0, 0.5, 1.0, 7.0]), np.array([1, 2, 3, 4, 5], np.float32)
    columns, values = np.empty(4, np.int32), np.empty(4, np.float32)
    words.weigh(indptr, found_columns, counts, idf, columns, values)
    assert columns.tolist() == [0, 2, 4, 4]
    raw = np.array([0.5, 3.0, 5 * (1 + math.log(3))])
    np.testing.assert_allclose(values, [*(raw / np.linalg.norm(raw)), 1.0], rtol=1e-6)
