# Two commands, each doing its own set-up on a machine with python3, pip, make and a C compiler:
#   make demo   search for a minute for models that read digits within 4 kB, and write C and a report
#   make test   the whole test suite
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint docs dist peers benchmark clean

demo: $(VENV)/.base
	$(BIN)/tinybayes demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n auto --dist loadfile

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.dev
	$(BIN)/mkdocs build --strict

# Wheel and sdist under dist/, and the wheel at work in a fresh environment.
dist: $(VENV)/.dev
	rm -rf dist build/fresh
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m venv build/fresh || $(PYTHON) -m venv build/fresh
	build/fresh/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	cd build/fresh && bin/tinybayes demo --time 15s -o demo && bin/tinybayes info demo --quiet

# Models to pgmpy and pyAgrum and back.
peers: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,peers]'
	$(BIN)/python -m pytest tests/test_ecosystem.py -k "pgmpy or pyagrum"

benchmark: $(VENV)/.bench
	$(BIN)/python benchmarks/closed_form.py

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "tinybayes needs Python 3.11 or later: make PYTHON=python3.12 ..."; exit 2; }
	@# Debian's python3 has no ensurepip before python3-venv is installed; its pip can put one there.
	$(PYTHON) -m venv $(VENV) >/dev/null || { $(PYTHON) -m venv --clear --without-pip $(VENV) && \
		$(PYTHON) -m pip --python $@ install --quiet --disable-pip-version-check pip; } || \
		{ rm -rf $(VENV); exit 2; }

$(VENV)/.base: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.base

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,bench]'
	@touch $@

clean:
	rm -rf $(VENV) build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
