"""A trained model that predicts: everything of `LightDXML` that needs no training and no scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from lightdxml import outputs
from lightdxml.data.own_labels import own_labels
from lightdxml.kernels import parallel
from lightdxml.kernels.sparse import FeatureRows
from lightdxml.model import explain as explaining
from lightdxml.model import store
from lightdxml.model.model import Model, check_tail, label_thresholds, predict
from lightdxml.model.rules import Labels, allowed_labels
from lightdxml.model.thresholds import DEPTH
from lightdxml.text import tfidf
from lightdxml.validation import check_features, matrix_of, texts_of

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# The ids of documents, if they have any.
Ids = Sequence[str] | None
# A probability, or the measure that validation documents choose it for.
Threshold = float | str | None


class RankOptions(TypedDict, total=False):
    """The options of `Predictor.rank` and `Predictor.predict`, which explain them."""

    threshold: Threshold
    by_frequency: bool
    tail: float
    ids: Ids
    include: Labels
    exclude: Labels


# Labels per document without a threshold.
DEFAULT_K = 5


class Predictor:
    """Predicts labels of documents with a trained model.

    `LightDXML` predicts with it. Alone it starts sooner, because it imports neither SciPy nor scikit-learn: use it in
    services and scripts that only predict.

    Parameters
    ----------
    model
        A trained model.
    n_jobs
        Number of threads; None or -1 for all cores.

    Examples
    --------
    >>> import tempfile
    >>> from lightdxml import LightDXML
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     texts, labels = ["red rose", "white wine"] * 10, [["rose"], ["wine"]] * 10
    ...     LightDXML(dim=8, epochs=2).fit(texts, labels).save(folder + "/model")
    ...     Predictor.load(folder + "/model").predict("a rose", k=1)
    ['rose']
    """

    def __init__(self, model: Model, n_jobs: int | None = None) -> None:
        self.model, self.n_jobs = model, n_jobs

    @classmethod
    def load(cls, folder: str | Path, *, verify: bool = True, n_jobs: int | None = None) -> Predictor:
        """Read a model that `LightDXML.save` or `lightdxml train` wrote; no code in it is run.

        Parameters
        ----------
        folder
            Where it lies. Large arrays are memory-mapped: several processes share one copy.
        verify
            Whether to compare every byte with the model's checksums first; False is faster for large models.
        n_jobs
            Number of threads; None or -1 for all cores.
        """
        return cls(store.load(Path(folder), verify=verify).model, n_jobs)

    @classmethod
    def from_pretrained(
        cls,
        repo: str | Path,
        revision: str | None = None,
        *,
        verify: bool = True,
        n_jobs: int | None = None,
        token: str | bool | None = None,
        endpoint: str | None = None,
    ) -> Predictor:
        """Read a model from the Hugging Face Hub, or from a folder; no code in it is run.

        It is downloaded into the cache of huggingface_hub, if it is not there, and loaded from it.

        Parameters
        ----------
        repo
            The repository, `OWNER/NAME`; or a folder, if there is one of this name.
        revision
            A branch, a tag or a commit; None for the main branch.
        verify, n_jobs
            As in `load`.
        token
            The user's token; None for that of `HF_TOKEN` or of `hf auth login`.
        endpoint
            The address of the hub; None for that of `HF_ENDPOINT`, or the public one.
        """
        from lightdxml.hub.connection import Hub
        from lightdxml.hub.fetch import folder_of

        return cls.load(folder_of(repo, revision, Hub(endpoint, token)), verify=verify, n_jobs=n_jobs)

    def predict(
        self,
        X: Any,
        k: int | None = None,
        *,
        threshold: Threshold = None,
        by_frequency: bool = False,
        tail: float = 0.0,
        ids: Ids = None,
        include: Labels = None,
        exclude: Labels = None,
    ) -> Any:
        """Return the labels of each document: names or ids, best first.

        If training was given a matrix, return a 0/1 matrix of labels with a probability of at least `threshold`, which
        is by default that of the model. If it was given one class per document, return the most likely class of each.
        With `k`, return lists.

        Parameters
        ----------
        X
            Texts or a matrix; or a single text, for the list of its labels alone.
        k
            Labels per document, at most. Without a threshold, the default is 5, else 100.
        threshold
            The probability from which a label is predicted: a number, or a measure for which validation documents have
            shown the best one. `"auto"` and `"micro-f1"` are for F1 over all predictions, `"macro-f1"` for the mean F1
            of labels, `"samples-f1"` for the mean F1 of documents, and `"precision=0.9"` for a precision of 90%.
        by_frequency
            Choose a threshold for each group of labels of about the same frequency, instead of one for all.
        tail
            From 0, for precision, to 1, for rare labels: how much rare labels are preferred. It changes the order, and
            so which labels are among the k best, but no probability.
        ids
            The ids of the documents. Where documents are labels themselves, none gets itself as a label.
        include
            The only labels that may be suggested: URIs, names or ids. With a vocabulary, all labels of a branch are
            `model.vocabulary.branch(uri)`.
        exclude
            Labels that may not be suggested: the k best of the others are. Without the labels that are left out, others
            rank higher and are more likely.
        """
        form = "lists" if isinstance(X, str) else self.model.output
        if form in outputs.MATRICES and k is None and threshold is None:
            threshold = self.model.threshold
        is_class = form == "classes" and k is None and threshold is None
        if is_class:
            k = min(self.model.n_labels, DEPTH)
        labels, scores = self.rank(
            [X] if isinstance(X, str) else X, k, threshold=threshold, by_frequency=by_frequency, tail=tail, ids=ids,
            include=include, exclude=exclude,
        )  # fmt: skip
        if is_class:
            return outputs.as_classes(self.model, labels, scores)
        if form in outputs.MATRICES and k is None:
            return outputs.as_indicators(self.model, labels)
        rows = outputs.as_lists(self.model, labels)
        return rows[0] if isinstance(X, str) else rows

    def rank(
        self,
        X: Any,
        k: int | None = None,
        *,
        threshold: Threshold = None,
        by_frequency: bool = False,
        tail: float = 0.0,
        ids: Ids = None,
        include: Labels = None,
        exclude: Labels = None,
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the ids of the best labels of each document, and the probability of each; -1 and 0 for none.

        There are no more columns than labels. All parameters are as in `predict`.
        """
        if k is None:
            k = DEFAULT_K if threshold is None else DEPTH
        _check_k(k)
        check_tail(tail)
        if by_frequency and threshold is None:
            raise ValueError("by_frequency needs a threshold: give one, such as 'auto', too")
        least = None if threshold is None else label_thresholds(self.model, threshold, by_frequency)
        allowed = allowed_labels(self.model, include, exclude)
        with parallel.use_threads(threads_of(self.n_jobs)):
            features = self._features(X)
            own = self._own(ids, features.shape[0])
            found = predict(self.model, features, min(int(k), self.model.n_labels), float(tail), own, allowed)
        return found if least is None else _reaching(*found, least)

    def _own(self, ids: Ids, n_documents: int) -> NDArray[np.int32] | None:
        """Return the labels that documents are themselves; None if it does not matter."""
        if ids is None or not self.model.never_own:
            return None
        if len(ids) != n_documents:
            raise ValueError(f"{len(ids)} ids for {n_documents} documents: there must be one each")
        return own_labels(ids, self.model.label_ids)

    def scores(
        self, X: Any, k: int = 5, *, tail: float = 0.0, include: Labels = None, exclude: Labels = None
    ) -> csr_matrix:
        """Return the probabilities of each document's k best labels as a sparse matrix, documents × labels.

        All parameters are as in `predict`.
        """
        texts = [X] if isinstance(X, str) else X
        return outputs.as_matrix(self.model, *self.rank(texts, k, tail=tail, include=include, exclude=exclude))

    def explain(
        self, X: Any, k: int = 5, *, tail: float = 0.0, ids: Ids = None, include: Labels = None, exclude: Labels = None
    ) -> Any:
        """Return what every word adds to the probability of each of the k best labels: see `lightdxml.model.explain`.

        Parameters
        ----------
        X
            Texts or a matrix, for a list of explanations each; or a single text, for its explanations alone.
        k, tail, ids, include, exclude
            As in `predict`.
        """
        _check_k(k)
        check_tail(tail)
        allowed = allowed_labels(self.model, include, exclude)
        with parallel.use_threads(threads_of(self.n_jobs)):
            texts = texts_of([X] if isinstance(X, str) else X)
            features = self._features(X if texts is None else texts)
            k = min(int(k), self.model.n_labels)
            own = self._own(ids, features.shape[0])
            rows = explaining.explain(self.model, features, k, float(tail), allowed, texts, own)
        return rows[0] if isinstance(X, str) else rows

    def _features(self, X: Any) -> csr_matrix | FeatureRows:
        """Return X as canonical features; what our own TF-IDF made is not checked again."""
        texts = texts_of(X)
        if texts is None:
            if getattr(X, "ndim", 2) == 1:
                raise ValueError("X has one dimension: give documents × features (Reshape your data with X[None])")
            return check_features(matrix_of(X), self.model.n_features)
        if self.model.vectorizer is None:
            raise ValueError("the model was trained on features, not on texts: give a matrix")
        return tfidf.features(self.model.vectorizer, texts)


