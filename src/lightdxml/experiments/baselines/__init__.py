"""Methods to compare with, and our own, behind one interface."""

from __future__ import annotations

from lightdxml.experiments.baselines.annexml import AnnexML
from lightdxml.experiments.baselines.astec import Astec
from lightdxml.experiments.baselines.base import Method, TooLargeError
from lightdxml.experiments.baselines.craftml import CRAFTML
from lightdxml.experiments.baselines.dismec import DiSMEC
from lightdxml.experiments.baselines.external import PLT, Bonsai, FastText, Parabel
from lightdxml.experiments.baselines.fastxml import FastXML, PfastreXML
from lightdxml.experiments.baselines.ours import Ours, OursFast, OursPaper
from lightdxml.experiments.baselines.ppdsparse import PPDSparse
from lightdxml.experiments.baselines.simple import KNN, OVA
from lightdxml.experiments.baselines.sleec import SLEEC
from lightdxml.experiments.baselines.slice_ import Slice
from lightdxml.experiments.baselines.xr_linear import XRLinear, XRLinearSingle

_ALL: tuple[type[Method], ...] = (
    *(Ours, OursFast, OursPaper, Astec, SLEEC, AnnexML),
    *(Parabel, Bonsai, XRLinear, XRLinearSingle, PLT, FastXML, PfastreXML, CRAFTML),
    *(OVA, DiSMEC, PPDSparse, Slice, KNN, FastText),
)

METHODS: dict[str, type[Method]] = {method.name: method for method in _ALL}


def method(name: str) -> type[Method]:
    """Return the class of a method.

    >>> method("knn").defaults
    {'neighbors': 20}
    """
    if name not in METHODS:
        raise ValueError(f"unknown method {name!r}: choose from {', '.join(METHODS)}")
    return METHODS[name]


__all__ = ["METHODS", "Method", "TooLargeError", "method"]
