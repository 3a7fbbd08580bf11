"""A real data set on every machine: the "See Also" graph of NumPy, SciPy and scikit-learn."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
import textwrap
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import NamedTuple

from lightdxml.data.dataset import Dataset
from lightdxml.data.documents import Document, split_by_hash
from lightdxml.data.errors import DataError

ROOTS = ("numpy", "scipy", "sklearn")

# Not looked into: tests, what builds or checks code, old names of other modules, and what does something when
# imported (`experimental` changes other modules, `distutils` the build tools, `mypy_plugin` wants mypy).
_CLOSED = frozenset(
    (
        *("tests", "conftest", "testutils", "estimator_checks", "print_coercion_tables"),
        *("f2py", "setup", "fixes", "externals", "cython_special"),
        *("core", "compat", "matlib"),
        *("experimental", "distutils", "mypy_plugin"),
    )
)

# These are in their modules only after someone imported `experimental`: what is built would depend on it.
_EXPERIMENTAL = frozenset(("HalvingGridSearchCV", "HalvingRandomSearchCV", "IterativeImputer"))

_FIELD_SECTIONS = frozenset(
    (
        *("parameters", "other parameters", "attributes", "class attributes"),
        *("returns", "yields", "receives", "raises", "warns"),
    )
)
_SECTIONS_WITHOUT_PROSE = frozenset(("see also", "examples", "example", "references", "methods"))
_ADMONITIONS = frozenset(("note", "warning", "important", "tip", "hint", "caution", "attention", "rubric"))


def build() -> Dataset:
    """Build the data set `see-also` from the docstrings of the installed NumPy, SciPy and scikit-learn.

    A document is a public function, class, method or attribute: its id is its dotted name, its text what its
    docstring says in sentences, its labels the names that its "See Also" section refers to. Nothing is
    downloaded; which documents there are depends on the versions that are installed, and on nothing else.
    One document in five is for testing, chosen by a hash of its id, so that another version moves none of
    those that it shares with this one.

    Returns
    -------
    Dataset
        Around 2,000 documents and 1,700 labels, `train` and `test`.

    Raises
    ------
    DataError
        Where Python was told to throw docstrings away (``-OO``).

    Examples
    --------
    >>> data = build()
    >>> row = data.train.ids.index("numpy.linalg.eigh")
    >>> data.train.texts.titles[row]
    'linalg.eigh'
    >>> [data.label_names[i] for i in data.train.Y[row].indices][:2]
    ['numpy.linalg.eig', 'numpy.linalg.eigvals']
    """
    if sys.flags.optimize >= 2:
        raise DataError(
            "docstrings of NumPy, SciPy and scikit-learn",
            "none, as Python runs with -OO",
            "docstrings: run it without -OO, and without PYTHONOPTIMIZE=2",
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        documents = _distinct(_documents(_survey()))
    return split_by_hash("see-also", documents)


# --- What there is: public names, and the objects behind them -----------------------------------------------


class _Survey(NamedTuple):
    canonical: dict[str, str]  # every public name, and the one name of the object behind it
    docstrings: dict[str, str]  # by that one name


def _survey() -> _Survey:
    names: dict[object, list[str]] = defaultdict(list)
    objects: dict[object, object] = {}
    canonical: dict[str, str] = {}
    for path, module in _modules():
        canonical[path] = module.__name__
        for name, thing in _public_things(path, module):
            key = _identity(thing, name)
            names[key].append(name)
            objects[key] = thing
    docstrings = {}
    for key, aliases in names.items():
        thing = objects[key]
        best = min(aliases, key=lambda name: _rank(name, thing))
        canonical.update(dict.fromkeys(aliases, best))
        if doc := _own_docstring(thing):
            docstrings[best] = doc
    return _Survey(canonical, docstrings)


def _modules() -> Iterator[tuple[str, ModuleType]]:
    waiting = list(ROOTS)
    while waiting:
        try:
            module = importlib.import_module(waiting.pop())
        except Exception:  # a part that cannot be imported here (a missing library, say) has no documents
            continue
        yield module.__name__, module
        for name, other in _exports(module):  # `numpy.emath` is the public name of `numpy.lib.scimath`
            if inspect.ismodule(other) and other.__name__ != f"{module.__name__}.{name}":
                yield f"{module.__name__}.{name}", other
        inside = (info.name for info in pkgutil.iter_modules(getattr(module, "__path__", ())))
        waiting += [f"{module.__name__}.{name}" for name in inside if name[0] != "_" and name not in _CLOSED]


def _public_things(path: str, module: ModuleType) -> Iterator[tuple[str, object]]:
    for name, thing in _exports(module):
        if inspect.ismodule(thing):
            continue
        yield f"{path}.{name}", _plain(thing)
        if inspect.isclass(thing) and _is_ours(thing):
            for attribute, member in _members(thing):
                yield f"{path}.{name}.{attribute}", _plain(member)


def _exports(module: ModuleType) -> Iterator[tuple[str, object]]:
    # By `vars`, as reading an attribute of an old name's module would warn of its age.
    here = dict(vars(module))
    own = (name for name, thing in here.items() if getattr(thing, "__module__", None) == module.__name__)
    names = (name for name in here.get("__all__", own) if name not in _EXPERIMENTAL)
    return ((name, here[name]) for name in names if name in here and not name.startswith("_"))


def _members(cls: type) -> Iterator[tuple[str, object]]:
    seen = set()
    for base in filter(_is_ours, cls.__mro__):
        for name, member in list(vars(base).items()):
            if not name.startswith("_") and name not in seen:
                seen.add(name)
                yield name, member


def _is_ours(cls: type) -> bool:
    return str(cls.__module__).partition(".")[0] in ROOTS


def _plain(thing: object) -> object:
    """Take off what is only a way to reach a function: static, class and bound methods."""
    if isinstance(thing, (staticmethod, classmethod)):
        return thing.__func__
    owner = getattr(thing, "__self__", None)
    if owner is None or inspect.ismodule(owner) or not inspect.isroutine(thing):
        return thing
    return inspect.getattr_static(owner if inspect.isclass(owner) else type(owner), thing.__name__, thing)


def _identity(thing: object, name: str) -> object:
    # Plain values (None, 1.0, "") are shared by names that mean different things.
    return id(thing) if callable(thing) or _own_docstring(thing) else name


def _own_docstring(thing: object) -> str | None:
    # An instance without one answers with its class's, whose text sits as a plain string in the class.
    inherited = isinstance(vars(type(thing)).get("__doc__"), str | None) and not inspect.isclass(thing)
    if inherited and "__doc__" not in getattr(thing, "__dict__", ()):
        return None
    doc = getattr(thing, "__doc__", None)
    return doc if isinstance(doc, str) else None


def _rank(name: str, thing: object) -> tuple[int, bool, bool, str]:
    own = str(getattr(thing, "__qualname__", None) or getattr(thing, "__name__", ""))
    full = f"{getattr(thing, '__module__', None)}.{own}"
    return name.count("."), name != full, not name.endswith(f".{own}"), name


# --- From docstrings to documents ---------------------------------------------------------------------------


def _documents(survey: _Survey) -> Iterator[Document]:
    by_last_word = defaultdict(set)
    for name in survey.canonical.values():
        by_last_word[name.rpartition(".")[2]].add(name)
    for name, doc in survey.docstrings.items():
        if "see also" not in doc.lower():
            continue
        sections = split_sections(doc)
        found = (
            _resolve(reference, name, survey.canonical, by_last_word)
            for title, lines in sections
            if title == "see also"
            for reference in references(lines)
        )
        labels = sorted({label for label in found if label and label != name})
        text = prose(sections)
        if labels and text:
            yield Document(name, name.partition(".")[2], text, labels)


def _distinct(documents: Iterable[Document]) -> Iterator[Document]:
    """Keep one document of those that say the same, the one with the shortest path."""
    seen = set()
    for document in sorted(documents, key=lambda one: (one.id.count("."), len(one.id), one.id)):
        words = document.text.casefold()
        if words not in seen:
            seen.add(words)
            yield document


def _resolve(reference: str, home: str, canonical: dict[str, str], by_last_word: dict[str, set[str]]) -> str | None:
    """Find the object that a reference within the docstring of `home` means, as a reader would."""
    reference = re.sub(r"^np\.", "numpy.", reference)
    scopes = home.split(".")
    for depth in (*range(len(scopes) - 1, 0, -1), len(scopes)):
        if found := canonical.get(".".join((*scopes[:depth], reference))):
            return found
    if found := canonical.get(reference):
        return found
    ending = f".{reference}"
    elsewhere = [name for name in by_last_word.get(reference.rpartition(".")[2], ()) if name.endswith(ending)]
    nearby = [name for name in elsewhere if name.startswith(f"{scopes[0]}.")]
    for candidates in (nearby, elsewhere):
        if len(candidates) == 1:
            return candidates[0]
    return None


_TITLE = re.compile(r"\s*[A-Za-z][A-Za-z ]*:?\s*")
_UNDERLINE = re.compile(r"\s*(?:-{3,}|={3,})")


def split_sections(doc: str) -> list[tuple[str, list[str]]]:
    r"""Split a docstring into its sections: (title in lower case, lines), the first with an empty title.

    Examples
    --------
    >>> split_sections("Add.\n\nSee Also\n--------\nsum : all")
    [('', ['Add.', '']), ('see also', ['sum : all'])]
    """
    sections: list[tuple[str, list[str]]] = [("", [])]
    lines = [line.rstrip() for line in inspect.cleandoc(doc).splitlines()]
    for i, line in enumerate(lines):
        if i and line.endswith(("---", "===")) and _UNDERLINE.fullmatch(line) and _TITLE.fullmatch(lines[i - 1]):
            sections[-1][1].pop()
            sections.append((lines[i - 1].strip(" :").lower(), []))
        else:
            sections[-1][1].append(line)
    return sections


_REFERENCE = r"(?::[\w:]+:)?`?~?([A-Za-z_][\w.]*\w|[A-Za-z])`?"
_REFERENCES = re.compile(rf"{_REFERENCE}(?:\s*,\s*{_REFERENCE})*\s*,?\s*(?::|$|--? )")


def references(lines: Iterable[str]) -> Iterator[str]:
    """Yield the names that the lines of a "See Also" section refer to, as they stand there.

    Examples
    --------
    >>> list(references(["lstsq, `pinv` : solve it,", "    by svd", ":func:`~numpy.dot`", "and so on"]))
    ['lstsq', 'pinv', 'numpy.dot']
    """
    goes_on = False
    for line in textwrap.dedent("\n".join(lines)).splitlines():
        if line[:1].isspace() and not goes_on:
            continue
        line = line.strip().removeprefix("* ").removeprefix("- ")
        match = None if line.startswith((":ref:", ":doc:")) else _REFERENCES.match(line)
        goes_on = match is not None and line.endswith(",") and match.end() == len(line)
        if match:
            for reference in match[0].rstrip(" :-").split(","):
                if found := re.search(_REFERENCE, reference):
                    yield found[1]


# --- From reStructuredText to sentences ---------------------------------------------------------------------


def prose(sections: Iterable[tuple[str, list[str]]]) -> str:
    r"""Return what the sections of a docstring say in sentences: no markup, code, formulas or references.

    Examples
    --------
    >>> prose(split_sections("Add `a` to :func:`b` [1]_.\n\n>>> 1 + 1\n2\n\nSee Also\n--------\nsum"))
    'Add a to b.'
    """
    pieces = []
    for title, lines in sections:
        if title in _SECTIONS_WITHOUT_PROSE:
            continue
        body = [line if line[:1].isspace() else "" for line in lines] if title in _FIELD_SECTIONS else lines
        pieces.append(_plain_sentences("\n".join(_without_blocks(body))))
    return " ".join(filter(None, pieces))


_DIRECTIVE = re.compile(r"\.\.(?: (?:(?P<name>[\w-]+) ?::)?|$)(?P<rest>.*)")


def _without_blocks(lines: Iterable[str]) -> Iterator[str]:
    """Leave out directives, literal blocks and doctests, each with all that is indented below it."""
    block = -1  # the indentation of what opened the block that is being left out
    in_doctest = False
    for line in lines:
        bare = line.strip()
        indent = len(line) - len(line.lstrip())
        in_doctest = bool(bare) and (in_doctest or bare.startswith(">>>"))
        if in_doctest or (bare and indent > block >= 0) or (not bare and block >= 0):
            continue
        block = -1
        directive = _DIRECTIVE.match(bare)
        if directive and directive["name"] in _ADMONITIONS:
            yield directive["rest"]
        elif directive:
            block = indent
        elif bare.endswith("::"):
            block = indent
            yield bare[:-1]
        else:
            yield line


_SIGNATURE = re.compile(r"\s*[\w.]+\(.*\)(?:\s*->.*)?\s*", re.DOTALL)
_RULE = re.compile(r"^[ \t]*(?:[-=~^+|*#]{3,}[-=~^+|*# \t]*|\|.*\|[ \t]*)$", re.MULTILINE)
_BACKENDS = re.compile(r"\*\*Array API Standard Support\*\*.*", re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])|\n\s*\n")
_BOILERPLATE = re.compile(  # of text in lower case, which is quicker than ignoring case
    r"see\s+also|user\s+guide|sphx_glr|see\s\0|new\s+code\s+should\s+use|deprecat|will\s+be\s+removed\s+in"
    r"|added\s+in\s+version"
)
_GREEK = re.compile(
    r"\\(alpha|beta|gamma|delta|(?:var)?epsilon|zeta|eta|theta|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|phi|chi|psi"
    r"|omega)(?![a-z])",
    re.IGNORECASE,
)


def _formula(match: re.Match[str]) -> str:
    """Keep a formula that reads as plain text, such as x > 0 or alpha, and no other."""
    formula = _GREEK.sub(r"\1", match[1])
    return formula if re.fullmatch(r"[\w\s<>=+*/(),.'-]*", formula) else ""


def _target(match: re.Match[str]) -> str:
    return match[1] if match[1].startswith("sphx_glr") else re.sub("[-_]", " ", match[1])


_MARKUP: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = tuple(
    (re.compile(pattern, re.MULTILINE), replacement)
    for pattern, replacement in (
        (r"\\?\[(?:\d+|[A-Za-z][\w.+-]*)\]_", "\0"),  # a citation: what only points to it goes with it
        (r"\([^()]*\0[^()]*\)", ""),
        (r":math:`([^`]*)`", _formula),
        (r"\$([^$\n]+)\$", _formula),
        (r":(?:doi|DOI|arxiv|arXiv|math:numref):`[^`]*`", ""),
        (r":(?:ref|doc|std:doc):`([^`<]*)`", _target),
        (r":[a-zA-Z][\w:+.-]*:(?=`)", ""),
        (r"`([^`<]+?)\s*<[^`>]*>`", r"\1`"),  # `what is shown <where it leads>`
        (r"`~|`+(?:__?(?!\w))?", ""),
        (r"(?<![\w*])(\*\*|\*)(?=[^\s*])([^*]*[^\s*])\1(?![\w*])", r"\2"),
        (r"(?:https?|ftp)://\S+", ""),
        (r"\\\s|\\[A-Za-z]+", ""),
        (r"\\(?=\W)", ""),
        (r"^[ \t]*(?:[-*•]|:[A-Z][\w ]*:)\s+", " "),
        (r"\((?:[a-z] ?)+\|[a-z |]*\)", ""),  # how a border is filled, drawn in letters
    )
)
_TIDY: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r" [(\[] ?[)\]]"), ""),
    (re.compile(r" +(?=[,;:.)](?: |$))"), ""),
    (re.compile(r",(?: ?,)+"), ","),
    (re.compile(r" -{2,} "), " - "),
)


def _plain_sentences(text: str) -> str:
    """Turn marked-up paragraphs into one line, without the sentences that say nothing about the object."""
    text = _RULE.sub("", _BACKENDS.sub("", text))
    text = "\n\n".join(part for part in re.split(r"\n\s*\n", text) if not _SIGNATURE.fullmatch(part))
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    if _BOILERPLATE.search(text.lower()):
        text = " ".join(part for part in _SENTENCE_END.split(text) if not _BOILERPLATE.search(part.lower()))
    text = " ".join(text.replace("\0", " ").split())
    for tidy, replacement in _TIDY:
        text = tidy.sub(replacement, text)
    return text
