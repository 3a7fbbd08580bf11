"""The data set debian-relations: package lists, relations, versions, and errors of apt."""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lightdxml.data import debian_relations
from lightdxml.data.dataset import Dataset
from lightdxml.data.debian_relations import build, description_text, related_packages, stanzas, version_key
from lightdxml.data.errors import DataError

PACKAGES = """\
Package: cat
Version: 1:2.0-1
Architecture: amd64
Depends: libpurr (>= 2.36), libpurr (<< 3), fish:any | mail-transport-agent | mouse [amd64] <!nocheck>,
 bowl
Pre-Depends: dpkg (>= 1.15.6~)
Recommends: sofa,
Suggests: cat, dog
Enhances: home
Conflicts: vacuum-cleaner
Provides: pet
Description: small feline, ünd more
 Purrs and sleeps:
  * on sofas
 .
 Second paragraph.
Description-md5: 1111
Size: 42

Package: libpurr
Version: 2.40
Description: purring
Tag: role::shared-lib,
 use::purring

Package: loner
Depends: pet, mail-transport-agent
Description: relates to nothing that is there

"""
OTHERS = ("fish", "mouse", "bowl", "dpkg", "sofa", "dog", "home", "vacuum-cleaner")
LIST = PACKAGES + "\n".join(f"Package: {name}\nDescription: a {name}\nDepends: cat\n" for name in OTHERS)


def rows(data: Dataset) -> dict[str, tuple[str, str, list[str]]]:
    found = {}
    for split in data.splits.values():
        assert split.texts is not None
        assert split.texts.titles is not None
        assert split.ids is not None
        assert data.label_names is not None
        for row, name in enumerate(split.ids):
            labels = [data.label_names[j] for j in split.Y[row].indices]
            found[name] = (split.texts.titles[row], split.texts.bodies[row], labels)
    return found


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    path = tmp_path / "Packages"
    path.write_text(LIST, encoding="utf-8")
    return path


# --- the data set


def test_labels_are_the_related_packages_that_exist(packages: Path) -> None:
    title, text, labels = rows(build(packages))["cat"]
    assert title == "cat: small feline, ünd more"
    assert text == "small feline, ünd more Purrs and sleeps:  * on sofas  Second paragraph."
    assert labels == ["bowl", "dog", "dpkg", "fish", "home", "libpurr", "mouse", "sofa"]


def test_package_without_relations_is_a_label_only(packages: Path) -> None:
    data = build(packages)
    assert "libpurr" in (data.label_names or ())
    assert not {"libpurr", "loner"} & set(rows(data))
    assert "vacuum-cleaner" not in (data.label_names or ())


def test_packages_are_sorted_and_split_by_a_hash_of_the_name(packages: Path) -> None:
    data = build(packages)
    assert data.name == "debian-relations"
    assert data.test is not None
    assert data.train.ids == ["bowl", "cat", "dpkg", "fish", "home", "mouse", "sofa"]
    assert data.test.ids == ["dog", "vacuum-cleaner"]


@pytest.mark.parametrize(
    ("name", "pack"),
    [("Packages.gz", gzip.compress), ("Packages.xz", lzma.compress), ("a_Packages.bz2", bz2.compress)],
)
def test_compressed_list_reads_as_the_plain_one(
    packages: Path, tmp_path: Path, name: str, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / name
    path.write_bytes(pack(packages.read_bytes()))
    assert rows(build(path)) == rows(build(packages))


def test_newest_version_counts_in_any_order_of_the_lists(tmp_path: Path) -> None:
    old = "Package: cat\nVersion: 1.9\nDescription: old\nDepends: dog\n\nPackage: dog\n"
    new = "Package: cat\nVersion: 1.10\nDescription: new\nDepends: dog\n"
    for i, (first, second) in enumerate([(old, new), (new, old)]):
        folder = tmp_path / str(i)
        folder.mkdir()
        (folder / "a_Packages").write_text(first)
        (folder / "b_Packages").write_text(second)
        assert rows(build(folder)) == {"cat": ("cat: new", "new", ["dog"])}


def test_long_description_comes_from_the_matching_translation(packages: Path, tmp_path: Path) -> None:
    short = LIST.replace("\n Purrs and sleeps:\n  * on sofas\n .\n Second paragraph.", "")
    packages.write_text(short, encoding="utf-8")
    assert rows(build(tmp_path))["cat"][1] == "small feline, ünd more"
    (tmp_path / "main_i18n_Translation-en").write_text(
        "Package: cat\nDescription-md5: 0000\nDescription-en: of another version\n another text\n\n"
        "Package: cat\nDescription-md5: 1111\nDescription-en: small feline\n that sleeps\n\n"
        "Package: unknown\nDescription-md5: 2222\nDescription-en: nothing\n",
    )
    (tmp_path / "main_i18n_Translation-de").write_text("Package: cat\nDescription-md5: 1111\nDescription-de: Katze\n")
    assert rows(build(tmp_path))["cat"][:2] == ("cat: small feline", "small feline that sleeps")


# --- the format of the lists


@pytest.mark.parametrize(
    ("relation", "names"),
    [
        ("", []),
        ("libc6 (>= 2.36)", ["libc6"]),
        ("libc6(>=2.36),libstdc++6", ["libc6", "libstdc++6"]),
        ("default-mta | mail-transport-agent", ["default-mta", "mail-transport-agent"]),
        ("python3:any (>= 3.11~), gcc-12-base:amd64", ["python3", "gcc-12-base"]),
        ("linux-headers [amd64 !i386] <!nocheck>", ["linux-headers"]),
        ("a1,\n b2 ,,\n c3", ["a1", "b2", "c3"]),
        ("${misc:Depends}, 0ad", ["0ad"]),
    ],
)
def test_relations_are_reduced_to_names(relation: str, names: list[str]) -> None:
    assert list(related_packages(relation)) == names


def test_folded_description_becomes_one_line() -> None:
    assert description_text("synopsis\n one\n .\n two\n   three\n .") == "synopsis one  two   three"


def test_description_without_body_is_its_synopsis() -> None:
    assert description_text("synopsis") == "synopsis"


def test_any_number_of_blank_lines_ends_a_stanza() -> None:
    lines = ["\n", "A: 1\n", "B: x\n", " folded\n", "\n", " \n", "A: 2\r\n", "\n"]
    assert list(stanzas(lines, frozenset("A"))) == [{"A": "1"}, {"A": "2"}]
    assert list(stanzas(lines, frozenset("B"))) == [{"B": "x\n folded"}, {}]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("1.9", "1.10"),
        ("1.0~rc1", "1.0"),
        ("1.0~~", "1.0~"),
        ("1.0", "1.0a"),
        ("1.0a", "1.0+b"),
        ("9", "1:1"),
        ("1.0-1", "1.0-1+deb12u1"),
        ("1.0", "1.0-1"),
        ("1.0-1", "1.0.1-1"),
        ("", "0.1"),
    ],
)
def test_versions_are_sorted_as_in_debian(older: str, newer: str) -> None:
    assert version_key(older) < version_key(newer)
    assert not version_key(newer) < version_key(older)


