# Every target sets itself up: `make test` in a fresh clone needs only Python 3.11, make and the package registry.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
STAMP := .venv/.measureflow-ready

# More words for pip when it fetches torch, e.g. TORCH_PIP_ARGS="--find-links wheels" for a CPU-only build.
TORCH_PIP_ARGS ?=
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check

# SCIPY_ARRAY_API lets scikit-learn run all of its estimator checks. Two pytest workers share the cores: one BLAS thread each, and a numba pool a test may still use two of.
TEST_ENV := SCIPY_ARRAY_API=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=2 MPLBACKEND=Agg
PYTEST_ARGS ?= -n 2
BENCH ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-processors lint format bench scoreboard chaos fuzz docs gallery wheel-test web web-test lock clean

help:  ## say what each target does
	@echo "measureflow: type 'make' and one of"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

setup: $(STAMP)  ## build .venv from requirements.lock (the other targets do this by themselves)

# torch comes after the lock, so that what it asks for is already there, pinned and hashed.
$(STAMP): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' \
	  || { echo "The lock is for Python 3.11; say where it is: make setup PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || { echo "Making .venv"; $(PYTHON) -m venv .venv; }
	@echo "Installing the pinned packages (a few minutes the first time)"
	@$(PIP) --require-hashes --no-deps -r requirements.lock
	@$(PIP) $(TORCH_PIP_ARGS) torch==2.13.0
	@$(PIP) --no-deps --no-build-isolation --editable .
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

bench: setup  ## time ourselves against our peers; BENCH="transport ..." chooses
	@$(BIN)/python benchmarks/run.py $(BENCH)

scoreboard: setup  ## run all benchmarks and write docs/scoreboard.md; FROM=results writes it from the saved ones
	@$(if $(filter results,$(FROM)),,$(BIN)/python benchmarks/run.py || test $$? = 1)
	@$(BIN)/python benchmarks/pages.py

chaos: setup  ## kill a training run fifty times without warning, and check that it ends with the same bits
	@OMP_NUM_THREADS=1 $(BIN)/python tests/chaos/kill_training.py

fuzz: setup  ## 1,000 cases of each law of FlowMixture, 100,000 broken weight files, 10,000 broken tables
	@$(TEST_ENV) MEASUREFLOW_EXAMPLES=1000 $(BIN)/python -m pytest tests/estimators/test_flow_mixture_laws.py -m law
	@$(TEST_ENV) PYTHONPATH=tests $(BIN)/python -m fuzz.weights
	@$(TEST_ENV) PYTHONPATH=tests $(BIN)/python -m fuzz.tables

docs: setup  ## build the documentation into docs/_build/html, warnings being errors
	@MPLBACKEND=Agg $(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

gallery: demo  ## make every table and figure of the four papers again at size tiny, and the pages that show them
	@for paper in zimin2025 clarkson2025 he2025 castin2025; do \
	  MPLBACKEND=Agg $(BIN)/measureflow reproduce $$paper --size tiny --out out/gallery || exit 1; done
	@MPLBACKEND=Agg $(BIN)/python docs/make_papers.py out/gallery

wheel-test: setup  ## build wheel and sdist, install the wheel into a clean environment, and try what ships
	@PYTHON=$(abspath $(BIN)/python) TORCH_PIP_ARGS="$(TORCH_PIP_ARGS)" sh tests/wheel/run.sh

# Versions are exact in package.json and its lock; `npm ci` would ask the lock for packages of other platforms too.
# Node.js is needed here only: what these two make is committed in src/measureflow/explorer/static.
web: setup  ## build the explorer's page and export the models it runs (needs Node.js)
	@npm --prefix web install --no-save --no-audit --no-fund --loglevel=error
	@npm --prefix web run --silent build
	@$(BIN)/python -m measureflow.explorer.export

web-test: setup  ## drive the page in a headless Chromium; screenshots go to out/screenshots (needs Node.js)
	@npm --prefix web install --no-save --no-audit --no-fund --loglevel=error
	@node tests/browser/run.mjs

# torch's own accelerator packages are stripped with it; pip-compile's closing warning is about the two left out on purpose.
lock: setup  ## work out requirements.lock again from requirements.in (LOCK_ARGS=--upgrade for newer versions)
	@CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet --generate-hashes --strip-extras \
	  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options \
	  --unsafe-package torch --unsafe-package pip $(LOCK_ARGS) --output-file requirements.lock requirements.in
	@awk '/^# WARNING/ {exit} /^[^ #]/ {skip = /^(torch==|triton|nvidia-|cuda-)/} NF && !skip' requirements.lock > requirements.lock.new
	@mv requirements.lock.new requirements.lock

clean:  ## remove what the other targets made, except .venv
	@rm -rf build dist out docs/_build docs/gallery docs/sg_execution_times.rst .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +
