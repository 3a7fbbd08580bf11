"""Made-up documents and benchmark cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

LABELS, UNUSED, WORDS, NOISE = 30, 2, 4, 40


def documents(rng: np.random.Generator, n: int) -> tuple[csr_matrix, csr_matrix]:
    """Return documents with two labels each: three of the four words of each label, and four random words.

    The last two labels have no documents.
    """
    X = np.zeros((n, (LABELS - UNUSED) * WORDS + NOISE), dtype=np.float32)
    Y = np.zeros((n, LABELS), dtype=np.float32)
    for i in range(n):
        for label in rng.choice(LABELS - UNUSED, 2, replace=False):
            Y[i, label] = 1
            X[i, label * WORDS + rng.choice(WORDS, 3, replace=False)] = rng.uniform(0.5, 1, 3)
        X[i, (LABELS - UNUSED) * WORDS + rng.choice(NOISE, 4, replace=False)] = rng.uniform(0.1, 0.5, 4)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return csr_matrix(X), csr_matrix(Y)


def done_cell(data: str = "bibtex", method: str = "parabel", repeat: int = 0, **changes: Any) -> dict[str, Any]:
    """Return a finished cell. All metrics follow from `P`."""
    p = changes.pop("P", 60.0)
    metrics = {"P": p, "nDCG": p + 1, "PSP": p / 2, "PSnDCG": p / 2 + 1}
    return {
        "data": data,
        "method": method,
        "repeat": repeat,
        "seed": repeat,
        "threads": 2,
        "status": "done",
        "message": "",
        "settings": {"trees": 3},
        "versions": {"lightdxml": "0.1.0", "python": "3.11.7", "numpy": "2.1"},
        "machine": "EPYC, 2 cores, 24 GB, Linux x86_64",
        "sizes": {"train": 4880, "test": 2515, "features": 1836, "labels": 159},
        "train_seconds": 12.0,
        "phases": {"M1": 5.0, "validation": 2.0},
        "peak_mb": 512.0,
        "size_mb": 3.4,
        "batch_ms": 0.12,
        "single_ms": {"p50": 1.2, "p99": 2.3},
        "metrics": {f"{name}@{k}": value - k for name, value in metrics.items() for k in (1, 3, 5)}
        | {"RP@5": p + 2, "R-precision": p + 3},
    } | changes


def ended_cell(status: str, message: str, **changes: Any) -> dict[str, Any]:
    """Return a cell without results."""
    measured = ("train_seconds", "phases", "peak_mb", "size_mb", "batch_ms", "single_ms", "metrics")
    cell = done_cell(**changes) | {"status": status, "message": message}
    return {name: value for name, value in cell.items() if name not in measured}
