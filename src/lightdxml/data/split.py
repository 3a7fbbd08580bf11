"""Setting documents aside for testing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lightdxml.data.dataset import Dataset


def split(data: Dataset, test: float = 0.0, dev: float = 0.0, seed: int = 0) -> Dataset:
    """Move a random share of the training documents to `test`, and of them to `dev`.

    Parameters
    ----------
    test, dev
        The shares of all training documents, from 0 to below 1; each part must not be there already.
    seed
        The same seed gives the same split.

    Examples
    --------
    >>> from lightdxml.data import Dataset, Split
    >>> from scipy.sparse import csr_matrix
    >>> parts = split(Dataset("tiny", Split(Y=csr_matrix(np.eye(10)))), test=0.3).splits
    >>> {name: len(part) for name, part in parts.items()}
    {'train': 7, 'test': 3}
    """
    shares = {"test": test, "dev": dev}
    n = len(data.train)
    for name, share in shares.items():
        if not 0 <= share < 1:
            raise ValueError(f"{name} is {share}: it must be a share from 0 to below 1")
    counts = {name: round(share * n) for name, share in shares.items() if share}
    for name, share in shares.items():
        if share and name in data.splits:
            raise ValueError(f"{data.name} has a {name} part already: there is nothing to split off for it")
        if share and not counts[name]:
            raise ValueError(f"{name} is {share}, which is no document of {n}: give a larger share")
    if not counts:
        raise ValueError("both shares are 0: say how much to set aside for test or dev")
    if sum(counts.values()) >= n:
        raise ValueError(
            f"{sum(counts.values())} of {n} documents set aside leave none to train on: give smaller shares"
        )
    order = np.random.default_rng(seed).permutation(n)
    parts = {}
    for name, count in counts.items():
        parts[name] = data.train.take(np.sort(order[:count]))
        order = order[count:]
    return replace(
        data,
        train=data.train.take(np.sort(order)),
        test=parts.get("test", data.test),
        dev=parts.get("dev", data.dev),
    )
