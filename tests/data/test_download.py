"""Getting data sets: downloaded once, unpacked, checked, and kept aside if they are wrong."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lightdxml.data import download
from lightdxml.data.errors import DataError
from lightdxml.data.fetch import DownloadError
from lightdxml.data.registry import find
from tests.data.server import BODY, Site, file, interrupted_at, local_session, names, put, refused, zipped

TINY = replace(find("LF-Amazon-131K"), name="Tiny", n_features=3, n_labels=4, n_train=2, n_test=1)
TRAIN, TEST = ("train.txt", b"2 3 4\n0,2 1:0.5\n1 0:1 2:2\n"), ("test.txt", b"1 3 4\n3 0:1\n")
SET = zipped(("Tiny/" + TRAIN[0], TRAIN[1]), ("Tiny/" + TEST[0], TEST[1]))
RAW = zipped(
    ("trn.json", b'{"title": "a", "target_ind": [3]}\n' * 2),
    ("tst.json", b'{"title": "a", "target_ind": [0]}\n'),
)

pytestmark = pytest.mark.usefixtures("no_proxy")


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIGHTDXML_DATA", str(tmp_path))


def get(url: str | None = None, **options: Any) -> Path:
    return download.get(TINY, url=url, session=local_session(), **options)


def test_data_set_is_downloaded_once(site: Site, tmp_path: Path) -> None:
    site.answers(file(SET))
    folder = get(site.url)
    assert folder == tmp_path / "Tiny"
    assert (folder / "train.txt").read_bytes() == TRAIN[1]
    assert names(tmp_path) == ["Tiny"]
    assert get(site.url) == folder
    assert len(site.requests) == 1


def test_folder_around_the_files_is_removed_but_not_folders_next_to_files(site: Site, tmp_path: Path) -> None:
    site.answers(file(zipped(("a/b/train.txt", TRAIN[1]), ("a/b/test.txt", TEST[1]), ("__MACOSX/x.txt", b""))))
    assert names(get(site.url)) == ["test.txt", "train.txt"]
    site.answers(file(zipped(TRAIN, TEST, ("notes/x.txt", b""))))
    assert names(get(site.url, force=True)) == ["notes", "test.txt", "train.txt"]
    assert names(tmp_path) == ["Tiny"]


@pytest.mark.parametrize(
    ("test", "found"),
    [
        (b"2 3 4\n3 0:1\n3 0:1\n", "found 2 test documents, expected 1 test documents"),
        (b"1 3 4\n9 0:1\n", r"Tiny\.unpacked.Tiny.test\.txt, line 2: found label id '9'"),
    ],
)
def test_wrong_and_unreadable_data_sets_are_kept_aside(site: Site, tmp_path: Path, test: bytes, found: str) -> None:
    wrong = zipped(("Tiny/train.txt", TRAIN[1]), ("Tiny/test.txt", test))
    site.answers(file(wrong), file(SET))
    kept = r".*Tiny\.zip, unpacked in .*Tiny\.unpacked"
    for url in (site.url, None):
        with pytest.raises(DataError, match=rf"{found}.* \(the archive is kept as {kept}; --force downloads"):
            get(url)
        assert names(tmp_path) == ["Tiny.unpacked", "Tiny.zip"]
        assert (tmp_path / "Tiny.zip").read_bytes() == wrong
    get(site.url, force=True)
    assert names(tmp_path) == ["Tiny"]


def test_broken_archive_is_kept(site: Site, tmp_path: Path) -> None:
    damaged = bytearray(BODY)
    damaged[1000] ^= 1  # only the checksum of the content shows it
    site.answers(file(bytes(damaged)))
    with pytest.raises(DataError, match=r"Tiny\.zip: found a broken archive.* kept as .*Tiny\.zip; --force"):
        get(site.url)
    assert names(tmp_path) == ["Tiny.zip"]


def test_raw_text_has_its_own_folder_and_no_number_of_features(site: Site, tmp_path: Path) -> None:
    site.answers(file(SET), file(RAW))
    assert get(site.url).name == "Tiny"
    assert get(site.url, raw=True).name == "Tiny-raw"
    assert names(tmp_path) == ["Tiny", "Tiny-raw"]


def test_force_replaces_the_folder_only_if_the_new_one_is_right(site: Site, tmp_path: Path) -> None:
    new = zipped(TRAIN, TEST, ("readme.txt", b"new"))
    site.answers(file(SET), file(RAW), file(new))
    get(site.url)
    with pytest.raises(DataError):
        get(site.url, force=True)
    assert names(tmp_path / "Tiny") == ["test.txt", "train.txt"]
    get(site.url, force=True)
    assert names(tmp_path / "Tiny") == ["readme.txt", "test.txt", "train.txt"]
    assert names(tmp_path) == ["Tiny"]


@pytest.mark.parametrize("target", ["elsewhere", "missing"])
def test_force_replaces_a_link_and_keeps_its_target(site: Site, tmp_path: Path, target: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    put(tmp_path / "elsewhere", "mine.txt", b"mine")
    (tmp_path / "Tiny").symlink_to(tmp_path / target, target_is_directory=True)
    site.answers(file(SET))
    assert names(get(site.url, force=True)) == ["test.txt", "train.txt"]
    assert not (tmp_path / "Tiny").is_symlink()
    assert names(tmp_path / "elsewhere") == ["mine.txt"]


def test_archive_or_folder_from_a_manual_download_is_used_and_kept(tmp_path: Path) -> None:
    put(tmp_path, "Tiny.zip", SET)
    assert get() == tmp_path / "Tiny"
    assert names(tmp_path) == ["Tiny", "Tiny.zip"]
    (tmp_path / "Tiny.zip").unlink()
    assert get() == tmp_path / "Tiny"


def test_without_network_the_error_explains_the_manual_download(tmp_path: Path) -> None:
    with pytest.raises(DownloadError) as caught:
        get(refused())
    for place in ("XMLRepository.html", str(tmp_path / "Tiny.zip"), f"unpack it into {tmp_path / 'Tiny'}"):
        assert place in str(caught.value)


def test_interrupted_download_is_resumed(site: Site, tmp_path: Path) -> None:
    site.answers(file(zipped(TRAIN, TEST, ("noise.bin", BODY))))
    with pytest.raises(KeyboardInterrupt):
        get(site.url, progress=interrupted_at(1))
    assert "Tiny" not in names(tmp_path)
    get(site.url)
    assert str(site.ranges[1]).startswith("bytes=")
    assert names(tmp_path) == ["Tiny"]


def test_missing_version_is_rejected_without_a_request(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no raw text"):
        download.get(find("Bibtex"), raw=True)
    assert names(tmp_path) == []


def test_an_archive_of_another_checksum_is_not_unpacked_wherever_it_comes_from(site: Site, tmp_path: Path) -> None:
    site.answers(file(SET))
    right = hashlib.sha256(SET).hexdigest()
    with pytest.raises(ValueError, match="is not a SHA-256: it has 64"):
        get(site.url, sha256="00")
    with pytest.raises(DataError, match=f"found the SHA-256 {right}, expected 00"):
        get(site.url, sha256="0" * 64)
    # The archive is kept, and checked again.
    with pytest.raises(DataError, match="found the SHA-256"):
        get(sha256="0" * 64)
    assert names(get(sha256=right.upper())) == ["test.txt", "train.txt"]
    with pytest.raises(DataError, match="expected --force"):
        get(sha256=right)
