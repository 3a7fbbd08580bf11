"""The accuracy of predictions in files: what `lightdxml evaluate` measures without a model."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.cli.measure import cuts_up_to, note_gaps
from lightdxml.cli.output import note, print_json, print_table
from lightdxml.cli.reading import Reading
from lightdxml.data.scores import ScoredLabel

if TYPE_CHECKING:
    from lightdxml.data.dataset import Dataset, Split

_METRICS = ("P", "nDCG", "PSP", "PSnDCG", "R", "RP", "coverage", "macro-F1")


def check_no_options(path: Path, *options: Any) -> None:
    """Raise a `ValueError` if there are options that need a model."""
    if any(options):
        raise ValueError(
            f"{path} has predictions, not a model: leave out options that need a model, such as --threshold"
        )


def evaluate_predictions(path: Path, source: str, reading: Reading, k: int, *, json: bool) -> None:
    """Measure predictions on the test documents of a data set, or on all of them without a test part."""
    from lightdxml.data import load
    from lightdxml.metrics import evaluate

    _check_complete(path)
    data = load(source, **reading)
    split = data.train if data.test is None else data.test
    found = Ranked.read(path, data.label_names, data.n_labels)
    ranked = found.labels[_places(path, found, split)]
    if ranked.shape[1] < k:
        k = ranked.shape[1]
        note(f"{path} has no document with more than {k} labels: metrics end at {k}")
    shape = (len(split), found.n_labels)
    Y, ignore = _widened(split.Y, shape), None if split.ignore is None or not len(split.ignore) else split.ignore
    metrics = evaluate(Y, ranked, cuts_up_to(k), _inverse_propensity(data, found.n_labels), ignore)
    if data.test is None:
        # They are means over all labels, of which labelled documents have some.
        metrics = {name: value for name, value in metrics.items() if not name.startswith("macro-F1")}
        note(f"{source} has no train part: PSP, PSnDCG and macro-F1 are left out, because they need label frequencies")
    note_gaps(split, "those without labels count as 0")
    if json:
        print_json({"documents": len(split), **metrics})
        return
    show_metrics(f"{data.name}: {len(split):,} documents", metrics, k)


def show_metrics(title: str, metrics: Mapping[str, float], k: int) -> None:
    """Show a table of the metrics that there are at cut-offs up to k."""
    cuts = cuts_up_to(k)
    rows = [
        [name, *(f"{metrics[f'{name}@{cut}']:.2f}" for cut in cuts), ""] for name in _METRICS if f"{name}@1" in metrics
    ]
    print_table(title, ("%", *(f"@{cut}" for cut in cuts), ""), rows)


def _check_complete(path: Path) -> None:
    """Raise a `ValueError` if a folder of predictions lacks parts that its manifest names."""
    from lightdxml.cli.parts import read_manifest
    from lightdxml.data.predicted import files

    manifest = read_manifest(path) if path.is_dir() else None
    if manifest is not None and len(files(path)) != manifest["parts"]:
        found = f"{len(files(path)):,} of {manifest['parts']:,} parts"
        raise ValueError(f"{path} has {found} of the predictions: run the command that predicted them again")


def _places(path: Path, found: Ranked, split: Split) -> NDArray[np.int64]:
    """Return the row of each document of a data set in the predictions: by its id or, without ids, by the order."""
    n_documents = len(split)
    if found.ids is None:
        if len(found.labels) != n_documents:
            raise ValueError(
                f"{path} has {len(found.labels):,} predictions without ids, but the data has {n_documents:,} documents:"
                " give the documents that were predicted, in the same order, or ids"
            )
        return np.arange(n_documents)
    if split.ids is None:
        raise ValueError(f"{path} has ids of documents, but the data has none: give data with ids, or --id-column")
    rows = {one: i for i, one in enumerate(found.ids)}
    if len(rows) < len(found.ids):
        raise ValueError(f"{path} has an id twice, in two of its files: give each document once")
    missing = [one for one in split.ids if one not in rows]
    if missing:
        which = f"{len(missing):,} of {n_documents:,} documents, such as {missing[0]!r:.60}"
        raise ValueError(f"{path} has no predictions for {which}: predict all documents of the data")
    if len(rows) > n_documents:
        note(f"{len(rows) - n_documents:,} documents of {path} are not in the data: left out")
    return np.array([rows[one] for one in split.ids], dtype=np.int64)


def _widened(Y: csr_matrix, shape: tuple[int, int]) -> csr_matrix:
    """Return labels in a matrix with columns for predicted labels that the data does not have."""
    return csr_matrix((Y.data, Y.indices, Y.indptr), shape=shape)


def _inverse_propensity(data: Dataset, n_labels: int) -> NDArray[np.float64] | None:
    """Return 1/p of each label by its training documents; None if the data has none."""
    from lightdxml.data import registry
    from lightdxml.propensity import inverse_propensity_of

    if data.test is None:
        return None
    frequency = np.bincount(data.train.Y.indices, minlength=n_labels)
    return inverse_propensity_of(frequency, len(data.train), *registry.propensity_constants(data.name))


@dataclass(frozen=True)
class Ranked:
    """Predictions in the columns of a data set.

    Attributes
    ----------
    labels
        The labels of each document, best first; -1 for none. Those that the data does not have come after its own.
    ids
        The ids of documents; None if they have none.
    n_labels
        Labels of the data and of the predictions.
    """

    labels: NDArray[np.int32]
    ids: list[str] | None
    n_labels: int

    @classmethod
    def read(cls, path: Path, label_names: Sequence[str] | None, n_labels: int) -> Ranked:
        """Read predictions for data with these labels; without names they are numbers."""
        from lightdxml.data import predicted

        columns = _Columns(label_names, n_labels)
        labels, lengths, ids = array("i"), array("i"), list[str | None]()
        for document in predicted.read(path):
            row = list(dict.fromkeys(columns.of(label) for label in document.labels))
            labels.extend(row)
            lengths.append(len(row))
            ids.append(document.id)
        if not ids:
            raise ValueError(f"{path} has no predictions: give what `lightdxml predict --to jsonl` wrote")
        if not columns.n_known:
            raise ValueError(f"the data has none of the labels of {path}: check which data was predicted")
        has_ids = [one is not None for one in ids]
        if any(has_ids) and not all(has_ids):
            raise ValueError(f"{path} has documents with and without an id: give an id for all or for none")
        kept = [one for one in ids if one is not None]
        return cls(_table(labels, np.array(lengths)), kept or None, n_labels + len(columns.unknown))


class _Columns:
    """The columns of labels: those of the data, and new ones for labels that it does not have."""

    def __init__(self, label_names: Sequence[str] | None, n_labels: int) -> None:
        names = map(str, range(n_labels)) if label_names is None else label_names
        self._known: dict[str, int] = {}
        for j, name in enumerate(names):
            self._known[name] = j
            self._known.setdefault(name.removeprefix("<").removesuffix(">"), j)
        self._n_labels = n_labels
        self.unknown: dict[str, int] = {}
        self.n_known = 0

    def of(self, label: ScoredLabel) -> int:
        """Return the column of a label, by its URI or its name."""
        column = self._known.get(label.uri, self._known.get(label.name)) if label.uri else self._known.get(label.name)
        if column is None:
            return self.unknown.setdefault(label.uri or label.name, self._n_labels + len(self.unknown))
        self.n_known += 1
        return column


def _table(labels: array[int], lengths: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return rows of different lengths as a table, with -1 where a row has ended."""
    table = np.full((len(lengths), max(1, int(lengths.max()))), -1, dtype=np.int32)
    table[np.arange(table.shape[1]) < lengths[:, None]] = labels
    return table
