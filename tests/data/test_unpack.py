"""Unpacking archives: completely and inside the folder, or not at all."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from lightdxml.data import files
from lightdxml.data.errors import DataError
from lightdxml.data.unpack import unpack
from tests.data.server import BODY, NOISE, names, put, tarred, zipped

TAR = tarred(("top/a.txt", b"first\n"), ("top/b.txt", NOISE))
ARCHIVES = {
    "x.zip": zipped(("top/a.txt", b"first\n"), ("top/b.txt", NOISE)),
    "x.tar.gz": gzip.compress(TAR),
    "x.tar.bz2": bz2.compress(TAR),
    "x.tar.xz": lzma.compress(TAR, preset=0),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_archives_are_unpacked(tmp_path: Path, name: str) -> None:
    folder = unpack(put(tmp_path, name, ARCHIVES[name]), tmp_path / "deep" / "x")
    assert (folder / "top" / "a.txt").read_bytes() == b"first\n"
    assert (folder / "top" / "b.txt").read_bytes() == NOISE
    assert names(folder.parent) == ["x"]


def test_kind_is_detected_by_content(tmp_path: Path) -> None:
    folder = unpack(put(tmp_path, "x.zip", ARCHIVES["x.tar.gz"]), tmp_path / "x")
    assert names(folder) == ["top"]


def test_folders_and_unusual_but_harmless_names_are_kept(tmp_path: Path) -> None:
    body = zipped(*((name, b"") for name in ("./", "empty/", "./dots/..a.txt")))
    folder = unpack(put(tmp_path, "x.zip", body), tmp_path / "x")
    assert sorted(str(path.relative_to(folder).as_posix()) for path in folder.rglob("*")) == [
        "dots",
        "dots/..a.txt",
        "empty",
    ]


HOSTILE = [
    "../out.txt",
    "/out.txt",
    "a/../../out.txt",
    "..\\out.txt",
    "C:\\out.txt",
    "c:out.txt",
    ".. /out.txt",
]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_nothing_is_written_outside_the_folder(tmp_path: Path, kind: str, name: str) -> None:
    members = ("fine.txt", b""), (name, b"out")
    body = zipped(*members) if kind == "zip" else gzip.compress(tarred(*members))
    archive = put(tmp_path, "x", body)
    try:
        unpack(archive, tmp_path / "deep" / "x")
    except DataError:
        assert names(tmp_path / "deep") == []
    else:
        assert names(tmp_path / "deep") == ["x"]
    assert names(tmp_path) == ["deep", "x"]
    assert not Path("/out.txt").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_in_a_tar_are_rejected(tmp_path: Path, kind: bytes) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo("odd")
        info.type, info.linkname = kind, "/elsewhere"
        archive.addfile(info)
    with pytest.raises(DataError, match="a link or a device, 'odd'"):
        unpack(put(tmp_path, "x.tgz", gzip.compress(buffer.getvalue())), tmp_path / "x")
    assert names(tmp_path) == ["x.tgz"]


def test_link_in_a_zip_becomes_a_file(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        info = zipfile.ZipInfo("odd")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/elsewhere")
    folder = unpack(put(tmp_path, "x.zip", buffer.getvalue()), tmp_path / "x")
    assert not (folder / "odd").is_symlink()
    assert (folder / "odd").read_text() == "/elsewhere"


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit archives to 100,000 bytes or twice their size."""
    monkeypatch.setattr(files, "_FREE_BYTES", 100_000)
    monkeypatch.setattr(files, "_RATIO", 2)


def bombs() -> dict[str, bytes]:
    zeros = b"\0" * 300_000
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("one", zeros[:90_000])
        archive.writestr("two", zeros[:90_000])
    return {
        "zip": buffer.getvalue(),
        "tar.gz": gzip.compress(tarred(("a", zeros[:90_000]), ("b", zeros[:90_000]))),
        "gz": gzip.compress(zeros),
        "long name": gzip.compress(long_name_bomb(zeros)),
    }


