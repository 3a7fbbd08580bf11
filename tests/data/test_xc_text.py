"""XC text: a file is read exactly, or rejected with a one-line message."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from lightdxml.data import DataError, files, xc_text
from tests.data import reference


def write(folder: Path, content: str | bytes, name: str = "train.txt") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def rows_of(X: csr_matrix, Y: csr_matrix) -> list[reference.Row]:
    return [(y.indices.tolist(), dict(zip(x.indices.tolist(), x.data, strict=True))) for x, y in zip(X, Y, strict=True)]


def test_header_gives_the_sizes(tmp_path: Path) -> None:
    X, Y = xc_text.read_labeled(write(tmp_path, "2 4 3\n0,2 1:0.5 3:-2e1\n1 0:1\n"))
    assert X.toarray().tolist() == [[0, 0.5, 0, -20], [1, 0, 0, 0]]
    assert Y.toarray().tolist() == [[1, 0, 1], [0, 1, 0]]
    assert X.dtype == Y.dtype == np.float32
    assert isinstance(X, csr_matrix)


def test_documents_may_lack_labels_features_or_both(tmp_path: Path) -> None:
    X, Y = xc_text.read_labeled(write(tmp_path, "5 3 2\n 0:1\n0:1 2:1\n1\n\n0,1 \n"))
    assert X.toarray().tolist() == [[1, 0, 0], [1, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert Y.toarray().tolist() == [[0, 0], [0, 0], [0, 1], [0, 0], [1, 1]]


@pytest.mark.parametrize(
    "content",
    [
        b"1 3 2\r\n0,1 0:1 2:0.5\r\n",
        b"\xef\xbb\xbf1 3 2\n0,1 0:1 2:0.5\n",
        b"1 3 2\n0,1 0:1 2:0.5   \t \n\n  \n",
        b"1 3 2  \n0,1\t0:1 \t 2:0.5",
        b"1 3 2\n1,0 2:0.5 0:1\n",
        b"1 3 2\n0,1,1,0 0:1.0000000000000000000000000 2:5E-1\n",
        b"1 3 2\n0,1 0:+1. 2:.5\n",
        b"1 3 2\n00,1 000:1 2:0.5\n",
    ],
    ids=["crlf", "bom", "blanks", "no-last-newline", "unsorted", "repeated-labels", "sign-and-dots", "zeros"],
)
def test_harmless_variants_read_the_same(tmp_path: Path, content: bytes) -> None:
    X, Y = xc_text.read_labeled(write(tmp_path, content))
    assert X.toarray().tolist() == [[1, 0, 0.5]]
    assert Y.toarray().tolist() == [[1, 1]]
    assert X.has_sorted_indices


def test_largest_ids_of_svmlight_give_the_sizes(tmp_path: Path) -> None:
    X, Y = xc_text.read_labeled(write(tmp_path, "# made by hand\n1,3 2:0.5 # a remark\n0 0:1\n"))
    assert X.toarray().tolist() == [[0, 0, 0.5], [1, 0, 0]]
    assert Y.toarray().tolist() == [[0, 1, 0, 1], [1, 0, 0, 0]]


def test_comment_lines_are_not_documents_but_count_as_lines(tmp_path: Path) -> None:
    content = "# made by\n#\n0,1#x\n  # more\n\n2 1:1#y\n"
    _, Y = xc_text.read_labeled(write(tmp_path, content))
    assert Y.toarray().tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 1]]
    with pytest.raises(DataError) as caught:
        xc_text.read_labeled(write(tmp_path, content + "3 1:1 x\n"))
    assert caught.value.line == 7


def test_blank_lines_before_the_header_are_skipped_but_count_as_lines(tmp_path: Path) -> None:
    X, _ = xc_text.read_labeled(write(tmp_path, "\n \n1 3 2\n0 2:1\n"))
    assert X.shape == (1, 3)
    with pytest.raises(DataError) as caught:
        xc_text.read_labeled(write(tmp_path, "\n \n1 3 2\n0 3:1\n"))
    assert caught.value.line == 4


def test_the_first_of_several_faults_is_reported_at_any_number_of_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "4 3 2\n0 0:1\n0 0:3.4028235677973367e38\n0 0:1\n0 9:1\n")
    for threads in ("1", "2", "4"):
        monkeypatch.setenv("LIGHTDXML_THREADS", threads)
        with pytest.raises(DataError, match=r"line 3: .* overflows"):
            xc_text.read_labeled(path)


def test_header_of_two_counts_is_a_matrix(tmp_path: Path) -> None:
    matrix = xc_text.read_matrix(write(tmp_path, "3 4\n0:1 3:2\n\n1:0.25\n"))
    assert matrix.toarray().tolist() == [[1, 0, 0, 2], [0, 0, 0, 0], [0, 0.25, 0, 0]]


FAULTS = [
    ("2 3 2\n0 0:1\n", 1, "1 documents", "2, as the header says"),
    ("1 3 2\n0 0:1\n1 1:1\n", 1, "2 documents", "1, as the header says"),
    ("1 3 2\n0 3:1\n", 2, "'3:1'", "ids from 0 to 2 (the header says 3 features)"),
    ("1 3 2\n2 0:1\n", 2, "label id '2'", "ids from 0 to 1 (the header says 2 labels)"),
    ("1 3 2\n0 -1:1\n", 2, "'-1:1'", "non-negative integer"),
    ("1 3 2\n-1 0:1\n", 2, "'-1'", "label ids"),
    ("2 3 2\n0 0:1\n0 0:nan\n", 3, "'0:nan'", "finite"),
    ("1 3 2\n0 0:-Inf\n", 2, "'0:-Inf'", "finite"),
    ("1 3 2\n0 0:infinity\n", 2, "'0:infinity'", "finite"),
    ("1 3 2\n0 0:1e39\n", 2, "overflows", "float32"),
    ("1 3 2\n0 0:1e99999999999999\n", 2, "overflows", "float32"),
    ("1 3 2\n0 99999999999999999999:1\n", 2, "'99999999999999999999:1'", "ids from 0 to 2"),
    ("1 3 2\n0 1\n", 2, "'1' without a colon", "feature:value"),
    ("1 3 2\n0 0:1 2\n", 2, "'2' without a colon", "feature:value"),
    ("1 3 2\n0 0:1 :2\n", 2, "':2'", "feature:value"),
    ("1 3 2\n0 0:\n", 2, "'0:'", "decimal number"),
    ("1 3 2\n0 0:1x\n", 2, "'0:1x'", "decimal number"),
    ("1 3 2\n0 0:0x10\n", 2, "'0:0x10'", "decimal number"),
    # A number that needs exact arithmetic, then an error on the same line: once an IndexError.
    ("1 3 2\n0 1:1e-45 2:x\n", 2, "'2:x'", "decimal number"),
    ("2 3 2\n0 1:1e-45\n0 2:1e-45 9:1\n", 3, "'9:1'", "ids from 0 to 2"),
    ("1 3 2\n0 0:1e\n", 2, "'0:1e'", "decimal number"),
    ("1 3 2\n0 0:1,5\n", 2, "'0:1,5'", "decimal number"),
    ("1 3 2\n0 0:--1\n", 2, "'0:--1'", "decimal number"),
    ("1 3 2\n0, 0:1\n", 2, "", "label ids"),
    ("1 3 2\n0,a 0:1\n", 2, "'a'", "label ids"),
    ("1 3 2\n0;1 0:1\n", 2, "'0;1'", "label ids"),
    ("1 3 2\n0 0:1 0:2\n", 2, "a repeated feature", "each feature once"),
    ("1 3 2\n0 0:1 # remark\n", 2, "'#'", "feature:value"),
    ("1 3 2\n0 0:1\x00\n", 2, "", "feature:value"),
    ("1 3 2\n0 0:1 ä\n", 2, "'ä'", "feature:value"),
    ("1 3000000000 2\n0 0:1\n", 1, "claims 3,000,000,000 features", "at most"),
    ("1 3 1000000000000\n0 0:1\n", 1, "claims 1,000,000,000,000 labels", "at most"),
    ("1000000000000 3 2\n0 0:1\n", 1, "1 documents", "1000000000000, as the header says"),
]


@pytest.mark.parametrize(("content", "line", "found", "expected"), FAULTS)
def test_fault_is_reported_with_file_line_found_and_expected(
    tmp_path: Path, content: str, line: int | None, found: str, expected: str
) -> None:
    path = write(tmp_path, content)
    with pytest.raises(DataError) as caught:
        xc_text.read_labeled(path)
    assert caught.value.path == path
    assert caught.value.line == line
    assert found in caught.value.found
    assert expected in caught.value.expected
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "found", "expected"),
    [
        ("1 3\n2 0:1\n", "label id '2'", "no labels"),
        ("1 3\n0:1 3:1\n", "'3:1'", "3 columns"),
        ("0:1 2:1\n", "'0:1 2:1'", "two integers"),
        ("1 3 2\n0 0:1\n", "the first line '1 3 2'", "two integers"),
    ],
)
def test_labels_in_a_matrix_file_are_rejected(tmp_path: Path, content: str, found: str, expected: str) -> None:
    with pytest.raises(DataError) as caught:
        xc_text.read_matrix(write(tmp_path, content))
    assert found in caught.value.found
    assert expected in caught.value.expected


@pytest.mark.parametrize("content", ["", "\ufeff"])
def test_empty_file_is_rejected(tmp_path: Path, content: str) -> None:
    with pytest.raises(DataError, match="an empty file"):
        xc_text.read_labeled(write(tmp_path, content))


def test_header_of_zero_documents_is_read(tmp_path: Path) -> None:
    X, Y = xc_text.read_labeled(write(tmp_path, "0 5 3\n"))
    assert X.shape == (0, 5)
    assert Y.shape == (0, 3)


def test_truncated_gzip_is_rejected(tmp_path: Path) -> None:
    complete = gzip.compress(b"2000 3 2\n" + b"0 0:1 2:0.25\n" * 2000)
    for cut in (len(complete) - 1, len(complete) - 8, len(complete) // 2, 12):
        with pytest.raises(DataError, match="truncated"):
            xc_text.read_labeled(write(tmp_path, complete[:cut], "train.txt.gz"))


def test_utf16_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="UTF-16"):
        xc_text.read_labeled(write(tmp_path, "1 3 2\n0 0:1\n".encode("utf-16")))


def test_files_of_several_blocks_are_read_and_faults_get_their_line(tmp_path: Path) -> None:
    n = 1_000_000
    lines = [f"{i % 7} {i % 50}:{i % 8 / 8} 50:{i}" for i in range(n)]
    path = write(tmp_path, f"{n} 51 7\n" + "\n".join(lines))
    assert path.stat().st_size > 2 * files._BLOCK_BYTES
    X, Y = xc_text.read_labeled(path)
    np.testing.assert_array_equal(X[:, 50].toarray().ravel(), np.arange(n, dtype=np.float32))
    np.testing.assert_array_equal(Y.indices, np.arange(n) % 7)
    lines[n - 5] = "0 1:x"
    with pytest.raises(DataError) as caught:
        xc_text.read_labeled(write(tmp_path, f"{n} 51 7\n" + "\n".join(lines)))
    assert caught.value.line == n - 5 + 2


def test_lines_longer_than_a_block_are_read(tmp_path: Path) -> None:
    n = 1_500_000
    long = " ".join(f"{i}:1" for i in range(n))
    assert len(long) > files._BLOCK_BYTES
    X, _ = xc_text.read_labeled(write(tmp_path, f"3 {n} 2\n0 {long}\n\n1 {long}\n"))
    assert np.diff(X.indptr).tolist() == [n, 0, n]


def test_number_of_threads_does_not_change_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, "500 90 9\n" + "".join(f"{i % 9} {i % 90}:{1 / (i + 1)}\n" for i in range(500)))
    results = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("LIGHTDXML_THREADS", threads)
        results.append(xc_text.read_labeled(path))
    for X, Y in results[1:]:
        assert (results[0][0] != X).nnz == 0
        assert (results[0][1] != Y).nnz == 0


@pytest.mark.parametrize(
    "number",
    [
        "0", "-0", "1", "0.1", "1e-45", "7e-46", "1.401298464324817e-45", "1.1754943508222875e-38", "1e-300", "1e-999",
        "3.4028234663852886e38", "3.40282356e38", "16777217", "16777219", "1.00000005960464477539062500001",
        "1.000000059604644775390625", "0.333333333333333333333333333333333", "123456789012345678901234567890",
        "2.2250738585072014e-308", "5e-324", "8388608.5", "3.4028235677973362e38",
        "9007199254740993", "0.000000000000000000000000000000000000011754944",
    ],
)  # fmt: skip
def test_hard_numbers_round_to_the_nearest_float32(tmp_path: Path, number: str) -> None:
    X, _ = xc_text.read_labeled(write(tmp_path, f"1 2 1\n0 1:1 0:{number}\n"))
    assert X[0, 0] == reference.nearest_float32(number)
    assert X[0, 1] == 1


def test_thousands_of_hard_numbers_fit_into_one_line(tmp_path: Path) -> None:
    values = [f"{i + 1}e-45" for i in range(5000)]
    pairs = [f"{i}:{value}" for i, value in enumerate(values)]
    X, _ = xc_text.read_labeled(write(tmp_path, f"1 5000 1\n0 {' '.join(reversed(pairs))}\n"))
    expected = [reference.nearest_float32(value) for value in values]
    np.testing.assert_array_equal(X.data, np.array(expected, dtype=np.float32))


def test_long_unsorted_lines_are_sorted_quickly(tmp_path: Path) -> None:
    n = 200_000
    features = " ".join(f"{i}:1" for i in range(n - 1, -1, -1))
    labels = ",".join(str(i) for i in range(n - 1, -1, -1))
    X, Y = xc_text.read_labeled(write(tmp_path, f"1 {n} {n}\n{labels} {features}\n"))
    assert X.indices.tolist() == Y.indices.tolist() == list(range(n))


numbers = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.floats(allow_nan=False, allow_infinity=False, min_value=-3e38, max_value=3e38).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-1000, max_value=1000, places=5).map(str),
    st.integers(-(10**9), 10**9).map(str),
)


@given(st.lists(numbers, min_size=1, max_size=20))
def test_any_number_rounds_to_the_nearest_float32(tmp_path_factory: pytest.TempPathFactory, values: list[str]) -> None:
    pairs = " ".join(f"{i}:{value}" for i, value in enumerate(values))
    path = write(tmp_path_factory.mktemp("numbers"), f"1 20 1\n0 {pairs}\n")
    expected = np.array([reference.nearest_float32(value) for value in values], dtype=np.float32)
    np.testing.assert_array_equal(xc_text.read_labeled(path)[0].data, expected)


tokens = st.sampled_from(
    ["0", "1", "2", "9", "0,1", "1,1", "1,", ",", "0:1", "1:2.5", "2:-3e-3", "1:", ":1", "3:1", "0:nan", "0:1e99", "#",
     " ", "  ", "\t", "\r", "\n", "\n", "\n", "-1:1", "x", "\x0b", "1:1:1", "0:.", "0:1e+2", "2 3 3\n", "2:0.1 "]
)  # fmt: skip


@given(
    st.sampled_from(["", "\n2 3 2\n", "2 3 2\n", "3 3 3\n", "1 2 2 \r\n", "\ufeff2 3 2\n"]),
    st.lists(tokens, max_size=14),
)
def test_any_file_is_accepted_and_read_as_by_the_reference_reader(
    tmp_path_factory: pytest.TempPathFactory, header: str, body: list[str]
) -> None:
    content = (header + "".join(f"{token} " if token[0] in "0123456789" else token for token in body)).encode()
    path = write(tmp_path_factory.mktemp("same"), content)
    try:
        sizes, rows = reference.parse(content)
    except reference.BadLineError:
        rows = None
    try:
        X, Y = xc_text.read_labeled(path)
    except DataError as error:
        assert rows is None or "empty file" in str(error) or "a header of three" in str(error), content
    else:
        assert rows is not None, content
        assert (*X.shape, Y.shape[1]) == sizes
        assert rows_of(X, Y) == rows


def matrices(columns: int) -> st.SearchStrategy[csr_matrix]:
    cell = st.one_of(st.just(0.0), st.floats(width=32, allow_nan=False, allow_infinity=False))
    row = st.lists(cell, min_size=columns, max_size=columns)
    return st.lists(row, max_size=6).map(lambda rows: csr_matrix(np.array(rows, dtype=np.float32).reshape(-1, columns)))


@given(matrices(5), st.randoms(use_true_random=False))
def test_written_matrices_read_back_the_same(
    tmp_path_factory: pytest.TempPathFactory, X: csr_matrix, random: object
) -> None:
    rng = np.random.default_rng(random.randrange(2**32))  # type: ignore[attr-defined]
    Y = csr_matrix((rng.random((X.shape[0], 4)) < 0.4).astype(np.float32))
    for suffix in ("", ".gz", ".zst"):
        path = tmp_path_factory.mktemp("round") / f"train.txt{suffix}"
        xc_text.write_labeled(path, X, Y)
        for written, read in zip((X, Y), xc_text.read_labeled(path), strict=True):
            assert written.shape == read.shape
            for name in ("data", "indices", "indptr"):
                np.testing.assert_array_equal(getattr(written, name), getattr(read, name))
