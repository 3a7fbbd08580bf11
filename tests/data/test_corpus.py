"""Documents in one or several files, and parts of them."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lightdxml.data.corpus import Corpus, Span, span_of
from lightdxml.data.errors import DataError


def texts_of(corpus: Corpus, span: Span | None = None) -> list[str]:
    counts = () if span is None else corpus.counts()
    return [text for batch in corpus.batches(span, counts) for text in batch.documents]


def write_lines(path: Path, texts: list[str]) -> None:
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")


def write_json(path: Path, texts: list[str]) -> None:
    path.write_bytes(gzip.compress("\n".join(f'{{"text": "{text}"}}\n' for text in texts).encode()))


def write_csv(path: Path, texts: list[str]) -> None:
    rows = "".join(f'{i},"{text}\nand more"\n\n' for i, text in enumerate(texts))
    path.write_text("id,text\n" + rows, encoding="utf-8")


def write_parquet(path: Path, texts: list[str]) -> None:
    pq.write_table(pa.table({"text": texts}), path)


@pytest.mark.parametrize(
    ("name", "write"),
    [("txt", write_lines), ("jsonl.gz", write_json), ("csv", write_csv), ("parquet", write_parquet)],
)
def test_parts_of_a_folder_are_its_documents_in_order(
    tmp_path: Path, name: str, write: Callable[[Path, list[str]], None]
) -> None:
    for i, n in enumerate((3, 1, 4)):
        write(tmp_path / f"part-{i}.{name}", [f"text {i} {j}" for j in range(n)])
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".part-0.crc").touch()
    corpus = Corpus(tmp_path)
    everything = texts_of(corpus)
    assert [text.split("\n")[0] for text in everything] == [
        f"text {i} {j}" for i, n in ((0, 3), (1, 1), (2, 4)) for j in range(n)
    ]
    for parts in (1, 3, 8, 11):
        found = [texts_of(corpus, span_of(part, parts, 8)) for part in range(1, parts + 1)]
        assert [text for part in found for text in part] == everything
        assert max(map(len, found)) - min(map(len, found)) <= 1


@given(st.integers(0, 10**12), st.integers(1, 1000))
def test_parts_follow_each_other_and_differ_by_one_document_at_most(n_documents: int, parts: int) -> None:
    spans = [span_of(part, parts, n_documents) for part in range(1, parts + 1)]
    assert [0, *(span.stop for span in spans)] == [*(span.start for span in spans), n_documents]
    assert max(span.stop - span.start for span in spans) - min(span.stop - span.start for span in spans) <= 1


def test_features_are_cut_with_their_errors(tmp_path: Path) -> None:
    (tmp_path / "features.txt").write_text("4 3 9\n0:1\n1:1\nx\n2:1\n")
    corpus = Corpus(tmp_path / "features.txt", n_features=3)
    assert corpus.counts() == [4]
    (batch,) = corpus.batches(Span(1, 3), [4])
    assert batch.documents.toarray().tolist() == [[0, 1, 0], [0, 0, 0]]  # type: ignore[union-attr]
    assert "line 4" in str(batch.errors[1])
    (batch,) = corpus.batches(Span(3, 4), [4])
    assert not batch.errors


def test_a_part_reads_nothing_behind_its_last_document(tmp_path: Path) -> None:
    write_lines(tmp_path / "0.txt", ["a", "b"])
    corpus = Corpus(tmp_path)
    (tmp_path / "1.txt").write_bytes(b"\xff\xfea\n")
    assert [text for batch in corpus.batches(Span(0, 2), [2, 1]) for text in batch.documents] == ["a", "b"]


def test_a_folder_that_is_no_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="found no files"):
        Corpus(tmp_path).files()
    (tmp_path / "a.jsonl").touch()
    (tmp_path / "read.me").touch()
    with pytest.raises(DataError, match=r"found files that end in \.jsonl, \.me, expected files of one form"):
        Corpus(tmp_path).files()
    (tmp_path / "more").mkdir()
    with pytest.raises(DataError, match="more: found a folder, expected nothing but files"):
        Corpus(tmp_path).files()


def test_standard_input_has_no_parts() -> None:
    with pytest.raises(ValueError, match="standard input cannot be divided into parts"):
        Corpus(Path("-")).counts()
