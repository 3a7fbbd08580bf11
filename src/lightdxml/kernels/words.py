"""Words and pairs of neighbouring words in arrays of code points: counted, and looked up in a vocabulary.

A term is known by a 64-bit hash. With ten million terms, the odds that any two of them share one are 3 in a million;
if it happens, the two count as one term, and nothing else goes wrong.

Texts come as code points with `bounds`: document d has its title at bounds[2d] … bounds[2d + 1] and its body from there
to bounds[2d + 2]. No pair reaches from one into the other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.jit import kernel

# A character's entry: its lower case, what it does in a word (bits 24 and 25), and whether its lower case or its
# normal form depends on the characters around it (bit 26).
OTHER, LETTER, SIGN, MARK = 0, 1, 2, 3
KIND = 24
AWKWARD = 1 << 26
LOWER = 0x1FFFFF

# Counted terms are rows of a table: hash, count · 2³² + documents, first place. An empty row has hash 0.
# The first place is document · 2³² + position · 2, plus 1 for a pair.
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
    """Spread every bit of a hash over all of them; never 0, which marks an empty slot."""
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
    """Return where the next word of codes[at:stop] begins and ends, and its hash; it begins at stop if there is none.

    A word is two or more letters and marks that begin with a letter, or one sign of a script without spaces and the
    marks upon it.
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
    """Fill out with whether each document has a character that cannot be put into lower case on its own."""
    for d in range(out.size):
        bits = np.uint32(0)
        for i in range(bounds[2 * d], bounds[2 * d + 2]):
            bits |= characters[codes[i]]
        out[d] = bits & AWKWARD != 0


@kernel
def _larger(table: NDArray[np.uint64], slots: int) -> NDArray[np.uint64]:
    """Return the table with so many rows, a power of two."""
    larger = np.zeros((slots, table.shape[1]), np.uint64)
    mask = np.uint64(slots - 1)
    for old in range(table.shape[0]):
        if table[old, 0] != _NONE:
            slot = table[old, 0] & mask
            while larger[slot, 0] != _NONE:
                slot = (slot + _ONE) & mask
            for column in range(table.shape[1]):
                larger[slot, column] = table[old, column]
    return larger


@kernel
def _note(table: NDArray[np.uint64], h: np.uint64, document: np.uint64, place: np.uint64) -> int:
    """Count a term that stands at the place; return 1 if it is new to the table, else 0."""
    mask = np.uint64(table.shape[0] - 1)
    slot = h & mask
    while True:
        row = table[slot]
        if row[0] == h:
            row[1] += _ONE << _HALF
            if row[3] != document:
                row[3] = document
                row[1] += _ONE
            return 0
        if row[0] == _NONE:
            row[0] = h
            row[1] = (_ONE << _HALF) + _ONE
            row[2] = place
            row[3] = document
            return 1
        slot = (slot + _ONE) & mask


