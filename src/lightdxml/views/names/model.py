"""The names view: a label is likely if its name occurs in the document."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lightdxml.kernels.sparse import FeatureRows
from lightdxml.persistence.arrays import Arrays
from lightdxml.views.base import (
    FREQUENCY,
    Batch,
    Contributions,
    ModelSizes,
    Proposal,
    ViewMemory,
    expect,
    groups_of,
    in_range,
)
from lightdxml.views.linear.inverted import InvertedIndex, feature_margins, margins_of, restore_index, search
from lightdxml.views.names.occurrences import Occurrences, carried_over
from lightdxml.views.names.scorer import AMBIGUITY, TERMS, Matches, NameScorer

if TYPE_CHECKING:
    from collections.abc import Callable

    from lightdxml.config import Config
    from lightdxml.training.run import Run, TrainingData
    from lightdxml.views.base import NewLabels, View
    from lightdxml.views.lesson import Lesson

_MAX_PROPOSALS = 1 << 16
# Names that are searched per proposal. A text may contain many names of labels that do not fit.
_SEARCHED = 4
# Names of candidates that are scored together.
_CELLS = 1_000_000


@dataclass(frozen=True)
class NamesView:
    """Names of labels, and how much their occurrence says.

    Attributes
    ----------
    index
        The share of each term in its name, by term. Classes of the index are names.
    labels
        The label of each name, ascending.
    terms, ambiguity
        Per name, the groups of its number of terms and of the labels that share it.
    occurrences
        Per name, how often it occurs in training documents, and with its label.
    frequency
        Per label, the group of its number of training documents.
    scorer
        From matches to log-odds.
    proposals
        Candidate labels per document.
    """

    name: ClassVar[str] = "names"
    about: ClassVar[str] = "names of labels in the text"
    requires: ClassVar[tuple[str, ...]] = ()

    index: InvertedIndex
    labels: NDArray[np.int32]
    terms: NDArray[np.uint8]
    ambiguity: NDArray[np.uint8]
    occurrences: Occurrences
    frequency: NDArray[np.uint8]
    scorer: NameScorer
    proposals: int

    def propose(self, batch: Batch, known: NDArray[np.int32]) -> Proposal | None:
        """Return the most likely labels of those whose names match best."""
        labels = self.matching_labels(batch, known)
        scores = self.log_score(batch, np.concatenate([known, labels], axis=1))
        of_known, of_new = np.split(scores, [known.shape[1]], axis=1)
        best = np.argsort(np.where(labels >= 0, -of_new, np.inf), axis=1, kind="stable")[:, : self.proposals]
        scores = np.concatenate([of_known, np.take_along_axis(of_new, best, axis=1)], axis=1)
        return Proposal(np.take_along_axis(labels, best, axis=1), scores)

    def matching_labels(self, batch: Batch, known: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the labels of the names that cover the most, and explain the most of the document."""
        none = np.empty((len(batch), 0), dtype=np.int32)
        allowed = None if batch.allowed is None else batch.allowed[self.labels]
        documents = Batch(_with(batch, batch.X.data + 1))
        names = search(self.index, documents, _SEARCHED * self.proposals, none, allowed)[0]
        return without_repeats(known, np.where(names >= 0, self.labels[names], -1).astype(np.int32))

    def log_score(self, batch: Batch, labels: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return the log-probability of these labels, by the best of each label's names."""
        odds = np.zeros(labels.shape, dtype=np.float32)
        if labels.size:
            step = max(1, _CELLS // (labels.shape[1] * self._most_names))
            for start in range(0, len(labels), step):
                some = batch if step >= len(labels) else Batch(batch.X[start : start + step])
                odds[start : start + step] = self._log_odds(some, labels[start : start + step])
        return np.where(labels >= 0, -np.logaddexp(0, -odds), 0).astype(np.float32)

    @cached_property
    def _most_names(self) -> int:
        """The largest number of names of a label."""
        return max(1, int(np.diff(self._bounds).max(initial=0)))

    def _log_odds(self, batch: Batch, labels: NDArray[np.int32]) -> NDArray[np.float32]:
        matches = self.matches(batch, labels)
        odds = self.scorer.log_odds(matches)
        # A label with fewer names than another has places without one. The first place counts: it may have no name.
        odds[:, :, 1:][np.isneginf(matches.coverage[:, :, 1:])] = -np.inf
        best: NDArray[np.float32] = odds.max(axis=2)
        return best

    def matches(self, batch: Batch, labels: NDArray[np.int32]) -> Matches:
        """Return how the names of labels occur in documents: documents × labels × names per label."""
        bounds = self._bounds
        first, n_names = bounds[labels], np.where(labels >= 0, bounds[labels + 1] - bounds[labels], 0)
        each = np.arange(max(1, int(n_names.max(initial=0))))
        names = np.where(each < n_names[:, :, None], first[:, :, None] + each, -1).astype(np.int32)
        flat = names.reshape(len(labels), -1)
        binary = batch.shared("ones", lambda: Batch(_with(batch, np.ones_like(batch.X.data))))
        coverage, weight = (margins_of(self.index, one, flat).reshape(names.shape) for one in (binary, batch))
        by_label = np.broadcast_to(self.frequency[labels][:, :, None], names.shape)
        rate = self._log_rate[names]
        return Matches(coverage, np.maximum(weight, 0), self.terms[names], self.ambiguity[names], by_label, rate)

    @cached_property
    def _log_rate(self) -> NDArray[np.float32]:
        return self.occurrences.log_rate

    def number(self, labels: NDArray[np.int32], which: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers of names, given which of its label's names each one is; any number for a missing name."""
        numbers: NDArray[np.int64] = np.minimum(self._bounds[labels] + which, max(0, len(self.labels) - 1))
        return numbers

    @cached_property
    def _bounds(self) -> NDArray[np.int64]:
        """Where the names of each label begin."""
        return np.searchsorted(self.labels, np.arange(len(self.frequency) + 1))

    def contributions(self, batch: Batch, label: int) -> Contributions:
        """Return what each word of the label's best name adds to the log-probability."""
        labels = np.array([[label]], dtype=np.int32)
        matches = self.matches(batch, labels)
        odds = self.scorer.log_odds(matches)[0, 0]
        best = int(odds.argmax())
        total = -float(np.logaddexp(0, -float(odds[best])))
        features = np.zeros(batch.X.nnz)
        if matches.coverage[0, 0, best] <= 0:
            return Contributions(total, features)
        nothing = replace(
            matches, coverage=np.minimum(matches.coverage, np.float32(0)), weight=np.zeros_like(matches.weight)
        )
        base = -float(np.logaddexp(0, -float(self.scorer.log_odds(nothing)[0, 0, best])))
        name = int(self._bounds[label]) + best
        shares = feature_margins(self.index, Batch(_with(batch, np.ones_like(batch.X.data))), name)
        return Contributions(base, (total - base) * shares / shares.sum())

    def arrays(self) -> Arrays:
        """Return names and scorer."""
        own = {one: getattr(self, one) for one in ("labels", "terms", "ambiguity", "frequency")}
        return {
            **self.index.arrays(self.name),
            **{f"{self.name}.{one}": array for one, array in own.items()},
            **self.occurrences.arrays(f"{self.name}.occurrences"),
            **self.scorer.arrays(f"{self.name}.scorer"),
        }

    def facts(self) -> dict[str, Any]:
        """Return the number of candidates."""
        return {"proposals": self.proposals}

    @classmethod
    def restore(cls, arrays: Arrays, facts: dict[str, Any], sizes: ModelSizes) -> NamesView:
        """Return the view that these arrays make up."""
        proposals = facts["proposals"]
        if type(proposals) is not int or not 0 <= proposals <= _MAX_PROPOSALS:
            raise ValueError(f"its names view proposes {proposals!r:.30} labels")
        labels = arrays[f"{cls.name}.labels"]
        n = len(labels)
        expect(labels, f"{cls.name}.labels", (n,), np.int32)
        terms, ambiguity = (
            _groups(arrays, f"{cls.name}.{one}", n, bounds)
            for one, bounds in (("terms", TERMS), ("ambiguity", AMBIGUITY))
        )
        frequency = _groups(arrays, f"{cls.name}.frequency", sizes.n_labels, FREQUENCY)
        if not in_range(labels, 0, sizes.n_labels) or bool((labels[1:] < labels[:-1]).any()):
            raise ValueError("its names view has names of labels that do not exist")
        index = restore_index(arrays, cls.name, sizes.n_features, n)
        scorer = NameScorer.restore(arrays, f"{cls.name}.scorer")
        occurrences = Occurrences.restore(arrays, f"{cls.name}.occurrences", n)
        return cls(index, labels, terms, ambiguity, occurrences, frequency, scorer, proposals)

    def check_values(self) -> None:
        """Check nothing more: there are no quantized rows."""

    def quantize(self, precision: str) -> NamesView:
        """Return the view with shares of lower precision."""
        return replace(self, index=self.index.quantize(precision))

    def with_labels(self, new: NewLabels) -> NamesView:
        """Return the view with these names; new labels have no training documents."""
        from lightdxml.views.linear.solver import inverted_rows

        names, more = new.names, new.n_labels - len(self.frequency)
        return replace(
            self,
            index=inverted_rows(names.shares, self.index.weights.dtype.name),
            labels=names.labels,
            terms=groups_of(names.n_terms, TERMS),
            ambiguity=groups_of(names.ambiguity, AMBIGUITY),
            occurrences=carried_over(self.occurrences, self.labels, new),
            frequency=np.append(self.frequency, groups_of(np.zeros(more, dtype=np.int32), FREQUENCY)),
        )

    def learn(self, lesson: Lesson) -> NamesView:
        """Return the view with counts of new documents, and with added names."""
        from lightdxml.views.names.learn import learn

        return learn(self, lesson)

    def summary(self) -> str:
        """Return the number of names and labels."""
        return f"{len(self.labels):,} names of {len(np.unique(self.labels)):,} labels"

    @classmethod
    def memory(cls, data: TrainingData, config: Config, spilled: bool) -> ViewMemory:
        """Return the bytes that training takes."""
        from lightdxml.views.names.train import memory

        return memory(data, config)

    @classmethod
    def train(cls, run: Run, is_useful: Callable[[View], bool]) -> NamesView | None:
        """Fit the scorer of names on some training documents, if labels have names."""
        from lightdxml.views.names.train import train

        return train(run)

    def refit(self, run: Run) -> NamesView:
        """Return the view with the counts of all documents."""
        from lightdxml.views.names.train import refit

        return refit(self, run.data)


def _groups(arrays: Arrays, name: str, n: int, bounds: tuple[int, ...]) -> NDArray[np.uint8]:
    found = expect(arrays[name], name, (n,), np.uint8)
    if not in_range(found, 0, len(bounds) + 1):
        raise ValueError(f"its array {name} has groups that do not exist")
    return found


def _with(batch: Batch, values: NDArray[np.float32]) -> FeatureRows:
    """Return the documents of a batch with other values of their features."""
    documents = batch.documents
    return FeatureRows(
        documents.indptr, documents.indices, values.astype(np.float32, copy=False), int(batch.X.shape[1])
    )


def without_repeats(known: NDArray[np.int32], labels: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return labels with -1 for those that are known in their row, or occur in it before.

    >>> without_repeats(np.array([[3]], np.int32), np.array([[5, 3, 5, -1]], np.int32)).tolist()
    [[5, -1, -1, -1]]
    """
    every = np.concatenate([known, labels], axis=1)
    order = np.argsort(every, axis=1, kind="stable")
    ordered = np.take_along_axis(every, order, axis=1)
    is_repeat = np.zeros(every.shape, dtype=np.bool_)
    np.put_along_axis(is_repeat, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return np.where(is_repeat[:, known.shape[1] :], np.int32(-1), labels)
