"""A smaller model from a trained one: vectors in 8 bits, and another index of label embeddings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lightdxml import shortlist as shortlists
from lightdxml.encoder import rounded
from lightdxml.kernels.precision import quantize_int8, dequantize, dequantize_classifier
from lightdxml.model import Model
from lightdxml.shortlist import Kind, Shortlist

Narrow = Literal["int8", "float16"]
_SMALLER_THAN: dict[Narrow, tuple[str, ...]] = {"int8": ("float32", "float16"), "float16": ("float32",)}


def compressed(
    model: Model, precision: Narrow = "int8", index: Kind | None = None, queries: NDArray[np.float32] | None = None
) -> Model:
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
    queries
        For another index, `sketch` or `ivf`: embeddings, at length 1, of documents such as will be searched for.

    Examples
    --------
    >>> from lightdxml import LightDXML
    >>> from scipy.sparse import identity
    >>> X = identity(20, format="csr", dtype="float32")
    >>> trained = LightDXML(D=4, e_model=1, k=4).fit(X, X).model_
    >>> compressed(trained).classifier.dtype
    dtype('int8')
    """
    kept, kind = str(model.classifier.dtype), index or model.shortlist.kind
    if kept not in _SMALLER_THAN[precision] and kind == model.shortlist.kind:
        raise ValueError(
            f"the model is one of {kept} already, which {precision} makes no smaller: choose another precision, or"
            " another index"
        )
    if kind in ("sketch", "ivf") and model.shortlist.kind != kind and queries is None:
        raise ValueError(f"the index {kind} needs documents such as will be searched for: give queries")
    encoder, classifier, embeddings = model.encoder, model.classifier, model.shortlist.vectors
    if kept in _SMALLER_THAN[precision]:
        encoder = replace(encoder, vectors=_narrow(encoder.vectors, precision))
        classifier, embeddings = _narrow_classifier(classifier, precision), _narrow(embeddings, precision)
    structure = None
    if kind == model.shortlist.kind:
        # A graph, clusters or sketches of nearly the same vectors are as good.
        structure = shortlists.structure_in(shortlists.structure_of(model.shortlist), kind)
    shortlist: Shortlist = shortlists.build(
        model.shortlist.labels, embeddings, kind, structure, queries, k=model.config.k
    )
    return replace(model, encoder=encoder, classifier=classifier, shortlist=shortlist)


def _narrow(vectors: NDArray[Any], precision: Narrow) -> NDArray[Any]:
    return quantize_int8(dequantize(vectors)) if precision == "int8" else rounded(dequantize(vectors), precision)


def _narrow_classifier(classifier: NDArray[Any], precision: Narrow) -> NDArray[Any]:
    if precision == "float16":
        return rounded(dequantize_classifier(classifier), precision)
    weights = dequantize_classifier(classifier)
    return quantize_int8(weights[:, :-1], weights[:, -1])
