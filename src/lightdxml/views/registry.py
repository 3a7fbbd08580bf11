"""All views. A new one is a folder next to this file and a line below."""

from __future__ import annotations

from lightdxml.views.base import View
from lightdxml.views.dense.classifier import ClassifierView
from lightdxml.views.dense.nearness import NearnessView
from lightdxml.views.linear.model import LinearView
from lightdxml.views.names.model import NamesView
from lightdxml.views.tree.model import TreeView

# In the order in which they are trained and propose candidates.
VIEWS: dict[str, type[View]] = {
    view.name: view
    for view in (
        NearnessView,
        ClassifierView,
        LinearView,
        TreeView,
        NamesView,
    )
}