def test_versions_that_are_equal_in_debian_are_equal() -> None:
    assert version_key("1.02") == version_key("1.2")
    assert version_key("0:1.0") == version_key("1.0")


# --- errors


def test_missing_source_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"Packages\.xz: found no such file or folder"):
        build(tmp_path / "Packages.xz")


def test_folder_without_lists_is_rejected_with_advice(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="found no Packages file, expected one"):
        build(tmp_path)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("", "no package"),
        ("once upon a time\nthere was\n", "no Package field in stanza 1"),
        ("Package: cat\nDepends: dog\n", "no package that relates to another"),
    ],
)
def test_file_that_is_not_a_list_is_rejected(tmp_path: Path, content: str, found: str) -> None:
    path = tmp_path / "Packages"
    path.write_text(content)
    with pytest.raises(DataError, match=rf"Packages: found {found}, expected a Packages list"):
        build(path)


def test_truncated_list_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "Packages.xz"
    path.write_bytes(lzma.compress(LIST.encode())[:-40])
    with pytest.raises(DataError, match="cannot be decompressed"):
        build(path)


def test_invalid_utf8_is_rejected_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "Packages"
    path.write_bytes(b"Package: cat\nDescription: k\xe4tzchen\n")
    with pytest.raises(DataError, match="line 2: found bytes that are not utf-8"):
        build(path)


def test_lz4_without_apt_is_rejected_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "Packages.lz4"
    path.write_bytes(b"\x04\x22\x4d\x18")
    monkeypatch.setattr(debian_relations, "_APT_HELPER", tmp_path / "no-helper")
    with pytest.raises(DataError, match="run unlz4 first"):
        build(path)


def test_without_apt_the_error_asks_for_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(DataError, match="a Debian system, or a Packages file as source"):
        build()


def fake_apt(monkeypatch: pytest.MonkeyPatch, output: str, code: int = 0, errors: str = "") -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    answer = subprocess.CompletedProcess([], code, output, errors)
    monkeypatch.setattr(subprocess, "run", lambda *args, **kwargs: answer)


def test_without_lists_the_error_asks_for_an_update(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_apt(monkeypatch, "")
    with pytest.raises(DataError, match="found none, expected some: run apt-get update"):
        build()


def test_error_of_apt_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_apt(monkeypatch, "", 100, "E: one\nE: The list of sources could not be read.\n")
    with pytest.raises(DataError, match="The list of sources could not be read"):
        build()


def test_lists_of_other_origins_are_used_only_without_debians(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = tmp_path / "foreign_Packages"
    foreign.write_text("Package: tiger\nDescription: big\nDepends: cat\n\nPackage: cat\nVersion: 9\n")
    target = "Created-By: Packages\nFilename: {}\nOrigin: {}\nComponent: main\n\n"
    debians, others = target.format(packages, "Debian"), target.format(foreign, "Zoo")
    fake_apt(monkeypatch, others + debians + target.format(tmp_path / "gone", "Debian"))
    assert rows(build()) == rows(build(packages))
    fake_apt(monkeypatch, others)
    assert rows(build()) == {"tiger": ("tiger: big", "big", ["cat"])}


# --- the lists of this machine


def test_lists_of_this_machine_make_a_data_set() -> None:
    try:
        debian_relations._lists_of_apt()
    except DataError as error:
        pytest.skip(f"no package lists here: {error}")
    data = build()
    assert len(data.train) > 1_000
    labels = set(data.label_names or ())
    assert "libc6" in labels
    assert not {"mail-transport-agent", "debconf-2.0"} & labels
    assert data.train.texts is not None
    assert data.train.texts.titles is not None
    assert data.train.ids is not None
    assert all(
        title.startswith(f"{name}: ") for name, title in zip(data.train.ids, data.train.texts.titles, strict=True)
    )
