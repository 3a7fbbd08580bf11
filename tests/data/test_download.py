"""Getting data sets: downloaded once, unpacked, checked, and set aside if they are wrong."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lightdxml.data.download import get
from lightdxml.data.errors import DataError
from lightdxml.data.fetch import DownloadError
from tests.data.server import BODY, Site, file, interrupted_at, names, put, refused, zipped

BIBTEX = (4880, 2515, 1836, 159)

pytestmark = pytest.mark.usefixtures("no_proxy")


def counted(*counts: int) -> Callable[[Path], tuple[int, int, int, int]]:
    def verify(folder: Path) -> tuple[int, int, int, int]:
        assert names(folder) == ["data.txt"]
        train, test, features, labels = counts
        return train, test, features, labels

    return verify


SET = zipped(("Bibtex/data.txt", b"0 1:1\n"))


def test_data_set_is_downloaded_once(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIGHTDXML_DATA", str(tmp_path))
    site.answers(file(SET))
    folder = get("BIBTEX", url=site.url, verify=counted(*BIBTEX))
    assert folder == tmp_path / "Bibtex"
    assert (folder / "data.txt").read_bytes() == b"0 1:1\n"
    assert names(tmp_path) == ["Bibtex"]
    assert get("bibtex", url=site.url) == folder
    assert len(site.requests) == 1


def test_folder_around_the_files_is_removed_but_not_folders_next_to_files(site: Site, tmp_path: Path) -> None:
    site.answers(file(zipped(("a/b/one.txt", b"1"), ("a/b/two.txt", b"2"), ("__MACOSX/x.txt", b""))))
    assert names(get("Bibtex", url=site.url, folder=tmp_path)) == ["one.txt", "two.txt"]
    site.answers(file(zipped(("a/one.txt", b"1"), ("two.txt", b"2"))))
    assert names(get("Bibtex", url=site.url, folder=tmp_path, force=True)) == ["a", "two.txt"]
    assert names(tmp_path) == ["Bibtex"]


def test_suffix_of_the_address_tells_the_kind_of_archive(site: Site, tmp_path: Path) -> None:
    site.answers(file(gzip.compress(b"0 1:1\n")))
    folder = get("Bibtex", url=f"{site.root}/x.gz?download=1", folder=tmp_path)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {"Bibtex": b"0 1:1\n"}


@pytest.mark.parametrize(
    ("place", "found", "wanted"),
    [
        (0, "4881 training documents", "4880 training documents"),
        (1, "2516 test documents", "2515 test documents"),
        (2, "1837 features", "1836 features"),
        (3, "160 labels", "159 labels"),
    ],
)
def test_data_set_with_wrong_sizes_is_set_aside(
    site: Site, tmp_path: Path, place: int, found: str, wanted: str
) -> None:
    counts = [count + (i == place) for i, count in enumerate(BIBTEX)]
    site.answers(file(SET))
    with pytest.raises(DataError, match=rf"found {found}, expected {wanted} in Bibtex; .*\.suspect"):
        get("Bibtex", url=site.url, folder=tmp_path, verify=counted(*counts))
    assert names(tmp_path) == ["Bibtex.suspect", "Bibtex.zip.suspect"]
    assert (tmp_path / "Bibtex.zip.suspect").read_bytes() == SET
    get("Bibtex", url=site.url, folder=tmp_path, verify=counted(*BIBTEX))
    assert len(site.requests) == 2
    assert names(tmp_path) == ["Bibtex", "Bibtex.suspect", "Bibtex.zip.suspect"]


def test_only_the_last_wrong_download_is_kept(site: Site, tmp_path: Path) -> None:
    for content in (b"first", b"second"):
        site.answers(file(zipped(("Bibtex/data.txt", content))))
        with pytest.raises(DataError):
            get("Bibtex", url=site.url, folder=tmp_path, verify=counted(1, 2, 3, 4))
    assert names(tmp_path) == ["Bibtex.suspect", "Bibtex.zip.suspect"]
    assert (tmp_path / "Bibtex.suspect" / "Bibtex" / "data.txt").read_bytes() == b"second"


@pytest.mark.parametrize("own", [True, False])
def test_unreadable_data_set_is_set_aside(site: Site, tmp_path: Path, own: bool) -> None:
    def verify(folder: Path) -> tuple[int, int, int, int]:
        raise DataError(folder / "data.txt", "x", "y", line=3) if own else ValueError("cannot be")

    site.answers(file(SET))
    at = r"Bibtex\.suspect.Bibtex.data\.txt, line 3: found x, expected y; " if own else "found cannot be, "
    with pytest.raises(DataError, match=at):
        get("Bibtex", url=site.url, folder=tmp_path, verify=verify)
    assert names(tmp_path) == ["Bibtex.suspect", "Bibtex.zip.suspect"]


def test_broken_archive_is_set_aside(site: Site, tmp_path: Path) -> None:
    damaged = bytearray(BODY)
    damaged[1000] ^= 1  # only the checksum of the content shows it
    site.answers(file(bytes(damaged)))
    with pytest.raises(DataError, match=r"Bibtex\.zip\.suspect: found a broken archive"):
        get("Bibtex", url=site.url, folder=tmp_path)
    assert names(tmp_path) == ["Bibtex.zip.suspect"]


def test_raw_text_has_its_own_folder_and_no_number_of_features(site: Site, tmp_path: Path) -> None:
    site.answers(file(SET))
    bag = get("LF-Amazon-131K", url=site.url, folder=tmp_path, verify=counted(294805, 134835, 80000, 131073))
    text_ = get("LF-Amazon-131K", raw=True, url=site.url, folder=tmp_path, verify=counted(294805, 134835, 0, 131073))
    assert (bag.name, text_.name) == ("LF-Amazon-131K", "LF-Amazon-131K-raw")
    assert names(tmp_path) == ["LF-Amazon-131K", "LF-Amazon-131K-raw"]
    assert len(site.requests) == 2


def test_force_replaces_the_folder_only_if_the_new_one_is_right(site: Site, tmp_path: Path) -> None:
    site.answers(file(SET))
    get("Bibtex", url=site.url, folder=tmp_path)
    new = zipped(("data.txt", b"new"))
    site.answers(file(new))
    with pytest.raises(DataError):
        get("Bibtex", url=site.url, folder=tmp_path, force=True, verify=counted(0, 0, 0, 0))
    assert (tmp_path / "Bibtex" / "data.txt").read_bytes() == b"0 1:1\n"
    (tmp_path / "Bibtex.old").mkdir()  # as a killed process leaves it
    put(tmp_path / "Bibtex.old", "older.txt", b"")
    get("Bibtex", url=site.url, folder=tmp_path, force=True, verify=counted(*BIBTEX))
    assert (tmp_path / "Bibtex" / "data.txt").read_bytes() == b"new"
    assert names(tmp_path) == ["Bibtex", "Bibtex.suspect", "Bibtex.zip.suspect"]


def test_archive_from_a_manual_download_is_checked_and_kept(tmp_path: Path) -> None:
    put(tmp_path, "Bibtex.zip", SET)
    get("bibtex", folder=tmp_path, verify=counted(*BIBTEX))
    assert names(tmp_path) == ["Bibtex", "Bibtex.zip"]


def test_folder_from_a_manual_download_is_used(tmp_path: Path) -> None:
    (tmp_path / "Bibtex").mkdir()
    put(tmp_path / "Bibtex", "Bibtex_data.txt", b"")
    assert get("bibtex", folder=tmp_path) == tmp_path / "Bibtex"


def test_without_network_the_error_explains_the_manual_download(tmp_path: Path) -> None:
    with pytest.raises(DownloadError) as caught:
        get("Bibtex", url=refused(), folder=tmp_path)
    for place in ("XMLRepository.html", str(tmp_path / "Bibtex.zip"), f"{tmp_path / 'Bibtex'};"):
        assert place in str(caught.value)


def test_interrupted_download_is_resumed(site: Site, tmp_path: Path) -> None:
    site.answers(file())
    with pytest.raises(KeyboardInterrupt):
        get("Bibtex", url=site.url, folder=tmp_path, progress=interrupted_at(1))
    assert "Bibtex" not in names(tmp_path)
    note = json.loads((tmp_path / "Bibtex.zip.part.json").read_text())
    assert (note["url"], note["etag"], note["total"]) == (site.url, '"one"', len(BODY))
    assert names(get("Bibtex", url=site.url, folder=tmp_path)) == ["noise.txt"]
    assert site.ranges[0] is None
    assert str(site.ranges[1]).startswith("bytes=")
    assert names(tmp_path) == ["Bibtex"]


def test_unknown_names_and_missing_versions_are_rejected_without_a_request(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="lightdxml data list"):
        get("nothing of the kind", folder=tmp_path)
    with pytest.raises(DataError, match="no raw text"):
        get("Bibtex", raw=True, folder=tmp_path)
    assert names(tmp_path) == []
