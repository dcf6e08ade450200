# make up     install what is missing, then run a first piece of code in a box
# make test   the tests          make check  linters, types, generated files, C warnings
# make build  the C programs, into cloche/_bin
# make bench  the figures        make soak   long fuzzing, many boxes        make clean  remove what was made
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := up
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
export PYTHON
BIN := .venv/bin
C_SOURCES := $(wildcard $(addprefix keeper/,*.c *.h launch/*.c launch/*.h probe/*.c probe/*.h))
PROGRAM_SOURCES := $(filter-out %_test.c keeper/fuzz%,$(wildcard keeper/*.c))
LAUNCH_SOURCES := $(filter-out %_test.c,$(wildcard keeper/launch/*.c))
PROBE_SOURCES := $(wildcard keeper/probe/*.c)
C_CHECK := -std=c11 -O2 -Wall -Wextra -Werror -fsyntax-only

SOAKS := tests/keeper/test_frames.py tests/test_link_frames.py tests/security/test_leftovers.py

.PHONY: up build test check bench soak clean system system-tests

up: .venv/installed
	@$(BIN)/python -m cloche.first_run

build: .venv/installed

test: .venv/installed-dev
	@$(BIN)/python -m pytest -q $(ARGS)

check: .venv/installed-dev
	@$(BIN)/ruff check --quiet --output-format concise .
	$(BIN)/ruff format --check --quiet . || { echo 'not formatted; run: .venv/bin/ruff format .' >&2; exit 1; }
	$(BIN)/pyright --warnings
	$(BIN)/python tools/generate_sync.py --check
	$(BIN)/python tools/generate_guarantees.py --check
	$(BIN)/python tools/generate_reference.py --check
	gcc $(C_CHECK) $(PROGRAM_SOURCES)
	gcc $(C_CHECK) $(LAUNCH_SOURCES)
	gcc $(C_CHECK) $(PROBE_SOURCES)
	echo 'make check: all is well'

bench: .venv/installed-dev
	@$(BIN)/python -m bench $(ARGS)

soak: .venv/installed-dev
	@CLOCHE_FUZZ=1000000 CLOCHE_SOAK=1 $(BIN)/python -m pytest -q --timeout=7200 --durations=0 $(SOAKS) $(ARGS)

clean:
	rm -rf .venv .cache build dist cloche/_bin .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

system:
	@tools/system_packages.sh

system-tests:
	@tools/system_packages.sh tests

# A stamp stands for a virtual environment that holds Cloche with its C programs compiled.
.venv/installed: pyproject.toml hatch_build.py cloche/version.py $(C_SOURCES) | system
	@tools/install.sh .
	touch $@

.venv/installed-dev: .venv/installed | system-tests
	@tools/install.sh '.[dev]'
	touch $@
