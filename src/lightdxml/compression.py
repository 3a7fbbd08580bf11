"""A smaller model from a trained one: vectors in 8 bits, and label embeddings in an inverted file."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from lightdxml import shortlist as shortlists
from lightdxml.config import Index
from lightdxml.kernels.half import narrowed, wide, wide_classifier
from lightdxml.model import Model
from lightdxml.shortlist import Shortlist

Narrow = Literal["int8", "float16"]


def compressed(model: Model, precision: Narrow = "int8", index: Index | None = None) -> Model:
    """Return a model that says nearly the same and is smaller.

    Parameters
    ----------
    model
        Stays as it is.
    precision
        `int8` keeps word vectors, classifier and label embeddings in a byte a number, with a scale for each row;
        `float16` in two. Weights of words stay what they are.
    index
        How labels are searched from then on; None for as before.

    Examples
    --------
    >>> from lightdxml import LightDXML
    >>> from scipy.sparse import identity
    >>> X = identity(20, format="csr", dtype="float32")
    >>> trained = LightDXML(D=4, e_model=1, k=4).fit(X, X).model_
    >>> compressed(trained).classifier.dtype
    dtype('int8')
    """
    vectors, classifier, embeddings = model.encoder.vectors, model.classifier, model.shortlist.vectors
    if precision == "int8":
        whole = wide_classifier(classifier)
        vectors, embeddings = narrowed(wide(vectors)), narrowed(wide(embeddings))
        classifier = narrowed(whole[:, :-1], whole[:, -1])
    else:
        vectors, embeddings = wide(vectors).astype(np.float16), wide(embeddings).astype(np.float16)
        classifier = wide_classifier(classifier).astype(np.float16)
    kept = Shortlist(model.shortlist.kind, model.shortlist.labels, embeddings, model.shortlist.index)
    kind = index or model.shortlist.kind
    # A graph or clusters of nearly the same vectors are as good; an exact index is made anew.
    if kind != kept.kind or kind == "exact":
        kept = shortlists.build(kept.labels, embeddings, kind, k=model.config.k)
    return replace(model, encoder=replace(model.encoder, vectors=vectors), classifier=classifier, shortlist=kept)
