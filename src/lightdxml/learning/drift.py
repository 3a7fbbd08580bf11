"""How far a model has moved from what it was trained on, and when it should be trained again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lightdxml.learning.journal import Entry
from lightdxml.metrics import confidence_interval
from lightdxml.model.model import Model

# The latest documents that tell how well a model does now, and how many are enough to say so.
_LATEST, _ENOUGH = 2000, 100
# Shares from which on a full training is due: of documents that were learned later, of unknown words, of new labels.
_LEARNED, _UNKNOWN, _NEW = 0.3, 0.3, 0.2
# Points of P@1 that a model may lose on new documents, beyond what chance explains.
_LOST = 10.0


@dataclass(frozen=True)
class Drift:
    """What has changed since training.

    Attributes
    ----------
    learned
        The share of documents that were learned after training.
    unknown_words
        The share of words, in the latest documents, that the model did not know when they came.
    new_labels
        The share of labels with documents that came after training: embeddings and clusters do not know them.
    documents
        The number of latest new documents on which `metrics` were measured, each before it was learned.
    metrics
        How well the model did on them; empty if they are few.
    trained_metrics
        How well it did on validation documents in training.
    reasons
        Why it should be trained again on all documents; empty if it need not.
    """

    learned: float
    unknown_words: float
    new_labels: float
    documents: int
    metrics: dict[str, float]
    trained_metrics: dict[str, float]
    reasons: list[str]

    @property
    def is_due(self) -> bool:
        """Whether a full training is due."""
        return bool(self.reasons)


def drift(model: Model, entries: Sequence[Entry]) -> Drift:
    """Return how far a model has moved, given its journal.

    Examples
    --------
    >>> from lightdxml import LightDXML
    >>> model = LightDXML("fast").fit(["a cat", "a dog"] * 20, [["cat"], ["dog"]] * 20).model_
    >>> drift(model, []).is_due
    False
    """
    learned = [entry.figures for entry in entries if entry.kind == "learn"]
    n_learned = sum(figures["documents"] - figures["corrected"] for figures in learned)
    n_new = sum(figures["new_labels"] for figures in learned)
    latest, n = _latest(learned)
    shares = {
        "learned": n_learned / max(1, model.n_documents),
        "unknown_words": sum(one["unknown_words"] * _new(one) for one in latest) / max(1, n),
        "new_labels": n_new / max(1, int((model.label_frequency > 0).sum())),
    }
    metrics = {}
    if n >= _ENOUGH:
        names = latest[0]["measured"]["metrics"]
        metrics = {name: sum(one["measured"]["metrics"][name] * _new(one) for one in latest) / n for name in names}
    # A few documents tell nothing.
    reasons = [*_reasons(**shares), *_lost_precision(model, metrics, n)] if n >= _ENOUGH else []
    return Drift(**shares, documents=n, metrics=metrics, trained_metrics=model.metrics, reasons=reasons)


def _latest(learned: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """Return the figures of the latest lessons with new documents, and the number of these."""
    latest, n = list[dict[str, Any]](), 0
    for figures in reversed(learned):
        latest += [figures] if _new(figures) else []
        n += _new(figures)
        if n >= _LATEST:
            break
    return latest, n


def _new(figures: dict[str, Any]) -> int:
    """Return the number of documents of a lesson that were new: corrections say nothing about the next ones."""
    found: int = figures["measured"]["documents"]
    return found


def _reasons(learned: float, unknown_words: float, new_labels: float) -> list[str]:
    reasons = []
    if learned > _LEARNED:
        reasons.append(f"{learned:.0%} of the documents were learned after training")
    if unknown_words > _UNKNOWN:
        reasons.append(f"{unknown_words:.0%} of the words in the latest documents were unknown")
    if new_labels > _NEW:
        reasons.append(f"{new_labels:.0%} of the labels are new since training")
    return reasons


def _lost_precision(model: Model, metrics: dict[str, float], n: int) -> list[str]:
    """Return that P@1 has fallen, if 95% confidence intervals are further apart than what a model may lose."""
    if "P@1" not in model.metrics or not model.n_validation:
        return []
    now, before = metrics["P@1"], model.metrics["P@1"]
    most, least = confidence_interval(now, n)[1], confidence_interval(before, model.n_validation)[0]
    if most >= least - _LOST:
        return []
    return [f"P@1 of new documents is {now:.1f}, and was {before:.1f} in training"]
