"""Indexes of label embeddings: the k labels nearest to a document, by exact search or by RaBitQ codes."""

from lightdxml.index.base import Index
from lightdxml.index.exact import ExactIndex, cosines
from lightdxml.index.factory import (
    IndexKind,
    array_specs,
    build,
    index_bytes,
    recall_of_exact,
    resolve_kind,
    restore,
    search_bytes,
    training_index,
    training_kind,
)
from lightdxml.index.rabitq import RaBitQIndex
from lightdxml.index.subset import search_some

__all__ = [
    "ExactIndex",
    "Index",
    "IndexKind",
    "RaBitQIndex",
    "array_specs",
    "build",
    "cosines",
    "index_bytes",
    "recall_of_exact",
    "resolve_kind",
    "restore",
    "search_bytes",
    "search_some",
    "training_index",
    "training_kind",
]
