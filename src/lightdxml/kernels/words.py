"""Count words and pairs of adjacent words in arrays of code points, and look them up in a vocabulary.

A term is identified by a 64-bit hash. Among ten million terms, the probability that any two share a hash is 3 in a
million. If it happens, the two count as one term, with no other harm.

Texts are code points with `bounds`: document d has its title at bounds[2d] … bounds[2d + 1] and its body from there to
bounds[2d + 2]. No pair spans both.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.jit import kernel
from lightdxml.kernels.sorting import sort_with_values

# The entry of a character: its lower case, its kind (bits 24 and 25), and whether its lower case or its normal form
# depends on the characters around it (bit 26).
OTHER, LETTER, SIGN, MARK = 0, 1, 2, 3
KIND = 24
AWKWARD = 1 << 26
LOWER = 0x1FFFFF

# Counted terms are rows of a table: hash, count · 2³² + documents, first occurrence. An empty row has hash 0.
# The first occurrence is document · 2³² + position · 2, plus 1 for a pair.
COLUMNS = 3
SHARD_BITS = 5
SHARDS = 1 << SHARD_BITS
_FIRST_SLOTS = 1 << 13

_SEED = np.uint64(0x243F6A8885A308D3)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_PAIR = np.uint64(0xC2B2AE3D27D4EB4F)
_MIX = np.uint64(0xFF51AFD7ED558CCD)
_MIX_AGAIN = np.uint64(0xC4CEB9FE1A85EC53)
_NONE = np.uint64(0)
_ONE = np.uint64(1)
_HALF = np.uint64(32)
_MIDDLE = np.uint64(29)
_TOP = np.uint64(64 - SHARD_BITS)


@kernel
def _mixed(h: np.uint64) -> np.uint64:
    """Mix the bits of a hash; the result is never 0, which marks an empty slot."""
    h ^= h >> _HALF
    h *= _MIX
    h ^= h >> _MIDDLE
    h *= _MIX_AGAIN
    h ^= h >> _HALF
    return h if h != _NONE else _ONE


@kernel
def _pair(first: np.uint64, second: np.uint64) -> np.uint64:
    return _mixed((first ^ _PAIR) * _STEP + second)


@kernel
def next_word(
    codes: NDArray[np.uint32], at: int, stop: int, characters: NDArray[np.uint32]
) -> tuple[int, int, np.uint64]:
    """Return where the next word of codes[at:stop] starts and ends, and its hash; the start is `stop` if there is none.

    A word is a letter followed by one or more letters and marks, or one sign of a script without spaces with its marks.
    """
    while at < stop:
        entry = characters[codes[at]]
        kind = entry >> KIND & 3
        if kind != LETTER and kind != SIGN:
            at += 1
            continue
        begin = at
        h = _SEED
        going_on = True
        while going_on:
            h = (h ^ np.uint64(entry & LOWER)) * _STEP
            h ^= h >> _HALF
            at += 1
            going_on = False
            if at < stop:
                entry = characters[codes[at]]
                following = entry >> KIND & 3
                going_on = following == MARK or (following == LETTER and kind == LETTER)
        if kind == SIGN or at - begin > 1:
            return begin, at, _mixed(h)
    return stop, stop, _NONE


@kernel
def find_awkward(
    codes: NDArray[np.uint32], bounds: NDArray[np.int64], characters: NDArray[np.uint32], out: NDArray[np.bool_]
) -> None:
    """Fill out with whether each document has a character whose lower case depends on its context."""
    for d in range(out.size):
        bits = np.uint32(0)
        for i in range(bounds[2 * d], bounds[2 * d + 2]):
            bits |= characters[codes[i]]
        out[d] = bits & AWKWARD != 0


@kernel
def _slot(table: NDArray[np.uint64], h: np.uint64) -> np.uint64:
    """Return the row of a table that has this hash, or the empty one that it belongs in."""
    mask = np.uint64(table.shape[0] - 1)
    slot: np.uint64 = h & mask
    while table[slot, 0] != _NONE and table[slot, 0] != h:
        slot = (slot + _ONE) & mask
    return slot


@kernel
def _larger(table: NDArray[np.uint64], slots: int) -> NDArray[np.uint64]:
    """Return the table resized to this many rows, a power of two."""
    larger = np.zeros((slots, table.shape[1]), np.uint64)
    for old in range(table.shape[0]):
        if table[old, 0] != _NONE:
            slot = _slot(larger, table[old, 0])
            for column in range(table.shape[1]):
                larger[slot, column] = table[old, column]
    return larger


@kernel
def _count_term(table: NDArray[np.uint64], h: np.uint64, document: np.uint64, occurrence: np.uint64) -> int:
    """Count an occurrence of a term; return 1 if the term is new to the table, else 0."""
    row = table[_slot(table, h)]
    is_new = row[0] == _NONE
    if is_new:
        row[0], row[2] = h, occurrence
    row[1] += _ONE << _HALF
    if is_new or row[3] != document:
        row[3] = document
        row[1] += _ONE
    return 1 if is_new else 0


@kernel
def count_terms(
    codes: NDArray[np.uint32],
    bounds: NDArray[np.int64],
    characters: NDArray[np.uint32],
    pairs: bool,
    first_document: int,
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Count the words, and optionally pairs, of documents that are numbered from `first_document` on.

    Returns
    -------
    terms, indptr
        The rows of a table as above without empty ones, and where those of each shard start. The shard of a term is the
        highest bits of its hash.
    """
    table = np.zeros((_FIRST_SLOTS, COLUMNS + 1), np.uint64)
    n = 0
    for field in range(bounds.size - 1):
        document = first_document + field // 2
        begins = bounds[field - field % 2]
        at, stop = bounds[field], bounds[field + 1]
        previous, previous_occurrence = _NONE, _NONE
        while True:
            begin, at, h = next_word(codes, at, stop, characters)
            if begin == stop:
                break
            if 3 * (n + 2) > 2 * table.shape[0]:
                table = _larger(table, 4 * table.shape[0])
            occurrence = np.uint64((document << 32) + 2 * (begin - begins))
            n += _count_term(table, h, np.uint64(document), occurrence)
            if pairs and previous != _NONE:
                n += _count_term(table, _pair(previous, h), np.uint64(document), previous_occurrence + _ONE)
            previous, previous_occurrence = h, occurrence
    return _by_shard(table, n)


