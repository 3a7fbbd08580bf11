"""What a training run leaves for later lessons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.data.dataset import Texts
from lightdxml.learning.documents import ids_of
from lightdxml.learning.kept import KeptData, rounded, rounded_names
from lightdxml.learning.measured import Recent, observed_in_training
from lightdxml.learning.names import titles_of
from lightdxml.text.rare import RareWords, rare_words
from lightdxml.text.tfidf import Vectorizer
from lightdxml.training import choose
from lightdxml.training.callbacks import Callback
from lightdxml.views.lesson import Clusters
from lightdxml.views.linear.groups import clusters_per_document, document_clusters, fits_all_documents
from lightdxml.views.linear.solver import Documents
from lightdxml.views.names.forms import NameForms
from lightdxml.views.tree.matcher import levels

if TYPE_CHECKING:
    from lightdxml.config import Config
    from lightdxml.model.model import Model
    from lightdxml.training.run import Run, TrainingData

# Bytes per feature of a document, name or title, per label and per cluster of a document, per rare word, and per row of
# a matrix; of a string, quotes and comma.
_PER_FEATURE, _PER_LABEL, _PER_CLUSTER, _PER_RARE_WORD, _PER_ROW, _PER_STRING = 6, 4, 2, 12, 8, 4


def expected_bytes(kept: KeptData, data: TrainingData, config: Config) -> int:
    """Return about how many bytes training data take beside a model that is trained on `data`, a part of them."""
    names = None if kept.names is None else kept.names.terms
    strings = [*kept.ids, *kept.rare.words, *kept.feature_names]
    found = (_PER_LABEL + _PER_ROW) * data.n_labels + _PER_LABEL * kept.Y.nnz + _PER_ROW * len(kept)
    found += sum(
        _PER_FEATURE * one.nnz + _PER_ROW * one.shape[0] for one in (kept.X, names, kept.titles) if one is not None
    )
    found += sum(_PER_STRING + len(one) for one in strings) + _PER_RARE_WORD * len(kept.rare.words)
    if config.linear.enabled and not fits_all_documents(data, config.linear):
        n_clusters = levels(len(data.known_labels), config.tree)[-1]
        found += _PER_CLUSTER * len(kept) * clusters_per_document(data, config.linear, n_clusters)
    return int(found)


@dataclass
class Keeper(Callback):
    """Takes from a training run what later lessons need.

    Attributes
    ----------
    data
        The training data; clusters and label encoder are added at the end of training.
    rows
        The number, in `data`, of each document of the run: training documents, then held-out ones; None for the same
        order.
    recent
        What the views say about validation documents.
    """

    data: KeptData
    rows: NDArray[np.int64] | None = None
    recent: Recent = field(default_factory=Recent)

    def on_end(self, run: Run, model: Model) -> None:
        """Take clusters of hard negatives, the label encoder, and what views say about validation documents."""
        if run.candidates is not None and choose.can_choose(run):
            frequency, Y = run.data.label_frequency, run.data.Y_validation
            validation = observed_in_training(model.views, model.blend, run.candidates, frequency, Y)
            self.recent = Recent(validation, trained=model.n_documents)
        label_encoder = None if run.result is None else run.result.label_encoder
        self.data = replace(self.data, clusters=self._clusters(run), label_encoder=label_encoder)

    def _clusters(self, run: Run) -> Clusters | None:
        if not run.config.linear.enabled or fits_all_documents(run.data, run.config.linear):
            return None
        of_label, of_document = document_clusters(run)
        if self.rows is not None:
            ordered = np.empty_like(of_document)
            ordered[self.rows] = of_document
            of_document = ordered
        return Clusters(of_label, of_document)


def kept_data(
    X: csr_matrix,
    Y: csr_matrix,
    *,
    texts: Texts | Sequence[str] | None = None,
    vectorizer: Vectorizer | None = None,
    ids: Sequence[str] | None = None,
    names: NameForms | None = None,
    label_words: bool = False,
    feature_names: Sequence[str] | None = None,
    own: NDArray[np.int32] | None = None,
    weights: NDArray[np.float32] | None = None,
) -> KeptData:
    """Return the training data of a model, before it is trained."""
    titles, rare = None, RareWords({})
    if vectorizer is not None and texts is not None:
        rare = rare_words(texts, vectorizer)
        if own is not None:
            with_titles = texts if isinstance(texts, Texts) else Texts(list(texts))
            titles = titles_of(vectorizer, with_titles)
    return KeptData(
        X=rounded(X),
        Y=Y,
        usual=Documents.of(X).usual,
        ids=ids_of(ids),
        names=rounded_names(names),
        own=own,
        titles=titles,
        weights=weights,
        rare=rare,
        in_clusters=X.shape[0],
        label_words=label_words,
        feature_names=list(feature_names or ()),
    )
