"""A slow, simple reader of XC text, written from the description of the format: the reference for the fast one."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
ID_LIMIT = 2**31 - 1

Row = tuple[list[int], dict[int, np.float32]]


class BadLineError(ValueError):
    """A line that the reference reader rejects."""


def nearest_float32(text: str) -> np.float32:
    """Round a decimal number to the nearest float32, ties to even, with exact arithmetic."""
    integer, _, part = re.sub(r"[eE].*", "", text.lstrip("+-")).partition(".")
    digits = (integer + part).lstrip("0")
    size = len(digits) - len(part) + int(re.split("[eE]", text + "e0")[1])
    if not digits or size < -60:
        zero: np.float32 = np.float32(0)
        return zero
    if size > 60:
        raise BadLineError("overflow")
    exact = Fraction(text)
    if abs(exact) >= 2**128 - 2**103:
        raise BadLineError("overflow")
    with np.errstate(over="ignore", under="ignore"):
        largest = np.finfo(np.float32).max
        near = np.float32(min(max(float(exact), -float(largest)), float(largest)))
        around = [np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf))]
    finite = [value for value in around if np.isfinite(value)]
    return min(finite, key=lambda v: (abs(Fraction(float(v)) - exact), int(v.view(np.uint32)) & 1))


def parse_line(line: bytes, n_features: int, n_labels: int, with_labels: bool, comments: bool) -> Row:
    """Return the labels and features of a line."""
    if comments:
        line = line.partition(b"#")[0]
    if set(line) - set(b" \t\r") and set(line) & (set(range(33)) - set(b" \t\r")):
        raise BadLineError("control characters")
    words = re.split(rb"[ \t\r]+", line.strip(b" \t\r")) if line.strip(b" \t\r") else []
    labels: list[int] = []
    if with_labels and words and not re.match(rb"\d*:", words[0]):
        for label in words.pop(0).split(b","):
            if not re.fullmatch(rb"\d+", label) or int(label) >= n_labels:
                raise BadLineError("label")
            labels.append(int(label))
    features: dict[int, np.float32] = {}
    for word in words:
        key, colon, value = word.partition(b":")
        if not colon or not re.fullmatch(rb"\d+", key) or int(key) >= n_features or int(key) in features:
            raise BadLineError("feature")
        if not NUMBER.fullmatch(value):
            raise BadLineError("value")
        features[int(key)] = nearest_float32(value.decode())
    return sorted(set(labels)), features


def parse(content: bytes) -> tuple[tuple[int, int, int], list[Row]]:
    """Return N, V, L and the rows of a file, with or without a header."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    lines = content.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    first = next((i for i, line in enumerate(lines) if line.strip(b" \t\r")), 0)
    header = lines[first].split() if lines else []
    if len(header) == 3 and all(re.fullmatch(rb"\d+", word) for word in header):
        n, v, l = (int(word) for word in header)  # noqa: E741
        rows = [parse_line(line, v, l, True, False) for line in lines[first + 1 :]]
        while len(rows) > n and rows[-1] == ([], {}):
            rows.pop()
        if len(rows) != n:
            raise BadLineError("count")
        return (n, v, l), rows
    documents = [line for line in lines if not line.strip(b" \t\r").startswith(b"#")]
    rows = [parse_line(line, ID_LIMIT, ID_LIMIT, True, True) for line in documents]
    while rows and rows[-1] == ([], {}):
        rows.pop()
    v = 1 + max((key for _, features in rows for key in features), default=-1)
    l = 1 + max((label for labels, _ in rows for label in labels), default=-1)  # noqa: E741
    return (len(rows), v, l), rows
