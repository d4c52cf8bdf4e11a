# make demo: see DAP-SGD beat TAP-SGD on this machine.   make test: everything that must hold.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find src -name '*.py') pyproject.toml

.DEFAULT_GOAL := help
.PHONY: help demo test lint types pytest bench bench-peers reproduce clean

help:
	@grep -E '^# make |^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -e 's/^# //' -e 's/:.*##/:/'

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "dapsgd needs Python 3.11 or newer; say which: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[plot]'
	@touch $@

.venv-peers/.done: pyproject.toml | $(BIN)/python
	$(BIN)/python -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	@touch $@

# Peers that need NumPy 1 have an environment of their own; one that does not install is left out.
.venv-numpy1/.done: | $(BIN)/python
	$(BIN)/python -m venv .venv-numpy1
	-.venv-numpy1/bin/python -m pip install --quiet --disable-pip-version-check 'numpy<2' 'scipy<1.14' 'scikit-learn<1.6' \
	  'cython<3.1' 'setuptools<70' wheel adelie
	-.venv-numpy1/bin/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps \
	  sklearn-contrib-lightning
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.demo

demo: $(VENV)/.demo ## install what is needed, run the demo, save demo.png
	$(BIN)/dapsgd demo --out demo.png

test: lint types pytest ## ruff, mypy, pytest with doctests

lint: $(VENV)/.dev ## ruff, check and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev ## mypy, strict
	$(BIN)/mypy

pytest: $(VENV)/.dev ## the tests alone
	$(BIN)/python -m pytest -n auto

bench: $(VENV)/.dev ## updates per second and speedups; BENCH_ARGS="--yardstick PATH" to compare with another program
	$(BIN)/python benchmarks/throughput.py $(BENCH_ARGS)

bench-peers: .venv-peers/.done .venv-numpy1/.done ## seconds to the answer, ours and other packages'; PEERS_ARGS="--quick" for a look
	.venv-peers/bin/python benchmarks/peers/run.py \
	  --python adelie_=.venv-numpy1/bin/python lightning_=.venv-numpy1/bin/python $(PEERS_ARGS)

reproduce: $(VENV)/.demo ## re-make the paper's figures and check its claims; REPRODUCE_ARGS="--quick" for a look
	$(BIN)/dapsgd reproduce --out reproduced $(REPRODUCE_ARGS)

clean: ## remove what make made
	rm -rf $(VENV) .venv-peers .venv-numpy1 build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis demo.png simulate.png reproduced
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
