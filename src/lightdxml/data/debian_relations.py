"""Debian's package lists as a data set: a package's description, and the packages that it relates to."""

from __future__ import annotations

import bz2
import lzma
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from lightdxml.data.dataset import Dataset
from lightdxml.data.documents import Document, split_by_hash
from lightdxml.data.errors import DataError
from lightdxml.data.files import check_encoding, decode, reading

RELATIONS = ("Depends", "Pre-Depends", "Recommends", "Suggests", "Enhances")

_FIELDS = frozenset(("Package", "Version", "Description", "Description-en", "Description-md5", *RELATIONS))
_TARGET_FIELDS = frozenset(("Filename", "Created-By", "Origin", "Component"))
_APT_HELPER = Path("/usr/lib/apt/apt-helper")


def build(source: Path | None = None) -> Dataset:
    r"""Build the data set `debian-relations` from Debian's package lists.

    A document is a package that relates to others: its id is its name, its title name and synopsis, its text
    synopsis and long description. Its labels are the packages that it depends on, recommends, suggests or
    enhances, every alternative among them, as far as the lists have them; virtual packages are not labels.
    Of several versions of a package the newest counts. One document in five is for testing, chosen by a hash
    of its id.

    Parameters
    ----------
    source
        A Packages file, plain or compressed, or a folder of Packages and Translation-en files as apt keeps
        them; None for Debian's lists on this machine, as ``apt-get update`` left them. Long descriptions are
        there after ``apt-get -o Acquire::Languages=en update``; otherwise the texts are the synopses.

    Returns
    -------
    Dataset
        57,000 documents and 42,000 labels for Debian 12.

    Raises
    ------
    DataError
        Where there are no lists, or they cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     packages = Path(folder, "Packages")
    ...     _ = packages.write_text(
    ...         "Package: cat\nDescription: a feline\n keeps mice away\nDepends: fish (>= 2) | mouse, awk\n\n"
    ...         "Package: mouse\nDescription: a rodent\n"
    ...     )
    ...     data = build(packages)
    >>> data.train.ids, data.train.texts.titles, data.train.texts.bodies, data.label_names
    (['cat'], ['cat: a feline'], ['a feline keeps mice away'], ['mouse'])
    """
    lists = _lists_of_apt() if source is None else _lists_in(Path(source))
    documents = list(_documents(_read(lists)))
    if not documents:
        raise DataError(lists.packages[0], "no package that relates to another", "a Packages list of Debian")
    return split_by_hash("debian-relations", documents)


# --- Where the lists are ------------------------------------------------------------------------------------


class _Lists(NamedTuple):
    packages: list[Path]
    translations: list[Path]


