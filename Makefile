# From a bare checkout with Python 3.11 or later: `make demo`, `make test` and `make docs`.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt
READY := .venv/ready
DOCS_READY := .venv/docs-ready
TEST_READY := .venv/test-ready
SOURCES := src tests scripts faults examples

# Python writes bytecode, also where the environment forbids it. Installing compiles nothing, so
# without bytecode each of the many processes that the tests start would compile all it imports.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo test check faults setup format documents docs clean

demo: $(READY)
	$(BIN)/twoscale demo --out demo --overwrite

# The type check uses one core. What else the tests need is installed and compiled meanwhile.
test: $(READY)
	$(MAKE) --jobs 2 check $(TEST_READY)
	$(BIN)/pytest --numprocesses auto --dist worksteal

check: $(READY)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy

# Attacks on the command line from outside: minutes; a small dose of it is part of the tests.
faults: $(READY)
	$(BIN)/python -m faults --json results/faults.json

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "twoscale needs Python 3.11 or later: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv .venv
	$(INSTALL) --upgrade pip setuptools
	$(INSTALL) --no-build-isolation --editable '.[cli,dev]'
	touch $@

$(DOCS_READY): $(READY)
	$(INSTALL) --no-build-isolation --editable '.[docs]'
	touch $@

# Collecting compiles what the tests import. Without it each worker would compile all of it.
$(TEST_READY): $(DOCS_READY)
	-$(BIN)/pytest --collect-only > /dev/null
	touch $@

format: $(READY)
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

# Makes anew what is generated in README.md and docs/: from the records, the code and the demo.
documents: demo
	$(BIN)/python -m twoscale_lab.report.documents
	$(BIN)/python scripts/docs_figures.py
	$(BIN)/python -m scripts.architecture_pictures

# The documentation as a site that needs no server and no network: open site/index.html.
docs: $(DOCS_READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open site/index.html"

clean:
	rm -rf .venv demo site build src/*.egg-info
