"""Scores of other systems."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from lightdxml.data.errors import DataError
from lightdxml.data.scores import ScoredDocument, ScoredLabel, read


def written(path: Path, *records: Any) -> Path:
    """Return a file with an object per line."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def test_predictions_of_lightdxml_and_results_of_annif_are_read(tmp_path: Path) -> None:
    ours = {"id": 7, "labels": [{"label": "cat", "score": 1}, {"label": 3, "score": 0.5}]}
    annif = {"document_id": "b", "results": [{"uri": "urn:1", "label": "dog", "notation": None, "score": 0.25}]}
    assert list(read(written(tmp_path / "scores.jsonl", ours, annif))) == [
        ScoredDocument("7", [ScoredLabel("", "cat", 1.0), ScoredLabel("", "3", 0.5)]),
        ScoredDocument("b", [ScoredLabel("urn:1", "dog", 0.25)]),
    ]


def test_documents_need_no_ids_and_files_may_be_compressed(tmp_path: Path) -> None:
    (tmp_path / "scores.jsonl.gz").write_bytes(
        gzip.compress(b'{"labels": []}\n\n{"results": [], "document_id": null}\n')
    )
    assert list(read(tmp_path / "scores.jsonl.gz")) == [ScoredDocument(None, [])] * 2


def test_a_file_without_documents_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no documents"):
        list(read(written(tmp_path / "empty.jsonl")))


@pytest.mark.parametrize(
    ("record", "says"),
    [
        ({"id": "a", "labels": ["cat"]}, "label '\"cat\"'"),
        ({"id": "a", "labels": [{"score": 1}]}, 'expected labels as \\[{"uri"'),
        ({"id": "a", "labels": [{"label": "", "score": 1}]}, 'expected labels as \\[{"uri"'),
        ({"id": "a", "labels": [{"uri": "u", "label": ["x"], "score": 1}]}, 'expected labels as \\[{"uri"'),
        ({"id": "a", "labels": [{"uri": True, "score": 1}]}, 'expected labels as \\[{"uri"'),
        ({"id": "a", "labels": {"cat": 1}}, "found labels"),
        ({"id": "a"}, "found no labels"),
        ({"id": [1], "labels": []}, "an integer as id"),
        ({"id": "a", "labels": [{"label": "cat"}]}, "score 'null' of 'cat'"),
        ({"id": "a", "labels": [{"label": "cat", "score": "0.5"}]}, "a finite number of at least 0"),
        ({"id": "a", "labels": [{"label": "cat", "score": True}]}, "a finite number of at least 0"),
        ({"id": "a", "labels": [{"label": "cat", "score": -1}]}, "a finite number of at least 0"),
        ({"id": "a", "labels": [{"label": "cat", "score": float("nan")}]}, "a finite number of at least 0"),
        ({"id": "a", "labels": [{"label": "cat", "score": 10**400}]}, "a finite number of at least 0"),
        ({"id": "first", "labels": []}, "a second document 'first'"),
        ({"labels": []}, "documents with and without an id"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, record: Any, says: str) -> None:
    with pytest.raises(DataError, match=says) as error:
        list(read(written(tmp_path / "scores.jsonl", {"id": "first", "labels": []}, record)))
    assert "scores.jsonl, line 2: found" in str(error.value)
