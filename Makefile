# make demo: see DAP-SGD beat TAP-SGD on this machine.   make test: everything that must hold.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find src -name '*.py') pyproject.toml

.DEFAULT_GOAL := help
.PHONY: help demo test lint types pytest docs wheel smoke bench bench-ray bench-peers reproduce soak fuzz audit clean

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

.venv-docs/.done: pyproject.toml | $(BIN)/python
	$(BIN)/python -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

$(VENV)/.build: | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build
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
	$(BIN)/python -m pytest -n auto --dist loadgroup

docs: .venv-docs/.done ## the site, in docs/_build/html: without a warning, with every link, figure and example checked
	.venv-docs/bin/python -m sphinx -W --keep-going --quiet -b html docs docs/_build/html
	.venv-docs/bin/python docs/check_site.py docs/_build/html
	.venv-docs/bin/python -m pytest -q docs README.md

# The archives carry the time of the last commit, so that the same sources give the same bytes.
wheel: $(VENV)/.build ## wheel and source archive in dist/, built twice and compared
	rm -rf dist build/again
	epoch=$$(git log -1 --format=%ct 2>/dev/null || echo 315532800); export SOURCE_DATE_EPOCH=$$epoch; \
	  $(BIN)/python -m build --outdir dist . > /dev/null && $(BIN)/python -m build --outdir build/again . > /dev/null
	for file in dist/*; do cmp "$$file" "build/again/$$(basename "$$file")" || exit 1; done
	sha256sum dist/*

smoke: wheel ## install the wheel into new environments of Python 3.11, 3.12 and 3.13, and fit a model in each
	$(BIN)/python .ci/smoke.py dist/*.whl

bench: $(VENV)/.dev ## updates per second and speedups; BENCH_ARGS="--yardstick PATH" to compare with another program
	$(BIN)/python benchmarks/throughput.py $(BENCH_ARGS)

bench-ray: $(VENV)/.dev ## messages per second on Ray next to a bare actor, and seconds to an accuracy next to threads
	$(BIN)/python benchmarks/ray_throughput.py $(BENCH_ARGS)

bench-peers: .venv-peers/.done .venv-numpy1/.done ## seconds to the answer, ours and other packages'; PEERS_ARGS="--quick" for a look
	.venv-peers/bin/python benchmarks/peers/run.py \
	  --python adelie_=.venv-numpy1/bin/python lightning_=.venv-numpy1/bin/python $(PEERS_ARGS)

reproduce: $(VENV)/.demo ## re-make the paper's figures and check its claims; REPRODUCE_ARGS="--quick" for a look
	$(BIN)/dapsgd reproduce --out reproduced $(REPRODUCE_ARGS)

soak: $(VENV)/.dev ## hours of faults and pressure, every program in soak/; SOAK_ARGS="..." goes to each, SOAK="kill_resume" chooses
	for program in $(or $(SOAK),kill_resume engine_runs long_run $(notdir $(basename $(wildcard soak/ray_*.py)))); do \
	  $(BIN)/python soak/$$program.py $(SOAK_ARGS) || exit 1; done

fuzz: $(VENV)/.dev ## a million damaged files for every reader, guided by coverage; FUZZ_ARGS="csv --runs 10000" for a look
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[fuzz]'
	$(BIN)/python fuzz/run.py $(or $(FUZZ_ARGS),all)

audit: $(VENV)/.dev ## known vulnerabilities of what is installed; needs the internet
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[audit]'
	$(BIN)/pip-audit --skip-editable

clean: ## remove what make made
	rm -rf $(VENV) .venv-docs .venv-peers .venv-numpy1 build dist docs/_build docs/_generated docs/gallery docs/api docs/api.rst benchmarks/outputs .pytest_cache .mypy_cache .ruff_cache .hypothesis demo.png simulate.png reproduced
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
