"""Another vocabulary for a trained model: labels are renamed, retired and added without training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lightdxml.data.own_labels import own_labels
from lightdxml.data.vocabulary import Vocabulary
from lightdxml.label_names import label_texts, name_forms
from lightdxml.learning.kept import KeptData, rounded
from lightdxml.learning.learn import Learner
from lightdxml.learning.names import names_by_titles, new_names
from lightdxml.model.model import Model
from lightdxml.text.rare import Joined
from lightdxml.text.tfidf import Vectorizer, with_words
from lightdxml.views.base import NewLabels
from lightdxml.views.names.forms import NameForms

# Labels without documents that are enough to tell what a name is worth, and how many others tell it instead.
_ENOUGH, _FEWEST = 20, 1000


@dataclass(frozen=True)
class Changes:
    """What an update changes.

    Attributes
    ----------
    added, renamed, retired, restored
        The labels (URIs): new ones, those with other names than before, those that the vocabulary has no more, and
        those that were retired and are in it again.
    unchanged
        Number of all other labels.
    new_words
        Number of added labels of whose names the model knew no word. They are found in new texts, but no training
        document can have had them.
    outside
        Number of labels that are no concepts, neither before nor now. They stay as they are.
    """

    added: list[str]
    renamed: list[str]
    retired: list[str]
    restored: list[str]
    unchanged: int
    new_words: int
    outside: int


def update_vocabulary(model: Model, vocabulary: Vocabulary, *, retire: bool = False) -> tuple[Model, Changes]:
    """Return a model with another vocabulary, and what that changes.

    Labels keep their ids. New concepts come after them, and are suggested where texts contain their names. Labels that
    the model's vocabulary has and the new one has not are retired: they are never suggested, until a later vocabulary
    has them again.

    Parameters
    ----------
    model
        A model of texts whose labels have names: URIs, or the preferred names of concepts.
    vocabulary
        The new vocabulary, all of it.
    retire
        Whether labels that have training documents may be retired; otherwise that is an error.

    Examples
    --------
    >>> from lightdxml import LightDXML
    >>> from lightdxml.data.vocabulary import Concept
    >>> concepts = [Concept(f"urn:{name}", {"en": (name,)}) for name in ("cat", "dog", "hamster")]
    >>> texts, labels = ["a cat", "a dog"] * 20, [["urn:cat"], ["urn:dog"]] * 20
    >>> trained = LightDXML("fast").fit(texts, labels, vocabulary=Vocabulary(concepts[:2]))
    >>> trained.model_, changes = update_vocabulary(trained.model_, Vocabulary(concepts))
    >>> changes.added, trained.predict("my hamster", k=1)
    (['urn:hamster'], ['urn:hamster'])
    """
    if model.label_names is None or model.vectorizer is None:
        raise ValueError("a vocabulary needs a model of texts whose labels have names, and this one has none: train it")
    language = model.language or ""
    if language and not {language, ""} & set(vocabulary.languages):
        raise ValueError(f"the vocabulary has no names in {language}, the language of the model: check its languages")
    old = model.label_names
    kept = _matched(old, vocabulary, model.vocabulary)
    if not any(name in vocabulary for name in kept):
        raise ValueError(f"the vocabulary has none of the labels of the model, such as {old[0]!r}: check its URIs")
    known = set(kept)
    labels = [*kept, *(one.uri for one in vocabulary.concepts if one.uri not in known)]
    gone = _gone(model, vocabulary)
    _check_retired(model, gone, retire)
    merged = _merged(vocabulary, model.vocabulary)
    before = (
        [[name] for name in old] if model.vocabulary is None else label_texts(old, set(), model.vocabulary, language)
    )
    after = label_texts(labels, set(), merged, language)
    assert before is not None
    assert after is not None
    renamed = np.array([one != other for one, other in zip(before, after, strict=False)], dtype=np.bool_)
    vectorizer, new = _new_labels(model, model.vectorizer, after, renamed)
    changes = _changes(model, labels, gone, renamed, new, merged)
    updated = replace(
        model,
        views={name: view.with_labels(new) for name, view in model.views.items()},
        n_features=new.n_features,
        label_frequency=np.append(model.label_frequency, np.zeros(len(labels) - len(old), dtype=np.int32)),
        label_names=labels,
        integer_labels=False,
        vectorizer=vectorizer,
        vocabulary=merged,
        retired=np.flatnonzero(gone).astype(np.int32),
        merged=model.merged[gone[model.merged[:, 0]]],
    )
    return updated, changes


def update_learner(learner: Learner, vocabulary: Vocabulary, *, retire: bool = False) -> tuple[Learner, Changes]:
    """Return a model with another vocabulary, and what it needs to learn, and what that changes."""
    model, changes = update_vocabulary(learner.model, vocabulary, retire=retire)
    kept = None if learner.kept is None else _updated(learner.kept, model)
    return replace(learner, model=model, kept=kept), changes


def _updated(kept: KeptData, model: Model) -> KeptData:
    """Return training data with the words, labels and names of a model that has another vocabulary."""
    assert model.vectorizer is not None
    assert model.label_names is not None
    words = model.vectorizer.vocabulary[kept.X.shape[1] :]
    # Documents may have words of new names that were too rare for the model so far.
    joined = [Joined(word, 0, kept.rare.words.get(word)) for word in words]
    rare = {word: one for word, one in kept.rare.words.items() if word not in set(words)}
    kept = kept.widened(model.n_features, model.n_labels).with_late_words(joined, model.vectorizer)
    kept = replace(kept, rare=replace(kept.rare, words=rare))
    if kept.own is not None:
        kept = replace(kept, own=np.maximum(kept.own, own_labels(kept.ids, model.label_ids)))
    if not model.config.names.enabled:
        return kept
    called = label_texts(model.label_names, set(), model.vocabulary, model.language or "")
    forms = name_forms(model.vectorizer, called or ())
    names = [NameForms(rounded(forms.terms), forms.labels)]
    if kept.titles is not None and kept.own is not None:
        names += [one for one in [names_by_titles(kept.titles, kept.own)] if one is not None]
    return replace(kept, names=new_names(names, None))


def _matched(names: Sequence[str], vocabulary: Vocabulary, before: Vocabulary | None) -> list[str]:
    """Return the labels of a model, as URIs where they are concepts; what was a concept is none by its name."""
    uris = [name if before is not None and name in before else vocabulary.uris([name])[0] for name in names]
    taken, found = set(names), []
    for name, uri in zip(names, uris, strict=True):
        # Another label may have the URI already.
        found.append(name if uri in taken else uri)
        taken.add(found[-1])
    return found


def _gone(model: Model, vocabulary: Vocabulary) -> NDArray[np.bool_]:
    """Return which labels are retired: concepts of the model that the vocabulary has not."""
    concepts = model.vocabulary or ()
    names = model.label_names or ()
    return np.array([name in concepts and name not in vocabulary for name in names], dtype=np.bool_)


def _check_retired(model: Model, gone: NDArray[np.bool_], retire: bool) -> None:
    """Raise a `ValueError` if labels with training documents would be retired, and may not."""
    lost = np.setdiff1d(np.flatnonzero(gone & (model.label_frequency > 0)), model.retired)
    if len(lost) and not retire:
        label = model.label(int(lost[0]))
        which = f"{label.id} ({label.name})" if label.name != label.id else label.id
        count = "1 label" if len(lost) == 1 else f"{len(lost):,} labels"
        raise ValueError(f"{count} with training documents would be retired, such as {which}: allow it with --retire")


def _merged(vocabulary: Vocabulary, before: Vocabulary | None) -> Vocabulary:
    """Return a vocabulary with the concepts that it has no more: they still have names."""
    gone = [] if before is None else [one for one in before.concepts if one.uri not in vocabulary]
    return Vocabulary([*vocabulary.concepts, *gone])


def _new_labels(
    model: Model, vectorizer: Vectorizer, names: list[list[str]], renamed: NDArray[np.bool_]
) -> tuple[Vectorizer, NewLabels]:
    """Return what views must know of new and renamed labels, and a vectorizer that knows the words of their names."""
    n_old, n_labels = len(renamed), len(names)
    frequency = model.label_frequency
    untrained = np.append(np.flatnonzero(renamed & (frequency == 0)), np.arange(n_old, n_labels)).astype(np.int32)
    # Words that nothing has a weight for would only take weight from others.
    called = np.union1d(untrained, np.flatnonzero(renamed)) if "names" in model.views else untrained
    wide = with_words(vectorizer, [name for label in called.tolist() for name in names[label]], model.n_documents)
    forms = name_forms(wide, names)
    has_name = np.zeros(n_labels, dtype=np.bool_)
    has_name[forms.labels] = True
    examples = _examples(model, has_name[:n_old], renamed)
    expected = _expected_documents(forms, wide, model.n_documents)
    return wide, NewLabels(forms, n_labels, untrained, examples, np.flatnonzero(renamed).astype(np.int32), expected)


def _expected_documents(names: NameForms, vectorizer: Vectorizer, n_documents: int) -> NDArray[np.int32]:
    """Return about how many training documents contain each name, if its terms are independent."""
    document_frequency = (1 + n_documents) / np.exp(vectorizer.idf.astype(np.float64) - 1) - 1
    share = np.clip(document_frequency / n_documents, 1e-9, 1)
    terms = names.terms
    rows = np.repeat(np.arange(terms.shape[0]), np.diff(terms.indptr))
    logs = np.bincount(rows, weights=np.log(share)[terms.indices], minlength=terms.shape[0])
    expected: NDArray[np.int32] = np.round(n_documents * np.exp(logs)).astype(np.int32)
    return np.where(np.diff(terms.indptr) > 0, expected, 0).astype(np.int32)


def _examples(model: Model, has_name: NDArray[np.bool_], renamed: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return trained labels that are most like labels without documents: such labels, or those with the fewest."""
    frequency = model.label_frequency
    if model.vocabulary is not None and model.config.names.enabled:
        without = np.flatnonzero(has_name & ~renamed & (frequency == 0))
        if len(without) >= _ENOUGH:
            return without.astype(np.int32)
    some = np.flatnonzero(has_name & (frequency > 0))
    fewest = some[np.argsort(frequency[some], kind="stable")][:_FEWEST]
    return np.sort(fewest).astype(np.int32)


def _changes(
    model: Model,
    labels: list[str],
    gone: NDArray[np.bool_],
    renamed: NDArray[np.bool_],
    new: NewLabels,
    vocabulary: Vocabulary,
) -> Changes:
    n_old = len(gone)
    was_retired = np.zeros(n_old, dtype=np.bool_)
    was_retired[model.retired] = True
    outside = np.array([name not in vocabulary for name in labels[:n_old]], dtype=np.bool_)
    retired, restored = gone & ~was_retired, was_retired & ~gone
    renamed = renamed & ~gone & ~outside
    terms = new.names.terms
    is_new_word = terms.indices >= model.n_features
    rows = np.repeat(np.arange(terms.shape[0]), np.diff(terms.indptr))
    knows = np.unique(new.names.labels[rows[~is_new_word]])
    added = np.arange(n_old, len(labels))

    def named(which: NDArray[np.bool_]) -> list[str]:
        return [labels[i] for i in np.flatnonzero(which)]

    return Changes(
        added=labels[n_old:],
        renamed=named(renamed),
        retired=named(retired),
        restored=named(restored),
        unchanged=n_old - int((renamed | retired | restored).sum()),
        new_words=len(np.setdiff1d(added, knows)),
        outside=int(outside.sum()),
    )
