"""The data set `debian-relations`: descriptions of Debian packages, labeled with the packages that they relate to."""

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
from lightdxml.data.errors import DataError
from lightdxml.data.files import byte_lines, decode, reading
from lightdxml.data.split import Document, split_by_hash

RELATIONS = ("Depends", "Pre-Depends", "Recommends", "Suggests", "Enhances")

_FIELDS = frozenset(("Package", "Version", "Description", "Description-en", "Description-md5", *RELATIONS))
_TARGET_FIELDS = frozenset(("Filename", "Created-By", "Origin", "Component"))
_APT_HELPER = Path("/usr/lib/apt/apt-helper")


def build(source: Path | None = None) -> Dataset:
    r"""Build the data set from Debian's package lists.

    A document is a package that relates to others. Its id is its name, its title the name and the synopsis, its text
    the synopsis and the long description. Its labels are the packages in its relation fields, including alternatives,
    if the lists have them; virtual packages are not labels. The newest version of a package counts. A hash of the id
    puts one document in five into the test split. Debian 12 has 57,000 documents and 42,000 labels.

    Parameters
    ----------
    source
        A Packages file, plain or compressed, or a folder of Packages and Translation-en files as apt stores them; None
        for the lists of this machine from ``apt-get update``. Without long descriptions (``apt-get -o
        Acquire::Languages=en update`` gets them) the texts are the synopses.

    Raises
    ------
    DataError
        If there are no lists, or if they cannot be read.

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


class _Lists(NamedTuple):
    packages: list[Path]
    translations: list[Path]


def _lists_of_apt() -> _Lists:
    """Ask apt for its lists: those of Debian's main component, or all if there are none."""
    apt = shutil.which("apt-get")
    if apt is None:
        raise DataError("apt-get", "no such program", "a Debian system, or a Packages file as source")
    command = [apt, "-o", "Acquire::Languages=en", "indextargets"]
    result = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
    if result.returncode:
        last = (result.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise DataError("apt-get indextargets", f"an error ({last})", "the names of apt's package lists")
    targets = list(stanzas(result.stdout.splitlines(), _TARGET_FIELDS))
    debian = [target for target in targets if (target.get("Origin"), target.get("Component")) == ("Debian", "main")]
    kinds: dict[str, list[Path]] = {"Packages": [], "Translations": []}
    for target in debian or targets:
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
        raise DataError(source, "no such file or folder", "a Packages file, or a folder that contains some")
    files = sorted(path for path in source.iterdir() if path.is_file())
    packages, translations = (
        [path for path in files if re.search(rf"(?:^|_){kind}(?:\.[a-z0-9]+)?$", path.name)]
        for kind in ("Packages", "Translation-en")
    )
    if not packages:
        raise DataError(source, "no Packages file", "one, such as Packages.xz or a list from apt-get update")
    return _Lists(packages, translations)


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
    """Yield the stanzas of a list; each must name its package."""
    number = 0
    with _opened(path) as stream:
        lines = (decode(path, number, line, "utf-8") for number, line in byte_lines(path, stream))
        for number, stanza in enumerate(stanzas(lines, _FIELDS), start=1):
            if "Package" not in stanza:
                raise DataError(path, f"no Package field in stanza {number}", "a Packages list of Debian")
            yield stanza
    if not number:
        raise DataError(path, "no package", "a Packages list of Debian: run apt-get update again")


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Open a list in any compression that apt or an archive uses."""
    if path.suffix == ".lz4":
        with _unpacked_by_apt(path) as stream:
            yield stream
    elif path.suffix in (".xz", ".lzma", ".bz2"):
        try:
            with cast("BinaryIO", bz2.open(path) if path.suffix == ".bz2" else lzma.open(path)) as stream:
                yield stream
        except (lzma.LZMAError, OSError, EOFError) as error:
            raise DataError(path, f"a file that cannot be decompressed ({error})", "an intact file") from error
    else:
        with reading(path) as stream:
            yield stream


@contextmanager
def _unpacked_by_apt(path: Path) -> Iterator[BinaryIO]:
    if not _APT_HELPER.exists():
        raise DataError(path, "LZ4 data, which requires apt", "a decompressed file: run unlz4 first")
    command = [os.fspath(_APT_HELPER), "cat-file", os.fspath(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        yield cast("BinaryIO", process.stdout)
    if process.returncode:
        raise DataError(path, "a file that apt cannot decompress", "an intact file: run apt-get update again")


def stanzas(lines: Iterable[str], wanted: frozenset[str]) -> Iterator[dict[str, str]]:
    r"""Yield the stanzas of a control file with the wanted fields, folded lines included.

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
    """Yield the package names in a relation field, including alternatives.

    >>> list(related_packages("libc6 (>= 2.36), python3:any, exim4 | mail-agent, gcc [amd64] <!nocheck>"))
    ['libc6', 'python3', 'exim4', 'mail-agent', 'gcc']
    """
    for alternative in re.split("[,|]", relation):
        if name := re.match(r"\s*([A-Za-z0-9][A-Za-z0-9.+-]+)", alternative):
            yield name[1]


def description_text(description: str) -> str:
    """Return synopsis and long description on one line."""
    synopsis, *folded = description.split("\n")
    return " ".join([synopsis, *("" if line.strip() == "." else line[1:] for line in folded)]).strip()


def version_key(version: str) -> tuple[object, ...]:
    """Return a key that sorts versions as Debian does: a tilde before the end, the end before letters.

    >>> sorted(["1.0", "1.0~rc1", "1:0.1", "1.0-2", "1.0-10", "1.0a"], key=version_key)
    ['1.0~rc1', '1.0', '1.0-2', '1.0-10', '1.0a', '1:0.1']
    """
    epoch, colon, rest = version.partition(":")
    if not colon:
        epoch, rest = "0", version
    upstream, _, revision = rest.rpartition("-") if "-" in rest else (rest, "", "")
    return int(epoch) if epoch.isdecimal() else 0, _version_part(upstream), _version_part(revision)


def _version_part(part: str) -> tuple[tuple[tuple[int, ...], int], ...]:
    # A 0 ends each run of characters: a tilde sorts before the end, and everything else after it.
    return tuple(
        ((*map(_character_rank, other), 0), int(digits or 0)) for other, digits in re.findall(r"(\D*)(\d*)", part)
    )


def _character_rank(character: str) -> int:
    if character == "~":
        return -1
    return ord(character) if character.isalpha() else ord(character) + 256
