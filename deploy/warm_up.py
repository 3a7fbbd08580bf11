"""Compile all kernels that serving needs: train toys, ask them everything, teach them. Part of the build of the image.

Kernels are compiled on first use, for the types of their arguments. A container that cannot write the cache would
compile them at every start. `.ci/image` checks that a server finds them all.
"""

from __future__ import annotations

import multiprocessing
import tempfile
from pathlib import Path
from typing import Any

from lightdxml import LightDXML
from lightdxml.data.dataset import Texts
from lightdxml.kernels import fast_scan
from lightdxml.predictor import Predictor
from lightdxml.serve.registry import load_served_model

# Of up to 2,000 allowed labels all are scored. More are searched, by another kernel.
_LABELS = 2_048
# All views, whether they help or not, trained as little as possible.
_SETTINGS: dict[str, Any] = {
    "precision": "float32", "dim": 8, "shortlist_size": 8, "epochs": 1, "dense": "always", "dense.residual": True,
    "linear.work": 0, "tree.max_trees": 1, "names.min_documents": 1, "blend.fit": False, "refit": False,
}  # fmt: skip
_PARTS: list[dict[str, Any]] = [{"dense": "never"}, {"linear": False, "names": False}]


def main() -> None:
    """Compile the kernels of sparse and dense views in a process each, then what is left."""
    with multiprocessing.get_context("spawn").Pool(len(_PARTS)) as pool:
        pool.map(compile_kernels, _PARTS)
    # RaBitQ needs AVX2. Without it, embeddings are searched exactly.
    compile_kernels({"index": "rabitq"} if fast_scan.AVAILABLE else {})


def compile_kernels(settings: dict[str, Any]) -> None:
    """Train a toy, ask it in every number format that a model can have, and let it learn."""
    words = [f"word{i}" for i in range(_LABELS)]
    texts = [f"{word} {words[i - 1]}" for i, word in enumerate(words)] * 2
    # One thread: more of them would start another process that compiles.
    toy = LightDXML(options=_SETTINGS | settings, n_jobs=1)
    toy.fit(texts, [[word] for word in words] * 2, keep_training_data=True)
    _use(toy)
    for precision in ("float16", "int8"):
        toy.model_ = toy.model_.quantize(precision)
        _use(toy)


def _use(toy: LightDXML) -> None:
    """Ask a model as the service does, with titles, rules, and characters that are not ASCII; let it learn."""
    with tempfile.TemporaryDirectory() as folder:
        toy.save(folder)
        predictor = Predictor(load_served_model("toy", Path(folder)).model, 1)
        documents, names = Texts(["word1 WORD2", "wörd3"], titles=["word4", ""]), ["word1", "word2"]
        every: list[dict[str, Any]] = [{}, {"exclude": names}, {"include": names}]
        for rules in every:
            predictor.rank(documents, 10, tail=0.5, **rules)
            predictor.explain(documents, 2, **rules)
    toy.learn(["word1 word2", "word3"], [["word1"], [f"new label {toy.model_.n_labels}"]])


if __name__ == "__main__":
    main()
