"""The release check: what must agree, what packages may contain, and which licenses they may need."""

from __future__ import annotations

import re
import zipfile
from functools import partial
from pathlib import Path

import pytest

from release import artifacts, facts, licenses
from release.__main__ import main

ROOT = Path(__file__).parents[1]
CHANGELOG = "# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2026-11-19\n\n- x\n"
CITATION = 'version: "0.2.0"\ndate-released: "2026-11-19"\n'


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "src/lightdxml").mkdir(parents=True)
    (tmp_path / "src/lightdxml/__init__.py").write_text('"""x"""\n__version__ = "0.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    (tmp_path / "CITATION.cff").write_text(CITATION)
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text("utf-8"), encoding="utf-8")
    return tmp_path


def test_package_changelog_and_citation_of_this_repository_agree() -> None:
    assert facts.check_versions(ROOT, strict=False).startswith(facts.version_of(ROOT))


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("CHANGELOG.md", "0.2.0", "0.2.1", r"the section after Unreleased must be that of 0\.2\.0"),
        ("CHANGELOG.md", "2026-11-19", "2026-11-20", "date-released is 2026-11-19, and CHANGELOG.md has 2026-11-20"),
        ("CHANGELOG.md", "Unreleased\n", "Unreleased\n\n- y\n", "has unreleased changes"),
        ("CITATION.cff", '"0.2.0"', '"0.1.0"', r"version is 0\.1\.0, and CHANGELOG.md has 0\.2\.0"),
    ],
)
def test_what_does_not_agree_is_named(source: Path, name: str, old: str, new: str, said: str) -> None:
    assert facts.check_versions(source, strict=True) == "0.2.0 of 2026-11-19"
    file = source / name
    file.write_text(file.read_text().replace(old, new, 1))
    with pytest.raises(ValueError, match=said):
        facts.check_versions(source, strict=True)


def wheel(folder: Path, names: list[str], requires: str) -> Path:
    path, info = folder / "lightdxml-0.2.0-py3-none-any.whl", "lightdxml-0.2.0.dist-info/"
    fields = ("Name: lightdxml", "Version: 0.2.0", "License-Expression: MIT", "License-File: LICENSE")
    metadata = "\n".join((*fields, f"Requires-Python: {requires}", "Description-Content-Type: text/markdown", "", ""))
    with zipfile.ZipFile(path, "w") as archive:
        for name in (*names, *(info + one for one in ("RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"))):
            archive.writestr(name, "")
        archive.writestr(info + "METADATA", metadata)
    return path


NAMES = [f"lightdxml/{name}" for name in ("__init__.py", "py.typed", "serve/page/index.html")]
ASSETS = [f"lightdxml/serve/page/{name}" for name in ("api.html", "icon.svg")]


@pytest.mark.parametrize(
    ("names", "requires", "said"),
    [
        ([*NAMES, *ASSETS], ">=3.10", ""),
        ([*NAMES, *ASSETS, "tests/secret.csv"], ">=3.10", "contains tests/secret.csv"),
        ([*NAMES[1:], *ASSETS], ">=3.10", "lacks lightdxml/__init__.py"),
        ([*NAMES, *ASSETS], ">=3.9", "Requires-Python is >=3.9"),
    ],
)
def test_a_wheel_holds_what_git_holds(source: Path, names: list[str], requires: str, said: str) -> None:
    tracked = ["README.md", *(f"src/{name}" for name in (*NAMES, *ASSETS))]
    if not said:
        assert artifacts.check_wheel(wheel(source, names, requires), source, tracked, "0.2.0")
        return
    with pytest.raises(ValueError, match=said):
        artifacts.check_wheel(wheel(source, names, requires), source, tracked, "0.2.0")


def test_a_license_that_is_unknown_or_copyleft_is_refused_unless_there_is_a_reason() -> None:
    assert not licenses.judge("a", {"MIT", *licenses.identifiers("Apache-2.0 WITH LLVM-exception")}, {})
    assert licenses.judge("a", set(), {}) == "NOT ACCEPTED: unknown"
    assert licenses.judge("a", {"MIT", "GPL-3.0"}, {}) == "NOT ACCEPTED: GPL-3.0"
    assert not licenses.judge("certifi", {"MPL-2.0"}, licenses.EXCEPTIONS)
    assert licenses.judge("certifi", {"AGPL-3.0-only"}, licenses.EXCEPTIONS)


def test_what_the_package_needs_is_found_through_extras() -> None:
    found = licenses.closure("lightdxml", ["sklearn"])
    assert {"numpy", "llvmlite", "threadpoolctl"} <= found
    assert not found & {"lightdxml", "ruff", "pytest"}


@pytest.mark.parametrize("quick", [False, True])
def test_checks_are_chosen_among_those_that_there_are(monkeypatch: pytest.MonkeyPatch, quick: bool) -> None:
    run: list[str] = []

    def check(name: str, _: object) -> str:
        run.append(name)
        return ""

    checks = {name: partial(check, name) for name in ("build", "dependencies", "wheel 3.10")}
    monkeypatch.setattr(f"release.__main__.{'quick' if quick else 'all'}_checks", lambda: checks)
    monkeypatch.setattr("sys.argv", ["release", *["--quick"] * quick, "--only", "wheel,dependencies"])
    assert main() == 0
    assert run == ["dependencies", "wheel 3.10"]


def test_hooks_before_a_commit_need_no_active_environment() -> None:
    entries = re.findall("entry: (.+)", (ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    assert len(entries) == 3
    assert all(one.startswith(".venv-dev/bin/") for one in entries)


def test_ci_tests_every_supported_version_of_python() -> None:
    text = (ROOT / ".github/workflows/ci.yml").read_text("utf-8")
    tried = set(re.findall(r"3\.\d+", " ".join(re.findall(r"(?:python: \[|container: python:).*", text))))
    assert tried == set(facts.supported(ROOT))
