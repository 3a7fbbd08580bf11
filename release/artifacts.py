"""What the wheel and the sdist contain: everything that they need, and nothing else."""

from __future__ import annotations

import email
import tarfile
import zipfile
from collections.abc import Iterable
from email.message import Message
from pathlib import Path

from release.facts import supported

# An unexpected large file would exceed these.
MAX_WHEEL, MAX_SDIST = 2_000_000, 6_000_000
_SOURCE, _PACKAGE = "src/", "lightdxml/"
_WHEEL_INFO = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}
_NEEDED_IN_WHEEL = ("py.typed", "serve/page/index.html", "serve/page/api.html", "serve/page/icon.svg")
_NEEDED_IN_SDIST = (
    "CHANGELOG.md", "CITATION.cff", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md",
    "docs/index.md", "examples/own_csv.py", "pyproject.toml", "tests/conftest.py",
)  # fmt: skip


def check_wheel(path: Path, source: Path, tracked: Iterable[str], version: str) -> str:
    """Check a wheel, and return its size in words; raise a `ValueError` that says what is wrong with it.

    Parameters
    ----------
    path
        The wheel.
    source
        The folder that it was built from.
    tracked
        The files of this folder that git knows.
    version
        The version that it must have.
    """
    with zipfile.ZipFile(path) as archive:
        found = {name for name in archive.namelist() if not name.endswith("/")}
        info = f"lightdxml-{version}.dist-info/"
        wanted = {name.removeprefix(_SOURCE) for name in tracked if name.startswith(_SOURCE)}
        wanted |= {info + name for name in _WHEEL_INFO}
        _compare(path, found, wanted)
        _require(path, found, (_PACKAGE + name for name in _NEEDED_IN_WHEEL))
        _check_metadata(path, email.message_from_bytes(archive.read(info + "METADATA")), source, version)
    return _size(path, MAX_WHEEL)


def check_sdist(path: Path, source: Path, tracked: Iterable[str], version: str) -> str:
    """Check an sdist as `check_wheel` checks a wheel."""
    with tarfile.open(path) as archive:
        prefix = f"lightdxml-{version}/"
        members = [member for member in archive.getmembers() if not member.isdir()]
        if odd := [member.name for member in members if not member.isfile() or not member.name.startswith(prefix)]:
            raise ValueError(f"{path.name} contains {odd[0]}")
        found = {member.name.removeprefix(prefix) for member in members}
        _compare(path, found, {*tracked, "PKG-INFO"})
        _require(path, found, _NEEDED_IN_SDIST)
        stream = archive.extractfile(f"{prefix}PKG-INFO")
        assert stream is not None
        _check_metadata(path, email.message_from_bytes(stream.read()), source, version)
    return _size(path, MAX_SDIST)


def _compare(path: Path, found: set[str], wanted: set[str]) -> None:
    for what, names in (("lacks", wanted - found), ("contains", found - wanted)):
        if names:
            raise ValueError(f"{path.name} {what} {', '.join(sorted(names)[:5])}")


def _require(path: Path, found: set[str], needed: Iterable[str]) -> None:
    if missing := [name for name in needed if name not in found]:
        raise ValueError(f"{path.name} lacks {', '.join(missing)}")


def _check_metadata(path: Path, metadata: Message, source: Path, version: str) -> None:
    pythons = supported(source)
    wanted = {
        "Name": "lightdxml",
        "Version": version,
        "License-Expression": "MIT",
        "License-File": "LICENSE",
        "Requires-Python": f">={pythons[0]}",
        "Description-Content-Type": "text/markdown",
    }
    for name, value in wanted.items():
        if metadata[name] != value:
            raise ValueError(f"{path.name}: {name} is {metadata[name]}, expected {value}")


def _size(path: Path, most: int) -> str:
    size = path.stat().st_size
    if size > most:
        raise ValueError(f"{path.name} has {size:,} bytes, expected at most {most:,}")
    return f"{size / 1e3:,.0f} kB"
