"""fastText's classifier: the mean of word vectors, then one logistic regression per label."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from scipy.sparse import csr_matrix

from lightdxml.data.files import writing_text
from lightdxml.experiments.baselines.base import Method, Ranked, Settings, ranked_pairs

_BATCH = 4096
_LABEL = "__label__"
_MIN_RATE = 0.001


class FastText(Method):
    """fastText's supervised training with loss `ova` (Joulin et al., 2017).

    fastText reads texts: each document becomes a line with one word `w<feature>` per feature, so that word counts,
    weights and word order are lost. Phase `files` is the time to write the lines.

    The settings are those of fastText's tutorial for several labels per document, without pairs of words, which need
    word order. If the learning rate diverges, as it does with many labels per document, it is halved, and `settings`
    has the value that was used. With several threads fastText is not reproducible: its updates race.
    """

    name = "fasttext"
    about = "mean of learned word vectors, then one logistic regression per label (fastText, loss ova)"
    packages = ("fasttext",)
    distributions = ("fasttext-community",)
    install = 'pip install "lightdxml[fasttext]"'
    reproducible = False
    defaults: ClassVar[Settings] = {"lr": 0.5, "epoch": 25, "dim": 50, "wordNgrams": 1, "loss": "ova"}

    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Train on a temporary text file."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "train.txt"
            with self.phase("files"), writing_text(path) as stream:
                for labels, words in zip(_lines(Y, _LABEL), _lines(X, "w"), strict=True):
                    if labels:
                        stream.write(f"{labels} {words}\n")
            with self.phase("train"):
                self._model = self._train(path, seed, threads)

    def _train(self, path: Path, seed: int, threads: int) -> Any:
        """Train with the first learning rate that does not diverge."""
        import fasttext

        fixed = {"seed": seed, "thread": threads, "verbose": 0, "label": _LABEL}
        try:
            return fasttext.train_supervised(str(path), **fixed, **self.settings)
        except RuntimeError as error:
            if "NaN" not in str(error) or self.settings["lr"] < _MIN_RATE:
                raise
        self.settings["lr"] /= 2
        return self._train(path, seed, threads)

    def rank(self, X: csr_matrix, k: int) -> Ranked:
        """Rank labels by their probabilities."""
        return ranked_pairs(self._pairs(X, k), X.shape[0], k)

    def _pairs(self, X: csr_matrix, k: int) -> Iterator[Iterator[tuple[int, float]]]:
        for start in range(0, X.shape[0], _BATCH):
            names, scores = self._model.predict(list(_lines(X[start : start + _BATCH], "w")), k=k)
            for row_names, row_scores in zip(names, scores, strict=True):
                yield zip((int(name.removeprefix(_LABEL)) for name in row_names), row_scores, strict=True)

    def save(self, folder: Path) -> None:
        """Write the model in fastText's format."""
        self._model.save_model(str(folder / "model.bin"))


def _lines(matrix: csr_matrix, prefix: str) -> Iterator[str]:
    """Yield one line of words per row.

    >>> list(_lines(csr_matrix([[0, 1, 1], [0, 0, 0]]), "w"))
    ['w1 w2', '']
    """
    for start, stop in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        yield " ".join([f"{prefix}{column}" for column in matrix.indices[start:stop].tolist()])
