"""What the repository says about a release: versions, dates and Python versions, which must agree."""

from __future__ import annotations

import re
from pathlib import Path

_HEADING = re.compile(r"^## \[?([^\]\s]+)\]?(?: - (\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)


def version_of(source: Path) -> str:
    """Return the version of the package."""
    return _found(source / "src/lightdxml/__init__.py", r'^__version__ = "([^"]+)"$')[1]


def supported(source: Path) -> list[str]:
    """Return the versions of Python that the package names, the lowest one first."""
    text = (source / "pyproject.toml").read_text("utf-8")
    return sorted(re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text), key=lambda one: int(one[2:]))


def check_versions(source: Path, *, strict: bool) -> str:
    """Check that package, changelog and citation agree; return the version.

    Parameters
    ----------
    source
        The folder of the repository.
    strict
        Whether the changelog's section of unreleased changes must be empty.
    """
    version = version_of(source)
    sections = changes(source / "CHANGELOG.md")
    if not sections or sections[0][0] != "Unreleased":
        raise ValueError("CHANGELOG.md must begin with the section Unreleased")
    if strict and sections[0][2]:
        raise ValueError("CHANGELOG.md has unreleased changes: move them to the section of the release")
    if len(sections) < 2 or sections[1][:1] != (version,):
        raise ValueError(f"CHANGELOG.md: the section after Unreleased must be that of {version}")
    date = sections[1][1]
    citation = source / "CITATION.cff"
    for name, value in (("version", version), ("date-released", date)):
        found = _found(citation, rf'^{name}: "?([^"\n]+)"?$')[1]
        if found != value:
            raise ValueError(f"CITATION.cff: {name} is {found}, and CHANGELOG.md has {value}")
    return f"{version} of {date}"


def changes(path: Path) -> list[tuple[str, str, str]]:
    """Return the sections of a changelog: name, date and content."""
    parts = _HEADING.split(path.read_text("utf-8"))[1:]
    return [(name, date or "", text.strip()) for name, date, text in zip(*(parts[i::3] for i in range(3)), strict=True)]


def commands_of_readme(path: Path) -> list[str]:
    """Return the commands of the README that set up an environment and use it."""
    lines = path.read_text("utf-8").splitlines()
    return [line for line in lines if line.startswith("python3 -m venv") and "&&" in line]


def _found(path: Path, pattern: str) -> re.Match[str]:
    found = re.search(pattern, path.read_text("utf-8"), re.MULTILINE)
    if found is None:
        raise ValueError(f"{path.name} has no line like {pattern}")
    return found