def sparse_header(name: str, size: int) -> bytes:
    """Return the tar header of a member that is one hole."""
    info = tarfile.TarInfo(name)
    info.type = tarfile.GNUTYPE_SPARSE
    raw = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    raw[386:410] = b"%011o\0%011o\0" % (0, 0)
    raw[483:495] = b"%011o\0" % size
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw)
    return bytes(raw)


def header(size: int) -> bytes:
    """Return a tar header; tarfile writes negative sizes in base 256."""
    info = tarfile.TarInfo("a")
    info.size = size
    return info.tobuf(tarfile.GNU_FORMAT)


def long_name_bomb(zeros: bytes) -> bytes:
    info = tarfile.TarInfo("@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, (1 << 33) - 1
    return info.tobuf() + zeros


@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize("kind", bombs())
def test_decompression_bombs_are_rejected(tmp_path: Path, kind: str) -> None:
    with pytest.raises(DataError, match=r"more than .* MB when unpacked"):
        unpack(put(tmp_path, "x", bombs()[kind]), tmp_path / "y")
    assert names(tmp_path) == ["x"]


def test_sparse_file_in_a_tar_is_rejected(tmp_path: Path) -> None:
    body = gzip.compress(sparse_header("hole", 1 << 32) + b"\0" * 1024)
    with pytest.raises(DataError, match="a link or a device, 'hole'"):
        unpack(put(tmp_path, "x.tgz", body), tmp_path / "x")


def test_negative_size_in_a_tar_does_not_lead_back_to_its_header(tmp_path: Path) -> None:
    archive = put(tmp_path, "x.tgz", gzip.compress(header(0) + header(-512) + b"\0" * 20_000))
    try:
        unpack(archive, tmp_path / "x")
    except DataError as error:
        assert "a negative size of 'a'" in str(error)
    else:  # a Python in which this is fixed: the tar ends there
        assert names(tmp_path / "x") == ["a"]


def test_python_that_cannot_unpack_tars_safely_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(tarfile, "data_filter")
    with pytest.raises(DataError, match=r"a tar and Python 3\..*, expected Python 3\.10\.12, 3\.11\.4 or later"):
        unpack(put(tmp_path, "x.tgz", ARCHIVES["x.tar.gz"]), tmp_path / "x")
    assert names(tmp_path) == ["x.tgz"]


def test_small_archives_may_have_any_compression_ratio(tmp_path: Path) -> None:
    folder = unpack(put(tmp_path, "x", gzip.compress(tarred(("a", b"\0" * 3_000_000)))), tmp_path / "y")
    assert (folder / "a").stat().st_size == 3_000_000


def test_size_limit_is_1_gb_or_200_times_the_archive(tmp_path: Path) -> None:
    assert files.unpacked_limit(put(tmp_path, "x", b"")) == 1 << 30
    with (tmp_path / "x").open("wb") as large:
        large.truncate(1 << 30)
    assert files.unpacked_limit(tmp_path / "x") == 200 << 30


def test_zip_with_understated_sizes_is_rejected(tmp_path: Path) -> None:
    body = bytearray(bombs()["zip"])
    directory = body.index(b"PK\x01\x02")
    body[directory + 24 : directory + 28] = struct.pack("<I", 10)
    body[22:26] = struct.pack("<I", 10)
    with pytest.raises(DataError, match="broken archive"):
        unpack(put(tmp_path, "x.zip", bytes(body)), tmp_path / "x")


@pytest.mark.parametrize("left", [0.0, 0.001, 0.3, 0.7, 0.95])
@pytest.mark.parametrize("name", ARCHIVES)
def test_truncated_archives_are_rejected(tmp_path: Path, name: str, left: float) -> None:
    whole = ARCHIVES[name]
    with pytest.raises(DataError, match=r"expected a (complete archive|zip or a tar)"):
        unpack(put(tmp_path, name, whole[: int(left * len(whole))]), tmp_path / "x")
    assert names(tmp_path) == [name]


def test_checksum_after_the_end_of_a_tar_is_checked(tmp_path: Path) -> None:
    body = bytearray(gzip.compress(TAR + b"\0" * 300_000))
    body[-8] ^= 1
    with pytest.raises(DataError, match="broken archive"):
        unpack(put(tmp_path, "x.tar.gz", bytes(body)), tmp_path / "x")


@pytest.mark.parametrize("name", ARCHIVES)
def test_damaged_archives_are_complete_or_rejected(tmp_path: Path, name: str) -> None:
    rng = random.Random(2)
    content = {"a.txt": b"first\n" * 9, "b.txt": b"second\n"}
    plain = tarred(*content.items())
    whole = {
        "x.zip": zipped(*content.items()),
        "x.tar.gz": gzip.compress(plain),
        "x.tar.bz2": bz2.compress(plain),
        "x.tar.xz": lzma.compress(plain),
    }[name]
    for trial in range(120):
        damaged = bytearray(whole)
        for _ in range(rng.choice([1, 1, 3, 10])):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        folder = tmp_path / str(trial)
        try:
            unpack(put(tmp_path, name, bytes(damaged)), folder)
        except DataError:
            assert not folder.exists()
            continue
        assert {path.name: path.read_bytes() for path in folder.rglob("*.txt")} == content


def test_encrypted_zip_is_rejected(tmp_path: Path) -> None:
    body = bytearray(zipped(("a.txt", b"secret")))
    body[6] |= 1
    body[body.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(DataError, match="encrypted"):
        unpack(put(tmp_path, "x.zip", bytes(body)), tmp_path / "x")


def test_member_without_a_name_is_rejected(tmp_path: Path) -> None:
    body = zipped(("a", b"")).replace(b"\x01\x00\x00\x00a", b"\x00\x00\x01\x00a")
    directory = body.index(b"PK\x01\x02")
    body = body[: directory + 28] + b"\0\0\1\0" + body[directory + 32 :]
    with pytest.raises(DataError):
        unpack(put(tmp_path, "x.zip", body), tmp_path / "x")
    assert names(tmp_path) == ["x.zip"]


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_file_with_a_file_in_it_is_rejected(tmp_path: Path, kind: str) -> None:
    members = ("a", b"1"), ("a/b", b"2")
    body = zipped(*members) if kind == "zip" else gzip.compress(tarred(*members))
    with pytest.raises(DataError, match="broken archive"):
        unpack(put(tmp_path, "x", body), tmp_path / "y")
    assert names(tmp_path) == ["x"]


@pytest.mark.parametrize("content", [b"", b"<html>", TAR])
def test_file_that_is_not_an_archive_is_rejected(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(DataError, match=r"expected a zip or a tar of type gz, bz2 or xz"):
        unpack(put(tmp_path, "x.zip", content), tmp_path / "x")


@pytest.mark.parametrize("content", [b"", b"2 3 4\n0,2 1:0.5\n", NOISE])
@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_single_compressed_file_is_rejected_in_one_line(
    tmp_path: Path, compress: Callable[[bytes], bytes], content: bytes
) -> None:
    expected = "found a compressed file that is not a tar, expected a zip or a tar of type gz, bz2 or xz"
    with pytest.raises(DataError, match=expected) as caught:
        unpack(put(tmp_path, "x.gz", compress(content)), tmp_path / "x")
    assert "\n" not in str(caught.value)
    assert names(tmp_path) == ["x.gz"]


def test_missing_archive_raises_file_not_found_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        unpack(tmp_path / "x.zip", tmp_path / "x")
    assert names(tmp_path) == []


def test_existing_folder_is_rejected_and_kept(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    put(tmp_path / "x", "mine.txt", b"mine")
    with pytest.raises(FileExistsError):
        unpack(put(tmp_path, "x.zip", BODY), tmp_path / "x")
    assert names(tmp_path / "x") == ["mine.txt"]
