"""Parts of the classifier."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from lightdxml.views.dense import classifier_part, train_classifier
from lightdxml.views.dense.classifier_part import EmbeddedBatch, Shortlists
from lightdxml.views.dense.options import DenseOptions


def test_parts_with_shortlists_of_their_own_do_the_same_as_parts_that_share_them() -> None:
    rng, n, n_labels = np.random.default_rng(0), 30, 40
    options = DenseOptions(dim=4, batch_size=8, parts=4, random_negatives=5)
    Y = csr_matrix((rng.random((n, n_labels)) < 0.1).astype(np.float32))
    shortlists = rng.integers(-1, n_labels, (n, 6)).astype(np.int32)
    X = rng.normal(size=(8, 4)).astype(np.float32)
    found = []
    for are_shared in (True, False):
        classifier = train_classifier.start(n_labels, options, np.random.default_rng(1))
        training = train_classifier.divide(classifier, Y, options)
        if are_shared:
            training.take_shortlists(shortlists)
        else:
            for first in range(0, n, 7):
                some = Shortlists(first, n, shortlists[first : first + 7])
                training.parts.call(classifier_part.take_shortlists, some)
            kept = training.parts.call(lambda part, _: len(part.shortlists.indices), None)
            assert sum(kept) == (shortlists >= 0).sum(), "each is kept by one part"
        rows = np.array([29, 0, 7, 6, 13, 14, 28, 3], dtype=np.int32)
        batch = EmbeddedBatch(rows, X, 3, np.float32(0.1))
        loss, gradient = training.parts.total(classifier_part.train, batch)
        found.append((loss, gradient.tobytes(), training.collect().W.tobytes()))
    assert found[0] == found[1]
