"""The checks of a release, each a function that returns a note, or raises `SkippedError` or another error."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

from release import artifacts, facts

# What users install and what can be tried in one environment: `peers` and `bench` are for comparisons.
LEFT_OUT = {"dev", "docs", "peers", "bench", "omikuji", "napkinxc", "fasttext"}
# Extras that need a compiler under some versions of Python, where a package has no wheels yet: gensim.
_NO_WHEELS = {"3.14": {"vectors"}}
_TOOLS = ("build", "twine")
_BIN, _SUFFIX = ("Scripts", ".exe") if os.name == "nt" else ("bin", "")


class SkippedError(Exception):
    """A check that cannot run here, and why."""


class CheckError(Exception):
    """A command that failed, with the end of its output."""


@dataclass
class Workshop:
    """Where a release is checked.

    Parameters
    ----------
    repository
        The repository of the release.
    work
        A temporary folder.
    pythons
        Interpreters by version, such as 3.12.
    """

    repository: Path
    work: Path
    pythons: dict[str, str]
    environments: dict[str, Path] = field(default_factory=dict)

    @cached_property
    def source(self) -> Path:
        """A fresh clone: what is not committed is not released."""
        return self.clone("source")

    @cached_property
    def tracked(self) -> list[str]:
        """The files that git knows."""
        return run(["git", "ls-files", "-z"], cwd=self.source).strip("\0").split("\0")

    @cached_property
    def built(self) -> dict[str, Path]:
        """The wheel and the sdist."""
        folder = self.work / "dist"
        run([self.tools, "-m", "build", "--outdir", folder, self.source])
        (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
        return {"wheel": wheel, "sdist": sdist}

    @cached_property
    def tools(self) -> Path:
        """An interpreter that has the tools for packages."""
        if all(find_spec(tool) for tool in _TOOLS):
            return Path(sys.executable)
        return self.environment("tools", sys.executable, *_TOOLS)

    @cached_property
    def newest(self) -> Path:
        """The interpreter of an environment with the newest version of everything that users install."""
        if not self.pythons:
            raise SkippedError("no interpreter")
        what = f"{self.built['wheel']}[{','.join(self.extras)}]"
        python = self.pythons[self.newest_python]
        return self.environment("newest", python, "--upgrade", "--upgrade-strategy", "eager", what)

    @property
    def newest_python(self) -> str:
        """The newest version of Python that there is."""
        return max(self.pythons, key=lambda version: int(version.partition(".")[2]))

    @cached_property
    def extras(self) -> list[str]:
        """The extras that users install under the newest Python."""
        known = extras_of(self.source / "pyproject.toml")
        return [name for name in known if name not in LEFT_OUT | _NO_WHEELS.get(self.newest_python, set())]

    def clone(self, name: str) -> Path:
        """Clone the last commit into a new folder."""
        run(["git", "clone", "--quiet", self.repository, self.work / name])
        return self.work / name

    def environment(self, name: str, python: str, *packages: str | Path) -> Path:
        """Create an environment with packages, and return its interpreter."""
        folder = self.work / f"venv-{name}"
        run([python, "-m", "venv", folder])
        inside = folder / _BIN / f"python{_SUFFIX}"
        run([inside, "-m", "pip", "install", "--quiet", *packages])
        run([inside, "-m", "pip", "check"])
        return inside

    def smoke(self, python: Path, *arguments: str) -> None:
        """Run the smoke test with this interpreter."""
        script = self.source / "release" / "smoke.py"
        run([python, "-I", script, "--version", facts.version_of(self.source), *arguments])


def tree(shop: Workshop) -> str:
    """Check that everything is committed, and that no other commit has the tag of this version."""
    if changed := run(["git", "status", "--porcelain"], cwd=shop.repository).splitlines():
        raise CheckError(f"{len(changed)} files are not committed, such as {changed[0][3:]}")
    commit = run(["git", "rev-parse", "--short", "HEAD"], cwd=shop.repository).strip()
    tag = f"v{facts.version_of(shop.source)}"
    if run(["git", "tag", "--list", tag], cwd=shop.repository).strip():
        tagged = run(["git", "rev-parse", "--short", f"{tag}^{{commit}}"], cwd=shop.repository).strip()
        if tagged != commit:
            raise CheckError(f"the tag {tag} belongs to commit {tagged}: raise the version")
    return f"commit {commit}"


def versions(shop: Workshop) -> str:
    """Check that package, changelog and citation agree, and that nothing is left unreleased."""
    return facts.check_versions(shop.source, strict=True)


def build(shop: Workshop) -> str:
    """Build the sdist, and the wheel from it, each in an isolated environment; check their metadata as PyPI does."""
    run([shop.tools, "-m", "twine", "check", "--strict", *shop.built.values()])
    return ", ".join(path.name for path in shop.built.values())


def contents(shop: Workshop) -> str:
    """Check that wheel and sdist hold what git holds, and nothing else."""
    arguments = shop.source, shop.tracked, facts.version_of(shop.source)
    wheel = artifacts.check_wheel(shop.built["wheel"], *arguments)
    return f"wheel {wheel}, sdist {artifacts.check_sdist(shop.built['sdist'], *arguments)}"


def install(shop: Workshop, kind: str, version: str) -> str:
    """Install the wheel or the sdist into a clean environment, check its dependencies and run the smoke test."""
    if version not in shop.pythons:
        raise SkippedError(f"no Python {version} found: give one with --python PATH")
    name = f"{kind}-{version}"
    python = shop.environment(name, shop.pythons[version], shop.built[kind])
    shop.smoke(python)
    return shop.pythons[version]


def lowest(shop: Workshop) -> str:
    """Run the smoke test with the lowest versions of all dependencies."""
    run([shop.source / ".ci" / "lowest"], cwd=shop.source)
    return ".ci/lowest"


def newest(shop: Workshop) -> str:
    """Run the smoke test with the newest versions; a deprecation warning that our code causes is an error."""
    shop.smoke(shop.newest, "--strict", "--extras", ",".join(shop.extras))
    return f"Python {shop.newest_python} with {', '.join(shop.extras)}"


def licenses(shop: Workshop) -> str:
    """Check the licenses of everything that users install."""
    shown = run([shop.newest, shop.source / "release" / "licenses.py"])
    return f"{len(shown.splitlines())} packages"


def docs(shop: Workshop) -> str:
    """Build the docs."""
    makefile = shop.source / "Makefile"
    if not makefile.exists() or "\ndocs:" not in "\n" + makefile.read_text("utf-8"):
        raise SkippedError("no `make docs`")
    has_extra = "docs" in extras_of(shop.source / "pyproject.toml")
    python = shop.environment("docs", sys.executable, f"{shop.source}{'[dev,docs]' if has_extra else '[dev]'}")
    run(["make", "docs", f"PYTHON={python}"], cwd=shop.source)
    return "make docs"


def readme(shop: Workshop, number: int) -> str:
    """Run one of the README's commands in a fresh clone, to the letter."""
    if os.name == "nt":
        raise SkippedError("the README's commands are for Unix")
    command = facts.commands_of_readme(shop.source / "README.md")[number]
    output = run(["bash", "-c", command], cwd=shop.clone(f"readme-{number}"))
    return output.strip().splitlines()[-1].strip("= ") if number else "trained and evaluated"


def run(command: Iterable[str | Path], *, cwd: Path | None = None) -> str:
    """Run a command and return what it prints; raise a `CheckError` with the end of that if it fails."""
    words = list(map(str, command))
    print(f"  {time.strftime('%H:%M:%S')} {' '.join(words)}", flush=True)
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(
        words, cwd=cwd, env=clean, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, encoding="utf-8", errors="replace", check=False,
    )  # fmt: skip
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        print("\n".join(lines[-40:]), flush=True)
        raise CheckError(f"{Path(words[0]).name} ends with {done.returncode}: {lines[-1] if lines else 'no output'}")
    return done.stdout


def extras_of(pyproject: Path) -> list[str]:
    """Return the names of the extras in a pyproject.toml."""
    # Python 3.10 has no reader of TOML.
    section = pyproject.read_text("utf-8").partition("[project.optional-dependencies]\n")[2].partition("\n[")[0]
    return [line.partition(" = ")[0] for line in section.splitlines() if " = [" in line]
