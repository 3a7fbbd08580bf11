"""Settings of small trainings."""

from __future__ import annotations

from typing import Any

from lightdxml.config import Config, changed

SMALL: dict[str, Any] = {
    "dim": 16,
    "shortlist_size": 8,
    "epochs": 6,
    "dense.batch_size": 32,
    "dense.refresh_every": 2,
    "dense.random_negatives": 4,
}
# The paper's two views alone.
PAPER = SMALL | {"linear": False}
# Few texts: small batches.
TEXT = PAPER | {"dense.batch_size": 4, "epochs": 10}
# Two trees of three levels for a dozen labels, whatever they add; labels are trained on hard negatives.
FOUR_VIEWS = SMALL | {
    "names.min_documents": 1,
    "epochs": 2,
    "linear.work": 0,
    "linear.min_clusters": 2,
    "tree.branching": 2,
    "tree.max_leaf": 2,
    "tree.max_trees": 2,
    "blend.fit": False,
    "blend.min_documents": 10,
}


def small(**changes: Any) -> Config:
    """Return a small configuration; a dot in the name of a setting is written as two underscores."""
    return changed(Config(), SMALL | {name.replace("__", "."): value for name, value in changes.items()})
