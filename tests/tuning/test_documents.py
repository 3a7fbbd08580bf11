"""The documents of a study."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lightdxml.data import Dataset, Split
from lightdxml.tuning.documents import Documents
from tests.support.data import topics


def dataset(n: int = 200) -> Dataset:
    X, Y = topics(n)
    return Dataset("made-up", Split(Y, X, ids=[str(i) for i in range(n)]))


def test_documents_to_measure_on_are_held_out_and_always_the_same() -> None:
    one, other = Documents.of(dataset()), Documents.of(dataset())
    assert one.held_out
    assert one.judged.ids == other.judged.ids
    assert len(one.judged) == 40
    assert not set(one.judged.ids or ()) & set(one.train.ids or ())
    assert len(one.train) == 160


def test_a_dev_part_is_what_trials_are_measured_on() -> None:
    whole = dataset()
    dev = whole.train.take(np.arange(50))
    found = Documents.of(replace(whole, dev=dev))
    assert not found.held_out
    assert (found.judged, found.train) == (dev, whole.train)


def test_the_test_part_is_not_used() -> None:
    whole = dataset()
    found = Documents.of(replace(whole, test=whole.train.take(np.arange(50))))
    assert found.fingerprint() == Documents.of(whole).fingerprint()


def test_other_documents_have_another_fingerprint() -> None:
    X, Y = topics(200, seed=1)
    assert Documents.of(dataset()).fingerprint() != Documents.of(Dataset("made-up", Split(Y, X))).fingerprint()


def test_too_few_documents_are_refused() -> None:
    with pytest.raises(ValueError, match="made-up has 49 training documents: at least 50"):
        Documents.of(dataset(49))
