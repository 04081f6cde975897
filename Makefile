# Two commands, each doing its own set-up on a machine with python3, pip, make and a C compiler:
#   make demo   search for a minute for models that read digits within 4 kB, and write C and a report
#   make test   the tests; make test-all adds the exhaustive ones
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEERS := build/peers
OLDEST := build/oldest

.PHONY: demo test test-oldest exhaustive test-all whole coverage mutation lint docs dist peers audit benchmark clean

demo: $(VENV)/.base
	$(BIN)/tinybayes demo

# SHARE=2/5: of the exhaustive tests, or those with the oldest versions, the second of five parts of the files.
SHARE ?=
PYTEST := -m pytest -n auto --dist loadfile --ignore=tests/peers
PART := $(if $(SHARE),--share $(SHARE))
TESTS := $(BIN)/python $(PYTEST)

test: $(VENV)/.dev
	$(TESTS)

# The same tests with the oldest versions that pyproject.toml allows, in an environment of their own; ONLY names some.
# Numba forgets what another version has compiled, so each keeps its own.
ONLY ?=
test-oldest: $(OLDEST)/.ready
	NUMBA_CACHE_DIR=$(CURDIR)/$(OLDEST)/numba $(OLDEST)/bin/python $(PYTEST) $(PART) $(ONLY)

# More cases of what `make test` tests, long pages of the docs, the experiments, and the tools of the tests.
exhaustive: $(VENV)/.dev
	$(TESTS) $(PART) -m exhaustive

test-all: test exhaustive

# All cases of the exhaustive tests, those included that would take CI too long; before a release.
whole: $(VENV)/.dev
	TINYBAYES_WHOLE=1 $(TESTS) -m exhaustive

# Both again, slower, counting the lines and branches that they reach.
coverage: $(VENV)/.dev
	$(TESTS) -m "" --cov --cov-report=term --cov-report=json --cov-fail-under=95

# Small faults planted in the parts that tests/mutation/run.py lists, and whether the tests notice; an hour or more.
mutation: $(VENV)/.dev
	$(BIN)/python tests/mutation/run.py

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.dev
	$(BIN)/mkdocs build --strict
	$(BIN)/python docs/check_links.py site

# Wheel and sdist under dist/, and the wheel at work in a fresh environment.
dist: $(VENV)/.dev
	rm -rf dist build/fresh build/again
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m build --wheel --outdir build/again . && cmp dist/*.whl build/again/*.whl
	$(BIN)/python -m venv build/fresh || $(PYTHON) -m venv build/fresh
	build/fresh/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls dist/*.whl)[search]"
	cd build/fresh && bin/tinybayes demo --time 15s -o demo && bin/tinybayes info demo --quiet

# Our answers beside those of pyAgrum, pgmpy, Orange, scikit-learn and onnxruntime, in an environment of their own.
peers: $(PEERS)/.ready
	$(PEERS)/bin/python -m pytest -n auto --dist worksteal tests/peers

# Known vulnerabilities of what is installed; needs the network.
audit: $(VENV)/.dev
	$(PYTHON) -m venv build/audit && build/audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit
	build/audit/bin/pip-audit --skip-editable --path "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"

benchmark: $(VENV)/.bench
	$(BIN)/python benchmarks/closed_form.py

$(BIN)/python $(PEERS)/bin/python $(OLDEST)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "tinybayes needs Python 3.11 or later: make PYTHON=python3.12 ..."; exit 2; }
	@# Debian's python3 has no ensurepip before python3-venv is installed; its pip can put one there.
	$(PYTHON) -m venv $(@D)/.. >/dev/null || { $(PYTHON) -m venv --clear --without-pip $(@D)/.. && \
		$(PYTHON) -m pip --python $@ install --quiet --disable-pip-version-check pip; } || \
		{ rm -rf $(@D); exit 2; }

$(VENV)/.base: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[search]'
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.base

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,bench]'
	@touch $@

# Orange alone, without the desktop application and the GPU libraries that it asks for.
$(PEERS)/.ready: $(PEERS)/bin/python pyproject.toml tests/peers/requirements.txt
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -e '.[arrow,search]' -r tests/peers/requirements.txt
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps Orange3==3.40.0
	@touch $@

$(OLDEST)/.ready: $(OLDEST)/bin/python pyproject.toml tests/oldest.txt
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -c tests/oldest.txt \
		-e '.[all]' hypothesis onnxruntime optax polars pytest pytest-cov pytest-xdist
	@touch $@

clean:
	rm -rf $(VENV) build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
