from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from lightdxml.data.own_labels import never_own, own_labels


def numbered(names: list[str]) -> dict[str, int]:
    return {name: i for i, name in enumerate(names)}


def test_documents_that_are_labels_are_detected_if_none_has_itself() -> None:
    names = [f"page {i}" for i in range(40)]
    own = own_labels(names, numbered(names))
    assert own.tolist() == list(range(40))
    others = csr_matrix(np.roll(np.eye(40), 1, axis=1))
    assert never_own(names, own, others)
    assert not never_own(names, own, csr_matrix(others + np.eye(40)))
    assert not never_own(names, own_labels(names, {"other": 0}), others)


def test_numbers_that_are_ids_and_labels_by_chance_do_not_count() -> None:
    numbers = [str(i) for i in range(40)]
    assert not never_own(numbers, own_labels(numbers, numbered(numbers)), csr_matrix(np.roll(np.eye(40), 1, axis=1)))
