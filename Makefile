# Everything runs in .venv, made on first use. Choose an interpreter with `make PYTHON=python3.12 ...`.
# What has been installed is remembered by empty files in .venv/stamps, so a second run starts at once.

VENV   := .venv
STAMPS := $(VENV)/stamps
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --quiet --quiet --disable-pip-version-check
TORCH  := torch==2.13.0
PYTEST := $(BIN)/python -m pytest

# The first Python on the path that is new enough and can make virtual environments.
ifeq ($(origin PYTHON), undefined)
PYTHON := $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	if $$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; \
	then echo $$p; break; fi; done)
endif

# More arguments for a run: make test ARGS="tests/ops -x", make bench ARGS="--quick".
ARGS ?=
# How many test processes; `make test WORKERS=0` runs in one, as a debugger needs.
WORKERS ?= auto

.DEFAULT_GOAL := help
.PHONY: help demo test conformance fuzz soak bench gpu ecosystem minilm docs lint format types install-dev install-torch clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(STAMPS)/fast ## run the tour, train a network that reads digits, show its losses and its graph
	@$(BIN)/python examples/tour.py $(ARGS)
	@echo "== a convolutional network, written for torch, run by pullback"
	@mkdir -p build/demo
	@$(BIN)/pullback graph --output build/demo/graph.html examples/digits_convnet.py --picture build/demo/losses.svg
	@cp examples/data/demo.html build/demo/index.html
	@$(BIN)/python -c 'from pullback.cli.output import open_page; open_page("build/demo/index.html")'

test: $(STAMPS)/test ## run the tests that need no torch: in parallel, then the slow ones one by one
	@echo "== tests"
	@$(PYTEST) -q -n $(WORKERS) -m "not slow and not conformance" --ignore=tests/conformance $(ARGS)
	@echo "== slow tests, one by one"
	@$(PYTEST) -q -m "slow and not conformance" --ignore=tests/conformance $(ARGS) || [ $$? -eq 5 ]

conformance: $(STAMPS)/torch ## run the same programs on torch and on pullback and compare
	@echo "== conformance with $(TORCH)"
	@$(PYTEST) -q -n $(WORKERS) -m conformance tests/conformance $(ARGS)
	@echo "== how far the ops agree (docs/coverage.md, of which no number has fallen)"
	@sed -n '/^| aspect/,/^$$/p' docs/coverage.md

fuzz: $(STAMPS)/torch ## run random programs on torch and on pullback: make fuzz ARGS="--seconds 3600"
	@$(BIN)/python -m tests.fuzz $(ARGS)

soak: $(STAMPS)/torch ## threads, forks, interrupts, kills, full disks, no memory, hostile files: make soak ARGS="--seconds 3600"
	@$(BIN)/python -m tests.soak $(ARGS)

bench: $(STAMPS)/torch ## measure beside torch; a full run also writes docs/benchmarks.md
	@mkdir -p build
	@$(BIN)/python -m benchmarks --json build/bench.json $(ARGS)
	@$(BIN)/python docs/tools/benchmark_page.py build/bench.json

gpu: ## on a machine with an NVIDIA GPU: facts, the tests of the device for real, its times beside torch's; under ten minutes
	@bash .ci/gpu $(ARGS)

ecosystem: $(STAMPS)/package ## run packages written for torch, write docs/ecosystem.md; REFERENCE=1: on torch; TIMES=1: on both
	@$(BIN)/python -m tests.ecosystem $(if $(REFERENCE),--reference) $(if $(TIMES),--times) $(ARGS)

minilm: $(STAMPS)/package ## embed sentences on pullback and on torch, each in its own environment; writes README.md's table
	@$(BIN)/python -m tests.ecosystem.minilm $(ARGS)

docs: $(STAMPS)/docs ## build the documentation: build/site/index.html
	@$(BIN)/python docs/tools/quotes.py
	@$(BIN)/python docs/tools/pictures.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict $(ARGS)
	@echo "the documentation is in build/site/index.html"

lint: $(STAMPS)/dev ## check style and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: $(STAMPS)/dev ## repair style and formatting
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

types: $(STAMPS)/dev ## check types
	@$(BIN)/mypy

install-dev: $(STAMPS)/dev ## install what lint, types and test need

install-torch: $(STAMPS)/torch ## install what conformance and bench need

clean: ## remove everything that was made
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks
	find . -path ./.git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMPS)/venv:
	@[ -n "$(PYTHON)" ] || { \
		echo "No Python 3.11 or newer with venv was found; name one: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("pullback needs Python 3.11 or newer, \
	$(PYTHON) is %d.%d" % v[:2])'
	@echo "making $(VENV) with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv --clear $(VENV)
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/package: pyproject.toml $(STAMPS)/venv
	@echo "installing pullback ..."
	@$(PIP) install --editable .
	@touch $@

# Where there is no llvmlite for this Python, NumPy computes everything, and the programs say so.
$(STAMPS)/fast: pyproject.toml $(STAMPS)/package
	@echo "installing llvmlite, for compiled kernels ..."
	@$(PIP) install --editable '.[fast]' || echo "llvmlite cannot be had here: NumPy will compute everything"
	@touch $@

$(STAMPS)/test: pyproject.toml $(STAMPS)/package
	@echo "installing the test tools ..."
	@$(PIP) install --editable '.[test]'
	@touch $@

$(STAMPS)/dev: pyproject.toml $(STAMPS)/test
	@echo "installing the development tools ..."
	@$(PIP) install --editable '.[dev]'
	@touch $@

$(STAMPS)/docs: pyproject.toml $(STAMPS)/package
	@echo "installing what builds the documentation ..."
	@$(PIP) install --editable '.[docs]'
	@touch $@

$(STAMPS)/torch: pyproject.toml $(STAMPS)/test
	@echo "installing llvmlite ..."
	@$(PIP) install --editable '.[test,fast]'
	@echo "installing $(TORCH) (large; this takes a while) ..."
	@$(PIP) install $(TORCH) expecttest
	@touch $@
