"""Hyper-parameters: one validated set of them, and those of the paper."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

import numpy as np

Index = Literal["auto", "exact", "sketch", "ivf", "hnsw"]
Schedule = Literal["cosine", "steps"]
Precision = Literal["float16", "float32"]


@dataclass(frozen=True)
class Config:
    """What training can be told, in the paper's names.

    Attributes
    ----------
    D
        Dimensions of the space in which documents and labels lie.
    k
        Labels in a document's shortlist S_k.
    learning_rate
        Adam's, for the classifier.
    feature_rate
        The learning rate of the word vectors, as a share of the classifier's.
    e_model, e_label, e_hat_label
        Epochs of the classifier; epochs of the label encoder each time it is trained; classifier epochs between
        two such times.
    beta
        The classifier's share in the blended score; None to choose it on validation data.
    batch_size
        Documents a step.
    schedule
        `cosine` lets the learning rate fall to 0; `steps` halves it at the epochs 14, 21 and 25, as the authors did.
    dropout
        The share of a document's coordinates that are zeroed while training.
    relu, residual
        ReLU on the document embedding, and a spectrally normalised residual layer on top of it.
    random_negatives, random_weight
        Uniformly drawn negatives a document, and how much each counts: they stand for the labels that no shortlist
        reaches.
    frequent_labels
        How many of the most frequent labels are candidates of every document.
    sparse
        Whether to train the sparse view too: a linear classifier of each label on the words themselves.
    sparse_negatives
        Of the sparse view: labels nearby, and labels that it confuses, that speak against a document.
    sparse_work
        How many words it may take to go once through the labels that the sparse view trains on all documents, where to
        begin with a document counts as 25: the most frequent ones, as many as it allows.
    sparse_cost, sparse_negative_cost
        What an error of the sparse view costs, and the share of that which one on a negative costs.
    label_tree
        Whether to train a label tree beside the sparse view, where there are labels enough.
    gamma
        The sparse view's share in the blended score; None to choose it on validation data.
    label_learning_rate
        Adam's, for the label encoder.
    index
        How shortlists are searched: `exact`, `sketch` (by a bit a number, then by a byte), `ivf` (an inverted file),
        `hnsw` (a graph), or `auto`: exactly up to 100,000 labels, but for training by what takes less time, and by
        sketches beyond; on processors without AVX2 exactly up to 400,000 and then by an inverted file.
    precision
        How the finished model keeps its numbers; float16 halves it, at a loss that training measures.
    validation
        The share of training documents set aside to choose β and the epoch, where there is no dev part.
    learn_validation
        Whether documents that training set aside for validation are learnt by the views of words in the end, when all
        is chosen. A dev part that is given is never learnt.
    seed
        The same seed gives the same model, to the bit.

    Examples
    --------
    >>> Config(k=100).k
    100
    >>> Config(k=0)
    Traceback (most recent call last):
    ValueError: k is 0: it must be a whole number from 1
    """

    D: int = 192
    k: int = 200
    learning_rate: float = 0.02
    feature_rate: float = 0.5
    e_model: int = 4
    e_label: int = 1
    e_hat_label: int = 4
    beta: float | None = None
    batch_size: int = 512
    schedule: Schedule = "cosine"
    dropout: float = 0.3
    relu: bool = False
    residual: bool = False
    random_negatives: int = 100
    random_weight: float = 10.0
    frequent_labels: int = 0
    sparse: bool = True
    sparse_negatives: int = 100
    sparse_work: int = 500_000_000
    sparse_cost: float = 0.5
    sparse_negative_cost: float = 0.5
    label_tree: bool = True
    gamma: float | None = None
    label_learning_rate: float = 0.001
    index: Index = "auto"
    precision: Precision = "float16"
    validation: float = 0.05
    learn_validation: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("D", "k", "e_model", "e_hat_label", "batch_size"):
            _check_whole(name, getattr(self, name), 1)
        for name in ("e_label", "random_negatives", "frequent_labels", "sparse_negatives", "sparse_work", "seed"):
            _check_whole(name, getattr(self, name), 0)
        _check_range("learning_rate", self.learning_rate, 0, 10, open_low=True)
        _check_range("feature_rate", self.feature_rate, 0, 10)
        _check_range("label_learning_rate", self.label_learning_rate, 0, 10, open_low=True)
        _check_range("random_weight", self.random_weight, 0, 1e6)
        _check_range("dropout", self.dropout, 0, 0.99)
        _check_range("validation", self.validation, 0, 0.5)
        _check_range("sparse_cost", self.sparse_cost, 0, 1e6, open_low=True)
        _check_range("sparse_negative_cost", self.sparse_negative_cost, 0, 1e6, open_low=True)
        for name in ("beta", "gamma"):
            if getattr(self, name) is not None:
                _check_range(name, getattr(self, name), 0, 1)
        for name, kind in (("index", Index), ("schedule", Schedule), ("precision", Precision)):
            if getattr(self, name) not in get_args(kind):
                raise ValueError(f"{name} is {getattr(self, name)!r}: it must be one of {', '.join(get_args(kind))}")
        for name in ("relu", "residual", "sparse", "label_tree", "learn_validation"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} is {getattr(self, name)!r}: it must be true or false")

    @property
    def near_negatives(self) -> int:
        """How many labels of its shortlist speak against a document in the sparse view."""
        return min(self.k, self.sparse_negatives // 2)

    @property
    def total_epochs(self) -> int:
        """The paper's count of all epochs: e_model + e_label (⌊e_model / ê_label⌋ + 1)."""
        return self.e_model + self.e_label * (self.e_model // self.e_hat_label + 1)


def _check_whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} is {value!r}: it must be a whole number from {least}")


