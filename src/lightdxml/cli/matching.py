"""How a data set and a model fit together: the labels of one as columns of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

if TYPE_CHECKING:
    from lightdxml.data.dataset import Dataset, Split
    from lightdxml.model.model import Model


def inputs_of(split: Split) -> Any:
    """Return the documents as a model takes them: features if there are any, else texts."""
    return split.texts if split.X is None else split.X


def measured_part(data: Dataset) -> Split:
    """Return the documents to measure a model on: the test part, or all documents of a data set without one."""
    return data.train if data.test is None else data.test


def to_model(Y: csr_matrix, names: list[str] | None, model: Model) -> csr_matrix:
    """Return labels in the columns of the model: by name if both have names, else by id.

    Labels that the model does not know get columns after its own, so that they count as missed.
    """
    if names is None or model.label_names is None or list(names) == model.label_names:
        if Y.shape[1] != model.n_labels:
            raise ValueError(f"the data has {Y.shape[1]} labels and the model {model.n_labels}: they must agree")
        return Y
    missing = unknown_names(names, model)
    if len(missing) == len(names):
        raise ValueError(
            f"the model knows none of the {len(names):,} labels of this data: check the data and --separator"
        )
    ids = {name: j for j, name in enumerate([*model.label_names, *missing])}
    columns = np.array([ids[name] for name in names], dtype=np.int64)
    pairs = Y.tocoo()
    return csr_matrix((pairs.data, (pairs.row, columns[pairs.col])), shape=(Y.shape[0], len(ids)))


def unknown_names(names: list[str] | None, model: Model) -> list[str]:
    """Return the names of labels that the model does not know."""
    if names is None or model.label_names is None:
        return []
    known = set(model.label_names)
    return [name for name in names if name not in known]


def ignored(split: Split, names: list[str] | None, model: Model) -> csr_matrix | None:
    """Return the document-label pairs that evaluation ignores, in the columns of the model; None if there are none."""
    if split.ignore is None or not len(split.ignore):
        return None
    rows, columns = split.ignore[:, 0], split.ignore[:, 1]
    marks = csr_matrix((np.ones(len(rows), dtype=np.int32), (rows, columns)), shape=split.Y.shape)
    return to_model(marks, names, model)


def label_frequency(data: Dataset, model: Model, n_labels: int) -> tuple[NDArray[np.int64], int]:
    """Return the training documents per label and in total: of the data if it has a train part, else of the model."""
    if data.test is not None:
        train = to_model(data.train.Y, data.label_names, model)
        return np.bincount(train.tocoo().col, minlength=n_labels), len(data.train)
    frequency = np.zeros(n_labels, dtype=np.int64)
    frequency[: model.n_labels] = model.label_frequency
    return frequency, model.n_documents


def inverse_propensity(data_name: str, frequency: NDArray[np.int64], n_documents: int) -> NDArray[np.float64]:
    """Return 1/p of every label, with the constants of the repository for a data set of this name."""
    from lightdxml.data import registry
    from lightdxml.metrics import inverse_propensity_of

    return inverse_propensity_of(frequency, n_documents, *registry.propensity_constants(data_name))


def reading_options(separator: str, encoding: str, old_split: int) -> list[str]:
    """Return the options with which data was read, without those at their defaults.

    >>> reading_options(";", "utf-8", 0)
    ['--separator', ';']
    """
    given = (("--separator", separator, "|"), ("--encoding", encoding, "utf-8"), ("--old-split", str(old_split), "0"))
    return [word for option, value, default in given if value != default for word in (option, value)]
