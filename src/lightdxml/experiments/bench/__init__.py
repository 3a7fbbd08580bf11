"""Benchmark: run several methods on the same data, each run in its own process."""
