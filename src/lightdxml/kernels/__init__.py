"""Compiled loops over plain arrays and scalars; nothing here knows of data sets or models.

The only place that imports Numba. Every kernel runs on one thread without the interpreter lock; `parallel`
spreads calls over threads so that each output has one owner, which keeps results the same at any thread count.
"""
