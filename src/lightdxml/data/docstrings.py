"""Parse NumPy-style docstrings: sections, "See Also" references, and plain sentences."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator

_FIELD_SECTIONS = (
    *("parameters", "other parameters", "attributes", "class attributes"),
    *("returns", "yields", "receives", "raises", "warns"),
)
_SECTIONS_WITHOUT_PROSE = ("see also", "examples", "example", "references", "methods")
_ADMONITIONS = ("note", "warning", "important", "tip", "hint", "caution", "attention", "rubric")

_TITLE = re.compile(r"\s*[A-Za-z][A-Za-z ]*:?\s*")
_UNDERLINE = re.compile(r"\s*(?:-{3,}|={3,})")


def split_sections(doc: str) -> list[tuple[str, list[str]]]:
    r"""Split a docstring into sections (title in lower case, lines); the first title is empty.

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
    """Yield the names in the lines of a "See Also" section.

    >>> list(references(["lstsq, `pinv` : solve it,", "    by svd", ":func:`~numpy.dot`", "and so on"]))
    ['lstsq', 'pinv', 'numpy.dot']
    """
    continued = False
    for line in textwrap.dedent("\n".join(lines)).splitlines():
        if line[:1].isspace() and not continued:
            continue
        line = line.strip().removeprefix("* ").removeprefix("- ")
        match = None if line.startswith((":ref:", ":doc:")) else _REFERENCES.match(line)
        continued = match is not None and line.endswith(",") and match.end() == len(line)
        if match:
            for reference in match[0].rstrip(" :-").split(","):
                if found := re.search(_REFERENCE, reference):
                    yield found[1]


def prose(sections: Iterable[tuple[str, list[str]]]) -> str:
    r"""Return the sentences of a docstring, without markup, code, formulas and references.

    >>> prose(split_sections("Add `a` to :func:`b` [1]_.\n\n>>> 1 + 1\n2\n\nSee Also\n--------\nsum"))
    'Add a to b.'
    """
    pieces = []
    for title, lines in sections:
        if title in _SECTIONS_WITHOUT_PROSE:
            continue
        # In a list of fields, only the indented descriptions are sentences.
        body = [line if line[:1].isspace() else "" for line in lines] if title in _FIELD_SECTIONS else lines
        pieces.append(_plain_sentences("\n".join(_without_blocks(body))))
    return " ".join(filter(None, pieces))


_DIRECTIVE = re.compile(r"\.\.(?: (?:(?P<name>[\w-]+) ?::)?|$)(?P<rest>.*)")


def _without_blocks(lines: Iterable[str]) -> Iterator[str]:
    """Remove directives, literal blocks and doctests, with everything that is indented below them."""
    block = -1  # the indentation of the line that opened the current block
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
_BOILERPLATE = re.compile(  # matched against lower case, which is faster than ignoring case
    r"see\s+also|user\s+guide|sphx_glr|see\s\0|new\s+code\s+should\s+use|deprecat|will\s+be\s+removed\s+in"
    r"|added\s+in\s+version"
)
_GREEK = re.compile(
    r"\\(alpha|beta|gamma|delta|(?:var)?epsilon|zeta|eta|theta|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|phi|chi|psi"
    r"|omega)(?![a-z])",
    re.IGNORECASE,
)


def _formula(match: re.Match[str]) -> str:
    """Keep a formula that reads as plain text, such as x > 0 or alpha."""
    formula = _GREEK.sub(r"\1", match[1])
    return formula if re.fullmatch(r"[\w\s<>=+*/(),.'-]*", formula) else ""


def _target(match: re.Match[str]) -> str:
    return match[1] if match[1].startswith("sphx_glr") else re.sub("[-_]", " ", match[1])


_MARKUP: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = tuple(
    (re.compile(pattern, re.MULTILINE), replacement)
    for pattern, replacement in (
        (r"\\?\[(?:\d+|[A-Za-z][\w.+-]*)\]_", "\0"),  # a citation; sentences that only point to it are removed
        (r"\([^()]*\0[^()]*\)", ""),
        (r":math:`([^`]*)`", _formula),
        (r"\$([^$\n]+)\$", _formula),
        (r":(?:doi|DOI|arxiv|arXiv|math:numref):`[^`]*`", ""),
        (r":(?:ref|doc|std:doc):`([^`<]*)`", _target),
        (r":[a-zA-Z][\w:+.-]*:(?=`)", ""),
        (r"`([^`<]+?)\s*<[^`>]*>`", r"\1`"),  # `text <target>`
        (r"`~|`+(?:__?(?!\w))?", ""),
        (r"(?<![\w*])(\*\*|\*)(?=[^\s*])([^*]*[^\s*])\1(?![\w*])", r"\2"),
        (r"(?:https?|ftp)://\S+", ""),
        (r"\\\s|\\[A-Za-z]+", ""),
        (r"\\(?=\W)", ""),
        (r"^[ \t]*(?:[-*•]|:[A-Z][\w ]*:)\s+", " "),
        (r"\((?:[a-z] ?)+\|[a-z |]*\)", ""),  # a drawing in letters of how a border is filled
    )
)
_TIDY = (
    (re.compile(r" [(\[] ?[)\]]"), ""),
    (re.compile(r" +(?=[,;:.)](?: |$))"), ""),
    (re.compile(r",(?: ?,)+"), ","),
    (re.compile(r" -{2,} "), " - "),
)


def _plain_sentences(text: str) -> str:
    """Turn marked-up paragraphs into one line, without boilerplate sentences."""
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