@kernel
def _by_shard(table: NDArray[np.uint64], n: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    indptr = np.zeros(SHARDS + 1, np.int64)
    for slot in range(table.shape[0]):
        if table[slot, 0] != _NONE:
            indptr[(table[slot, 0] >> _TOP) + _ONE] += 1
    following = np.zeros(SHARDS, np.int64)
    for shard in range(SHARDS):
        following[shard] = indptr[shard]
        indptr[shard + 1] += indptr[shard]
    terms = np.empty((n, COLUMNS), np.uint64)
    for slot in range(table.shape[0]):
        if table[slot, 0] != _NONE:
            shard_of = table[slot, 0] >> _TOP
            for column in range(COLUMNS):
                terms[following[shard_of], column] = table[slot, column]
            following[shard_of] += 1
    return terms, indptr


@kernel
def merge(
    table: NDArray[np.uint64], n: int, terms: NDArray[np.uint64], start: int, stop: int
) -> tuple[NDArray[np.uint64], int]:
    """Add terms[start:stop] to a table of n terms; return this table, or a larger one, and its number of terms.

    It takes sums and minima: the order in which parts are merged does not matter.
    """
    for i in range(start, stop):
        if 4 * (n + 1) > 3 * table.shape[0]:
            table = _larger(table, 2 * table.shape[0])
        row = table[_slot(table, terms[i, 0])]
        if row[0] == _NONE:
            n += 1
            row[0], row[2] = terms[i, 0], terms[i, 2]
        row[1] += terms[i, 1]
        row[2] = min(row[2], terms[i, 2])
    return table, n


@kernel
def vocabulary_table(
    codes: NDArray[np.uint32], bounds: NDArray[np.int64], characters: NDArray[np.uint32], slots: int
) -> NDArray[np.uint64]:
    """Return a table of a vocabulary, hashes and columns; slots is a power of two larger than the vocabulary.

    Term t is codes[bounds[t] : bounds[t + 1]]: one word or two words separated by a space, in the form that
    `count_terms` finds. Other strings and repeated terms get no slot.
    """
    table = np.zeros((slots, 2), np.uint64)
    for t in range(bounds.size - 1):
        begins, stop = bounds[t], bounds[t + 1]
        begin, at, h = next_word(codes, begins, stop, characters)
        whole = begin == begins and begins < stop
        if whole and at < stop:
            begin, end, second = next_word(codes, at + 1, stop, characters)
            whole = codes[at] == 32 and begin == at + 1 and begin < stop and end == stop
            h = _pair(h, second)
        for i in range(begins, stop):
            whole &= characters[codes[i]] & LOWER == codes[i]
        slot = _slot(table, h)
        if whole and table[slot, 0] == _NONE:
            table[slot, 0], table[slot, 1] = h, t
    return table


@kernel
def count_known(
    codes: NDArray[np.uint32],
    bounds: NDArray[np.int64],
    characters: NDArray[np.uint32],
    pairs: bool,
    vocabulary: NDArray[np.uint64],
    n_columns: int,
    title_weight: float,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Count the terms of a vocabulary in each document: title_weight times those of the title, and those of the body.

    Returns
    -------
    indptr, indices, counts
        Sparse rows; the columns of a row are in the order of the text.
    """
    n_documents = bounds.size // 2
    most = min(2 * codes.size, n_documents * n_columns)
    indices, counts = np.empty(most, np.int32), np.empty(most, np.float64)
    indptr = np.zeros(n_documents + 1, np.int64)
    # The last position of each column plus 1: larger than the start of the row only if the column is in this row.
    positions = np.zeros(n_columns, np.int64)
    n = 0
    for field in range(bounds.size - 1):
        row = indptr[field // 2]
        at, stop = bounds[field], bounds[field + 1]
        previous = _NONE
        while True:
            begin, at, h = next_word(codes, at, stop, characters)
            if begin == stop:
                break
            for length in range(1 + (pairs and previous != _NONE)):
                term = vocabulary[_slot(vocabulary, h if length == 0 else _pair(previous, h))]
                column = np.int64(term[1])
                if term[0] == _NONE:
                    continue
                if positions[column] > row:
                    counts[positions[column] - 1] += 1.0
                else:
                    indices[n] = column
                    counts[n] = 1.0
                    n += 1
                    positions[column] = n
            previous = h
        if field % 2 == 0:
            for i in range(row, n):
                counts[i] *= title_weight
        else:
            indptr[field // 2 + 1] = n
    return indptr, indices[:n], counts[:n]


@kernel
def weigh(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    counts: NDArray[np.float64],
    idf: NDArray[np.float32],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
) -> None:
    """Fill columns and values with the rows of `count_known`: sorted, times idf, and normalized to unit length.

    Indices and counts are workspaces from then on.
    """
    for row in range(indptr.size - 1):
        first, n = indptr[row], indptr[row + 1] - indptr[row]
        own, weights = indices[first : first + n], counts[first : first + n]
        sort_with_values(own, weights)
        length = 0.0
        for i in range(n):
            # Counts below 1 come from title_weight only. The logarithm of these would have no lower bound.
            weight = (1.0 + np.log(weights[i]) if weights[i] >= 1.0 else weights[i]) * idf[own[i]]
            weights[i] = weight
            length += weight * weight
        length = np.sqrt(length) if length > 0.0 else 1.0
        for i in range(n):
            columns[first + i] = own[i]
            values[first + i] = weights[i] / length
