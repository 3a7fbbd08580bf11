"""XR-Linear in a process of its own: `python xr_linear_worker.py`, with an interpreter that has libpecos.

libpecos needs older versions of NumPy and SciPy than we do. This file runs under those, so it imports nothing else of
ours. Messages are a line of JSON and the bytes of arrays, on standard input and output.
"""

from __future__ import annotations

import json
import sys
from typing import Any, BinaryIO

import numpy as np
from scipy.sparse import csr_matrix


def send(stream: BinaryIO, content: dict[str, Any], **arrays: Any) -> None:
    """Write a message with arrays."""
    kinds = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
    stream.write(json.dumps({**content, "arrays": kinds}).encode() + b"\n")
    for array in arrays.values():
        stream.write(np.ascontiguousarray(array).tobytes())
    stream.flush()


def receive(stream: BinaryIO) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the next message and its arrays; an empty one at the end."""
    line = stream.readline()
    if not line:
        return {}, {}
    content = json.loads(line)
    arrays = {}
    for name, (kind, shape) in content.pop("arrays").items():
        dtype = np.dtype(kind)
        raw = stream.read(int(np.prod(shape)) * dtype.itemsize)
        arrays[name] = np.frombuffer(raw, dtype=dtype).reshape(shape)
    return content, arrays


def parts_of(name: str, matrix: csr_matrix) -> dict[str, Any]:
    """Return a matrix as arrays of a message."""
    return {f"{name}.data": matrix.data, f"{name}.indices": matrix.indices, f"{name}.indptr": matrix.indptr}


def matrix_of(name: str, arrays: dict[str, Any], width: int) -> csr_matrix:
    """Return a matrix from the arrays of a message."""
    data, indices, indptr = (arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    return csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, width), dtype=np.float32)


class Worker:
    """Models of XR-Linear that are trained and averaged."""

    def __init__(self) -> None:
        self.models: list[Any] = []

    def load(self, request: dict[str, Any], arrays: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Import what training needs."""
        import pecos.xmc.xlinear.model  # noqa: F401

        return {}, {}

    def fit(self, request: dict[str, Any], arrays: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Train models whose clusters differ by their seed."""
        from pecos.xmc import Indexer, LabelEmbeddingFactory
        from pecos.xmc.xlinear.model import XLinearModel

        self.settings, self.threads = request["settings"], request["threads"]
        X, Y = (matrix_of(name, arrays, request[name]) for name in ("X", "Y"))
        chosen = self.settings
        features = LabelEmbeddingFactory.create(Y, X, method="pifa")
        for number in range(chosen["n_models"]):
            clusters = Indexer.gen(
                features,
                indexer_type="hierarchicalkmeans",
                nr_splits=chosen["nr_splits"],
                max_leaf_size=chosen["max_leaf_size"],
                seed=request["seed"] + number,
                threads=self.threads,
            )
            model = XLinearModel.train(
                X,
                Y,
                C=clusters,
                Cp=chosen["Cp"],
                Cn=chosen["Cn"],
                threshold=chosen["threshold"],
                negative_sampling_scheme=chosen["negative_sampling_scheme"],
                threads=self.threads,
            )
            self.models.append(model)
        return {}, {}

    def rank(self, request: dict[str, Any], arrays: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the labels of the highest mean score."""
        X, k = matrix_of("X", arrays, request["X"]), request["k"]
        options = {"beam_size": self.settings["beam_size"], "threads": self.threads}
        # Several models: more labels of each, so that the best of the mean are among them.
        each = k if len(self.models) == 1 else max(k, self.settings["averaged"])
        total = sum(model.predict(X, only_topk=each, **options) for model in self.models)
        total = csr_matrix(total)
        counts = np.diff(total.indptr)
        rows = np.repeat(np.arange(X.shape[0]), counts)
        # By row, best first; of equals the lower label, as libpecos does.
        order = np.lexsort((total.indices, -total.data, rows))
        places = np.arange(len(rows)) - np.repeat(total.indptr[:-1], counts)
        order, rows, places = (array[places < k] for array in (order, rows, places))
        labels = np.full((X.shape[0], k), -1, dtype=np.int32)
        scores = np.zeros((X.shape[0], k), dtype=np.float32)
        labels[rows, places] = total.indices[order]
        scores[rows, places] = total.data[order] / len(self.models)
        return {}, {"labels": labels, "scores": scores}

    def save(self, request: dict[str, Any], arrays: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Write all models into a folder."""
        for number, model in enumerate(self.models):
            model.save(f"{request['folder']}/{number}")
        return {}, {}


def main() -> None:
    """Answer requests until standard input ends."""
    answers, worker = sys.stdout.buffer, Worker()
    # What libraries print must not get between the answers.
    sys.stdout = sys.stderr
    while True:
        request, arrays = receive(sys.stdin.buffer)
        if not request:
            return
        try:
            content, found = getattr(worker, request["what"])(request, arrays)
        except Exception as error:
            content, found = {"error": f"{type(error).__name__}: {error}"}, {}
        send(answers, content, **found)


if __name__ == "__main__":
    main()
