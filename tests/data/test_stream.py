"""Documents to predict: formats of texts and features, batches as they arrive, and errors with their line."""

from __future__ import annotations

import gzip
import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import vstack

from lightdxml.data import DataError, Texts
from lightdxml.data.stream import TextForm, feature_batches, opened, text_batches, until_error

STDIN = Path("-")


def read_texts(content: bytes, path: Path = STDIN, form: TextForm = "auto") -> list[tuple[Any, str]]:
    found: list[tuple[Any, str]] = []
    for batch in until_error(text_batches(path, io.BytesIO(content), form=form)):
        assert isinstance(batch.documents, Texts)
        found += zip(batch.ids, batch.documents, strict=True)
    return found


def read_features(content: bytes) -> list[list[float]]:
    batches = [batch.documents for batch in until_error(feature_batches(STDIN, io.BytesIO(content), 3))]
    return vstack(batches).toarray().tolist() if batches else []


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a cat\n\na dog", [(None, "a cat"), (None, ""), (None, "a dog")]),
        (b"\xef\xbb\xbfa cat\r\n", [(None, "a cat")]),
        (b'\n{"id": 7, "title": "Cat", "text": "purrs"}\n\n{"text": "barks"}\n', [(7, "Cat\npurrs"), (None, "barks")]),
        (b'\nid,text\n1,"two\nlines"\n2,\n', [("1", "two\nlines"), ("2", "")]),
        (b"title\ttext\nCat\tpurrs\n", [(None, "Cat\npurrs")]),
        (b"text\na\n\nb\n", [(None, "a"), (None, "b")]),
        (
            b'{"document_id": "d", "text": "a", "subjects": []}\n{"id": 1, "document_id": "d", "text": "b"}\n',
            [("d", "a"), (1, "b")],
        ),
        (b"document_id,text,subject_uris\nd,a,<urn:b>\n", [("d", "a")]),
        (b"a cat\t<urn:pet>\n", [(None, "a cat\t<urn:pet>")]),
        (b"", []),
    ],
    ids=["lines", "bom", "jsonl", "csv", "tsv", "one column", "annif jsonl", "annif csv", "lines with tabs", "nothing"],
)
def test_format_of_texts_is_detected_by_the_first_line(content: bytes, expected: list[tuple[Any, str]]) -> None:
    assert read_texts(content) == expected


def test_given_format_overrides_the_detection() -> None:
    assert read_texts(b'{"text": "a"}\n', form="lines") == [(None, '{"text": "a"}')]


def test_file_name_makes_a_corpus_of_annif_whose_labels_are_not_text() -> None:
    content = b"a cat\t<urn:pet>\n\n\t<urn:pet>\na dog\n"
    assert read_texts(content, Path("my.tsv")) == [(None, "a cat"), (None, ""), (None, "a dog")]


def test_columns_in_a_message_are_shortened() -> None:
    with pytest.raises(DataError, match="…, expected a column named text") as caught:
        read_texts(b"a long text" * 1000 + b"\tb\n", Path("my.tsv"))
    assert len(str(caught.value)) < 400


