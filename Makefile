# From a bare checkout with Python 3.11 or later: `make demo`, `make test` and `make docs`.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

.PHONY: demo test faults setup format documents docs clean

demo: $(READY)
	$(BIN)/twoscale demo --out demo --overwrite

test: $(READY)
	$(BIN)/ruff format --check src tests scripts faults examples
	$(BIN)/ruff check src tests scripts faults examples
	$(BIN)/mypy
	$(BIN)/pytest --numprocesses auto --dist loadfile

# Attacks on the command line from outside: minutes; a small dose of it is part of the tests.
faults: $(READY)
	$(BIN)/python -m faults --json results/faults.json

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "twoscale needs Python 3.11 or later: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt setuptools
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[cli,dev,docs]'
	touch $@

format: $(READY)
	$(BIN)/ruff format src tests scripts faults examples
	$(BIN)/ruff check --fix src tests scripts faults examples

# Makes anew what is generated in README.md and docs/: from the records, the code and the demo.
documents: demo
	$(BIN)/python -m twoscale.report.documents
	$(BIN)/python -m twoscale.cli.reference
	$(BIN)/python scripts/docs_figures.py
	$(BIN)/python -m twoscale.report.readme

# The documentation as a site that needs no server and no network: open site/index.html.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open site/index.html"

clean:
	rm -rf .venv demo site build src/*.egg-info
