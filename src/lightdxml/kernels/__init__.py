"""Compiled loops over plain arrays and scalars, which know nothing of data sets or models.

This is the only package that imports Numba. Every kernel runs on one thread without the interpreter lock. `parallel`
distributes calls over threads. Each output has one owner, so results do not depend on the number of threads. Arrays
that belong together are passed as a named tuple.
"""
