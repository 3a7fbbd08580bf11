"""fastText's classifier: the mean of word vectors, then one logistic regression for each label."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.experiments.baselines.base import Method, ranked_pairs
from lightdxml.data.files import writing_text

_DOCUMENTS = 4096
_LABEL = "__label__"
_LOWEST_RATE = 0.001


class FastText(Method):
    """fastText's supervised training with the loss `ova` (Joulin et al., 2017).

    fastText reads texts, and a method here is given a matrix: a document becomes a line with the word `w<feature>` for
    each of its features, once each. How often a word stands there, its weight and the order of words are lost to it.

    The settings are those of fastText's tutorial for several labels a document, but for pairs of words, which have no
    meaning without order; with the defaults, 5 epochs at a rate of 0.1, it is far from done on a few thousand
    documents. Where documents have many labels the tutorial's rate diverges, which fastText notices within seconds: the
    rate is halved until it does not, and `settings` has the one that held. Phase `files` is the writing of the lines;
    fastText reads them again while it trains.

    On several threads fastText's updates race with each other, and the same seed gives another answer each time; on
    one thread, the same.
    """

    name = "fasttext"
    about = "the mean of learnt word vectors, then a logistic regression for each label (fastText, loss ova)"
    packages = ("fasttext",)
    distributions = ("fasttext-community",)
    install = 'pip install "lightdxml[fasttext]"'
    reproducible = False
    defaults: ClassVar[Mapping[str, Any]] = {"lr": 0.5, "epoch": 25, "dim": 50, "wordNgrams": 1, "loss": "ova"}

    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Train on a temporary file of lines."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "train.txt"
            with self.phase("files"), writing_text(path) as stream:
                for labels, words in zip(_lines(Y, _LABEL), _lines(X, "w"), strict=True):
                    if labels:
                        stream.write(f"{labels} {words}\n")
            with self.phase("train"):
                self._model = self._train(path, seed, threads)

    def _train(self, path: Path, seed: int, threads: int) -> Any:
        """Return fastText's model, at the first rate that does not diverge."""
        import fasttext

        fixed = {"seed": seed, "thread": threads, "verbose": 0, "label": _LABEL}
        try:
            return fasttext.train_supervised(str(path), **fixed, **self.settings)
        except RuntimeError as error:
            if "NaN" not in str(error) or self.settings["lr"] < _LOWEST_RATE:
                raise
        self.settings["lr"] /= 2
        return self._train(path, seed, threads)

    def rank(self, X: csr_matrix, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Rank labels by their probabilities."""
        return ranked_pairs(self._pairs(X, k), X.shape[0], k)

    def _pairs(self, X: csr_matrix, k: int) -> Iterator[Iterator[tuple[int, float]]]:
        for start in range(0, X.shape[0], _DOCUMENTS):
            names, scores = self._model.predict(list(_lines(X[start : start + _DOCUMENTS], "w")), k=k)
            for row_names, row_scores in zip(names, scores, strict=True):
                yield zip((int(name.removeprefix(_LABEL)) for name in row_names), row_scores, strict=True)

    def save(self, folder: Path) -> None:
        """Write the model as fastText does."""
        self._model.save_model(str(folder / "model.bin"))


def _lines(matrix: csr_matrix, prefix: str) -> Iterator[str]:
    """Yield the columns of each row as words.

    >>> list(_lines(csr_matrix([[0, 1, 1], [0, 0, 0]]), "w"))
    ['w1 w2', '']
    """
    for start, stop in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        yield " ".join([f"{prefix}{column}" for column in matrix.indices[start:stop].tolist()])
