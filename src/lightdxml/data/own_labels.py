"""Documents that are labels themselves: pages that refer to pages, packages that need packages.

Such a document is never its own label, but for slips in the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# Documents that must be labels themselves, at least, and their share of all documents.
_DOCUMENTS, _SHARE = 20, 0.05
# The share of them that may have themselves as a label: 9 of 90,882 do in WordNet.
_SLIPS = 0.001


def own_labels(ids: Sequence[str], label_of: Mapping[str, int]) -> NDArray[np.int32]:
    """Return the label of the same name as each document, -1 for none.

    >>> own_labels(["cat", "dog"], {"dog": 0, "bird": 1}).tolist()
    [-1, 0]
    """
    return np.fromiter((label_of.get(one, -1) for one in ids), dtype=np.int32, count=len(ids))


def never_own(ids: Sequence[str], own: NDArray[np.int32], Y: csr_matrix) -> bool:
    """Return whether documents are labels themselves, and hardly any has itself as a label.

    Numbers count as the same only by chance, so ids that are numbers do not tell.
    """
    rows = np.flatnonzero(own >= 0)
    if len(rows) < max(_DOCUMENTS, _SHARE * len(own)) or all(ids[i].isdecimal() for i in rows[:_DOCUMENTS].tolist()):
        return False
    return int(np.count_nonzero(np.asarray(Y[rows, own[rows]]))) <= _SLIPS * len(rows)
