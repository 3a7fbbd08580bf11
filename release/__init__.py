"""The release check: `python -m release` tries everything that a release promises, and prints what held."""