def _reaching(
    labels: NDArray[np.int32], scores: NDArray[np.float32], least: NDArray[np.float64]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the labels whose scores reach the threshold of the label, in the same order; -1 and 0 for none."""
    reaches = (labels >= 0) & (scores >= least[labels].astype(np.float32))
    width = max(1, int(reaches.sum(axis=1).max(initial=0)))
    order = np.argsort(~reaches, axis=1, kind="stable")[:, :width]
    kept_labels = np.take_along_axis(np.where(reaches, labels, np.int32(-1)), order, axis=1)
    return kept_labels, np.take_along_axis(np.where(reaches, scores, np.float32(0)), order, axis=1)


def threads_of(n_jobs: int | None) -> int | None:
    """Return the number of threads, None for all cores.

    >>> threads_of(-1), threads_of(2)
    (None, 2)
    """
    if n_jobs is not None and n_jobs != -1 and (isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs < 1):
        raise ValueError(f"n_jobs is {n_jobs!r}: it must be an integer of at least 1, or -1 for all cores")
    return None if n_jobs == -1 else n_jobs


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads that predict.

    >>> thread_count(2)
    2
    """
    with parallel.use_threads(threads_of(n_jobs)):
        return parallel.thread_count()


def _check_k(k: Any) -> None:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ValueError(f"k is {k!r}: it must be an integer of at least 1")
