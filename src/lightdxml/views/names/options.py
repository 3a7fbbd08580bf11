"""Settings of the names view."""

from __future__ import annotations

from dataclasses import dataclass

from lightdxml.settings import check, setting


@dataclass(frozen=True)
class NamesOptions:
    """How the names of labels are used.

    Examples
    --------
    >>> NamesOptions(proposals=10).proposals
    10
    """

    enabled: bool = setting(True, "Look for the names of labels in the documents, if labels have names.")
    documents: float = setting(
        5.0, "How many documents a name counts as in the centroid of its label.", low=0, high=1_000_000
    )
    proposals: int = setting(50, "Candidate labels per document that the view proposes.", low=0, high=1 << 16)
    min_documents: int = setting(100, "With fewer validation documents the names view is not used.", low=1)
    sample: int = setting(2000, "Training documents that the scorer of names is fitted on, at most.", low=1)

    def __post_init__(self) -> None:
        check(self)
