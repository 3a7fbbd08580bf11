"""The identity of made-up training runs."""

from __future__ import annotations

from lightdxml.persistence.checkpoint import Identity


def identity(mark: str = "mark", machine: str = "this", **settings: object) -> Identity:
    return Identity(mark, {"dim": 8, **settings}, {"processor": machine})
