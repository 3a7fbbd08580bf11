"""The training data that a model keeps to learn from: features and labels of documents, not their texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from lightdxml.data.labels import widen
from lightdxml.kernels.sparse import Csr
from lightdxml.persistence.arrays import Arrays
from lightdxml.text.rare import Joined, Rare, RareWords
from lightdxml.text.tfidf import Vectorizer
from lightdxml.training.run import TrainingData
from lightdxml.views.base import expect, in_range, is_indptr
from lightdxml.views.dense.label_encoder import LabelEncoder, from_layers
from lightdxml.views.lesson import Clusters, Lesson
from lightdxml.views.linear.solver import Documents
from lightdxml.views.names.forms import NameForms

_MOST_CLUSTERS = 1 << 16
# How far rounding may change the length of a row.
_ROUNDING = 0.01


@dataclass(frozen=True, eq=False)
class KeptData:
    """The documents that a model was trained on, and what else training leaves behind.

    Attributes
    ----------
    X, Y
        Features, rounded to 16 bits, and labels. A document that was removed has neither.
    usual
        The usual size of each feature, by which weights are pruned.
    ids
        The ids of the documents; empty if they have none.
    names
        The names of labels as features; None without names.
    own
        A label per document that it cannot have, because it is that label; -1 for none. None if there are no such
        labels.
    titles
        Documents × features: titles of documents that are no label yet. Their labels would have them as names. None if
        documents are no labels.
    weights
        How much each document counts; None if all count the same.
    clusters
        The clusters of hard negatives; None if labels are trained on all documents.
    label_encoder
        The label encoder that made the label embeddings; None if it is not known.
    rare
        Words that are too rare for the vocabulary so far.
    in_clusters
        The number of documents that the clusters of label trees have learned.
    label_words
        Whether the labels are called what they are called in the data, and not only by titles of documents.
    feature_names
        The words that features stand for, by which names of labels are found; empty for texts, or if they are unknown.
    """

    X: csr_matrix
    Y: csr_matrix
    usual: NDArray[np.float32]
    ids: list[str] = field(default_factory=list)
    names: NameForms | None = None
    own: NDArray[np.int32] | None = None
    titles: csr_matrix | None = None
    weights: NDArray[np.float32] | None = None
    clusters: Clusters | None = None
    label_encoder: LabelEncoder | None = None
    rare: RareWords = field(default_factory=lambda: RareWords({}))
    in_clusters: int = 0
    label_words: bool = False
    feature_names: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def training_data(self) -> TrainingData:
        """Return the documents as views take them."""
        nothing = self.X[:0], self.Y[:0]
        data = TrainingData(self.X, self.Y, *nothing, names=self.names, own=self.own, weights=self.weights)
        weights = np.ones(len(self), dtype=np.float32) if self.weights is None else self.weights
        # Rows have length 1, or no features.
        squares = (np.diff(self.X.indptr) > 0).astype(np.float32)
        data.memo("documents", lambda: Documents(self.X, Csr.of(self.X), squares, self.usual, weights))
        return data

    def widened(self, n_features: int, n_labels: int) -> KeptData:
        """Return the data with further features and labels, which no document has."""
        more = n_features - self.X.shape[1]
        if more < 0 or n_labels < self.Y.shape[1]:
            raise ValueError("the training data have more features or labels than the model: load it again")
        names, titles, clusters = self.names, self.titles, self.clusters
        if clusters is not None:
            nowhere = np.full(n_labels - len(clusters.of_label), -1, dtype=np.int32)
            clusters = replace(clusters, of_label=np.append(clusters.of_label, nowhere))
        return replace(
            self,
            X=widen(self.X, n_features),
            Y=widen(self.Y, n_labels),
            usual=np.append(self.usual, np.ones(more, dtype=np.float32)),
            names=None if names is None else NameForms(widen(names.terms, n_features), names.labels),
            titles=None if titles is None else widen(titles, n_features),
            clusters=clusters,
        )

    def with_late_words(self, joined: Sequence[Joined], vectorizer: Vectorizer) -> KeptData:
        """Return the data in which earlier documents have the words that have joined the vocabulary since.

        These words are the last features.
        """
        first = self.X.shape[1] - len(joined)
        late: dict[int, list[tuple[int, float]]] = {}
        for feature, one in enumerate(joined, first):
            if one.before is not None:
                value = (1 + np.log(one.before.occurrences / one.before.documents)) * vectorizer.idf[feature]
                late.setdefault(one.before.document, []).append((feature, float(value)))
        rows = np.array(sorted(late), dtype=np.int64)
        rows = rows[np.diff(self.X.indptr)[rows] > 0]
        if not len(rows):
            return self
        replaced = [_with_features(self.X[row], late[row], vectorizer) for row in rows.tolist()]
        return replace(self, X=with_rows(self.X, rows, csr_matrix(vstack(replaced))))

    def appended(
        self,
        X: csr_matrix,
        Y: csr_matrix,
        ids: Sequence[str],
        own: NDArray[np.int32] | None,
        titles: csr_matrix | None,
        of_document: NDArray[np.int32] | None,
    ) -> KeptData:
        """Return the data with further documents."""
        n = X.shape[0]
        clusters = self.clusters
        if clusters is not None:
            assert of_document is not None
            clusters = replace(clusters, of_document=np.concatenate([clusters.of_document, of_document]))
        names = [*(self.ids or [""] * len(self)), *(ids or [""] * n)] if self.ids or ids else []
        weights = None if self.weights is None else np.append(self.weights, np.ones(n, dtype=np.float32))
        nowhere = np.full(n, -1, dtype=np.int32)
        return replace(
            self,
            X=csr_matrix(vstack([self.X, X])),
            Y=csr_matrix(vstack([self.Y, Y])),
            ids=names,
            own=None if self.own is None else np.append(self.own, nowhere if own is None else own).astype(np.int32),
            titles=None if self.titles is None else csr_matrix(vstack([self.titles, _or_empty(titles, n, X.shape[1])])),
            weights=weights,
            clusters=clusters,
        )

    def without(self, rows: NDArray[np.int64]) -> KeptData:
        """Return the data in which these documents have neither features nor labels, ids and titles."""
        ids, own = list(self.ids), None if self.own is None else self.own.copy()
        for row in rows.tolist() if ids else ():
            ids[row] = ""
        if own is not None:
            own[rows] = -1

        def emptied(matrix: csr_matrix) -> csr_matrix:
            return with_rows(matrix, rows, csr_matrix((len(rows), matrix.shape[1]), dtype=np.float32))

        titles = None if self.titles is None else emptied(self.titles)
        return replace(self, X=emptied(self.X), Y=emptied(self.Y), ids=ids, own=own, titles=titles)

    def merged(self, gone: int, kept: int) -> KeptData:
        """Return the data in which documents of one label have another one instead, and its names too."""
        columns = np.where(self.Y.indices == gone, kept, self.Y.indices)
        Y = csr_matrix((self.Y.data, columns, self.Y.indptr), shape=self.Y.shape)
        Y.sum_duplicates()
        Y.data[:] = 1
        names = self.names
        if names is not None:
            labels = np.where(names.labels == gone, kept, names.labels).astype(np.int32)
            names = NameForms(names.terms, labels)[np.argsort(labels, kind="stable")]
        own = None if self.own is None else np.where(self.own == gone, kept, self.own).astype(np.int32)
        return replace(self, Y=Y, names=names, own=own)

    def placed(self, lesson: Lesson) -> KeptData:
        """Return the data in which labels that got their first documents have a cluster."""
        if self.clusters is None:
            return self
        return replace(self, clusters=replace(self.clusters, of_label=lesson.placed(self.clusters.of_label)))

    def with_names(self, added: NameForms | None) -> KeptData:
        """Return the data with further names of labels."""
        if added is None:
            return self
        if self.names is None:
            return replace(self, names=added)
        labels = np.concatenate([self.names.labels, added.labels])
        names = NameForms(csr_matrix(vstack([self.names.terms, added.terms])), labels)
        return replace(self, names=names[np.argsort(labels, kind="stable")])

    def arrays(self) -> Arrays:
        """Return all arrays by name; words and ids are not among them."""
        found: Arrays = {**_stored("X", self.X), **_stored("Y", self.Y, values=False), "usual": self.usual}
        if self.names is not None:
            found |= {**_stored("names", self.names.terms), "names.labels": self.names.labels}
        if self.titles is not None:
            found |= _stored("titles", self.titles)
        if self.clusters is not None:
            found |= {"clusters.of_label": self.clusters.of_label}
            # Clusters of up to 65,536 take half of the bytes.
            small = self.clusters.of_document.max(initial=0) < 1 << 16
            found["clusters.of_document"] = self.clusters.of_document.astype(np.uint16 if small else np.int32)
        if self.label_encoder is not None:
            found |= {f"label_encoder.{i}": layer for i, layer in enumerate(self.label_encoder.layers)}
        numbers = np.array(list(self.rare.words.values()), dtype=np.int32).reshape(-1, len(Rare._fields))
        optional = {"own": self.own, "weights": self.weights, "rare": numbers}
        return found | {name: array for name, array in optional.items() if array is not None}

    def facts(self) -> dict[str, Any]:
        """Return everything else that is stored, for JSON."""
        return {
            "n_features": int(self.X.shape[1]),
            "n_labels": int(self.Y.shape[1]),
            "ids": self.ids,
            "rare": list(self.rare.words),
            "min_count": self.rare.min_count,
            "in_clusters": self.in_clusters,
            "label_words": self.label_words,
            "feature_names": self.feature_names,
        }


def restore_kept(arrays: Arrays, facts: dict[str, Any], n_features: int, n_labels: int) -> KeptData:
    """Return the data that these make up; raise a `ValueError` if they cannot, or do not fit the model."""
    if (facts["n_features"], facts["n_labels"]) != (n_features, n_labels):
        raise ValueError("its training data are of another model")
    X, Y = _restored(arrays, "X", n_features), _restored(arrays, "Y", n_labels)
    n = X.shape[0]
    names = titles = clusters = label_encoder = None
    if Y.shape[0] != n:
        raise ValueError("its training data have labels of other documents")
    if "names.labels" in arrays:
        terms = _restored(arrays, "names", n_features)
        labels = expect(arrays["names.labels"], "names.labels", (terms.shape[0],), np.int32)
        if not in_range(labels, 0, n_labels) or bool((labels[1:] < labels[:-1]).any()):
            raise ValueError("its training data have names of labels that do not exist")
        names = NameForms(terms, np.array(labels))
    if "titles.indptr" in arrays:
        titles = _restored(arrays, "titles", n_features)
        if titles.shape[0] != n:
            raise ValueError("its training data have titles of other documents")
    if "clusters.of_label" in arrays:
        of_label = expect(arrays["clusters.of_label"], "clusters.of_label", (n_labels,), np.int32)
        found = arrays["clusters.of_document"]
        width = found.shape[1] if found.ndim == 2 else 0
        expect(found, "clusters.of_document", (n, width), np.uint16, np.int32)
        # A tree may have more clusters than labels.
        most = max(_MOST_CLUSTERS, 2 * n_labels)
        if not in_range(of_label, -1, most) or not in_range(found, 0, most):
            raise ValueError("its training data have clusters that do not exist")
        clusters = Clusters(np.array(of_label), found.astype(np.int32))
    if "label_encoder.0" in arrays:
        layers = [arrays["label_encoder.0"], arrays["label_encoder.1"]]
        dim = len(layers[0])
        label_encoder = from_layers([expect(one, "label_encoder", (dim, dim + 1), np.float32) for one in layers])
    own, weights = arrays.get("own"), arrays.get("weights")
    if own is not None and not in_range(expect(own, "own", (n,), np.int32), -1, n_labels):
        raise ValueError("its training data have documents that are labels that do not exist")
    if weights is not None:
        expect(weights, "weights", (n,), np.float32)
        if not (weights > 0).all():
            raise ValueError("its training data have documents of weight 0 or less")
    usual = expect(arrays["usual"], "usual", (n_features,), np.float32)
    for rows in (X, titles, None if names is None else names.terms):
        if rows is not None and not has_unit_rows(rows):
            raise ValueError("its training data have features that are not those of documents")
    if not (usual >= 0).all():
        raise ValueError("its training data have features of a negative size")
    return KeptData(
        X, Y, np.array(usual), _strings(facts["ids"], n), names, own, titles, weights, clusters, label_encoder,
        _rare(arrays, facts, n), _integer(facts["in_clusters"], n), facts["label_words"] is True,
        _strings(facts["feature_names"], n_features),
    )  # fmt: skip


def _rare(arrays: Arrays, facts: dict[str, Any], n_documents: int) -> RareWords:
    words, min_count = facts["rare"], facts["min_count"]
    numbers = expect(arrays["rare"], "rare", (len(words), len(Rare._fields)), np.int32)
    if (
        type(min_count) is not int
        or not in_range(numbers[:, 2], 0, n_documents)
        or not in_range(numbers[:, :2], 1, 1 << 31)
    ):
        raise ValueError("its training data have rare words of documents that do not exist")
    rare = {word: Rare(*row) for word, row in zip(_strings(words, len(words)), numbers.tolist(), strict=True)}
    return RareWords(rare, min_count)


def _integer(found: Any, most: int) -> int:
    if type(found) is not int or not 0 <= found <= most:
        raise ValueError(f"its training data have {found!r:.20} documents")
    return found


def _strings(found: Any, n: int) -> list[str]:
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found) or len(found) not in (0, n):
        raise ValueError("its training data have ids or words that are no strings")
    return found


def has_unit_rows(X: csr_matrix) -> bool:
    """Return whether every row has length 1, or no entries.

    >>> has_unit_rows(csr_matrix([[0.6, 0.8], [0, 0]])), has_unit_rows(csr_matrix([[6.0, 8.0]]))
    (True, False)
    """
    starts = X.indptr[:-1][np.diff(X.indptr) > 0]
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.add.reduceat(X.data * X.data, starts, dtype=np.float64) if len(starts) else np.ones(0)
    # The length is NaN or infinite if a value is.
    return bool((np.abs(np.sqrt(squares) - 1) <= _ROUNDING).all())


def rounded(X: csr_matrix) -> csr_matrix:
    """Return features as they are stored, in 16 bits: learning gives the same bits now and later."""
    return csr_matrix((X.data.astype(np.float16).astype(np.float32), X.indices, X.indptr), shape=X.shape)


def rounded_names(names: NameForms | None) -> NameForms | None:
    """Return names as they are stored."""
    return None if names is None else NameForms(rounded(names.terms), names.labels)


def with_rows(matrix: csr_matrix, rows: NDArray[np.int64], replaced: csr_matrix) -> csr_matrix:
    """Return a matrix with some of its rows, ascending, replaced.

    >>> with_rows(csr_matrix([[1, 0], [0, 2], [3, 0]]), np.array([1]), csr_matrix([[5, 6]])).toarray().tolist()
    [[1, 0], [5, 6], [3, 0]]
    """
    every, order = csr_matrix(vstack([matrix, replaced])), np.arange(matrix.shape[0])
    order[rows] = matrix.shape[0] + np.arange(len(rows))
    return every[order]


def _with_features(row: csr_matrix, features: Sequence[tuple[int, float]], vectorizer: Vectorizer) -> csr_matrix:
    """Return the features of a document, a row of length 1, with those of further words, and length 1 again."""
    # A word that occurs once has the value idf / length. That is the word of the smallest value relative to idf.
    length = float((vectorizer.idf[row.indices] / row.data).max())
    indices = np.append(row.indices, [feature for feature, _ in features])
    data = np.append(row.data, [value / length for _, value in features])
    data /= np.linalg.norm(data)
    return rounded(csr_matrix((data.astype(np.float32), indices, [0, len(indices)]), shape=row.shape))


def _or_empty(matrix: csr_matrix | None, n: int, n_columns: int) -> csr_matrix:
    return csr_matrix((n, n_columns), dtype=np.float32) if matrix is None else matrix


def _stored(name: str, matrix: csr_matrix, values: bool = True) -> Arrays:
    found: Arrays = {
        f"{name}.indptr": matrix.indptr.astype(np.int64),
        f"{name}.indices": matrix.indices.astype(np.int32),
    }
    return found | ({f"{name}.values": matrix.data.astype(np.float16)} if values else {})


def _restored(arrays: Arrays, name: str, n_columns: int) -> csr_matrix:
    indptr, indices = arrays[f"{name}.indptr"], arrays[f"{name}.indices"]
    expect(indptr, f"{name}.indptr", (len(indptr),), np.int64)
    expect(indices, f"{name}.indices", (len(indices),), np.int32)
    if not is_indptr(indptr, len(indices)) or not in_range(indices, 0, n_columns):
        raise ValueError(f"its training data have {name} that do not exist")
    values = np.ones(len(indices), dtype=np.float32)
    if f"{name}.values" in arrays:
        values = expect(arrays[f"{name}.values"], f"{name}.values", (len(indices),), np.float16).astype(np.float32)
    found = csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, n_columns))
    if not found.has_canonical_format:
        raise ValueError(f"its training data have {name} that are not ascending")
    return found
