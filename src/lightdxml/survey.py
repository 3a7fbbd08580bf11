"""What training takes from texts before they are counted, wherever they are: words, fingerprints and titles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightdxml.data.dataset import Texts
from lightdxml.data.text_files import FilePart
from lightdxml.executor import Executor
from lightdxml.model import fingerprints
from lightdxml.text.names import sample_step, sample_words
from lightdxml.text.terms import Corpus, Form, Part


class Survey(NamedTuple):
    """What texts say apart from features.

    Attributes
    ----------
    words
        The words of a sample of the texts, if they are wanted: see `lightdxml.text.names.are_words`.
    fingerprints
        See `lightdxml.model.fingerprints`.
    titles
        Labels that are documents themselves, each with the title of the document.
    """

    words: frozenset[str]
    fingerprints: NDArray[np.int64]
    titles: list[tuple[int, str]]


class _Work(NamedTuple):
    """Documents to look at: every step-th from `first` on, and the labels that the documents are, if any is one."""

    part: Part
    first: int
    own: NDArray[np.int32] | None


def survey(
    texts: Texts | Sequence[str],
    executor: Executor | None = None,
    own: NDArray[np.int32] | None = None,
    *,
    words: bool = True,
) -> Survey:
    """Look at texts; the executor works on those that stay in files.

    Parameters
    ----------
    texts
        The texts.
    executor
        What works on texts in files; None for the threads of this process.
    own
        The label that each document is, -1 for none; None if documents are no labels.
    words
        Whether words are wanted.

    Examples
    --------
    >>> texts = Texts(["a small feline", "a bird"], titles=["House cat", "Owl"])
    >>> found = survey(texts, own=np.array([7, -1], dtype=np.int32))
    >>> sorted(found.words), found.titles
    (['bird', 'cat', 'feline', 'house', 'owl', 'small'], [(7, 'House cat')])
    """
    corpus, step = Corpus.of(texts, Form(), executor), sample_step(len(texts))
    work = [
        _Work(part, -start % step, None if own is None else own[start:stop])
        for part, start, stop in zip(corpus.parts, corpus.starts, corpus.starts[1:], strict=False)
    ]
    found = corpus.executor.map(_of_part, step if words else None, work)
    return Survey(
        frozenset().union(*(one.words for one in found)),
        np.concatenate([np.empty(0, dtype=np.int64), *(one.fingerprints for one in found)]),
        [pair for one in found for pair in one.titles],
    )


def _of_part(step: int | None, work: _Work) -> Survey:
    texts = work.part.read() if isinstance(work.part, FilePart) else work.part
    sample = range(work.first, len(texts), step) if step is not None else ()
    titles = texts.titles if isinstance(texts, Texts) and work.own is not None else None
    pairs = zip([] if work.own is None else work.own.tolist(), titles or (), strict=False)
    own_titles = [(label, title) for label, title in pairs if label >= 0 and title.strip()]
    return Survey(sample_words(texts, sample), fingerprints.of_texts(texts), own_titles)
