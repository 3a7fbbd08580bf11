"""The scikit-learn face: `LightDXML().fit(X, Y).predict(X)`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, overload

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from lightdxml import explanation, metrics, model, storage
from lightdxml.config import Config, Index, Precision, Schedule, configure
from lightdxml.data.dataset import Texts
from lightdxml.data.labels import LabelIndex, label_matrix
from lightdxml.explanation import Explanation
from lightdxml.kernels import parallel
from lightdxml.progress import History, Progress
from lightdxml.text import tfidf
from lightdxml.text import vectors as word_vectors
from lightdxml.text.tfidf import TextOptions
from lightdxml.training.cycle import DivergedError, Result
from lightdxml.training.fit import Checkpoint, check_labels, prepare, train
from lightdxml.training.memory import parse_size

_MOST_LABELS = 2**31 - 1
# As many as the usual files of word vectors have; the dimensions beyond begin at random.
_TRAINED_DIMENSIONS = 100


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
residual, random_negatives, random_weight, frequent_labels, sparse, sparse_negatives, sparse_work, sparse_cost, \
sparse_negative_cost, label_tree, gamma, label_learning_rate, index, precision, validation, learn_validation, seed
        See `lightdxml.config.Config`; None takes the preset's.
    ngrams, min_df, max_features, title_weight, sublinear
        How texts become features: see `lightdxml.text.tfidf.TextOptions`.
    vectors
        Word vectors to begin with: a file (`.vec`, `.txt`, fastText's `.bin`, `.npy`), `"train"` to train them on the
        texts, or an array, features × D; None for random ones.

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
    >>> trained = LightDXML(seed=1).fit(texts, labels)
    >>> trained.predict(["the cat", "a dog barks"], k=1)
    [['cat'], ['dog']]
    >>> trained.predict("the cat", k=1)
    ['cat']
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
        sparse: bool | None = None,
        sparse_negatives: int | None = None,
        sparse_work: int | None = None,
        sparse_cost: float | None = None,
        sparse_negative_cost: float | None = None,
        label_tree: bool | None = None,
        gamma: float | None = None,
        label_learning_rate: float | None = None,
        index: Index | None = None,
        precision: Precision | None = None,
        validation: float | None = None,
        learn_validation: bool | None = None,
        seed: int | None = None,
        ngrams: int = TextOptions.ngrams,
        min_df: int = TextOptions.min_df,
        max_features: int = TextOptions.max_features,
        title_weight: float = TextOptions.title_weight,
        sublinear: bool = TextOptions.sublinear,
        vectors: str | Path | NDArray[np.float32] | None = None,
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
        self.sparse = sparse
        self.sparse_negatives = sparse_negatives
        self.sparse_work = sparse_work
        self.sparse_cost = sparse_cost
        self.sparse_negative_cost = sparse_negative_cost
        self.label_tree = label_tree
        self.gamma = gamma
        self.label_learning_rate = label_learning_rate
        self.index = index
        self.precision = precision
        self.validation = validation
        self.learn_validation = learn_validation
        self.seed = seed
        self.ngrams = ngrams
        self.min_df = min_df
        self.max_features = max_features
        self.title_weight = title_weight
        self.sublinear = sublinear
        self.vectors = vectors

    def config(self, documents: int | None = None) -> Config:
        """Return the settings for so many training documents: the preset's, with those that were given."""
        given = {field.name: getattr(self, field.name) for field in fields(Config)}
        return configure(self.preset, documents, **{name: value for name, value in given.items() if value is not None})

    @property
    def classes_(self) -> list[Any]:
        """The labels in the order of the columns of `scores`: names, or numbers where they have no names."""
        trained = self._trained()
        return list(range(trained.n_labels)) if trained.label_names is None else list(trained.label_names)

    def text_settings(self) -> TextOptions:
        """Return how texts become features."""
        return TextOptions(**{field.name: getattr(self, field.name) for field in fields(TextOptions)})

    def fit(
        self,
        X: Any,
        Y: Any,
        *,
        dev: tuple[Any, Any] | None = None,
        label_names: Sequence[str] | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: float = 300.0,
        resume: bool = False,
        memory_limit: int | str | None = None,
        scratch: str | Path | None = None,
    ) -> LightDXML:
        """Train.

        Parameters
        ----------
        X
            Texts, or a matrix of features from 0, documents × features.
        Y
            Label names or numbers, a list or set for each document, or one number each; or a matrix, documents ×
            labels.
        dev
            X and Y of documents on which β and the epoch are chosen; without it a slice of these is set aside.
        label_names
            The names of a matrix's columns.
        checkpoint
            A folder in which to keep, every `checkpoint_every` seconds, what is needed to go on after an interruption.
            Ctrl-C and SIGTERM then stop where that is possible. When training is done the folder holds all of it:
            remove it once the model is saved (`lightdxml.training.checkpoint.remove`).
        checkpoint_every
            Seconds.
        resume
            Go on from the last checkpoint, if there is one, with the same data and settings: the result is the same to
            the bit as that of a training that was never interrupted.
        memory_limit
            The most memory that training may need, in bytes or as `"4GB"`; None for what the machine has free. Where it
            needs more, it says so before it begins, and which settings would fit.
        scratch
            A folder in which the features that are trained on and shortlists live, as memory-mapped files, instead of
            in memory. What of it a killed process left there is removed the next time.
        """
        self.config()  # bad settings are said before any work is done
        if resume and checkpoint is None:
            raise ValueError("resume needs the folder to go on from: give checkpoint as well")
        keep = None if checkpoint is None else Checkpoint(Path(checkpoint), checkpoint_every, resume)
        limit = parse_size(memory_limit) if isinstance(memory_limit, str) else memory_limit
        room = None if scratch is None else Path(scratch)
        text_settings = self.text_settings()
        labels, names = _label_matrix(Y, label_names)
        config = self.config(labels.shape[0])
        texts = _texts(X)
        _check_lengths(texts if texts is not None else X, labels)
        progress, history = Progress(self.verbose), History()
        with parallel.use_threads(self.threads):
            vectorizer = None
            if texts is not None:
                with history.phase("vectorize"), progress.phase("texts to features", len(texts)) as bar:
                    vectorizer, X = tfidf.fit(texts, text_settings)
                    bar.advance(len(texts), words=X.shape[1])
            if dev is not None:
                X_dev = tfidf.transform(vectorizer, _texts(dev[0]) or []) if vectorizer is not None else dev[0]
                dev = X_dev, _known_labels(dev[1], names, labels.shape[1])
            with history.phase("word vectors"):
                vectors = _starting_vectors(self.vectors, texts, vectorizer, config)
            prepared = prepare(X, labels, config, dev, vectors, given_stays=texts is None)
            # Texts stay, but their features are needed once: in the form in which they were prepared.
            del X, labels, dev, vectors
            try:
                result = train(prepared, config, progress, keep, limit, room)
            except DivergedError as error:
                if error.kept is not None:
                    self._take(error.kept, names, vectorizer, history)
                raise
        self._take(result, names, vectorizer, history)
        return self

    def _take(
        self, result: Result, names: list[str] | None, vectorizer: tfidf.Vectorizer | None, history: History
    ) -> None:
        result.model.label_names = names
        result.model.vectorizer = vectorizer
        if self.vectors is not None:
            result.model.vectors = "array" if isinstance(self.vectors, np.ndarray) else str(self.vectors)
        self.model_, self.history_ = result.model, [*history.entries, *result.history]
        self.n_features_in_ = self.model_.n_features

    @overload
    def predict(self, X: str, k: int = 5, *, tail: float = 0.0) -> list[Any]: ...
    @overload
    def predict(self, X: Any, k: int = 5, *, tail: float = 0.0) -> list[list[Any]]: ...
    def predict(self, X: Any, k: int = 5, *, tail: float = 0.0) -> list[Any]:
        """Return the k best labels, best first: names where labels have names, else numbers.

        Parameters
        ----------
        X
            Texts or a matrix for a list of labels each; a single text for its labels alone.
        k
            How many at most.
        tail
            From 0, for precision, to 1, for rare labels: how far labels are ranked by how rare they are
            in training besides. It changes nothing in the model.
        """
        numbers, _ = self.rank([X] if isinstance(X, str) else X, k, tail=tail)
        names = self.model_.label_names
        rows = [[names[j] if names is not None else j for j in row if j >= 0] for row in numbers.tolist()]
        return rows[0] if isinstance(X, str) else rows

    def rank(self, X: Any, k: int = 5, *, tail: float = 0.0) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the numbers of the k best labels of each document, and their scores; -1 and 0 for none.

        There are no more columns than labels. `tail` is as in `predict`: with it a label that has one training document
        keeps its score, and the others' are lower the more frequent they are, still from 0 to 1.
        """
        trained = self._trained()
        _check_k(k)
        model.check_tail(tail)
        with parallel.use_threads(self.threads):
            return model.predict(trained, self._features(X), min(int(k), trained.n_labels), float(tail))

    def scores(self, X: Any, k: int = 5, *, tail: float = 0.0) -> csr_matrix:
        """Return the scores of each document's k best labels as a sparse matrix, documents × labels.

        `tail` is as in `rank`.

        Examples
        --------
        >>> trained = LightDXML(D=8, e_model=2).fit(["red rose", "red wine"] * 5, [[0], [1]] * 5)
        >>> trained.scores(["a rose"], k=1).shape
        (1, 2)
        """
        labels, values = self.rank([X] if isinstance(X, str) else X, k, tail=tail)
        rows = np.repeat(np.arange(len(labels)), labels.shape[1])
        found = labels.ravel() >= 0
        entries = values.ravel()[found], (rows[found], labels.ravel()[found])
        return csr_matrix(entries, shape=(len(labels), self.model_.n_labels), dtype=np.float32)

    @overload
    def explain(self, X: str, k: int = 5, *, tail: float = 0.0) -> list[Explanation]: ...
    @overload
    def explain(self, X: Any, k: int = 5, *, tail: float = 0.0) -> list[list[Explanation]]: ...
    def explain(self, X: Any, k: int = 5, *, tail: float = 0.0) -> list[Any]:
        """Return for each of the k best labels what every word adds to its score: see `lightdxml.explanation`.

        Parameters
        ----------
        X
            Texts or a matrix for a list of explanations each; a single text for its explanations alone.
        k, tail
            As in `predict`.
        """
        trained = self._trained()
        _check_k(k)
        model.check_tail(tail)
        with parallel.use_threads(self.threads):
            features = self._features([X] if isinstance(X, str) else X)
            rows = explanation.explain(trained, features, min(int(k), trained.n_labels), float(tail))
        return rows[0] if isinstance(X, str) else rows

    def _features(self, X: Any) -> Any:
        """Return X as a matrix."""
        texts = _texts(X)
        if texts is None:
            if getattr(X, "ndim", 2) == 1:
                raise ValueError("X has one dimension: give documents × features (Reshape your data with X[None])")
            return X
        vectorizer = self._trained().vectorizer
        if vectorizer is None:
            raise ValueError("the model was trained on features, not on texts: give a matrix")
        return tfidf.transform(vectorizer, texts)

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.string = tags.input_tags.positive_only = True
        tags.target_tags.required = tags.target_tags.multi_output = tags.target_tags.two_d_labels = True
        return tags


def load(folder: str | Path, *, verify: bool = True) -> LightDXML:
    """Read a model that `LightDXML.save` or `lightdxml train` wrote; no code in it is run.

    Parameters
    ----------
    folder
        Where it lies. Large arrays are memory-mapped: several processes share one copy.
    verify
        Whether to compare every byte with the model's checksums first; False is faster for large models.
    """
    estimator = LightDXML()
    estimator.model_ = storage.load(Path(folder), verify=verify)
    estimator.history_ = storage.read_history(Path(folder))
    estimator.n_features_in_ = estimator.model_.n_features
    estimator.set_params(**vars(estimator.model_.config))
    if estimator.model_.vectorizer is not None:
        estimator.set_params(**vars(estimator.model_.vectorizer.settings))
    return estimator


def _check_k(k: Any) -> None:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ValueError(f"k is {k!r}: it must be a whole number from 1")


def _check_lengths(documents: Any, labels: csr_matrix) -> None:
    """Raise where X and Y differ in length, before any time is spent."""
    n = documents.shape[0] if hasattr(documents, "shape") else len(documents)
    if n == labels.shape[0] == 0:
        raise ValueError("X and Y have no rows: there is nothing to learn from")
    if n != labels.shape[0]:
        raise ValueError(f"X and Y have {n} and {labels.shape[0]} rows: there must be one of each a document")


def _starting_vectors(
    vectors: str | Path | NDArray[np.float32] | None,
    texts: Sequence[str] | None,
    vectorizer: tfidf.Vectorizer | None,
    config: Config,
) -> NDArray[np.float32] | None:
    """Return the word vectors that training begins with, None for random ones."""
    if vectors is None or isinstance(vectors, np.ndarray):
        return vectors
    if texts is None or vectorizer is None:
        raise ValueError("vectors are of words, and X is a matrix: give texts, or an array of features × D as vectors")
    if vectors == "train":
        dimensions = min(_TRAINED_DIMENSIONS, config.D)
        found = word_vectors.train(texts, vectorizer.vocabulary, dimensions, config.seed)
    else:
        found = word_vectors.read(vectors, vectorizer.vocabulary)
    return word_vectors.starting_vectors(found, config.D, np.random.default_rng(config.seed))


def _texts(X: Any) -> list[str] | None:
    """Return X as texts, None if it is a matrix."""
    if isinstance(X, str):
        raise ValueError("X is a single text: give a list of texts")
    if scipy.sparse.issparse(X) or getattr(X, "ndim", 1) == 2:
        if hasattr(X, "columns") and "object" in map(str, getattr(X, "dtypes", ())):
            raise ValueError("X is a table with texts in it: give one column, as X['text']")
        return None
    if isinstance(X, Texts):
        return X  # type: ignore[return-value]  # a sequence of strings that joins title and body when asked
    documents = list(X)
    strange = next((i for i, document in enumerate(documents) if not isinstance(document, str)), None)
    if strange is not None and any(document is None or isinstance(document, str) for document in documents):
        raise ValueError(f"document {strange} is {documents[strange]!r:.50} among texts: give a text for each document")
    return documents if strange is None else None


def _label_rows(Y: Any) -> list[list[Any]] | None:
    """Return Y as a list of labels for each document, None if it is a matrix."""
    if scipy.sparse.issparse(Y) or getattr(Y, "ndim", 1) == 2:
        return None
    if Y is None:
        raise ValueError(
            "LightDXML requires y to be passed, but the target y is None: give the labels of each document"
        )
    # Numbers alone, as scikit-learn has them for classes, are one label each. Single strings are not taken so: most
    # often they hold several labels that were not taken apart.
    return [[row] if isinstance(row, int | np.integer) else _row(i, row) for i, row in enumerate(Y)]


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
    label_names = getattr(Y, "columns", None) if label_names is None else label_names
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
    for i, row in enumerate(rows):
        if odd := [label for label in row if not isinstance(label, str)]:
            raise ValueError(f"document {i} has label {odd[0]!r} among names: labels are all names, or all numbers")
    index = LabelIndex(names or ())
    numbered = [index.ids(str(label) for label in row) for row in rows]
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
