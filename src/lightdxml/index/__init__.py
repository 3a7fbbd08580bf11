"""Indexes of label embeddings: the k labels nearest to a document, by exact search or by RaBitQ codes."""

from lightdxml.index.base import Index, Kind
from lightdxml.index.exact import ExactIndex, cosines
