"""What a data set and a model mean to each other: the labels of the one as columns of the other."""

from __future__ import annotations

from typing import Any


def features_of(split: Any) -> Any:
    """Return what a model learns from: texts, or features where there are some."""
    return split.texts if split.X is None else split.X


def to_model(Y: Any, names: Any, model: Any) -> Any:
    """Return labels with the model's columns: by name where both have names, else by number."""
    from scipy.sparse import csr_matrix

    if names is None or model.label_names is None or list(names) == model.label_names:
        if Y.shape[1] != model.n_labels:
            raise ValueError(f"the data has {Y.shape[1]} labels and the model {model.n_labels}: they must agree")
        return Y
    column = {name: j for j, name in enumerate(model.label_names)}
    # Labels that the model never saw count as missed: they get columns of their own, behind the model's.
    missing = unseen_names(names, model)
    if len(missing) == len(names):
        raise ValueError(
            f"none of the {len(names):,} labels of this data is one of the model's: is it the right data, "
            "and read with the same --separator?"
        )
    column |= {name: model.n_labels + i for i, name in enumerate(missing)}
    Y = Y.tocoo()
    moved = [column[name] for name in names]
    columns = [moved[j] for j in Y.col.tolist()]
    return csr_matrix((Y.data, (Y.row, columns)), shape=(Y.shape[0], model.n_labels + len(missing)))


def unseen_names(names: Any, model: Any) -> list[str]:
    """Return the names of labels that the model does not know."""
    if names is None or model.label_names is None:
        return []
    known = set(model.label_names)
    return [name for name in names if name not in known]


def ignored(split: Any, names: Any, model: Any) -> Any:
    """Return the pairs that take no part as a matrix with the model's columns; None where there are none."""
    import numpy as np
    from scipy.sparse import csr_matrix

    if split.ignore is None or not len(split.ignore):
        return None
    pairs = split.ignore
    marks = csr_matrix((np.ones(len(pairs), dtype=np.int32), (pairs[:, 0], pairs[:, 1])), shape=split.Y.shape)
    return to_model(marks, names, model)


def frequency_of(loaded: Any, model: Any, n_labels: int) -> tuple[Any, int]:
    """Return every label's training documents and the number of all, of the data's train part, else of the model."""
    import numpy as np

    if loaded.test is not None:
        train = to_model(loaded.train.Y, loaded.label_names, model)
        return np.bincount(train.tocoo().col, minlength=n_labels), len(loaded.train)
    frequency = np.zeros(n_labels, dtype=np.int64)
    frequency[: model.n_labels] = model.label_frequency
    return frequency, model.n_documents


def inverse_propensity_of(name: str, frequency: Any, n_documents: int) -> Any:
    """Return 1/p of every label, with the constants that the repository gives for a data set of this name."""
    from lightdxml.data import registry
    from lightdxml.metrics import inverse_propensity_of

    return inverse_propensity_of(frequency, n_documents, *registry.propensity_constants(name))


def reading_options(separator: str, encoding: str, old_split: int) -> list[str]:
    """Return the options with which the data was read, where they are not the usual ones."""
    given = (("--separator", separator, "|"), ("--encoding", encoding, "utf-8"), ("--old-split", str(old_split), "0"))
    return [word for option, value, usual in given if value != usual for word in (option, value)]
