"""Real faults under real training runs; `python -m tests.faults` prints which guarantees held."""
