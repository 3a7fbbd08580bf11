"""The nearness view: the cosine of document and label embeddings. Its nearest labels are the shortlist S_k."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lightdxml import index as indexes
from lightdxml.index.base import Index, Neighbors
from lightdxml.kernels.precision import dequantize, quantize_int8
from lightdxml.persistence.arrays import Arrays
from lightdxml.views.base import Batch, Contributions, ModelSizes, Proposal, ViewMemory, expect, in_range, is_ascending
from lightdxml.views.dense.encoder import (
    Encoder,
    check_scales,
    directions_of,
    encode,
    expect_vectors,
    feature_embeddings,
    normalized,
    quantized,
    restore_encoder,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from lightdxml.config import Config
    from lightdxml.training.run import Run, TrainingData
    from lightdxml.views.base import NewLabels, View
    from lightdxml.views.lesson import Lesson

_PREFIX = "nearness."


@dataclass(frozen=True)
class NearnessView:
    """Label embeddings in an index.

    Attributes
    ----------
    encoder
        From features to embeddings.
    labels
        The labels in the index, ascending, one per row. Labels without training documents are not among them.
    index
        The index of label embeddings ŷ at length 1.
    shortlist_size
        Candidates per document, k in the paper.
    """

    name: ClassVar[str] = "nearness"
    about: ClassVar[str] = "cosine of document and label embeddings"
    requires: ClassVar[tuple[str, ...]] = ()

    encoder: Encoder
    labels: NDArray[np.int32]
    index: Index
    shortlist_size: int

    def propose(self, batch: Batch, known: NDArray[np.int32]) -> Proposal | None:
        """Return the shortlist S_k of each document (Equation 6); known labels are scored too."""
        rows, cosines = self._nearest(batch)
        labels = self.labels[rows]
        if known.shape[1]:
            repeated = (labels[:, :, None] == known[:, None, :]).any(axis=2)
            labels = np.where(repeated, np.int32(-1), labels)
            cosines = np.concatenate([self.log_score(batch, known) + 1, cosines], axis=1)
        return Proposal(labels, cosines - 1)

    def _nearest(self, batch: Batch) -> Neighbors:
        """Return the rows of the nearest labels that are allowed, and their cosines."""
        queries, k = directions_of(self.encoder, batch), self.shortlist_size
        if batch.allowed is None:
            return self.index.search(queries, k)
        return indexes.search_some(self.index, queries, k, batch.allowed[self.labels])

    def log_score(self, batch: Batch, labels: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return cosine − 1 of these labels; −2, the lowest, for labels without an embedding."""
        rows = np.searchsorted(self.labels, labels)
        rows[self.labels[np.minimum(rows, len(self.labels) - 1)] != labels] = -1
        cosines = indexes.cosines(self.index.vectors, directions_of(self.encoder, batch), rows)
        cosines -= 1
        return cosines

    def contributions(self, batch: Batch, label: int) -> Contributions:
        """Return what each feature adds to the cosine."""
        terms, rest = feature_embeddings(self.encoder, batch)
        row = int(np.searchsorted(self.labels, label))
        if row == len(self.labels) or self.labels[row] != label:
            return Contributions(-2.0, np.zeros(len(terms)))
        direction = dequantize(self.index.vectors[row : row + 1])[0].astype(np.float64)
        norm = float(np.linalg.norm(terms.sum(axis=0) + rest)) or 1.0
        return Contributions(float(rest @ direction / norm) - 1, terms @ direction / norm)

    def arrays(self) -> Arrays:
        """Return label embeddings, the index and the encoder."""
        stored = {f"{_PREFIX}index.{name}": array for name, array in self.index.arrays().items()}
        own = {f"{_PREFIX}labels": self.labels, f"{_PREFIX}vectors": self.index.vectors}
        return {**self.encoder.arrays(), **own, **stored}

    def facts(self) -> dict[str, Any]:
        """Return the kind of index, the size of shortlists and how the encoder works."""
        return {"relu": self.encoder.relu, "index": self.index.kind, "shortlist_size": self.shortlist_size}

    @classmethod
    def restore(cls, arrays: Arrays, facts: dict[str, Any], sizes: ModelSizes) -> NearnessView:
        """Return the view that these arrays make up."""
        encoder = restore_encoder(arrays, facts, sizes.n_features)
        labels, vectors = arrays[f"{_PREFIX}labels"], arrays[f"{_PREFIX}vectors"]
        expect(labels, f"{_PREFIX}labels", (len(labels),), np.int32)
        expect_vectors(vectors, f"{_PREFIX}vectors", len(labels), encoder.dim)
        if not len(labels) or not in_range(labels, 0, sizes.n_labels) or not is_ascending(labels):
            raise ValueError("its index has label ids that are out of range or not ascending")
        size = facts["shortlist_size"]
        if type(size) is not int or not 1 <= size <= 1 << 20:
            raise ValueError(f"its shortlists have size {size!r:.30}")
        prefix = f"{_PREFIX}index."
        stored = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        return cls(encoder, labels, indexes.restore(facts["index"], vectors, stored), size)

    def check_values(self) -> None:
        """Check the scales of int8 rows."""
        check_scales(self.encoder.vectors, "encoder.vectors")
        check_scales(self.index.vectors, f"{_PREFIX}vectors")

    def quantize(self, precision: str) -> NearnessView:
        """Return the view with vectors of lower precision; RaBitQ codes of nearly the same vectors stay."""
        vectors = quantized(self.index.vectors, precision)
        index = indexes.restore(self.index.kind, vectors, self.index.arrays())
        return replace(self, encoder=self.encoder.quantize(precision), index=index)

    def with_labels(self, new: NewLabels) -> NearnessView:
        """Return the view in which untrained labels lie where documents of their names would."""
        encoder = self.encoder.with_features(new.n_features)
        added = normalized(encode(encoder, new.names.by_label(new.n_labels)[new.untrained]))
        is_known = added.any(axis=1)
        kept = ~np.isin(self.labels, new.untrained)
        labels = np.concatenate([self.labels[kept], new.untrained[is_known]])
        vectors = np.concatenate([self.index.vectors[kept], like(self.index.vectors, added[is_known])])
        order = np.argsort(labels, kind="stable")
        index = indexes.build(vectors[order], self.index.kind, k=self.shortlist_size)
        return NearnessView(encoder, labels[order], index, self.shortlist_size)

    def learn(self, lesson: Lesson) -> NearnessView:
        """Return the view with the embeddings of labels of new documents learned again; the encoder stays."""
        from lightdxml.views.dense.learn import learn_nearness

        return learn_nearness(self, lesson)

    def summary(self) -> str:
        """Return the size of the index and how it is searched."""
        vectors = f"{len(self.labels):,} label embeddings × {self.encoder.dim} dimensions, {self.index.vectors.dtype}"
        return f"{vectors}; {self.index.kind} search for the {self.shortlist_size} nearest"

    @classmethod
    def memory(cls, data: TrainingData, config: Config, spilled: bool) -> ViewMemory:
        """Return nothing: the classifier view counts the whole cycle."""
        return ViewMemory()

    @classmethod
    def train(cls, run: Run, is_useful: Callable[[View], bool]) -> NearnessView | None:
        """Return the index that the cycle built, if there was one."""
        return None if run.result is None else run.result.nearness

    def refit(self, run: Run) -> NearnessView:
        """Return the view with labels that only held-out documents have, if there are any."""
        assert run.result is not None
        return run.result.with_new_labels(run) or self


def like(vectors: NDArray[Any], rows: NDArray[np.float32]) -> NDArray[Any]:
    """Return rows in the precision of vectors."""
    return quantize_int8(rows) if vectors.dtype == np.int8 else rows.astype(vectors.dtype)