def test_file_name_makes_a_table() -> None:
    with pytest.raises(DataError, match="found the columns id, body, expected a column named text"):
        read_texts(b"id,body\n1,a\n", Path("my.csv"))


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b'{"text": "a"}\n{"text"\n', 2, "one JSON object per line"),
        (b'{"text": "a"}\n{"text": 5}\n', 2, "a string as text"),
        (b'{"id": 1}\n', 1, "without title and text"),
        (b"a\n\xff\n", 2, "not utf-8"),
        (b"id,text\n1,a\n2\n", 3, "found 1 cells"),
        (b"\xff\xfea\x00", 1, "UTF-16"),
    ],
)
def test_invalid_text_is_rejected_with_its_line(content: bytes, line: int, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read_texts(content)
    assert caught.value.line == line


BAD_TEXTS = [
    b'{"text": "a"}\n{"text"\n{"id": 7, "text": 5}\n{"text": "\xff"}\n{"text": "b"}\n',
    b"text,id\na,0\nx\nx,7,8\n\xff,9\nb,1\n",
]


@pytest.mark.parametrize("content", BAD_TEXTS, ids=["jsonl", "csv"])
def test_documents_around_bad_ones_keep_their_places(content: bytes) -> None:
    (batch,) = text_batches(STDIN, io.BytesIO(content))
    assert list(batch.documents) == ["a", "", "", "", "b"]
    first = 3 if content.startswith(b"text") else 2
    assert {place: error.line for place, error in batch.errors.items()} == {1: first, 2: first + 1, 3: first + 2}


@pytest.mark.parametrize("content", BAD_TEXTS, ids=["jsonl", "csv"])
def test_documents_before_a_bad_one_are_read(content: bytes) -> None:
    batches = until_error(text_batches(STDIN, io.BytesIO(content)))
    assert list(next(batches).documents) == ["a"]
    with pytest.raises(DataError):
        next(batches)


def test_the_id_of_a_bad_document_is_kept() -> None:
    (batch,) = text_batches(STDIN, io.BytesIO(BAD_TEXTS[0]))
    assert batch.ids == [None, None, 7, None, None]


def test_unbalanced_quotes_lose_no_document_before_them() -> None:
    batches = until_error(text_batches(STDIN, io.BytesIO(b'id,text\n1,a\n2,"b\n3,c\n')))
    assert list(next(batches).documents) == ["a"]
    with pytest.raises(DataError, match="balanced quotes"):
        next(batches)


def test_a_header_that_is_no_text_is_an_error_of_the_file() -> None:
    with pytest.raises(DataError, match="not utf-8") as caught:
        list(text_batches(Path("my.csv"), io.BytesIO(b"text,\xff\na,b\n")))
    assert caught.value.line == 1


def test_a_truncated_table_loses_no_document_before_its_end(tmp_path: Path) -> None:
    rows = b"".join(b"%d,%s\n" % (i, hashlib.sha256(b"%d" % i).hexdigest().encode()) for i in range(50_000))
    packed = gzip.compress(b"id,text\n" + rows)
    (tmp_path / "d.csv.gz").write_bytes(packed[: len(packed) // 2])
    sizes: list[int] = []

    def read() -> None:
        with opened(tmp_path / "d.csv.gz") as stream:
            sizes.extend(len(batch.ids) for batch in text_batches(tmp_path / "d.csv.gz", stream))

    with pytest.raises(DataError, match="truncated"):
        read()
    assert sum(sizes) > 15_000
    # Not only whole batches.
    assert sum(sizes) % 4096 != 0


def test_features_around_bad_ones_keep_their_places() -> None:
    (batch,) = feature_batches(STDIN, io.BytesIO(b"4 3 9\n0:1\n3:1\nx\n2:1\n"), 3)
    assert batch.documents.toarray().tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 1]]  # type: ignore[union-attr]
    assert {place: error.line for place, error in batch.errors.items()} == {1: 3, 2: 4}


@pytest.mark.parametrize(
    "content",
    [
        b"Some text, with a comma\n",
        b"Title, text\na, b\n",
        b"text,title\nno comma\n",
        b"text\nwith a comma, too\n",
        b"text\n",
    ],
)
def test_a_text_with_a_comma_is_not_a_table(content: bytes) -> None:
    assert [text for _, text in read_texts(content)] == content.decode().splitlines()


@pytest.mark.parametrize("header", [b"", b"2 3 9\n", b"2 3\n"])
def test_features_are_read_with_or_without_a_header(header: bytes) -> None:
    assert read_features(header + b"5,7 0:1 2:0.5\n1:2\n") == [[1, 0, 0.5], [0, 2, 0]]


def test_blank_lines_count_as_documents_up_to_the_number_in_the_header() -> None:
    assert read_features(b"2 3 9\n0:1\n\n\n\n") == [[1, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"1 9 2\n0 0:1\n", 1, "a header with 9 features, expected the model's 3"),
        (b"9 3 2\n0 0:1\n", 1, "1 documents, expected 9"),
        (b"0 0:1\n0 3:1\n", 2, "'3:1', expected ids from 0 to 2"),
    ],
)
def test_invalid_features_are_rejected_with_their_line(content: bytes, line: int, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read_features(content)
    assert caught.value.line == line


class Slow(io.RawIOBase):
    """A stream whose lines arrive one by one."""

    def __init__(self, lines: list[bytes]) -> None:
        self.lines = lines

    def read1(self, size: int) -> bytes:
        return self.lines.pop(0) if self.lines else b""


def test_documents_are_yielded_before_the_next_ones_arrive() -> None:
    lines = [b"one\n", b"tw", b"o\n"]
    stream = Slow(lines)
    batches = text_batches(STDIN, stream, form="lines")  # type: ignore[arg-type]
    assert list(next(batches).documents) == ["one"]
    assert len(lines) == 2
    assert list(next(batches).documents) == ["two"]


def test_long_streams_come_in_several_batches() -> None:
    content = b"".join(b"%d:1\n" % (i % 3) for i in range(10_000))
    sizes = [batch.documents.shape[0] for batch in feature_batches(STDIN, io.BytesIO(content), 3)]  # type: ignore[union-attr]
    assert len(sizes) > 1
    assert sum(sizes) == 10_000
    np.testing.assert_array_equal(np.argmax(read_features(content), axis=1), np.arange(10_000) % 3)


def test_compressed_file_is_opened(tmp_path: Path) -> None:
    (tmp_path / "texts").write_bytes(gzip.compress(b"a cat\n"))
    with opened(tmp_path / "texts") as stream:
        (batch,) = text_batches(tmp_path / "texts", stream)
    assert list(batch.documents) == ["a cat"]
