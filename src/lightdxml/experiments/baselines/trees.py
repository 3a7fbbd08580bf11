"""Parabel and Bonsai: forests of label trees with a linear classifier at each node, as omikuji implements them."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from lightdxml.experiments.baselines.base import Method, ranked_pairs
from lightdxml.data.xc_text import write_labeled


class Parabel(Method):
    """Balanced trees of two children a node (Prabhu et al., 2018), by omikuji, with omikuji's default settings.

    omikuji reads training data from a file only: phase `files` is the writing and the reading of it, and `train` the
    rest. It takes no seed, and no two trainings are the same.
    """

    name = "parabel"
    about = "3 balanced label trees of two children a node, a linear classifier at each node (omikuji)"
    packages = ("omikuji",)
    distributions = ("omikuji",)
    install = 'pip install "lightdxml[omikuji]"'
    reproducible = False
    defaults: ClassVar[Mapping[str, Any]] = {
        "n_trees": 3,
        "min_branch_size": 100,
        "max_depth": 20,
        "centroid_threshold": 0.0,
        "collapse_every_n_layers": 0,
        "cluster_k": 2,
        "cluster_balanced": True,
        "cluster_eps": 0.0001,
        "cluster_min_size": 2,
        "linear_loss": "hinge",
        "linear_c": 1.0,
        "linear_eps": 0.1,
        "linear_max_iter": 20,
        "linear_weight_threshold": 0.1,
        "beam_size": 10,
    }

    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Train; the seed plays no part."""
        import omikuji

        parameters = omikuji.Model.default_hyper_param()
        parameters.linear_loss_type = omikuji.LossType[self.settings["linear_loss"].upper()].value
        for name in self.settings.keys() - {"linear_loss", "beam_size"}:
            setattr(parameters, name, self.settings[name])
        # omikuji refuses a line without features; one without labels teaches it nothing.
        kept = (np.diff(X.indptr) > 0) & (np.diff(Y.indptr) > 0)
        with tempfile.TemporaryDirectory() as folder, _quiet():
            path = Path(folder) / "train.txt"
            with self.phase("files"):
                write_labeled(path, X[kept], Y[kept])
                data, pool = _read(path, threads)
            with self.phase("train"):
                pointer = omikuji.lib.train_omikuji_model(data, parameters, pool.ptr)
                if pointer == omikuji.ffi.NULL:
                    raise RuntimeError("omikuji failed to train: run it alone on the same file to see why")
                self._model = omikuji.Model(pointer)
        self._model.init_prediction_thread_pool(threads)

    def rank(self, X: csr_matrix, k: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Rank documents one by one: omikuji's Python interface has no batches."""
        return ranked_pairs(self._pairs(X, k), X.shape[0], k)

    def _pairs(self, X: csr_matrix, k: int) -> Iterator[list[tuple[int, float]]]:
        for start, stop in zip(X.indptr, X.indptr[1:], strict=False):
            features = list(zip(X.indices[start:stop].tolist(), X.data[start:stop].tolist(), strict=True))
            yield self._model.predict(features, beam_size=self.settings["beam_size"], top_k=k)

    def save(self, folder: Path) -> None:
        """Write the trees as omikuji does."""
        with _quiet():
            self._model.save(str(folder))


class Bonsai(Parabel):
    """Shallow trees of up to 100 children a node, not balanced (Khandagale et al., 2019), by omikuji.

    The settings are those that omikuji's README gives for Bonsai: unbalanced, cluster.k=100, max_depth=3; the others
    are its defaults. What holds for Parabel here holds for Bonsai.
    """

    name = "bonsai"
    about = "3 shallow label trees of up to 100 children a node, a linear classifier at each node (omikuji)"
    defaults: ClassVar[Mapping[str, Any]] = {
        **Parabel.defaults,
        "cluster_k": 100,
        "cluster_balanced": False,
        "max_depth": 3,
    }


def _read(path: Path, threads: int) -> tuple[Any, Any]:
    """Return omikuji's data set and its threads.

    Its `train_on_data` reads and trains in one call; this is the first half of it, to time the two apart.
    """
    import omikuji

    pool = omikuji._ThreadPoolHandle(threads)
    pointer = omikuji.lib.load_omikuji_data_set(omikuji.ffi.new("char[]", str(path).encode()), pool.ptr)
    if pointer == omikuji.ffi.NULL:
        raise RuntimeError("omikuji failed to read its training data: is there a document with features and labels?")
    return omikuji.ffi.gc(pointer, omikuji.lib.free_omikuji_data_set), pool


@contextmanager
def _quiet() -> Iterator[None]:
    """Send what compiled code writes to standard output and error nowhere: omikuji's log and bars cannot be turned off.

    A failure is seen from the value that it returns.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(number) for number in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in (1, 2):
            os.dup2(nowhere, number)
        yield
    finally:
        for number, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)
