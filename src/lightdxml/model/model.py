"""A trained model and how it predicts (step 6 of Algorithm 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lightdxml.config import Config
from lightdxml.kernels import parallel
from lightdxml.model.blend import Blend, TailShift, frequency_groups, rarity, top_k
from lightdxml.model.calibration import Calibration, ranked_among
from lightdxml.model.candidates import Candidates, find_candidates, score_all
from lightdxml.model.thresholds import ThresholdTable, thresholds_of
from lightdxml.text.tfidf import Vectorizer
from lightdxml.views.base import Batch, View

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from lightdxml.data.vocabulary import Vocabulary
    from lightdxml.kernels.sparse import FeatureRows

# Documents at a time. If only few labels are allowed, all of them are scored, and so many cells at a time.
_DOCUMENTS, _FEW, _CELLS = 8192, 2000, 4_000_000


class Label(NamedTuple):
    """A label as it is shown: its id (a URI if there is a vocabulary), its name, and its notation, if it has one."""

    id: str
    name: str
    notation: str = ""


@dataclass(frozen=True)
class Model:
    """Everything that prediction needs.

    Attributes
    ----------
    views
        The views of labels, by name, in the order in which they propose candidates.
    blend
        How their scores are combined.
    config
        How the model was trained.
    n_features
        Number of features of a document.
    label_frequency, n_documents
        Number of training documents of each label and of all: propensities are made of them.
    label_names
        Names of the labels, or None.
    vectorizer
        From texts to features, or None for a model of features.
    word_vectors
        The word vectors that training started from; None for random ones.
    metrics
        What this model achieves on validation documents, before held-out documents were learned.
    n_validation
        The number of these documents; 0 if it is not known.
    shift
        How much rare labels are preferred.
    calibration
        From log-odds to the probability that a label is right.
    thresholds
        What thresholds of probability give on validation documents; None if there were none.
    machines
        Where it was trained: several if training was resumed on another machine.
    never_own
        Whether documents are labels themselves, and never have themselves as a label.
    vocabulary
        What labels are called; their names in `label_names` are then URIs. None without a vocabulary.
    language
        The language of names to show; None for the most frequent one.
    retired
        Labels that are never suggested, ascending: the vocabulary has them no more.
    merged
        Labels that became another one: pairs of the label that went, which is retired, and the one that stayed.
    trained_on
        Fingerprints of training documents, ascending: see `lightdxml.model.fingerprints`. None are kept if empty.
    integer_labels
        Whether the names of labels are integers: the ids that they had in training.
    output
        The form in which predictions are returned: see `lightdxml.outputs`.
    threshold
        From which probability on a label is predicted if the output is a matrix: see `lightdxml.model.thresholds`.
    reading
        How the files of training were read: options of `lightdxml.data.load` that were given.
    """

    views: Mapping[str, View]
    blend: Blend
    config: Config
    n_features: int
    label_frequency: NDArray[np.int32]
    n_documents: int
    shift: TailShift
    calibration: Calibration = field(default_factory=Calibration)
    thresholds: ThresholdTable | None = None
    label_names: list[str] | None = None
    vectorizer: Vectorizer | None = None
    word_vectors: str | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    n_validation: int = 0
    machines: Sequence[dict[str, str]] = ()
    never_own: bool = False
    vocabulary: Vocabulary | None = None
    language: str | None = None
    retired: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    merged: NDArray[np.int32] = field(default_factory=lambda: np.empty((0, 2), dtype=np.int32))
    trained_on: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    integer_labels: bool = False
    output: str = "lists"
    threshold: float | str = 0.5
    reading: Mapping[str, str] = field(default_factory=dict)

    @property
    def n_labels(self) -> int:
        """Number of labels, those without documents included."""
        return len(self.label_frequency)

    @cached_property
    def label_ids(self) -> dict[str, int]:
        """The id of each label by its name; none without names."""
        return {name: label for label, name in enumerate(self.label_names or ())}

    @cached_property
    def label_groups(self) -> NDArray[np.uint8]:
        """The group of each label by its number of training documents."""
        return frequency_groups(self.label_frequency)

    @cached_property
    def allowed(self) -> NDArray[np.bool_] | None:
        """Which labels may be suggested, one value per label; None if none of them is retired."""
        if not len(self.retired):
            return None
        allowed = np.ones(self.n_labels, dtype=np.bool_)
        allowed[self.retired] = False
        return allowed

    def given_label(self, j: int) -> str | int:
        """Return a label as training got it: its name or integer id; its column if it was a column of a matrix."""
        if self.label_names is None:
            return j
        return int(self.label_names[j]) if self.integer_labels else self.label_names[j]

    def column(self, label: str | int) -> int:
        """Return the column of a label that `given_label` returned."""
        return int(label) if self.label_names is None else self.label_ids[str(label)]

    def label(self, j: int) -> Label:
        """Return what is shown of a label.

        Examples
        --------
        >>> from lightdxml import LightDXML
        >>> LightDXML(dim=8, epochs=2).fit(["red rose", "white wine"] * 10, [["rose"], ["wine"]] * 10).model_.label(1)
        Label(id='wine', name='wine', notation='')
        """
        if self.label_names is None:
            return Label(str(j), str(j))
        uri = self.label_names[j]
        if self.vocabulary is None or uri not in self.vocabulary:
            return Label(uri, uri)
        return Label(uri, self.vocabulary.name(uri, self.language), self.vocabulary[uri].notation)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays by name. Views may share arrays, which then have the same name."""
        found: dict[str, NDArray[Any]] = {"label_frequency": self.label_frequency}
        for view in self.views.values():
            found |= view.arrays()
        if len(self.retired):
            found["retired"] = self.retired
        if len(self.merged):
            found["merged"] = self.merged
        if self.thresholds is not None:
            found |= self.thresholds.arrays()
        if len(self.trained_on):
            found["trained_on"] = self.trained_on
        return found if self.vectorizer is None else found | {"idf": self.vectorizer.idf}

    def quantize(self, precision: str) -> Model:
        """Return a smaller model that says nearly the same."""
        return replace(self, views={name: view.quantize(precision) for name, view in self.views.items()})


