"""Fuzz every reader: `python -m tests.fuzz_readers --minutes 5 --seed 0`.

Small valid files are damaged at random and read. Each must give a `DataError` with a one-line message, or a valid data
set that, for XC text, equals that of the reference reader. Any other error, a hang or a crash is a failure. Its input
stays in the folder that is printed.
"""

from __future__ import annotations

import argparse
import collections
import io
import random
import signal
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse

from lightdxml.data import DataError, Dataset, load
from tests.data import reference
from tests.data.samples import (
    ANNIF_CSV,
    ANNIF_JSONL,
    ANNIF_TSV,
    ANNIF_TXT,
    COMPRESSORS,
    CSV,
    JSONL,
    XC_JSON,
    XC_MATRIX_X,
    XC_MATRIX_Y,
    XC_TEXT,
)

SECONDS_EACH = 20
TOKENS = [
    b"\n", b"\r\n", b"\x00", b"\xff", b"\xef\xbb\xbf", b":", b",", b"#", b" ", b"nan", b"inf", b"-1", b"1e39", b"1e-46",
    b"1:1e-45 ", b"2:x ", b"0:1.00000005960464477539 ",
    b"99999999999", b"9" * 30, b"0.1e", b"{", b"}", b'"', b"\\ud800", b"[]", b"null", b"true", b"|", b"\t", b"1 2 3\n",
    b"<", b">", b"\t<urn:a> ", b"\turn:a", b",subject_uris", b'"subjects": [{"uri": ',
]  # fmt: skip


def npz_bytes() -> bytes:
    buffer = io.BytesIO()
    scipy.sparse.save_npz(buffer, scipy.sparse.csr_matrix(np.eye(3)), compressed=False)
    return buffer.getvalue()


def seeds() -> dict[str, dict[str, bytes]]:
    """Return folders of valid files by name; the first file of each is the one to damage."""
    npz = npz_bytes()
    documents = {name: content.encode() for name, content in ANNIF_TXT.items()}
    return {
        "xc": {"train.txt": XC_TEXT.encode()},
        "svmlight": {"train.txt": b"0,2 1:0.5 # x\n1 0:1 2:2\n"},
        "features": {"trn_X_Xf.txt": XC_MATRIX_X.encode(), "trn_X_Y.txt": XC_MATRIX_Y.encode()},
        "labels": {"trn_X_Y.txt": XC_MATRIX_Y.encode(), "trn_X_Xf.txt": XC_MATRIX_X.encode()},
        "filter": {"filter_labels_train.txt": b"0 1\n1 2\n", "train.txt": XC_TEXT.encode()},
        "split": {"a_trSplit.txt": b"1\n", "a_tstSplit.txt": b"2\n", "a_data.txt": XC_TEXT.encode()},
        "names": {"label_names.json": b'["a", "b", "c", "d"]', "train.txt": XC_TEXT.encode()},
        "names-map": {"label_names.json": b'{"pet": "P"}', "train.jsonl": JSONL.encode()},
        "jsonl": {"train.jsonl": JSONL.encode()},
        "raw": {"trn.json": XC_JSON.encode()},
        "csv": {"train.csv": CSV.encode()},
        "annif-tsv": {"train.tsv": ANNIF_TSV.encode()},
        "annif-csv": {"train.csv": ANNIF_CSV.encode()},
        "annif-jsonl": {"train.jsonl": ANNIF_JSONL.encode()},
        "annif-txt": documents,
        "annif-labels": {name: documents[name] for name in sorted(documents, key=lambda name: ".tsv" not in name)},
        "npz": {"x.npz": npz, "y.npz": npz},
    }


def damage(content: bytes, rng: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(6)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at:at] = rng.choice(TOKENS)
        elif kind == 2:
            del data[at : at + rng.choice((1, 2, 5, 20))]
        elif kind == 3:
            data[at:at] = data[rng.randrange(len(data) + 1) :][: rng.choice((1, 4, 16))]
        elif kind == 4:
            data[at : at + 1] = bytes([rng.randrange(256)])
        else:
            del data[at:]
    return bytes(data)


def check(data: Dataset) -> None:
    for split in data.splits.values():
        for matrix in (split.X, split.Y):
            if matrix is not None:
                matrix.check_format(full_check=True)
                assert np.isfinite(matrix.data).all()
                assert matrix.dtype == np.float32
        assert (split.Y.data > 0).all()


def same_as_reference(data: Dataset, content: bytes) -> None:
    sizes, rows = reference.parse(content)
    X, Y = data.train.X, data.train.Y
    assert X is not None
    assert (*X.shape, Y.shape[1]) == sizes
    for i, (labels, features) in enumerate(rows):
        assert Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist() == labels
        assert X.indices[X.indptr[i] : X.indptr[i + 1]].tolist() == sorted(features)
        assert X.data[X.indptr[i] : X.indptr[i + 1]].tolist() == [features[key] for key in sorted(features)]


def time_out(*_: object) -> None:
    raise TimeoutError(f"reading took more than {SECONDS_EACH} s")


def run(minutes: float, seed: int) -> None:
    rng = random.Random(seed)
    counts: collections.Counter[str] = collections.Counter()
    cases = seeds()
    signal.signal(signal.SIGALRM, time_out)
    folder = Path(tempfile.mkdtemp(prefix="fuzz-readers-"))
    print(f"inputs are in {folder}")
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        name = rng.choice(list(cases))
        target, *others = cases[name]
        suffix = rng.choice((*COMPRESSORS, ""))
        content = damage(cases[name][target], rng)
        stored = COMPRESSORS[suffix](content)
        if suffix and rng.random() < 0.5:
            content, stored = b"", damage(COMPRESSORS[suffix](cases[name][target]), rng)
        for path in folder.iterdir():
            path.unlink()
        for other in others:
            (folder / other).write_bytes(cases[name][other])
        (folder / f"{target}{suffix}").write_bytes(stored)
        signal.alarm(SECONDS_EACH)
        try:
            data = load(folder)
            check(data)
            if name in ("xc", "svmlight") and content and data.train.X is not None:
                same_as_reference(data, content)
            counts[f"{name}: read"] += 1
        except DataError as error:
            assert "\n" not in str(error), error
            counts[f"{name}: rejected"] += 1
        finally:
            signal.alarm(0)
    for key in sorted(counts):
        print(f"{key:20} {counts[key]:>9,}")
    print(f"{sum(counts.values()):,} inputs, no failure")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    run(arguments.minutes, arguments.seed)
