"""The accuracy and speed of a model on the test documents of a data set."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.cli.output import note, warn
from lightdxml.data.own_labels import own_labels
from lightdxml.kernels.parallel import fixed_chunks
from lightdxml.model import thresholds
from lightdxml.model.fingerprints import known_share, of_features, of_texts
from lightdxml.model.rules import allowed_labels
from lightdxml.validation import check_features

if TYPE_CHECKING:
    from lightdxml.cli.opinions import SecondOpinion
    from lightdxml.cli.rules import Rules
    from lightdxml.data.dataset import Dataset, Split
    from lightdxml.estimator import LightDXML
    from lightdxml.metrics import FrequencyGroup
    from lightdxml.model.model import Model

CUTS, DEPTH = (1, 3, 5), 10
# Labels per document for measures at a threshold.
DEEP = thresholds.DEPTH
# Measures of thresholds and R-precision count no labels beyond this rank.
_FIRST = 20
# The share of training documents among those to measure that is tolerated, as texts may repeat, and that is most.
_TOLERATED, _MOST = 0.01, 0.5
_CHUNK = 8192
# Documents that a message names.
_NAMED = 3


def cuts_up_to(k: int) -> tuple[int, ...]:
    """Return the cut-offs at which measures are shown: 1, 3, 5 and 10 below k, and k.

    >>> cuts_up_to(5), cuts_up_to(20)
    ((1, 3, 5), (1, 3, 5, 10, 20))
    """
    return (*(cut for cut in (*CUTS, DEPTH) if cut < k), k)


@dataclass(frozen=True)
class Matched:
    """Documents to measure a model on.

    Attributes
    ----------
    split
        The test part of a data set, or all documents if there is none.
    inputs
        The documents as the model takes them.
    Y
        The true labels. Labels that the model does not know come after its own, so that they count as missed.
    ignore
        Document-label pairs that evaluation ignores, in the shape of Y; None if there are none.
    unknown_names
        The names of labels that the model does not know.
    frequency, inv_propensity
        Training documents and 1/p per label: of the data if it has a train and a test part, else of the model.
    trained_on_share
        The share of documents that the model was trained on; None if it is not known.
    """

    split: Split
    inputs: Any
    Y: csr_matrix
    ignore: csr_matrix | None
    unknown_names: list[str]
    frequency: NDArray[np.int64]
    inv_propensity: NDArray[np.float64]
    trained_on_share: float | None


def match(data: Dataset, model: Model) -> Matched:
    """Return the documents of a data set to measure a model on."""
    from lightdxml.data import registry
    from lightdxml.propensity import inverse_propensity_of

    names, split = _names(data, model), data.train if data.test is None else data.test
    Y = _to_model(split.Y, names, model)
    ignore = _ignored(split, names, model, Y.shape)
    if data.test is not None:
        n_documents = len(data.train)
        frequency = np.bincount(_to_model(data.train.Y, names, model).indices, minlength=Y.shape[1])
    else:
        n_documents = model.n_documents
        frequency = np.pad(model.label_frequency.astype(np.int64), (0, Y.shape[1] - model.n_labels))
    inv_propensity = inverse_propensity_of(frequency, n_documents, *registry.propensity_constants(data.name))
    share = share_trained_on(split, model)
    return Matched(split, inputs_of(split), Y, ignore, _unknown_names(names, model), frequency, inv_propensity, share)


def share_trained_on(split: Split, model: Model) -> float | None:
    """Return the share of documents that a model was trained on or has learned; None if it cannot tell."""
    return known_share(model.trained_on, _fingerprints(split, model))


def _fingerprints(split: Split, model: Model) -> NDArray[np.int64]:
    """Return fingerprints of documents as the model has them of its training documents."""
    none = np.empty(0, dtype=np.int64)
    if model.vectorizer is not None and split.texts is not None:
        return of_texts(split.texts)
    if model.vectorizer is None and split.X is not None:
        chunks = fixed_chunks(len(split), _CHUNK)
        return np.concatenate([none, *(of_features(check_features(split.X[start:stop])) for start, stop in chunks)])
    return none


def warn_of_training_documents(found: Matched, data: Dataset, source: str, reading: list[str]) -> None:
    """Say so loudly if the model was trained on documents that it is measured on.

    `source` is the data set as the user named it, `reading` are the options with which it was read.
    """
    share, n = found.trained_on_share, len(found.split)
    if share is None or share <= _TOLERATED:
        return
    advice = "leave them out of this data, or train without them"
    if share > _MOST and data.test is None:
        advice = f"hold out documents and train again: {split_command(source, reading)}"
    known = f"{100 * share:.3g}% of these {n:,} documents"
    warn(f"the model was trained on {known}, so the metrics are too high: {advice}")


def split_command(source: str, reading: list[str], *options: str) -> str:
    """Return the command that holds documents out.

    >>> split_command("my data.csv", ["--separator", ";"])
    "lightdxml data split 'my data.csv' 'my data-split' --separator ';'"
    """
    target = f"{Path(source).name.partition('.')[0]}-split"
    return shlex.join(["lightdxml", "data", "split", source, target, *options, *reading])


def note_gaps(split: Split, effect: str) -> None:
    """Say how many documents are empty and how many have no labels, if there are any, and name some."""
    from lightdxml.data.statistics import empty_documents, unlabeled_documents

    empty, unlabeled = empty_documents(split), unlabeled_documents(split)
    of, parts = f" of {len(split):,} documents", []
    if len(empty):
        parts.append(f"{len(empty):,}{of} {'is' if len(empty) == 1 else 'are'} empty ({_called(split, empty)})")
    if len(unlabeled):
        of, have = "" if parts else of, "has" if len(unlabeled) == 1 else "have"
        parts.append(f"{len(unlabeled):,}{of} {have} no labels ({_called(split, unlabeled)})")
    if parts:
        note(f"{', '.join(parts)}: {effect}")


def _called(split: Split, rows: NDArray[np.int64]) -> str:
    """Return the first few documents: their ids, or their numbers if they have none."""
    first = rows[:_NAMED].tolist()
    called = [split.ids[row] if split.ids is not None else "" for row in first]
    if not all(called):
        called = [
            f"{'documents' if len(rows) > 1 else 'document'} {first[0] + 1:,}",
            *(f"{row + 1:,}" for row in first[1:]),
        ]
    return ", ".join([*called, "…"] if len(rows) > _NAMED else called)


def check_kind(split: Split, model: Model, data: str, folder: Path) -> None:
    """Raise a `ValueError` if documents are not of the kind that a model takes."""
    found = None if split.X is None else split.X.shape[1]
    takes = None if model.vectorizer is not None else model.n_features
    if found == takes:
        return
    what = "texts" if found is None else f"{found:,} features"
    wanted = "texts" if takes is None else f"{takes:,} features"
    raise ValueError(f"{data} has {what}, but {folder} takes {wanted}: give documents like those of its training")


def _names(data: Dataset, model: Model) -> Sequence[str] | None:
    """Return the labels of data as a model calls them: as URIs with a vocabulary, and by number if they are ids."""
    if data.label_names is None:
        return [str(j) for j in range(data.n_labels)] if model.integer_labels else None
    return data.label_names if model.vocabulary is None else model.vocabulary.uris(data.label_names)


def _ignored(split: Split, names: Sequence[str] | None, model: Model, shape: tuple[int, int]) -> csr_matrix | None:
    """Return pairs of document and label that do not count: those of filter files, and documents that are the label."""
    ignore = csr_matrix(shape, dtype=np.int32)
    if split.ignore is not None and len(split.ignore):
        ones = np.ones(len(split.ignore), dtype=np.int32)
        ignore = ignore + _to_model(csr_matrix((ones, tuple(split.ignore.T)), shape=split.Y.shape), names, model)
    if model.never_own and split.ids is not None:
        own = own_labels(split.ids, model.label_ids)
        rows = np.flatnonzero(own >= 0)
        ignore = ignore + csr_matrix((np.ones(len(rows), dtype=np.int32), (rows, own[rows])), shape=shape)
    return csr_matrix(ignore) if ignore.nnz else None


def inputs_of(split: Split) -> Any:
    """Return documents as a model takes them: features if there are any, else texts."""
    return split.texts if split.X is None else split.X


def _to_model(Y: csr_matrix, names: Sequence[str] | None, model: Model) -> csr_matrix:
    """Return labels in the columns of the model: by name if both have names, else by id."""
    if names is None or model.label_names is None or list(names) == model.label_names:
        if Y.shape[1] != model.n_labels:
            raise ValueError(f"the data has {Y.shape[1]} labels and the model {model.n_labels}: they must agree")
        return Y
    unknown = _unknown_names(names, model)
    if len(unknown) == len(names):
        raise ValueError(f"the model knows none of the {len(names):,} labels of this data: check data and --separator")
    ids = {name: j for j, name in enumerate([*model.label_names, *unknown])}
    columns = np.array([ids[name] for name in names], dtype=np.int64)
    pairs = Y.tocoo()
    return csr_matrix((pairs.data, (pairs.row, columns[pairs.col])), shape=(Y.shape[0], len(ids)))


def _unknown_names(names: Sequence[str] | None, model: Model) -> list[str]:
    if names is None or model.label_names is None:
        return []
    known = set(model.label_names)
    return [name for name in names if name not in known]


@dataclass(frozen=True)
class Measured:
    """Measures and prediction time per document, and the ranked labels and scores behind them, without ignored ones."""

    metrics: dict[str, float]
    groups: list[FrequencyGroup]
    milliseconds: float
    documents: Matched
    ranked: NDArray[np.int32]
    scores: NDArray[np.float32]


def documents_of(data: Dataset, model: Model, rules: Rules) -> Matched:
    """Return the documents of a data set to measure a model on, and say what makes measures too high or too low.

    Labels that rules do not allow, and retired ones, do not count as missed.
    """
    found = match(data, model)
    if unknown := len(found.unknown_names):
        note(f"the model does not know {unknown:,} of the {data.n_labels:,} labels of this data: they count as missed")
    allowed = allowed_labels(model, **rules)
    if allowed is None:
        allowed = model.allowed
    return found if allowed is None else _only(found, allowed)


def measure(
    estimator: LightDXML,
    data: Dataset,
    tail: float = 0.0,
    other: SecondOpinion | None = None,
    rules: Rules | None = None,
    k: int = CUTS[-1],
    depth: int = DEPTH,
) -> Measured:
    """Measure a model, alone or with another system, on the test part of a data set; on all documents without one.

    Parameters
    ----------
    estimator, data, tail, other, rules
        What is measured on which documents.
    k
        Measures are given at `cuts_up_to` this number of labels.
    depth
        How many labels to rank at least. For R-precision, as many labels are ranked as a document has, but no more than
        `DEEP`.
    """
    from lightdxml.metrics import evaluate, r_precision, recall_by_frequency
    from lightdxml.metrics.compare import without_ignored

    rules = rules or {}
    found = documents_of(data, estimator.model_, rules)
    depth = max(depth, k, min(DEEP, int(np.diff(found.Y.indptr).max(initial=0))))
    # Ignored labels are removed from the ranking: enough labels must follow them.
    deep = depth + (0 if found.ignore is None else int(np.diff(found.ignore.indptr).max()))
    # The first documents load compiled code, which is not part of the time per document.
    estimator.rank(found.inputs[:_FIRST], 1, tail=tail, **rules)
    start = time.perf_counter()
    ranked, scores = estimator.rank(found.inputs, deep if other is None else other.depth(deep), tail=tail, **rules)
    milliseconds = 1000 * (time.perf_counter() - start) / len(found.split)
    if other is not None:
        ranked, scores = other.combine((ranked, scores), found.split.ids, deep)
        other.note_missing()
    ranked, scores = without_ignored(ranked, scores, found.ignore, found.Y.shape)
    ranked, scores = ranked[:, :depth], scores[:, :depth]
    metrics = evaluate(found.Y, ranked, cuts_up_to(k), found.inv_propensity, found.ignore)
    metrics["R-precision"] = r_precision(found.Y, ranked, found.ignore)
    groups = recall_by_frequency(found.Y, ranked, found.frequency, (max(CUTS), max(k, DEPTH)), found.ignore)
    return Measured(metrics, groups, milliseconds, found, ranked, scores)


def _only(found: Matched, allowed: NDArray[np.bool_]) -> Matched:
    """Return documents without true labels that rules do not allow; labels that the model does not know stay."""
    kept = np.append(allowed, np.ones(found.Y.shape[1] - len(allowed), dtype=np.bool_))
    Y = csr_matrix(found.Y.multiply(kept))
    Y.eliminate_zeros()
    left_out = int(found.Y.nnz - Y.nnz)
    empty = int(np.count_nonzero(np.diff(Y.indptr) == 0))
    if not left_out:
        return found
    note(
        f"{left_out:,} of {found.Y.nnz:,} occurrences of labels do not count, because the labels are not allowed;"
        f" {empty:,} of {Y.shape[0]:,} documents have no other labels, and count as 0"
    )
    return replace(found, Y=Y)
