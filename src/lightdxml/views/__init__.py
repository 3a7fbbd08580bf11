"""The views of labels: one folder each, listed in `registry`."""
