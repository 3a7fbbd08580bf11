"""Check a release: `python -m release` in a clone, or `python -m release --quick` for what takes seconds."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from release import checks, facts
from release.checks import SkippedError, Workshop

Check = Callable[[Workshop], str]
_REPOSITORY = Path(__file__).resolve().parents[1]


def main() -> int:
    """Run the checks, print a table of what passed, failed or was skipped, and return how many failed."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only what takes seconds and needs no clean tree")
    parser.add_argument("--only", default="", help="checks or groups of them, such as build,'wheel 3.13',lowest")
    parser.add_argument("--skip", default="", help="checks or groups of them that are left out")
    parser.add_argument("--python", action="append", default=[], help="an interpreter that is not on the path")
    parser.add_argument("--out", type=Path, help="a folder for the wheel and the sdist that were checked")
    options = parser.parse_args()
    known = quick_checks() if options.quick else all_checks()
    names = {*known, *(name.split()[0] for name in known)}
    only, skip = ({*filter(None, text.split(","))} for text in (options.only, options.skip))
    if unknown := (only | skip) - names:
        parser.error(f"no such checks: {', '.join(sorted(unknown))}; there are {', '.join(sorted(names))}")
    with tempfile.TemporaryDirectory(prefix="lightdxml-release-", ignore_cleanup_errors=True) as work:
        shop = Workshop(_REPOSITORY, Path(work), interpreters(options.python))
        rows = []
        for name, check in known.items():
            words = {name, name.split()[0]}
            if words & skip:
                rows.append((name, "skipped", 0.0, "--skip"))
            elif not only or words & only:
                rows.append((name, *outcome(check, shop)))
        if options.out and all(result != "failed" for _, result, _, _ in rows):
            options.out.mkdir(parents=True, exist_ok=True)
            for path in shop.built.values():
                shutil.copy2(path, options.out)
    print()
    for name, result, seconds, note in rows:
        print(f"{name:20} {result:8} {seconds:6.0f} s  {note}")
    failed = sum(result == "failed" for _, result, _, _ in rows)
    print(f"\n{failed} of {len(rows)} checks failed" if failed else "\nno check failed")
    return failed


def all_checks() -> dict[str, Check]:
    """Return the checks of a release by name; the first word of a name is its group."""
    pythons = facts.supported(_REPOSITORY)
    return {
        "tree": checks.tree,
        "version": checks.versions,
        "build": checks.build,
        "contents": checks.contents,
        **{f"wheel {version}": partial(checks.install, kind="wheel", version=version) for version in pythons},
        **{f"sdist {version}": partial(checks.install, kind="sdist", version=version) for version in pythons},
        "lowest": checks.lowest,
        "newest": checks.newest,
        "licenses": checks.licenses,
        "docs": checks.docs,
        "readme first": partial(checks.readme, number=0),
        "readme tests": partial(checks.readme, number=1),
    }


def quick_checks() -> dict[str, Check]:
    """Return the checks that CI runs on every change, in the environment of the running interpreter."""
    here = [sys.executable, "-m"]
    return {
        "version": lambda shop: facts.check_versions(shop.source, strict=False),
        "build": checks.build,
        "contents": checks.contents,
        "dependencies": lambda _: checks.run([*here, "pip", "check"]).strip(),
        "licenses": lambda _: f"{len(checks.run([*here, 'release.licenses'], cwd=_REPOSITORY).splitlines())} packages",
    }


def outcome(check: Check, shop: Workshop) -> tuple[str, float, str]:
    """Run a check; return whether it passed, its seconds and its note."""
    start = time.monotonic()
    try:
        result, note = "passed", check(shop)
    except SkippedError as reason:
        result, note = "skipped", str(reason)
    except (checks.CheckError, ValueError, OSError) as error:
        result, note = "failed", str(error)
    return result, time.monotonic() - start, note


def interpreters(more: list[str]) -> dict[str, str]:
    """Return an interpreter for each supported version of Python that there is."""
    found = {}
    for version in facts.supported(_REPOSITORY):
        managed = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
        for candidate in (*more, sys.executable, shutil.which(f"python{version}"), *map(str, managed)):
            if candidate and _version(candidate) == version:
                found[version] = candidate
                break
    return found


def _version(python: str) -> str:
    code = "import sys; print('{}.{}'.format(*sys.version_info))"
    try:
        # A version manager's placeholder fails if no such version is chosen.
        return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


if __name__ == "__main__":
    sys.exit(bool(main()))
