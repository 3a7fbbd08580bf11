"""Parse lines of `label,label feature:value feature:value …` from bytes.

Every token is either parsed exactly or reported: `parse_lines` stops at the first error with a code and its byte
position, from which the caller makes a message.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.jit import kernel

OK = 0
BAD_LABEL = 1
LABEL_RANGE = 2
LABEL_NOT_ALLOWED = 3
BAD_FEATURE = 4
NO_COLON = 5
FEATURE_RANGE = 6
FEATURE_TWICE = 7
BAD_VALUE = 8
NOT_FINITE = 9
OVERFLOW = 10
SLOW_FULL = 11

# A further code of `_value`: this number needs exact arithmetic.
_INEXACT = -1

_POWERS = np.array([float(f"1e{i}") for i in range(309)])
_SMALLEST_NORMAL = 2.0**-126
_MAX_DIGITS = 19
# A float64 has 29 bits more than a float32. If these bits are this close to one half, the error of the fast path (below
# 3 units) could round to the wrong float32.
_HALF = np.uint64(1 << 28)
_LOW_BITS = np.uint64((1 << 29) - 1)
_MARGIN = np.uint64(16)

_SPACE, _TAB, _RETURN, _NEWLINE = 32, 9, 13, 10
_COMMA, _COLON, _HASH, _PLUS, _MINUS, _DOT = 44, 58, 35, 43, 45, 46
_ZERO, _NINE = 48, 57


@kernel
def _is_blank(byte: int) -> bool:
    return byte == _SPACE or byte == _TAB or byte == _RETURN


@kernel
def _integer(buf: NDArray[np.uint8], pos: int, end: int) -> tuple[int, int]:
    """Parse digits; return the number (-1 without digits, 2³¹ if it is at least that) and where they end."""
    first = pos
    number = 0
    while pos < end and _ZERO <= buf[pos] <= _NINE:
        if number < 2147483648:
            number = number * 10 + (np.int64(buf[pos]) - _ZERO)
        pos += 1
    if pos == first:
        return -1, pos
    return min(number, 2147483648), pos


@kernel
def _is_word(buf: NDArray[np.uint8], pos: int, end: int, word: NDArray[np.uint8]) -> bool:
    if end - pos != word.size:
        return False
    for i in range(word.size):
        if buf[pos + i] | 32 != word[i]:
            return False
    return True


_NAN = np.frombuffer(b"nan", dtype=np.uint8).copy()
_INF = np.frombuffer(b"inf", dtype=np.uint8).copy()
_INFINITY = np.frombuffer(b"infinity", dtype=np.uint8).copy()


@kernel
def _value(buf: NDArray[np.uint8], pos: int, end: int, workspace: NDArray[np.float64]) -> tuple[int, float]:
    """Parse the number in buf[pos:end]; return a code and the value, exact to the last bit of a float32."""
    start = pos
    negative = False
    if pos < end and (buf[pos] == _MINUS or buf[pos] == _PLUS):
        negative = buf[pos] == _MINUS
        pos += 1
        start = pos
    mantissa = np.uint64(0)
    significant = 0
    exponent = 0
    digits = 0
    after_dot = False
    while pos < end:
        byte = buf[pos]
        if _ZERO <= byte <= _NINE:
            digits += 1
            if significant < _MAX_DIGITS:
                mantissa = mantissa * np.uint64(10) + np.uint64(byte - _ZERO)
                if mantissa > 0:
                    significant += 1
                if after_dot:
                    exponent -= 1
            elif not after_dot:
                exponent += 1
        elif byte == _DOT and not after_dot:
            after_dot = True
        else:
            break
        pos += 1
    if digits == 0:
        if _is_word(buf, start, end, _NAN) or _is_word(buf, start, end, _INF) or _is_word(buf, start, end, _INFINITY):
            return NOT_FINITE, 0.0
        return BAD_VALUE, 0.0
    if pos < end and buf[pos] | 32 == 101:  # e or E
        pos += 1
        down = False
        if pos < end and (buf[pos] == _MINUS or buf[pos] == _PLUS):
            down = buf[pos] == _MINUS
            pos += 1
        power, pos = _integer(buf, pos, end)
        if power < 0:
            return BAD_VALUE, 0.0
        exponent += -power if down else power
    if pos != end:
        return BAD_VALUE, 0.0
    if mantissa == 0 or exponent < -308:
        return OK, -0.0 if negative else 0.0
    if exponent > 308:
        return OVERFLOW, 0.0
    value = np.float64(mantissa)
    value = value * _POWERS[exponent] if exponent >= 0 else value / _POWERS[-exponent]
    workspace[0] = value
    low = workspace.view(np.uint64)[0] & _LOW_BITS
    off = low - _HALF if low > _HALF else _HALF - low
    if value < _SMALLEST_NORMAL or off <= _MARGIN:
        return _INEXACT, 0.0
    if np.isinf(np.float32(value)):
        return OVERFLOW, 0.0
    return OK, -value if negative else value


@kernel
def _sort_features(features: NDArray[np.int32], values: NDArray[np.float32]) -> None:
    """Sort features with their values in place (merge sort has no bad worst case)."""
    order = np.argsort(features, kind="mergesort")
    features[:] = features[order]
    values[:] = values[order]


@kernel
def _sort_labels(labels: NDArray[np.int32]) -> int:
    """Sort labels in place without repeats, and return how many are left."""
    ordered = labels[np.argsort(labels, kind="mergesort")]
    kept = 0
    for i in range(ordered.size):
        if i == 0 or ordered[i] != ordered[i - 1]:
            labels[kept] = ordered[i]
            kept += 1
    return kept


@kernel
def _find(keys: NDArray[np.int32], first: int, last: int, key: int) -> int:
    """Return the position of a key in keys[first:last], which is sorted and contains it."""
    while last - first > 1:
        middle = (first + last) // 2
        if keys[middle] <= key:
            first = middle
        else:
            last = middle
    return first


@kernel
def parse_lines(
    buf: NDArray[np.uint8],
    pos: int,
    end: int,
    with_labels: bool,
    with_comments: bool,
    n_features: int,
    n_labels: int,
    row_features: NDArray[np.int32],
    row_labels: NDArray[np.int32],
    features: NDArray[np.int32],
    values: NDArray[np.float32],
    labels: NDArray[np.int32],
    slow: NDArray[np.int64],
) -> tuple[int, int, int, int, int, int, int]:
    """Parse the lines in buf[pos:end], all of them complete, into the given arrays.

    Parameters
    ----------
    with_labels
        Whether a line may start with `label,label`.
    with_comments
        Whether `#` starts a comment; a line with nothing else is not a document.
    n_features, n_labels
        Ids must be below these.
    row_features, row_labels
        Receive the number of features and labels of each document; at least one entry per byte.
    features, values, labels
        Receive the ids and values, each document's in ascending order; at least one entry per two bytes.
    slow
        Receives (position in values, first byte, last byte, line) of the numbers that need exact arithmetic.

    Returns
    -------
    tuple
        Lines, documents, features, labels and entries of `slow` so far, the code, and the byte position of the error
        if the code is not 0.
    """
    workspace = np.zeros(1)
    line = 0
    row = 0
    f = 0
    l = 0  # noqa: E741
    s = 0
    while pos < end:
        f_first = f
        l_first = l
        s_first = s
        may_label = with_labels
        is_comment = False
        sorted_features = True
        sorted_labels = True
        line_first = pos
        while True:
            while pos < end and _is_blank(buf[pos]):
                pos += 1
            if pos >= end or buf[pos] == _NEWLINE:
                break
            if with_comments and buf[pos] == _HASH:
                is_comment = f == f_first and l == l_first
                while pos < end and buf[pos] != _NEWLINE:
                    pos += 1
                break
            token = pos
            number, pos = _integer(buf, pos, end)
            if pos < end and buf[pos] == _COLON:
                if number < 0:
                    return line, row, f, l, s, BAD_FEATURE, token
                if number >= n_features:
                    return line, row, f, l, s, FEATURE_RANGE, token
                pos += 1
                start = pos
                while pos < end and buf[pos] > _SPACE and not (with_comments and buf[pos] == _HASH):
                    pos += 1
                code, value = _value(buf, start, pos, workspace)
                if code == _INEXACT:
                    if s == slow.shape[0]:
                        return line, row, f, l, s, SLOW_FULL, token
                    slow[s, 0] = number
                    slow[s, 1] = start
                    slow[s, 2] = pos
                    slow[s, 3] = line
                    s += 1
                elif code != OK:
                    return line, row, f, l, s, code, token
                if f > f_first and features[f - 1] >= number:
                    sorted_features = False
                features[f] = number
                values[f] = value
                f += 1
                may_label = False
                continue
            if not may_label:
                if number < 0:
                    return line, row, f, l, s, BAD_FEATURE, token
                at_end = pos >= end or buf[pos] <= _SPACE or buf[pos] == _COMMA
                if at_end and not with_labels:
                    return line, row, f, l, s, LABEL_NOT_ALLOWED, token
                return line, row, f, l, s, NO_COLON, token
            may_label = False
            while True:
                if number < 0:
                    return line, row, f, l, s, BAD_LABEL, token
                if number >= n_labels:
                    return line, row, f, l, s, LABEL_RANGE, token
                if l > l_first and labels[l - 1] >= number:
                    sorted_labels = False
                labels[l] = number
                l += 1  # noqa: E741
                if pos >= end or buf[pos] != _COMMA:
                    break
                pos += 1
                token = pos
                number, pos = _integer(buf, pos, end)
            if pos < end and buf[pos] > _SPACE and not (with_comments and buf[pos] == _HASH):
                return line, row, f, l, s, BAD_LABEL, token
        if not sorted_features:
            _sort_features(features[f_first:f], values[f_first:f])
            for i in range(f_first + 1, f):
                if features[i] == features[i - 1]:
                    return line, row, f, l, s, FEATURE_TWICE, line_first
        # Only now are the positions of the line's features known: replace feature ids by positions.
        for i in range(s_first, s):
            slow[i, 0] = _find(features, f_first, f, slow[i, 0])
        if not sorted_labels:
            l = l_first + _sort_labels(labels[l_first:l])  # noqa: E741
        line += 1
        pos += 1
        if is_comment:
            continue
        row_features[row] = f - f_first
        row_labels[row] = l - l_first
        row += 1
    return line, row, f, l, s, OK, 0
