"""Faults that are really made: kills, full disks, damaged files; `python -m tests.faults` prints the table."""