def _check_range(name: str, value: Any, low: float, high: float, *, open_low: bool = False) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name} is {value!r}: it must be a number")
    if not low <= value <= high or (open_low and value == low):
        raise ValueError(f"{name} is {value!r}: it must lie {'above' if open_low else 'from'} {low} to {high}")


# The authors' own training besides the paper's table: their encoder, batch, schedule, and no random negatives.
_PAPER = Config(
    D=300,
    feature_rate=1.0,
    batch_size=255,
    schedule="steps",
    dropout=0.5,
    relu=True,
    residual=True,
    random_negatives=0,
    sparse=False,
    index="auto",
)


def _paper(beta: float, k: int, rate: float, e_model: int, e_label: int, e_hat_label: int) -> Config:
    return replace(
        _PAPER, beta=beta, k=k, learning_rate=rate, e_model=e_model, e_label=e_label, e_hat_label=e_hat_label
    )


PRESETS: dict[str, Config] = {
    "default": Config(),
    "paper/EURLex-4K": _paper(0.75, 500, 0.006, 16, 8, 8),
    "paper/AmazonCat-13K": _paper(1.0, 500, 0.007, 21, 4, 4),
    "paper/Wiki10-31K": _paper(0.60, 600, 0.009, 21, 8, 6),
    "paper/WikiSeeAlsoTitles-350K": _paper(0.1, 500, 0.008, 21, 6, 7),
    "paper/AmazonTitles-670K": _paper(1.0, 650, 0.007, 21, 6, 9),
}


# With few documents an epoch has few steps: smaller batches, at a lower rate, and more epochs make up for it.
SMALL_LIMIT = 20_000


def _small(documents: int) -> Config:
    batch_size = min(max(documents // 50, 8), 64)
    # A tenth of the work of the sparse view: half a minute is much where all else takes a few seconds.
    return replace(PRESETS["default"], batch_size=batch_size, learning_rate=0.005, e_model=12, sparse_work=75_000_000)


def configure(preset: str = "default", documents: int | None = None, /, **settings: Any) -> Config:
    """Return a preset with some settings changed; strings, as from a command line, become what the setting is.

    Parameters
    ----------
    preset
        `default`, or one of the paper's.
    documents
        How many there are to train on: the default preset depends on it.
    settings
        What to change, by name.

    Examples
    --------
    >>> [configure("default", documents).batch_size for documents in (100, 10_000, 1_000_000)]
    [8, 64, 512]
    >>> configure("paper/EURLex-4K", seed="7").k, configure("paper/EURLex-4K", seed="7").seed
    (500, 7)
    >>> configure("mine")
    Traceback (most recent call last):
    ValueError: there is no preset 'mine': known are default, paper/EURLex-4K, paper/AmazonCat-13K, paper/Wiki10-31K, \
paper/WikiSeeAlsoTitles-350K, paper/AmazonTitles-670K
    """
    if preset not in PRESETS:
        raise ValueError(f"there is no preset {preset!r}: known are {', '.join(PRESETS)}")
    names = [field.name for field in fields(Config)]
    for name in settings:
        if name not in names:
            raise ValueError(f"there is no setting {name!r}: known are {', '.join(names)}")
    chosen = PRESETS[preset]
    if preset == "default" and documents is not None and documents < SMALL_LIMIT:
        chosen = _small(documents)
    return replace(chosen, **{name: parsed_setting(name, value) for name, value in settings.items()})


def parsed_setting(name: str, value: Any) -> Any:
    """Return a setting's value; a string, as from a command line, as what it stands for.

    >>> parsed_setting("k", "500"), parsed_setting("relu", "true"), parsed_setting("index", "hnsw")
    (500, True, 'hnsw')
    """
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, str) or name in ("index", "schedule", "precision"):
        return value
    words = {"true": True, "false": False, "none": None}
    if value.lower() in words:
        return words[value.lower()]
    try:
        return int(value) if value.lstrip("+-").isdecimal() else float(value)
    except ValueError:
        return value
