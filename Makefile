# The documentation: `make docs` writes it to build/docs, and fails on warnings.
PYTHON ?= $(firstword $(wildcard .venv-dev/bin/python) python3)

.PHONY: docs
docs:
	$(PYTHON) -m sphinx --fail-on-warning --keep-going --nitpicky --quiet --fresh-env -d build/doctrees docs build/docs