def _lists_of_apt() -> _Lists:
    """Ask apt for its lists: Debian's main section, or all there are where none is Debian's."""
    apt = shutil.which("apt-get")
    if apt is None:
        raise DataError("apt-get", "no such program", "a Debian system, or a Packages file given as source")
    command = [apt, "-o", "Acquire::Languages=en", "indextargets"]
    result = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
    if result.returncode:
        last = (result.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise DataError("apt-get indextargets", f"an error ({last})", "the names of apt's package lists")
    targets = list(stanzas(result.stdout.splitlines(), _TARGET_FIELDS))
    ours = [target for target in targets if (target.get("Origin"), target.get("Component")) == ("Debian", "main")]
    kinds: dict[str, list[Path]] = {"Packages": [], "Translations": []}
    for target in ours or targets:
        path = Path(target.get("Filename", ""))
        if target.get("Created-By") in kinds and path.is_file():
            kinds[target["Created-By"]].append(path)
    if not kinds["Packages"]:
        raise DataError("package lists of apt", "none", "some: run apt-get update as root first")
    return _Lists(sorted(kinds["Packages"]), sorted(kinds["Translations"]))


def _lists_in(source: Path) -> _Lists:
    if source.is_file():
        return _Lists([source], [])
    if not source.is_dir():
        raise DataError(source, "nothing there", "a Packages file, or a folder that has some")
    files = sorted(path for path in source.iterdir() if path.is_file())
    packages, translations = (
        [path for path in files if re.search(rf"(?:^|_){kind}(?:\.[a-z0-9]+)?$", path.name)]
        for kind in ("Packages", "Translation-en")
    )
    if not packages:
        raise DataError(source, "no Packages file", "one, such as Packages.xz or what apt-get update fetches")
    return _Lists(packages, translations)


# --- What the lists say -------------------------------------------------------------------------------------


class _Package(NamedTuple):
    version: str
    description: str
    digest: str
    related: tuple[str, ...]


def _read(lists: _Lists) -> dict[str, _Package]:
    packages: dict[str, _Package] = {}
    for path in lists.packages:
        for stanza in _stanzas_of(path):
            name = stanza["Package"]
            found = _package(stanza)
            if name not in packages or version_key(packages[name].version) < version_key(found.version):
                packages[name] = found
    for path in lists.translations:
        for stanza in _stanzas_of(path):
            known = packages.get(stanza["Package"])
            if known and known.digest == stanza.get("Description-md5") and "Description-en" in stanza:
                packages[stanza["Package"]] = known._replace(description=stanza["Description-en"])
    return packages


def _package(stanza: dict[str, str]) -> _Package:
    names = {sys.intern(name) for field in RELATIONS for name in related_packages(stanza.get(field, ""))}
    description = stanza.get("Description") or stanza.get("Description-en", "")
    return _Package(stanza.get("Version", ""), description, stanza.get("Description-md5", ""), tuple(sorted(names)))


def _documents(packages: dict[str, _Package]) -> Iterator[Document]:
    for name, package in packages.items():
        labels = [other for other in package.related if other in packages and other != name]
        if labels:
            synopsis = package.description.partition("\n")[0]
            yield Document(name, f"{name}: {synopsis}", description_text(package.description), labels)


def _stanzas_of(path: Path) -> Iterator[dict[str, str]]:
    """Yield the stanzas of a list, each of which must name its package."""
    number = 0
    with _opened(path) as stream:
        for number, stanza in enumerate(stanzas(_decoded(path, stream), _FIELDS), start=1):
            if "Package" not in stanza:
                raise DataError(path, f"no Package field in stanza {number}", "a Packages list of Debian")
            yield stanza
    if not number:
        raise DataError(path, "no package", "a Packages list of Debian: run apt-get update again")


def _decoded(path: Path, stream: BinaryIO) -> Iterator[str]:
    for number, line in enumerate(stream, start=1):
        if number == 1:
            check_encoding(path, line)
        yield decode(path, number, line, "utf-8")


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Open a list, however apt or an archive compressed it."""
    if path.suffix == ".lz4":
        with _unpacked_by_apt(path) as stream:
            yield stream
    elif path.suffix in (".xz", ".lzma", ".bz2"):
        try:
            with cast("BinaryIO", bz2.open(path) if path.suffix == ".bz2" else lzma.open(path)) as stream:
                yield stream
        except (lzma.LZMAError, OSError, EOFError) as error:
            raise DataError(path, f"a file that cannot be unpacked ({error})", "an intact file") from error
    else:
        with reading(path) as stream:
            yield stream


@contextmanager
def _unpacked_by_apt(path: Path) -> Iterator[BinaryIO]:
    if not _APT_HELPER.exists():
        raise DataError(path, "LZ4 data, which only apt unpacks here", "an unpacked file: unlz4 it first")
    command = [os.fspath(_APT_HELPER), "cat-file", os.fspath(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        yield cast("BinaryIO", process.stdout)
    if process.returncode:
        raise DataError(path, "a file that apt cannot unpack", "an intact file: run apt-get update again")


# --- The forms of Debian's control files --------------------------------------------------------------------


def stanzas(lines: Iterable[str], wanted: frozenset[str]) -> Iterator[dict[str, str]]:
    r"""Yield the stanzas of a control file as they come, with the wanted fields, folded lines as they stand.

    Examples
    --------
    >>> lines = ["Package: cat", "Size: 3", "Description: a feline", " fond of fish", "", "Package: dog"]
    >>> list(stanzas(lines, frozenset(["Package", "Description"])))
    [{'Package': 'cat', 'Description': 'a feline\n fond of fish'}, {'Package': 'dog'}]
    """
    fields: dict[str, str] = {}
    key = ""
    seen = False
    for line in lines:
        line = line.rstrip()
        if not line:
            if seen:
                yield fields
            fields, key, seen = {}, "", False
        elif line[0] in " \t":
            if key in wanted:
                fields[key] += f"\n{line}"
        else:
            key, _, value = line.partition(":")
            seen = True
            if key in wanted:
                fields[key] = value.lstrip()
    if seen:
        yield fields


def related_packages(relation: str) -> Iterator[str]:
    """Yield the names in a relation field, alternatives too, without versions, architectures and profiles.

    Examples
    --------
    >>> list(related_packages("libc6 (>= 2.36), python3:any, exim4 | mail-agent, gcc [amd64] <!nocheck>"))
    ['libc6', 'python3', 'exim4', 'mail-agent', 'gcc']
    """
    for alternative in re.split("[,|]", relation):
        if name := re.match(r"\s*([A-Za-z0-9][A-Za-z0-9.+-]+)", alternative):
            yield name[1]


def description_text(description: str) -> str:
    r"""Return synopsis and long description in one line, a blank where a paragraph ends.

    Examples
    --------
    >>> description_text("a feline\n fond of fish\n .\n  * purrs")
    'a feline fond of fish   * purrs'
    """
    synopsis, *folded = description.split("\n")
    return " ".join([synopsis, *("" if line.strip() == "." else line[1:] for line in folded)]).strip()


def version_key(version: str) -> tuple[object, ...]:
    """Return a key that sorts versions as Debian does: a tilde before the end, the end before letters.

    Examples
    --------
    >>> sorted(["1.0", "1.0~rc1", "1:0.1", "1.0-2", "1.0-10", "1.0a"], key=version_key)
    ['1.0~rc1', '1.0', '1.0-2', '1.0-10', '1.0a', '1:0.1']
    """
    epoch, colon, rest = version.partition(":")
    if not colon:
        epoch, rest = "0", version
    upstream, _, revision = rest.rpartition("-") if "-" in rest else (rest, "", "")
    return int(epoch) if epoch.isdecimal() else 0, _version_part(upstream), _version_part(revision)


def _version_part(part: str) -> tuple[tuple[tuple[int, ...], int], ...]:
    # The 0 ends each run of characters, so that a tilde sorts before an end, and an end before all else.
    return tuple(
        ((*map(_character_rank, other), 0), int(digits or 0)) for other, digits in re.findall(r"(\D*)(\d*)", part)
    )


def _character_rank(character: str) -> int:
    if character == "~":
        return -1
    return ord(character) if character.isalpha() else ord(character) + 256
