"""PECOS XR-Linear, in an environment of its own: libpecos does not run with our versions of NumPy and SciPy."""

from __future__ import annotations

import os
import subprocess
import sys
import weakref
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from scipy.sparse import csr_matrix

from lightdxml.experiments.baselines import xr_linear_worker
from lightdxml.experiments.baselines.base import Method, Ranked, Settings
from lightdxml.experiments.baselines.xr_linear_worker import parts_of

_PYTHON = "LIGHTDXML_PECOS"


class XRLinear(Method):
    """XR-Linear (Yu et al., 2022), by libpecos with its default settings: the mean of three models.

    PIFA embeddings of labels, hierarchical k-means, teacher-forcing negatives. The models differ by the seed of their
    clusters. Times include the transfer of documents to the process of libpecos, 0.1 ms or so for one document.
    """

    name = "xr-linear"
    distribution = "libpecos"
    defaults: ClassVar[Settings] = {
        "n_models": 3,
        "nr_splits": 16,
        "max_leaf_size": 100,
        "negative_sampling_scheme": "tfn",
        "Cp": 1.0,
        "Cn": 1.0,
        "threshold": 0.1,
        "beam_size": 10,
        "averaged": 20,
    }

    @classmethod
    def missing(cls) -> str:
        """Return how to make the environment of libpecos; nothing if there is one."""
        if os.environ.get(_PYTHON) or find_spec("pecos"):
            return ""
        return f"libpecos needs an environment of its own: see 'Benchmarks' in the docs, and set {_PYTHON}"

    def fit(self, X: csr_matrix, Y: csr_matrix, *, seed: int, threads: int) -> None:
        """Train in the other process."""
        python = os.environ.get(_PYTHON) or sys.executable
        pipe = subprocess.PIPE
        # Starting the process and importing its packages is not training.
        with self.phase("compile"):
            self._process = subprocess.Popen([python, xr_linear_worker.__file__], stdin=pipe, stdout=pipe)
            weakref.finalize(self, _end, self._process)
            self._ask("load", {})
        with self.phase("train"):
            sizes = {"X": X.shape[1], "Y": Y.shape[1]}
            arrays = {**parts_of("X", X), **parts_of("Y", Y)}
            self._ask("fit", arrays, seed=seed, threads=threads, settings=self.settings, **sizes)

    def rank(self, X: csr_matrix, k: int) -> Ranked:
        """Rank labels by their mean score."""
        found = self._ask("rank", parts_of("X", X), X=X.shape[1], k=k)
        return found["labels"], found["scores"]

    def save(self, folder: Path) -> None:
        """Write the models in the format of libpecos."""
        self._ask("save", {}, folder=str(folder))

    def _ask(self, what: str, arrays: dict[str, Any], **content: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        xr_linear_worker.send(self._process.stdin, {"what": what, **content}, **arrays)  # type: ignore[arg-type]
        answer, found = xr_linear_worker.receive(self._process.stdout)  # type: ignore[arg-type]
        if not answer.get("error") and self._process.poll() is None:
            return found
        raise RuntimeError(f"libpecos failed: {answer.get('error', 'its process ended')}")


def _end(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    process.wait()


class XRLinearSingle(XRLinear):
    """One model of XR-Linear."""

    name = "xr-linear-1"
    defaults: ClassVar[Settings] = {**XRLinear.defaults, "n_models": 1}
