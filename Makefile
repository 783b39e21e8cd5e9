# From a bare checkout with Python 3.11 or later: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

.PHONY: demo test faults setup format documents clean

demo: $(READY)
	$(BIN)/twoscale demo --out demo --overwrite

test: $(READY)
	$(BIN)/ruff format --check src tests scripts faults examples
	$(BIN)/ruff check src tests scripts faults examples
	$(BIN)/mypy
	$(BIN)/pytest --numprocesses auto

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
	cp demo/figures/fields.png docs/seams.png

clean:
	rm -rf .venv demo build src/*.egg-info