def best_labels(
    model: Model, candidates: Candidates, k: int, tail: float = 0.0
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the k best candidates of each document and the probability of each; label -1 and 0 for none."""
    labels = candidates.labels
    log_odds = model.blend.log_odds(candidates.log_scores, model.label_groups[labels])
    strength, ordered = model.shift.strength(tail), log_odds
    if strength:
        ordered = log_odds + strength * rarity(model.label_frequency[labels], model.n_documents)
    best = top_k(labels, ordered, k)[0]
    probability = model.calibration.probability(*ranked_among(labels, log_odds, best))
    return best, np.where(best >= 0, probability, 0).astype(np.float32)


def label_thresholds(model: Model, threshold: float | str, by_frequency: bool = False) -> NDArray[np.float64]:
    """Return the probability from which each label is predicted, given a number or an objective.

    Objectives are those of `lightdxml.model.thresholds.ThresholdTable.choose`.
    """
    return thresholds_of(model.thresholds, threshold, by_frequency)[model.label_groups]


def predict(
    model: Model,
    X: csr_matrix | FeatureRows,
    k: int = 5,
    tail: float = 0.0,
    own: NDArray[np.int32] | None = None,
    allowed: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the k best labels of each document and their probabilities, best first; label -1 and 0 for none.

    Parameters
    ----------
    model
        A trained model.
    X
        Features as `lightdxml.validation.check_features` or our own TF-IDF returns them.
    k
        Labels per document.
    tail
        From 0, for precision, to 1, for rare labels.
    own
        A label per document that it cannot have, because it is that label; -1 for none.
    allowed
        Which labels may be suggested, as `lightdxml.model.rules` gives it; None for all that are not retired.
    """
    labels = np.empty((X.shape[0], k), dtype=np.int32)
    scores = np.empty((X.shape[0], k), dtype=np.float32)
    few = _few(allowed)
    allowed = model.allowed if allowed is None else allowed
    for start, stop in parallel.fixed_chunks(X.shape[0], _DOCUMENTS if few is None else max(1, _CELLS // len(few))):
        # Slicing a matrix takes a tenth of a millisecond, prediction of one document a few.
        some = X if stop - start == X.shape[0] else X[start:stop]
        batch = Batch(some, None if own is None else own[start:stop], allowed)
        candidates = find_candidates(model.views, batch) if few is None else score_all(model.views, batch, few)
        labels[start:stop], scores[start:stop] = best_labels(model, candidates, k, tail)
    # Nothing is known about a document without a known feature, and a guess would look like an answer.
    unknown = np.diff(X.indptr) == 0
    labels[unknown], scores[unknown] = -1, 0
    return labels, scores


def _few(allowed: NDArray[np.bool_] | None) -> NDArray[np.int32] | None:
    """Return the labels that rules allow if they are few: the views might not propose k of them."""
    if allowed is None or np.count_nonzero(allowed) > _FEW:
        return None
    return np.flatnonzero(allowed).astype(np.int32)


def check_tail(tail: Any) -> None:
    """Raise a `ValueError` if `tail` is not a number from 0 to 1.

    >>> check_tail(2)
    Traceback (most recent call last):
    ValueError: tail is 2: it must be a number from 0, for precision, to 1, for rare labels
    """
    is_number = isinstance(tail, int | float | np.integer | np.floating) and not isinstance(tail, bool)
    if not is_number or not 0 <= tail <= 1:
        raise ValueError(f"tail is {tail!r}: it must be a number from 0, for precision, to 1, for rare labels")
