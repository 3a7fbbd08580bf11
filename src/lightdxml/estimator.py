"""The scikit-learn face: `LightDXML().fit(X, Y).predict(X)`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from lightdxml import metrics, model, storage
from lightdxml.config import Config, Index, Schedule, configure
from lightdxml.data.dataset import Texts
from lightdxml.data.labels import LabelIndex, label_matrix
from lightdxml.kernels import parallel
from lightdxml.progress import Progress
from lightdxml.text import tfidf
from lightdxml.training.fit import check_labels, fit

_MOST_LABELS = 2**31 - 1


class LightDXML(BaseEstimator):  # type: ignore[misc]
    """Extreme multi-label classifier.

    Parameters
    ----------
    preset
        Where settings come from that are not given: `default`, or `paper/EURLex-4K` and the paper's other four.
    threads
        How many to use; None for all cores. The result does not depend on it.
    verbose
        Show progress; None for yes on a terminal and no elsewhere.
    D, k, learning_rate, feature_rate, e_model, e_label, e_hat_label, beta, batch_size, schedule, dropout, relu, \
residual, random_negatives, random_weight, frequent_labels, label_learning_rate, index, validation, seed
        See `lightdxml.config.Config`; None takes the preset's.

    Attributes
    ----------
    model_
        The trained model.
    history_
        What happened while training: one entry a phase.

    Examples
    --------
    >>> texts = ["a purring cat", "a barking dog", "a cat and a dog"] * 10
    >>> labels = [["cat"], ["dog"], ["cat", "dog"]] * 10
    >>> LightDXML(D=16, e_model=20, seed=1).fit(texts, labels).predict(["the cat"], k=1)
    [['cat']]
    """

    def __init__(
        self,
        preset: str = "default",
        *,
        threads: int | None = None,
        verbose: bool | None = None,
        D: int | None = None,
        k: int | None = None,
        learning_rate: float | None = None,
        feature_rate: float | None = None,
        e_model: int | None = None,
        e_label: int | None = None,
        e_hat_label: int | None = None,
        beta: float | None = None,
        batch_size: int | None = None,
        schedule: Schedule | None = None,
        dropout: float | None = None,
        relu: bool | None = None,
        residual: bool | None = None,
        random_negatives: int | None = None,
        random_weight: float | None = None,
        frequent_labels: int | None = None,
        label_learning_rate: float | None = None,
        index: Index | None = None,
        validation: float | None = None,
        seed: int | None = None,
    ) -> None:
        self.preset = preset
        self.threads = threads
        self.verbose = verbose
        self.D = D
        self.k = k
        self.learning_rate = learning_rate
        self.feature_rate = feature_rate
        self.e_model = e_model
        self.e_label = e_label
        self.e_hat_label = e_hat_label
        self.beta = beta
        self.batch_size = batch_size
        self.schedule = schedule
        self.dropout = dropout
        self.relu = relu
        self.residual = residual
        self.random_negatives = random_negatives
        self.random_weight = random_weight
        self.frequent_labels = frequent_labels
        self.label_learning_rate = label_learning_rate
        self.index = index
        self.validation = validation
        self.seed = seed

    def config(self, documents: int | None = None) -> Config:
        """Return the settings for so many training documents: the preset's, with those that were given."""
        given = {field.name: getattr(self, field.name) for field in fields(Config)}
        return configure(self.preset, documents, **{name: value for name, value in given.items() if value is not None})

    def fit(
        self,
        X: Any,
        Y: Any,
        *,
        dev: tuple[Any, Any] | None = None,
        label_names: Sequence[str] | None = None,
        vectors: NDArray[np.float32] | None = None,
    ) -> LightDXML:
        """Train.

        Parameters
        ----------
        X
            Texts, or a matrix of features from 0, documents × features.
        Y
            Label names or numbers, a list for each document; or a matrix, documents × labels.
        dev
            X and Y of documents on which β and the epoch are chosen; without it a slice of these is set aside.
        label_names
            The names of a matrix's columns.
        vectors
            Word vectors to begin with, features × D; random ones without.
        """
        self.config()  # bad settings are said before any work is done
        labels, names = _label_matrix(Y, label_names)
        config = self.config(labels.shape[0])
        vectoriser = None
        texts = _texts(X)
        if texts is not None:
            vectoriser, X = tfidf.fit(texts)
        if dev is not None:
            X_dev = tfidf.transform(vectoriser, dev[0]) if vectoriser is not None else dev[0]
            dev = X_dev, _known_labels(dev[1], names, labels.shape[1])
        with parallel.use_threads(self.threads):
            result = fit(X, labels, config, dev, Progress(self.verbose), vectors)
        result.model.label_names = names
        result.model.vectoriser = vectoriser
        self.model_, self.history_ = result.model, result.history
        return self

    def predict(self, X: Any, k: int = 5) -> list[list[Any]]:
        """Return the k best labels of each document, best first: names where labels have names, else numbers."""
        numbers, _ = self.rank(X, k)
        names = self.model_.label_names
        return [[names[j] if names is not None else j for j in row if j >= 0] for row in numbers.tolist()]

    def rank(self, X: Any, k: int = 5) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the numbers of the k best labels of each document, and their scores; -1 and 0 for none."""
        trained = self._trained()
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise ValueError(f"k is {k!r}: it must be a whole number from 1")
        texts = _texts(X)
        if texts is not None:
            if trained.vectoriser is None:
                raise ValueError("the model was trained on features, not on texts: give a matrix")
            X = tfidf.transform(trained.vectoriser, texts)
        with parallel.use_threads(self.threads):
            return model.predict(trained, X, int(k))

    def _trained(self) -> model.Model:
        if not hasattr(self, "model_"):
            raise NotFittedError("this LightDXML is not trained yet: call fit first, or load a model")
        return self.model_

    def score(self, X: Any, Y: Any) -> float:
        """Return P@1 as a share from 0 to 1."""
        trained = self._trained()
        labels = _known_labels(Y, trained.label_names, trained.n_labels)
        return metrics.precision_at_k(labels, self.rank(X, 1)[0], k=1) / 100

    def save(self, folder: str | Path) -> None:
        """Write the model into a folder."""
        from lightdxml import __version__

        storage.save(self._trained(), Path(folder), __version__, self.history_)


def load(folder: str | Path) -> LightDXML:
    """Read a model that `LightDXML.save` or `lightdxml train` wrote; no code in it is run."""
    estimator = LightDXML()
    estimator.model_ = storage.load(Path(folder))
    estimator.history_ = storage.read_history(Path(folder))
    settings = {field.name: getattr(estimator.model_.config, field.name) for field in fields(Config)}
    estimator.set_params(**settings)
    return estimator


def _texts(X: Any) -> list[str] | None:
    """Return X as texts, None if it is a matrix."""
    if isinstance(X, str):
        raise ValueError("X is a single string: give a list of texts")
    if scipy.sparse.issparse(X) or getattr(X, "ndim", 1) == 2:
        return None
    if isinstance(X, Texts):
        return X  # type: ignore[return-value]  # a sequence of strings that joins title and body when asked
    documents = list(X)
    return documents if all(isinstance(document, str) for document in documents) else None


def _label_rows(Y: Any) -> list[list[Any]] | None:
    """Return Y as a list of labels for each document, None if it is a matrix."""
    if scipy.sparse.issparse(Y) or getattr(Y, "ndim", 1) == 2:
        return None
    return [_row(i, row) for i, row in enumerate(Y)]


def _row(i: int, row: Any) -> list[Any]:
    if isinstance(row, str) or not isinstance(row, Iterable):
        raise ValueError(f"the labels of document {i} are {row!r}: give a list of them")
    # A set has no order of its own that would be the same in the next process.
    return sorted(row, key=str) if isinstance(row, set | frozenset) else list(row)


def _are_numbers(rows: list[list[Any]]) -> bool:
    """Return whether labels are numbers and not names; negative ones are refused."""
    if not all(isinstance(label, int | np.integer) and not isinstance(label, bool) for row in rows for label in row):
        return False
    for i, row in enumerate(rows):
        for label in row:
            if not 0 <= label < _MOST_LABELS:
                raise ValueError(f"document {i} has label {label}: labels are numbered from 0 to {_MOST_LABELS - 1}")
    return True


def _label_matrix(Y: Any, label_names: Sequence[str] | None) -> tuple[Any, list[str] | None]:
    """Return a label matrix, and names if labels have names."""
    names = None if label_names is None else [str(name) for name in label_names]
    rows = _label_rows(Y)
    if rows is None:
        Y = check_labels(Y)
        if names is not None and len(names) != Y.shape[1]:
            raise ValueError(f"{len(names)} label names for {Y.shape[1]} labels: there must be one each")
        return Y, names
    if _are_numbers(rows):
        width = 1 + max((int(label) for row in rows for label in row), default=-1)
        if names is not None and len(names) < width:
            raise ValueError(f"{len(names)} label names, and label {width - 1} in Y: there must be one each")
        return label_matrix(rows, max(width, len(names or ()))), names
    index = LabelIndex(names or ())
    numbered = [index.numbers(str(label) for label in row) for row in rows]
    return label_matrix(numbered, len(index.names)), index.names


def _known_labels(Y: Any, names: list[str] | None, n_labels: int) -> Any:
    """Return a label matrix with the model's columns; labels that it does not know are left out."""
    rows = _label_rows(Y)
    if rows is None:
        return Y
    if _are_numbers(rows):
        return label_matrix([[label for label in row if label < n_labels] for row in rows], n_labels)
    if names is None:
        raise ValueError("labels are names here, and were numbers in training: give numbers")
    numbers = {name: j for j, name in enumerate(names)}
    return label_matrix([[numbers[str(label)] for label in row if str(label) in numbers] for row in rows], n_labels)
