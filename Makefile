# Two commands do everything on a fresh machine with Python 3.11+, pip, venv and make:
#   make demo    plays the game on real problems        make test    passes the tests
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Repeatable installs: the versions that the tests have seen. Drop it with `make CONSTRAINTS= ...`.
CONSTRAINTS ?= -c constraints.txt
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check $(CONSTRAINTS)
# What `test` and the gates install: `make test EXTRAS=dev,dev-models,rllib` also tests language models and Ray.
EXTRAS ?= dev
comma := ,
DEV_STAMP := $(VENV)/.installed-$(subst $(comma),+,$(EXTRAS))
SOURCES := codea1_env agents tests benchmarks examples

.PHONY: demo coevolve test check format lint types imports wheel-test install install-dev clean help
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; try: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e .
	@touch $@

$(DEV_STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) -e '.[$(EXTRAS)]'
	@touch $@ $(VENV)/.installed

install: $(VENV)/.installed ## the package into .venv
install-dev: $(DEV_STAMP) ## the package and what its tests need into .venv

demo: install ## play HumanEval: a mutant coder against a fuzzing tester
	$(BIN)/codea1 play --problems humaneval --coder mutant --tester fuzz --episodes 20 --show 2

coevolve: ## train two language models against each other from nothing, on this machine's processors
	@$(MAKE) --no-print-directory install-dev EXTRAS=rllib,study
	$(BIN)/codea1 demo coevolve

test: install-dev ## all tests
	$(BIN)/python -m pytest -q -n auto --dist loadgroup

lint: install-dev
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)

types: install-dev
	$(BIN)/mypy

imports: install-dev
	$(BIN)/lint-imports

check: lint types imports test ## every gate: format, lint, types, import contracts, tests

format: install-dev ## rewrite the sources in the house format
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

wheel-test: install-dev ## build the wheel, install it elsewhere, play from there
	rm -rf build/wheel && mkdir -p build/wheel
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation -w build/wheel .
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/python -m pip install --quiet --disable-pip-version-check $(CONSTRAINTS) build/wheel/*.whl
	cd build/wheel && venv/bin/codea1 play --problems starter --episodes 3 --json > /dev/null
	cd build/wheel && venv/bin/python -c "import codea1_env, codea1_agents; assert 'site-packages' in codea1_env.__file__"

clean: ## remove what the targets above made
	rm -rf $(VENV) build dist
