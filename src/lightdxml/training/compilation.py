"""Compile all kernels that a training run needs, or load them from disk, before it starts.

Numba compiles on one core. A first training run therefore has a helper: a second process that compiles the kernels of
the sparse views, while this one compiles those of the texts and of the dense views. They meet in the cache on disk.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import lru_cache

import numpy as np
from scipy.sparse import csr_matrix

from lightdxml import index as indexes
from lightdxml.config import Config, changed, from_json
from lightdxml.kernels import blas, parallel
from lightdxml.kernels.cache import cache_folder, is_compiled
from lightdxml.kernels.linear import train_classes
from lightdxml.progress import Progress
from lightdxml.training import cycle, state
from lightdxml.training.finalize import finalize
from lightdxml.training.run import Run, TrainingData

_WORTH_SAYING = 1.0
# Documents and labels of the toy that compiles all kernels: enough for RaBitQ to sample some blocks of codes.
_TOY = 256
_ALL_DOCUMENTS = 1_000_000
# The helper imports from where this process does, and not from the current folder. `sys` is part of the interpreter.
_HELPER = """
import sys
sys.path[:] = sys.argv[1].split("\\n")
from lightdxml.training.compilation import compile_sparse
compile_sparse(sys.argv[2])
"""


@contextmanager
def helper(config: Config) -> Iterator[Callable[[], None]]:
    """Compile kernels in a second process inside the `with` block, if they are not on disk yet.

    Yields a function that stops it, for when it is of no more use.
    """
    process = None
    if _is_of_use(config):
        places = "\n".join(place for place in sys.path if isinstance(place, str))
        arguments = [sys.executable, "-c", _HELPER, places, json.dumps(asdict(config))]
        quiet = subprocess.DEVNULL
        # It only saves time: training goes on without it.
        with suppress(OSError):
            process = subprocess.Popen(arguments, stdin=quiet, stdout=quiet, stderr=quiet)

    def stop() -> None:
        if process is not None:
            process.kill()
            process.wait()

    try:
        yield stop
    finally:
        stop()


def _is_of_use(config: Config) -> bool:
    """Return whether the sparse views are trained and not compiled, and two processes can share a cache."""
    folder = cache_folder()
    can_share = folder is not None and os.access(folder, os.W_OK) and parallel.thread_count() > 1
    # The executable of a frozen application is the application.
    can_start = bool(sys.executable) and not getattr(sys, "frozen", False)
    return config.linear.enabled and can_share and can_start and not is_compiled(train_classes)


def compile_sparse(config: str) -> None:
    """Compile the kernels of the sparse views, in another order than `compile_kernels`: what the helper does."""
    sparse = changed(from_json(json.loads(config)), {"dense": "never"})
    _train_toy(_toy_config(changed(sparse, {"tree": False}), work=_ALL_DOCUMENTS))
    _train_toy(_toy_config(sparse))


def compile_kernels(data: TrainingData, config: Config, progress: Progress) -> None:
    """Train a toy, which compiles every kernel that training on these data needs, or loads it from disk."""
    start = time.perf_counter()
    kind = indexes.training_kind(config.dense.index, len(data.known_labels), config.dense.dim)  # type: ignore[arg-type]
    _train_toy(_toy_config(changed(config, {"index": kind})))
    seconds = time.perf_counter() - start
    if seconds > _WORTH_SAYING:
        cached = "" if cache_folder() is None else "; next time they are loaded from disk"
        progress.say(f"kernels compiled in {seconds:.1f} s{cached}")


def _toy_config(config: Config, work: int = 0) -> Config:
    """Return settings for a toy.

    Without `work` for all documents, the linear view needs a label tree for its negatives.
    """
    small = {
        "dim": 8, "shortlist_size": 1, "epochs": 1, "dense.batch_size": _TOY, "dense.label_epochs": 1,
        "dense.refresh_every": 1, "linear.work": work, "tree.sample": 8, "random_state": 0,
    }  # fmt: skip
    return changed(config, small)


@lru_cache(maxsize=64)
def _train_toy(config: Config) -> None:
    """Train a toy, once in a process: what is compiled or loaded stays."""
    toy = csr_matrix(np.eye(_TOY, dtype=np.float32))
    # Some labels have held-out documents only, so that the refit has something to do.
    parts = toy[_TOY // 4 :], toy[: _TOY // 4]
    run = Run(TrainingData(parts[0], parts[0], parts[1], parts[1], held_out=True), config)
    with blas.on_one_thread():
        if config.dense.enabled:
            run.result = cycle.train(run, state.start(run.data, run.config, None))
        finalize(run)
