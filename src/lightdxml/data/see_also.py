"""The data set `see-also`: the "See Also" graph of NumPy, SciPy and, if it is installed, scikit-learn."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import partial
from types import ModuleType

from lightdxml.data.dataset import Dataset
from lightdxml.data.docstrings import prose, references, split_sections
from lightdxml.data.errors import DataError
from lightdxml.data.split import Document, split_by_hash

ROOTS = ("numpy", "scipy", "sklearn")

# Skipped modules: tests, build tools and checks, old names of other modules, and modules with side effects on import
# (`experimental` changes other modules, `distutils` the build tools, `mypy_plugin` requires mypy).
_SKIPPED = (
    *("tests", "conftest", "testutils", "estimator_checks", "print_coercion_tables"),
    *("f2py", "setup", "fixes", "externals", "cython_special"),
    *("core", "compat", "matlib"),
    *("experimental", "distutils", "mypy_plugin"),
)

# These exist only after an import of `experimental`: the data set must not depend on it.
_EXPERIMENTAL = ("HalvingGridSearchCV", "HalvingRandomSearchCV", "IterativeImputer")


def build() -> Dataset:
    """Build the data set from docstrings.

    A document is a public function, class, method or attribute. Its id is its dotted name, its text the sentences of
    its docstring, and its labels are the names in its "See Also" section. The data set depends only on the installed
    versions. A hash of the id puts one document in five into the test split, so a document that two versions share is
    in the same split. There are about 2,000 documents and labels, fewer without scikit-learn.

    Raises
    ------
    DataError
        If Python runs without docstrings (``-OO``).

    Examples
    --------
    >>> data = build()
    >>> row = data.train.ids.index("numpy.linalg.eigh")
    >>> data.train.texts.titles[row]
    'linalg.eigh'
    >>> [data.label_names[i] for i in data.train.Y[row].indices][:2]
    ['numpy.linalg.eig', 'numpy.linalg.eigvals']
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        documents = list(_distinct(_documents(*_survey())))
    if not documents:
        expected = "some: run Python without -OO and without PYTHONOPTIMIZE=2"
        raise DataError("NumPy, SciPy and scikit-learn", "no docstrings", expected)
    return split_by_hash("see-also", documents)


def _survey() -> tuple[dict[str, str], dict[str, str]]:
    """Return the canonical name of the object of each public name, and docstrings by canonical name."""
    found: dict[object, tuple[object, list[str]]] = {}
    canonical: dict[str, str] = {}
    for path, module in _modules():
        canonical[path] = module.__name__
        for name, thing in _public_objects(path, module):
            # Plain values (None, 1.0, "") are shared by unrelated names.
            key = id(thing) if callable(thing) or _own_docstring(thing) else name
            found.setdefault(key, (thing, []))[1].append(name)
    docstrings = {}
    for thing, aliases in found.values():
        best = min(aliases, key=partial(_rank, thing))
        canonical.update(dict.fromkeys(aliases, best))
        if doc := _own_docstring(thing):
            docstrings[best] = doc
    return canonical, docstrings


def _modules() -> Iterator[tuple[str, ModuleType]]:
    waiting = list(ROOTS)
    while waiting:
        try:
            module = importlib.import_module(waiting.pop())
        except Exception:  # it cannot be imported here, for example for lack of a library
            continue
        yield module.__name__, module
        for name, other in _exports(module):  # `numpy.emath` is the public name of `numpy.lib.scimath`
            if inspect.ismodule(other) and other.__name__ != f"{module.__name__}.{name}":
                yield f"{module.__name__}.{name}", other
        inside = (info.name for info in pkgutil.iter_modules(getattr(module, "__path__", ())))
        waiting += [f"{module.__name__}.{name}" for name in inside if name[0] != "_" and name not in _SKIPPED]


def _public_objects(path: str, module: ModuleType) -> Iterator[tuple[str, object]]:
    for name, thing in _exports(module):
        if inspect.ismodule(thing):
            continue
        yield f"{path}.{name}", _unwrap(thing)
        if inspect.isclass(thing) and _in_roots(thing):
            for attribute, member in _members(thing):
                yield f"{path}.{name}.{attribute}", _unwrap(member)


def _exports(module: ModuleType) -> Iterator[tuple[str, object]]:
    # By `vars`: getattr on a deprecated module would warn.
    here = dict(vars(module))
    own = (name for name, thing in here.items() if getattr(thing, "__module__", None) == module.__name__)
    names = (name for name in here.get("__all__", own) if name not in _EXPERIMENTAL)
    return ((name, here[name]) for name in names if name in here and not name.startswith("_"))


def _members(cls: type) -> Iterator[tuple[str, object]]:
    seen = set()
    for base in filter(_in_roots, cls.__mro__):
        for name, member in list(vars(base).items()):
            if not name.startswith("_") and name not in seen:
                seen.add(name)
                yield name, member


def _in_roots(cls: type) -> bool:
    return str(cls.__module__).partition(".")[0] in ROOTS


def _unwrap(thing: object) -> object:
    """Return the function behind a static, class or bound method."""
    if isinstance(thing, (staticmethod, classmethod)):
        return thing.__func__
    owner = getattr(thing, "__self__", None)
    if owner is None or inspect.ismodule(owner) or not inspect.isroutine(thing):
        return thing
    return inspect.getattr_static(owner if inspect.isclass(owner) else type(owner), thing.__name__, thing)


def _own_docstring(thing: object) -> str | None:
    # An instance without a docstring returns that of its class, a plain string in the dictionary of the class.
    inherited = isinstance(vars(type(thing)).get("__doc__"), str | None) and not inspect.isclass(thing)
    if inherited and "__doc__" not in getattr(thing, "__dict__", ()):
        return None
    doc = getattr(thing, "__doc__", None)
    return doc if isinstance(doc, str) else None


def _rank(thing: object, name: str) -> tuple[int, bool, bool, str]:
    own = str(getattr(thing, "__qualname__", None) or getattr(thing, "__name__", ""))
    full = f"{getattr(thing, '__module__', None)}.{own}"
    return name.count("."), name != full, not name.endswith(f".{own}"), name


def _documents(canonical: dict[str, str], docstrings: dict[str, str]) -> Iterator[Document]:
    by_last_word = defaultdict(set)
    for name in canonical.values():
        by_last_word[name.rpartition(".")[2]].add(name)
    for name, doc in docstrings.items():
        sections = split_sections(doc)
        mentioned = [word for title, lines in sections if title == "see also" for word in references(lines)]
        found = {_resolve(word, name, canonical, by_last_word) for word in mentioned}
        labels = sorted(label for label in found if label and label != name)
        text = prose(sections) if labels else ""
        if text:
            yield Document(name, name.partition(".")[2], text, labels)


def _distinct(documents: Iterable[Document]) -> Iterator[Document]:
    """Keep one document per text, the one with the shortest path."""
    seen = set()
    for document in sorted(documents, key=lambda one: (one.id.count("."), len(one.id), one.id)):
        words = document.text.casefold()
        if words not in seen:
            seen.add(words)
            yield document


def _resolve(reference: str, home: str, canonical: dict[str, str], by_last_word: dict[str, set[str]]) -> str | None:
    """Return the object that a reference in the docstring of `home` means: the nearest one, or the only one."""
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
    return next((names[0] for names in (nearby, elsewhere) if len(names) == 1), None)
