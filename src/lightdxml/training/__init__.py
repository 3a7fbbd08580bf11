"""The paper in its own words, one step a file; read `cycle.py` first."""
