"""The documents of a study: those that trials train on, and those that trials are measured on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lightdxml.data.dataset import Dataset, Split
from lightdxml.data.vocabulary import Vocabulary
from lightdxml.model import fingerprints
from lightdxml.validation import check_features

# The share of training documents that are held out to measure trials, and their number: at least and at most.
_SHARE, _FEWEST, _MOST = 0.1, 1000, 20_000
# No more than one in this many is held out to reach the least number.
_LARGEST_PART = 5
_MIN_DOCUMENTS = 50


@dataclass(frozen=True, eq=False)
class Documents:
    """Documents to train on and documents to measure trials on. They have no document in common.

    Training holds out validation documents of its own from the first ones.

    Attributes
    ----------
    name
        The name of the data set.
    train, judged
        The documents to train on, and those to measure on.
    held_out
        Whether the latter were training documents, because the data set has no dev part.
    label_names, feature_names
        The names of the columns of labels and features; None if they have none.
    vocabulary
        What labels are called, or None.
    """

    name: str
    train: Split
    judged: Split
    held_out: bool
    label_names: Sequence[str] | None = None
    feature_names: Sequence[str] | None = None
    vocabulary: Vocabulary | None = None

    @staticmethod
    def of(data: Dataset, vocabulary: Vocabulary | None = None) -> Documents:
        """Divide a data set. Its test part is not used.

        Without a dev part, some training documents are held out: the same ones in all studies of these data.
        """
        train, judged = data.train, data.dev
        if judged is None:
            n = len(train)
            if n < _MIN_DOCUMENTS:
                raise ValueError(
                    f"{data.name} has {n} training documents: at least {_MIN_DOCUMENTS} are needed to tune"
                )
            order = np.random.default_rng(0).permutation(n)
            size = held_out_size(n)
            train, judged = data.train.take(np.sort(order[size:])), data.train.take(np.sort(order[:size]))
        if judged.Y.nnz == 0:
            raise ValueError(f"the documents of {data.name} that trials are measured on have no labels: add some")
        names = data.label_names, data.feature_names
        return Documents(data.name, train, judged, data.dev is None, *names, vocabulary)

    def fingerprint(self) -> str:
        """Return what identifies documents and labels."""
        digest = hashlib.sha256()
        for split in (self.train, self.judged):
            parts: list[NDArray[np.generic]] = [split.Y.indptr, split.Y.indices]
            if split.texts is not None:
                parts.append(fingerprints.of_texts(split.texts))
            if split.X is not None:
                parts.append(fingerprints.of_features(check_features(split.X)))
            for part in parts:
                digest.update(part.astype("<i8").tobytes())
        for names in (self.label_names, self.feature_names):
            digest.update(repr(None if names is None else list(names)).encode("utf-8", "surrogatepass"))
        if self.vocabulary is not None:
            digest.update(repr(list(self.vocabulary.uris(self.label_names or ()))).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


def held_out_size(n_documents: int) -> int:
    """Return how many training documents are held out to measure trials.

    >>> [held_out_size(n) for n in (1000, 6000, 50_000, 1_000_000)]
    [200, 1000, 5000, 20000]
    """
    least = min(_FEWEST, n_documents // _LARGEST_PART)
    return min(max(round(_SHARE * n_documents), least), _MOST)
