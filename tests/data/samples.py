"""Small valid files of every format, and functions that write them."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".zst": zstd.compress}


def write_files(folder: Path, **contents: str) -> Path:
    """Write files; `__` in a name stands for a dot."""
    folder.mkdir(exist_ok=True)
    for name, content in contents.items():
        (folder / name.replace("__", ".")).write_text(content, encoding="utf-8")
    return folder


def json_lines(*records: dict[str, Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


# XC text and the two XC matrices hold the same data.
X = [[0, 0.5, 0], [1, 0, 2]]
Y = [[1, 0, 1, 0], [0, 1, 0, 0]]
XC_TEXT = "2 3 4\n0,2 1:0.5\n1 0:1 2:2\n"
XC_MATRIX_X, XC_MATRIX_Y = "2 3\n1:0.5\n0:1 2:2\n", "2 4\n0:1 2:1\n1:1\n"
JSONL = json_lines(
    {"id": "d1", "title": "Cat", "text": "purrs", "labels": ["pet", "feline"]},
    {"id": "d2", "title": "Dog", "text": "barks", "labels": ["pet"]},
)
XC_JSON = json_lines(
    {"uid": "u1", "title": "Cat", "content": "purrs", "target_ind": [2, 0], "target_rel": [1.0, 0.5]},
    {"uid": "u2", "title": "Dog", "content": "", "target_ind": [], "target_rel": []},
)
CSV = 'title,text,labels\nCat,"purrs, and\nsleeps",pet|feline\nDog,barks,pet\n'
# Annif's corpora hold the same documents and labels.
ANNIF_TSV = "A cat purrs\t<urn:pet> <urn:feline>\nA dog barks\t<urn:pet>\n"
ANNIF_CSV = 'text,subject_uris,document_id\nA cat purrs,<urn:pet> <urn:feline>,d1\n"A dog barks",urn:pet,d2\n'
ANNIF_JSONL = json_lines(
    {"document_id": "d1", "text": "A cat purrs", "subjects": [{"uri": "urn:pet"}, {"uri": "urn:feline", "label": "f"}]},
    {"document_id": "d2", "text": "A dog barks", "metadata": {"title": "Dog"}, "subjects": [{"uri": "<urn:pet>"}]},
)
ANNIF_TXT = {
    "d1.txt": "A cat purrs",
    "d1.tsv": "<urn:pet>\tpet\n<urn:feline>\tfeline\n",
    "d2.txt": "A dog barks",
    "d2.key": "<urn:pet>\n",
}
