"""Raw text of the XC repository: `{"uid", "title", "content", "target_ind", "target_rel"}` a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lightdxml.data.dataset import Split
from lightdxml.data.errors import DataError, excerpt
from lightdxml.data.jsonl import TextColumns, records, text_field
from lightdxml.data.labels import LabelRows

_ID_LIMIT = 2**31 - 1


def read(path: Path, encoding: str = "utf-8") -> Split:
    """Read documents whose labels are numbers with relevances; Y is as wide as the largest number asks.

    A label that stands twice counts once, with its larger relevance; a relevance of 0 is no label.
    """
    texts = TextColumns()
    labels = LabelRows()
    n_labels = 0
    for number, record in records(path, encoding):
        texts.add(path, number, record.get("uid"), *(text_field(path, number, record, f) for f in ("title", "content")))
        targets = _targets(path, number, record)
        n_labels = max([n_labels, *(target + 1 for target in targets)])
        labels.add(targets, _relevances(path, number, record, len(targets)))
    if not len(labels):
        raise DataError(path, "an empty file", "one JSON object a line")
    return texts.split(labels.matrix(n_labels))


def _targets(path: Path, number: int, record: Mapping[str, Any]) -> list[int]:
    targets = record.get("target_ind")
    if not isinstance(targets, list):
        raise DataError(path, f"target_ind {excerpt(json.dumps(targets))}", "a list of label numbers", line=number)
    for target in targets:
        if isinstance(target, bool) or not isinstance(target, int) or not 0 <= target < _ID_LIMIT:
            found = f"label {excerpt(json.dumps(target))} in target_ind"
            raise DataError(path, found, "whole numbers from 0", line=number)
    return targets


def _relevances(path: Path, number: int, record: Mapping[str, Any], n: int) -> list[float]:
    weights = record.get("target_rel")
    if weights is None:
        return [1.0] * n
    if not isinstance(weights, list) or len(weights) != n:
        found = f"target_rel {excerpt(json.dumps(weights))}"
        raise DataError(path, found, f"a list of {n} numbers, one for each of target_ind", line=number)
    for weight in weights:
        # The comparison is false for NaN, and false for what a float32 cannot hold.
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 3.4e38:
            found = f"relevance {excerpt(json.dumps(weight))} in target_rel"
            raise DataError(path, found, "finite numbers from 0", line=number)
    return weights
