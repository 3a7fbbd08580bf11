"""Reading, writing and getting data: `load` is the way in."""

from __future__ import annotations

from lightdxml.data.catalog import load
from lightdxml.data.dataset import Dataset, Split, Texts
from lightdxml.data.errors import DataError
from lightdxml.data.save import save

__all__ = ["DataError", "Dataset", "Split", "Texts", "load", "save"]