@kernel
def count_terms(
    codes: NDArray[np.uint32],
    bounds: NDArray[np.int64],
    characters: NDArray[np.uint32],
    pairs: bool,
    first_document: int,
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Count the words, and pairs if wanted, of some documents; the first of them has this number.

    Returns
    -------
    terms, pointers
        The rows of a table as above without empty ones, and where those of each shard begin: a term's shard is its
        hash's highest bits.
    """
    table = np.zeros((_FIRST_SLOTS, COLUMNS + 1), np.uint64)
    n = 0
    for field in range(bounds.size - 1):
        document = first_document + field // 2
        begins = bounds[field - field % 2]
        at, stop = bounds[field], bounds[field + 1]
        previous, previous_place = _NONE, _NONE
        while True:
            begin, at, h = next_word(codes, at, stop, characters)
            if begin == stop:
                break
            if 3 * (n + 2) > 2 * table.shape[0]:
                table = _larger(table, 4 * table.shape[0])
            place = np.uint64((document << 32) + 2 * (begin - begins))
            n += _note(table, h, np.uint64(document), place)
            if pairs and previous != _NONE:
                n += _note(table, _pair(previous, h), np.uint64(document), previous_place + _ONE)
            previous, previous_place = h, place
    return _by_shard(table, n)


@kernel
def _by_shard(table: NDArray[np.uint64], n: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    pointers = np.zeros(SHARDS + 1, np.int64)
    for slot in range(table.shape[0]):
        if table[slot, 0] != _NONE:
            pointers[(table[slot, 0] >> _TOP) + _ONE] += 1
    for shard in range(SHARDS):
        pointers[shard + 1] += pointers[shard]
    terms = np.empty((n, COLUMNS), np.uint64)
    following = pointers.copy()
    for slot in range(table.shape[0]):
        if table[slot, 0] != _NONE:
            shard_of = table[slot, 0] >> _TOP
            for column in range(COLUMNS):
                terms[following[shard_of], column] = table[slot, column]
            following[shard_of] += 1
    return terms, pointers


@kernel
def merge(
    table: NDArray[np.uint64], n: int, terms: NDArray[np.uint64], start: int, stop: int
) -> tuple[NDArray[np.uint64], int]:
    """Add terms[start:stop] to a table of n terms, and return it, or a larger one, and its number of terms.

    Sums and smallest places: the order in which parts are merged changes nothing.
    """
    for i in range(start, stop):
        if 4 * (n + 1) > 3 * table.shape[0]:
            table = _larger(table, 2 * table.shape[0])
        mask = np.uint64(table.shape[0] - 1)
        slot = terms[i, 0] & mask
        while table[slot, 0] != _NONE and table[slot, 0] != terms[i, 0]:
            slot = (slot + _ONE) & mask
        row = table[slot]
        if row[0] == _NONE:
            n += 1
            row[0], row[2] = terms[i, 0], terms[i, 2]
        row[1] += terms[i, 1]
        row[2] = min(row[2], terms[i, 2])
    return table, n


@kernel
def vocabulary_table(
    codes: NDArray[np.uint32], bounds: NDArray[np.int64], characters: NDArray[np.uint32], slots: int
) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Return hashes and columns of a vocabulary, in as many slots, a power of two larger than the vocabulary.

    Term t is codes[bounds[t] : bounds[t + 1]]: one word, or two with a space between, just as they come out of a text.
    What is neither, or is there twice, gets no slot.
    """
    hashes = np.zeros(slots, np.uint64)
    columns = np.zeros(slots, np.int32)
    mask = np.uint64(slots - 1)
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
        slot = h & mask
        while whole and hashes[slot] != _NONE:
            whole = hashes[slot] != h
            slot = (slot + _ONE) & mask
        if whole:
            hashes[slot] = h
            columns[slot] = t
    return hashes, columns


@kernel
def _column(h: np.uint64, hashes: NDArray[np.uint64], columns: NDArray[np.int32]) -> int:
    mask = np.uint64(hashes.size - 1)
    slot = h & mask
    while hashes[slot] != _NONE:
        if hashes[slot] == h:
            return int(columns[slot])
        slot = (slot + _ONE) & mask
    return -1


@kernel
def count_known(
    codes: NDArray[np.uint32],
    bounds: NDArray[np.int64],
    characters: NDArray[np.uint32],
    pairs: bool,
    hashes: NDArray[np.uint64],
    columns: NDArray[np.int32],
    n_columns: int,
    title_weight: float,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """Count the terms of a vocabulary in each document: title_weight times those of the title, and those of the body.

    Returns
    -------
    pointers, found, counts
        Sparse rows; a row's columns are in the order in which the text has them.
    """
    n_documents = bounds.size // 2
    most = min(2 * codes.size, n_documents * n_columns)
    found, counts = np.empty(most, np.int32), np.empty(most, np.float64)
    pointers = np.zeros(n_documents + 1, np.int64)
    # One more than where a column was found last: larger than where the row begins only if it was in this row.
    places = np.zeros(n_columns, np.int64)
    n = 0
    for field in range(bounds.size - 1):
        row = pointers[field // 2]
        at, stop = bounds[field], bounds[field + 1]
        previous = _NONE
        while True:
            begin, at, h = next_word(codes, at, stop, characters)
            if begin == stop:
                break
            for length in range(1 + (pairs and previous != _NONE)):
                column = _column(h if length == 0 else _pair(previous, h), hashes, columns)
                if column >= 0 and places[column] > row:
                    counts[places[column] - 1] += 1.0
                elif column >= 0:
                    found[n] = column
                    counts[n] = 1.0
                    n += 1
                    places[column] = n
            previous = h
        if field % 2 == 0:
            counts[row:n] *= title_weight
        else:
            pointers[field // 2 + 1] = n
    return pointers, found[:n], counts[:n]


@kernel
def weigh(
    pointers: NDArray[np.int64],
    found: NDArray[np.int32],
    counts: NDArray[np.float64],
    idf: NDArray[np.float32],
    sublinear: bool,
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
) -> None:
    """Fill columns and values with the rows of `count_known`: sorted, times idf, and of length 1."""
    starts = np.zeros(idf.size + 1, np.int64)
    for i in range(found.size):
        starts[found[i] + 1] += 1
    for column in range(idf.size):
        starts[column + 1] += starts[column]
    # Two counting sorts, by column and then by row: time grows only in proportion, however long a row is.
    rows, by_column = np.empty(found.size, np.int64), np.empty(found.size, np.int64)
    for row in range(pointers.size - 1):
        for i in range(pointers[row], pointers[row + 1]):
            rows[starts[found[i]]] = row
            by_column[starts[found[i]]] = i
            starts[found[i]] += 1
    following = pointers.copy()
    weights = np.empty(found.size, np.float64)
    for j in range(found.size):
        i = by_column[j]
        count = counts[i]
        place = following[rows[j]]
        following[rows[j]] += 1
        columns[place] = found[i]
        # Below one, which only a title's weight can bring about, the logarithm would fall without end.
        weights[place] = (1.0 + np.log(count) if sublinear and count >= 1.0 else count) * idf[found[i]]
    for row in range(pointers.size - 1):
        length = 0.0
        for i in range(pointers[row], pointers[row + 1]):
            length += weights[i] * weights[i]
        length = np.sqrt(length) if length > 0.0 else 1.0
        for i in range(pointers[row], pointers[row + 1]):
            values[i] = weights[i] / length
