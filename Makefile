# Every target sets up .venv by itself; nothing but make and Python 3.11 or newer has to be there.
#
#   make demo        train the names model and sample from it
#   make test        ruff, mypy and the test suite           make test-slow   the long tests too
#   make test-later  tests of a few seconds each that .ci/run makes after `make test`
#   make test-avx2   the tests as on a processor with AVX2 and without AVX-512 (tools/avx2.py)
#   make test-oldest   the tests with the oldest versions that pyproject.toml allows    make test-newest   with the newest
#   make test-strict   the tests in Python's development mode    make fuzz   random programs; ARGS="--minutes 60 --first 0"
#   make bench       all benchmarks, side by side with their peers
#   make mutants PIECE=cache   small changes of the core that its tests should notice; ARGS="--every 10 --minutes 5"
#   make lint        ruff, its formatter and mypy only    make format      format the code, write stubs, examples and docstrings
#   make docs        the documentation, in build/docs/html
#   make release     wheel, source archive, checks and use of both in fresh environments, in dist/ (docs/release.md)
#   make clean       remove .venv and everything generated
#
# PYTHON=/path/to/python chooses the interpreter .venv is made with; ARGS="..." is handed on to the command.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-later test-slow test-avx2 test-oldest test-newest test-strict fuzz bench mutants lint format docs release clean
SHELL := /bin/sh

# The newest that runs and can make an environment: a version manager's shim may exist and still run nothing.
PYTHON ?= $(shell for name in python3.13 python3.12 python3.11 python3; do \
	if $$name -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$name; break; fi; done)
RUN := .venv/bin/python
RUNTIME := .venv/.stamp-run
DEV := .venv/.stamp-dev
TORCH := .venv/.stamp-torch
PEERS := .venv/.stamp-bench
MUTANTS := .venv/.stamp-mutants
DOCS := .venv/.stamp-docs
RELEASE := .venv/.stamp-release

help:
	@sed -n '3,16s/^# *//p' Makefile

# A stamp holds the folder it was made in: in a moved or copied folder .venv points to the wrong place.
ifneq ($(shell head -n 1 .venv/.stamp-run 2>/dev/null),$(shell pwd -P))
MOVED := moved
.PHONY: moved
endif

# The stamps. tools/bootstrap.py locks .venv, so that parallel makes do not meet in it, and writes a stamp last.
.venv/.stamp-%: pyproject.toml constraints.txt $(MOVED)
	@if [ -z "$(PYTHON)" ]; then \
		echo "glassgrad needs Python 3.11 or newer with the venv module, and none of python3.13, python3.12, python3.11"; \
		echo "and python3 is one. Install it, or say where it is: make PYTHON=/path/to/python3.11"; exit 1; fi
	@$(PYTHON) tools/bootstrap.py $*

$(DEV) $(TORCH) $(PEERS) $(MUTANTS) $(DOCS) $(RELEASE): | $(RUNTIME)

demo: $(RUNTIME)
	.venv/bin/glassgrad train names $(ARGS)

lint: $(DEV)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy --strict src

format: $(DEV)
	$(RUN) tools/examples.py
	$(RUN) tools/stubs.py
	$(RUN) -m ruff format .
	$(RUN) tools/promise.py

test: $(DEV) $(TORCH) lint
	$(RUN) -m pytest $(ARGS)

test-slow: $(DEV) $(TORCH)
	$(RUN) -m pytest -m "slow or not slow" --native $(ARGS)

test-later: $(DEV) $(TORCH)
	$(RUN) -m pytest -m later $(ARGS)

test-avx2: $(DEV) $(TORCH)
	$(RUN) tools/avx2.py -m pytest $(ARGS)

test-strict: $(DEV)
	$(RUN) -X dev -W error -m pytest $(ARGS)

fuzz: $(DEV) $(TORCH)
	$(RUN) -m tests.fuzz.night $(ARGS)

# In environments of their own, below build/.
test-oldest test-newest:
	@if [ -z "$(PYTHON)" ]; then echo "needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 $@"; exit 1; fi
	$(PYTHON) tools/dependencies.py $(@:test-%=%) $(ARGS)

bench: $(DEV) $(TORCH) $(PEERS)
	$(RUN) -m benchmarks all --write $(ARGS)

mutants: $(DEV) $(TORCH) $(MUTANTS)
	$(RUN) -m tools.mutants $(PIECE) $(ARGS)

docs: $(DOCS)
	$(RUN) docs/build.py $(ARGS)

release: $(RUNTIME) $(RELEASE)
	$(RUN) -m tools.release $(ARGS)

clean:
	rm -rf .venv .venv.lock dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
