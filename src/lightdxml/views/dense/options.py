"""Settings of the paper's part: encoder, label encoder, shortlist and classifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lightdxml.settings import check, setting

Schedule = Literal["cosine", "steps"]


@dataclass(frozen=True)
class DenseOptions:
    """How the cycle of the paper's Algorithm 1 is trained.

    Examples
    --------
    >>> DenseOptions(epochs=16, label_epochs=8, refresh_every=8).total_epochs
    40
    """

    train: str = setting(
        "auto",
        "Train the paper's two views; auto: with few documents, few features, word vectors, or without a linear view.",
        choices=("auto", "always", "never"),
    )
    max_documents: int = setting(5000, "Documents below which `auto` trains the dense views.", low=0)
    max_features: int = setting(2048, "Features up to which `auto` trains the dense views.", low=0)
    dim: int = setting(192, "Dimensions of document and label embeddings (D in the paper).", low=1, high=1 << 16)
    shortlist_size: int = setting(200, "Labels in a document's shortlist (k in the paper).", low=1, high=1 << 20)
    epochs: int = setting(4, "Epochs of the classifier (e_model).", low=1, high=1 << 20)
    label_epochs: int = setting(1, "Epochs of the label encoder per refresh (e_label).", low=0, high=1 << 20)
    refresh_every: int = setting(4, "Classifier epochs between two refreshes (ê_label).", low=1, high=1 << 20)
    learning_rate: float = setting(0.02, "Adam's learning rate of the classifier.", above=0, high=10)
    vector_rate: float = setting(
        0.5, "Learning rate of the word vectors, relative to the classifier's.", low=0, high=10
    )
    label_learning_rate: float = setting(0.001, "Adam's learning rate of the label encoder.", above=0, high=10)
    batch_size: int = setting(512, "Documents per step.", low=1, high=1 << 20)
    schedule: Schedule = setting(
        "cosine", "Learning rate: cosine decay to 0, or halved at epochs 14, 21 and 25.", choices=("cosine", "steps")
    )
    dropout: float = setting(0.3, "Fraction of embedding coordinates set to 0 in training.", low=0, high=0.99)
    relu: bool = setting(False, "Apply ReLU to document embeddings.")
    residual: bool = setting(False, "Add a residual layer of spectral norm 1 to the encoder.")
    random_negatives: int = setting(100, "Random negatives per document, for labels no shortlist reaches.", low=0)
    random_weight: float = setting(10.0, "Weight of a random negative in the loss.", low=0, high=1_000_000)
    initial_bias: float = setting(-4.0, "Bias of every label before training: nearly all labels are wrong.")
    index: str = setting("auto", "Search for nearest labels.", choices=("auto", "exact", "rabitq"))
    # Rows of large weights come from memory for each batch. Skipping tiny updates saves two of three transfers.
    lazy_bytes: int = setting(1 << 28, "Classifiers above this size skip labels with tiny gradients.", low=0)
    lazy_ratio: float = setting(0.05, "A gradient is tiny below this fraction of its running size.", low=0, high=1)

    parts: int = setting(
        8,
        "Parts of the classifier, which a cluster can divide among so many processes; a power of two.",
        low=1,
        high=4096,
    )

    def __post_init__(self) -> None:
        check(self)
        if self.parts & (self.parts - 1):
            raise ValueError(f"dense.parts is {self.parts}: it must be a power of two, such as 8 or 16")

    @property
    def enabled(self) -> bool:
        """Whether the dense views are trained, once `auto` is resolved."""
        return self.train == "always"

    @property
    def total_epochs(self) -> int:
        """The paper's count of all epochs: e_model + e_label (⌊e_model / ê_label⌋ + 1)."""
        return self.epochs + self.label_epochs * (self.epochs // self.refresh_every + 1)
