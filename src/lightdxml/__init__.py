"""Extreme multi-label classification on the machine that you have."""

__version__ = "0.1.0"
