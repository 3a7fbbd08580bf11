"""Describe, check and parse settings: every option dataclass of the package is made of these fields."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import Field, field, fields
from typing import Any

import numpy as np


def setting(
    default: Any,
    about: str,
    *,
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    choices: Sequence[str] = (),
    optional: bool = False,
) -> Any:
    """Return a dataclass field with a default value, a description and a range.

    Parameters
    ----------
    default
        The default value. Its type is the type of the setting.
    about
        What the setting does, in one sentence.
    low, high, above
        The smallest and largest value, and an exclusive lower bound.
    choices
        The values that a string may take.
    optional
        Whether None is allowed.
    """
    limits = {"low": low, "high": high, "above": above, "choices": tuple(choices), "optional": optional}
    return field(default=default, metadata={"about": about, **limits})


def check(options: Any) -> None:
    """Raise a `ValueError` if a field of an option dataclass has a value of the wrong type or out of range.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Options:
    ...     depth: int = setting(3, "Depth.", low=1)
    >>> check(Options(depth=0))
    Traceback (most recent call last):
    ValueError: depth is 0: it must be an integer of at least 1
    """
    for one in fields(options):
        if "about" in one.metadata:
            check_value(one.name, one, getattr(options, one.name))


def check_value(name: str, one: Field[Any], value: Any) -> None:
    """Raise a `ValueError` if a value does not fit a field; the message calls the setting by this name."""
    if value is None and one.metadata["optional"]:
        return
    if not _has_type(value, _type_of(one)) or not _in_range(value, one.metadata):
        raise ValueError(f"{name} is {value!r}: it must be {expected(one)}")


def _type_of(one: Field[Any]) -> type:
    # An optional number has None as its default; all of them are floats.
    return float if one.default is None else type(one.default)


def _has_type(value: Any, kind: type) -> bool:
    if kind is bool or isinstance(value, bool):
        return isinstance(value, bool) and kind is bool
    if kind is float:
        return isinstance(value, int | float) and math.isfinite(value)
    if kind is int:
        return isinstance(value, int)
    return isinstance(value, kind)


def _in_range(value: Any, limits: Any) -> bool:
    if limits["choices"]:
        return value in limits["choices"]
    return (
        (limits["low"] is None or value >= limits["low"])
        and (limits["high"] is None or value <= limits["high"])
        and (limits["above"] is None or value > limits["above"])
    )


def expected(one: Field[Any]) -> str:
    """Return which values a field takes, in words.

    >>> from dataclasses import make_dataclass
    >>> Options = make_dataclass("Options", [("rate", float, setting(0.1, "Rate.", above=0, high=10))])
    >>> expected(fields(Options)[0])
    'a number above 0 and at most 10'
    """
    limits, kind = one.metadata, _type_of(one)
    if limits["choices"]:
        return f"one of {', '.join(limits['choices'])}"
    if kind is bool:
        return "true or false"
    if kind is tuple:
        return "a list of numbers"
    noun = {int: "an integer", float: "a number"}.get(kind, "text")
    bounds = []
    if limits["low"] is not None:
        bounds.append(f"of at least {limits['low']:,}")
    if limits["above"] is not None:
        bounds.append(f"above {limits['above']:,}")
    if limits["high"] is not None:
        bounds.append(f"at most {limits['high']:,}")
    words = f"{noun} {' and '.join(bounds)}".strip()
    return f"{words}, or none" if limits["optional"] else words


def parse(one: Field[Any], value: Any) -> Any:
    """Return a setting's value from a string, as a command line gives it; other values stay as they are."""
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, str) or one.metadata["choices"] or _type_of(one) is str:
        return value
    words = {"true": True, "false": False, "none": None}
    if value.lower() in words:
        return words[value.lower()]
    try:
        if _type_of(one) is tuple:
            return tuple(float(part) for part in value.split(","))
        return int(value) if value.lstrip("+-").isdecimal() else float(value)
    except ValueError:
        return value
