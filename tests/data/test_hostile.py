"""Files that are made to fill memory are rejected with a one-line message before they do."""

from __future__ import annotations

import gzip
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import coo_matrix, csr_matrix, save_npz

from lightdxml.data import DataError, files, load
from tests.data.samples import ANNIF_CSV, ANNIF_JSONL, ANNIF_TSV, JSONL, XC_TEXT

GIGABYTE = 1 << 30
START = {
    "train.jsonl": b'{"text": "a", "labels": ["b"]}\n',
    "train.txt": b"0 0:1\n",
    "train.tsv": b"a\t<urn:b>\n",
    "train.csv": b"text,subject_uris\n",
    "a.txt": b"text\n",
}


def long_line(path: Path) -> None:
    with path.open("wb") as stream:
        stream.write(START[path.name])
        stream.truncate(GIGABYTE)


def long_document(path: Path) -> None:
    path.with_suffix(".key").write_text("b\n")
    long_line(path)


def document_of_many_labels(path: Path) -> None:
    path.with_suffix(".txt").write_text("text")
    with gzip.open(path, "wb", compresslevel=1) as stream:
        stream.write(b"a\n" * 10**7)


def bomb_in_one_line(path: Path) -> None:
    with gzip.open(path, "wb", compresslevel=1) as stream:
        stream.write(START["train.jsonl"])
        for _ in range(300):
            stream.write(bytes(1 << 20))


def wide_header(path: Path) -> None:
    path.write_text("1 3 1000000000000\n0 0:1\n")


def wide_but_countable_header(path: Path) -> None:
    path.write_text("1 2000000000 2000000000\n0 0:1\n")


def deep_json(path: Path) -> None:
    path.write_text('{"text": "a", "labels": ' + "[" * 10**6 + "\n")


def many_rows(path: Path) -> None:
    path.write_text("1000000000000 3 3\n0 0:1\n")


def lying_npz(path: Path) -> None:
    """Write an array whose header claims 8 TB."""
    save_npz(path.with_name("trn_Y.npz"), csr_matrix(np.eye(2)))
    save_npz(path, csr_matrix(np.eye(2)), compressed=False)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content.replace(b"(2,)", b"(1000000000000,)"))


def packed_npz(path: Path) -> None:
    """Write an array of zeros that takes 1.1 GB when unpacked."""
    save_npz(path.with_name("trn_Y.npz"), csr_matrix(np.eye(2)))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("format.npy", b"csr")
        with archive.open("data.npy", "w", force_zip64=True) as member:
            for _ in range(1100):
                member.write(bytes(1 << 20))


def claiming_npz(path: Path) -> None:
    save_npz(path.with_name("trn_Y.npz"), csr_matrix(np.eye(2)))
    save_npz(path, coo_matrix((np.ones(1), ([0], [0])), shape=(2**31 - 1, 2)))


MADE: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "a JSON line of 1 GB": ("train.jsonl", long_line, "a line of more than 256 MB"),
    "a text line of 1 GB": ("train.txt", long_line, "a line of more than 256 MB"),
    "a line of Annif's TSV of 1 GB": ("train.tsv", long_line, "a line of more than 256 MB"),
    "a line of Annif's CSV of 1 GB": ("train.csv", long_line, "a line of more than 256 MB"),
    "a document of 1 GB in one line": ("a.txt", long_document, "a line of more than 256 MB"),
    "labels of a document as a gzip bomb": ("a.key", document_of_many_labels, "compressed data"),
    "a gzip bomb in one line": ("train.jsonl.gz", bomb_in_one_line, "when unpacked"),
    "a header of a trillion labels": ("train.txt", wide_header, "claims 1,000,000,000,000 labels"),
    "a header of two billion labels": ("train.txt", wide_but_countable_header, "2,000,000,000 labels"),
    "a header of a trillion rows": ("train.txt", many_rows, "1 documents, expected 1000000000000"),
    "JSON a million levels deep": ("train.jsonl", deep_json, "one JSON object per line"),
    "an array that claims 8 TB": ("trn_X.npz", lying_npz, "an invalid sparse matrix"),
    "an array of zeros packed small": ("trn_X.npz", packed_npz, "when unpacked"),
    "a matrix of two billion rows": ("trn_X.npz", claiming_npz, "2,147,483,647"),
}
CHILD = textwrap.dedent("""
    import resource, sys
    from lightdxml.data import load
    now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + (2 << 30), now + (2 << 30)))
    for path in sys.argv[1:]:
        try:
            load(path)
            print("read")
        except ValueError as error:
            print(error)
""")


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
def test_hostile_files_are_rejected_within_two_gigabytes(tmp_path: Path) -> None:
    folders = [tmp_path / str(i) for i in range(len(MADE))]
    for folder, (name, make, _) in zip(folders, MADE.values(), strict=True):
        folder.mkdir()
        make(folder / name)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *map(str, folders)], capture_output=True, text=True, timeout=100, check=False
    )
    answers = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert len(answers) == len(MADE), done.stdout
    for (what, (_, _, message)), answer in zip(MADE.items(), answers, strict=True):
        assert message in answer, f"{what}: {answer}"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("train.jsonl.gz", JSONL),
        ("train.txt.gz", XC_TEXT.replace("\n", "\n\n", 1)),
        ("train.tsv.gz", ANNIF_TSV),
        ("train.csv.gz", ANNIF_CSV),
        ("train.jsonl.gz", ANNIF_JSONL),
    ],
)
def test_decompression_bomb_of_short_lines_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str
) -> None:
    monkeypatch.setattr(files, "_FREE_MEMORY", 100_000)
    (tmp_path / name).write_bytes(gzip.compress((content + "\n" * 10**7).encode()))
    with pytest.raises(DataError, match="when unpacked, from") as caught:
        load(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "content"), [("train.jsonl.gz", JSONL), ("train.txt.gz", XC_TEXT)])
def test_data_that_compresses_well_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str
) -> None:
    monkeypatch.setattr(files, "_FREE_MEMORY", 1)
    (tmp_path / name).write_bytes(gzip.compress(content.encode()))
    assert len(load(tmp_path).train) > 0


def test_implausibly_large_label_id_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("3 1:1\n1999999999 2:1\n")
    with pytest.raises(DataError, match="2,000,000,000 labels, expected at most 20,000,000 for so little data"):
        load(tmp_path)


@pytest.mark.parametrize("name", ["train.csv.gz", "train.jsonl.gz", "train.txt.gz", "train.csv"])
def test_a_file_of_blank_lines_is_rejected_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A bomb of 2 GB of line ends once kept the search for the first line busy for hours."""
    monkeypatch.setattr(files, "_MAX_BLANK", 1000)
    content = b"\n" * 100_000 + b"text,labels\na,b\n"
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    with pytest.raises(DataError, match="1,001 blank lines at its start"):
        load(tmp_path / name)


def test_a_file_that_states_an_absurd_size_is_read_or_rejected_as_damaged(tmp_path: Path) -> None:
    """It once seemed to need gigabytes of memory."""
    content = bytearray(gzip.compress(JSONL.encode()))
    content[-4:] = b"\xff\xff\xff\xff"
    (tmp_path / "train.jsonl.gz").write_bytes(content)
    assert files.reading_bytes(tmp_path / "train.jsonl.gz") < 10**8
    with pytest.raises(DataError, match="corrupt compressed data"):
        load(tmp_path)
