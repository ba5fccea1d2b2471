# One target for each thing a person does; `make help` lists them. Everything installs itself into .venv on first use.
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# Python 3.11 or newer, by whichever name it has here.
NEW_ENOUGH := -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
PYTHON ?= $(firstword $(foreach name,python3.11 python3 python,$(shell $(name) $(NEW_ENOUGH) && command -v $(name))))
VENV ?= .venv
# The one place that pins torch. Another build: make setup TORCH=torch==2.14.0 TORCH_INDEX=https://...
TORCH ?= torch==2.13.0
TORCH_INDEX ?=
# Versions of everything else: those that this release was tested with. test-oldest and test-newest have others.
CONSTRAINTS ?= constraints.txt
ENV =
BUDGET = paper
SEEDS = 6
METHODS =
JOBS =
LAUNCHER = local
STUDY = reference
AGAINST =
ARGS =
PYTEST =
HOURS = 1
SEED = 0
CASE =
# make takes any variable without a word, and env=gap would start days of work on another environment.
KNOWN := PYTHON VENV TORCH TORCH_INDEX CONSTRAINTS ENV BUDGET SEEDS METHODS JOBS LAUNCHER STUDY AGAINST ARGS PYTEST OMP_NUM_THREADS \
  $(if $(filter soak,$(MAKECMDGOALS)),HOURS SEED CASE)
GIVEN := $(foreach name,$(.VARIABLES),$(if $(findstring command,$(origin $(name))),$(filter-out MAKE%,$(name))))
UPPER = $(shell echo '$(1)' | tr a-z A-Z)
NEAREST = $(firstword $(filter $(call UPPER,$(1)) $(call UPPER,$(1))S,$(KNOWN)))
$(foreach name,$(filter-out $(KNOWN),$(GIVEN)),$(error There is no variable $(name)$(if $(call NEAREST,$(name)),; say $(call NEAREST,$(name))=...); \
allowed are $(KNOWN); keys of the configuration go into ARGS="key=value ..."))

BIN := $(VENV)/bin
RUN := $(BIN)/python
BENCH := $(BIN)/codesign-bench
STAMP := $(VENV)/.installed
# What is cleared and removed is an installation, never somebody's folder: VENV=results would be the end of it.
OWN_VENV = test ! -e '$(VENV)' -o -f '$(VENV)/pyvenv.cfg' || { echo "VENV is '$(VENV)', which holds no Python environment; allowed is a new folder"; exit 2; }
# One thread per process: two processes with two threads each crawl on two cores.
export OMP_NUM_THREADS ?= 1

.PHONY: help setup bench demo figures report docs wheel test test-full test-oldest test-newest soak lint perf pictures clean

help:  ## list the targets
	@grep -hE '^[a-z -]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(STAMP)  ## install everything into .venv (the other targets do it by themselves)

$(STAMP): pyproject.toml $(CONSTRAINTS)
	@"$(PYTHON)" $(NEW_ENOUGH) || { echo "There is no Python 3.11 or newer on this machine; install it, or say make PYTHON=... $(MAKECMDGOALS)"; exit 2; }
	@$(OWN_VENV)
	$(RUN) -m pip --version >/dev/null 2>&1 || "$(PYTHON)" -m venv --clear $(VENV)
	$(RUN) -m pip install --quiet $(TORCH) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX))
	$(RUN) -m pip install --quiet --constraint $(CONSTRAINTS) --editable '.[dev]'
	touch $@

bench: $(STAMP)  ## compare methods on ENV=gap [METHODS=a,b SEEDS=6 BUDGET=paper|pilot|smoke JOBS= LAUNCHER=local|slurm|ray ARGS="key=value ..."]
	@test -n '$(ENV)' || { echo "Say which environment: make bench ENV=gap (help: $(BENCH) bench --help)"; exit 2; }
	@case '$(SEEDS)' in ''|0|*[!0-9]*) echo "SEEDS is '$(SEEDS)'; allowed is a whole number from 1 up"; exit 2;; esac
	$(BENCH) bench env=$(ENV) budget=$(BUDGET) 'seed=range(0,$(SEEDS))' launcher=$(LAUNCHER) \
	  $(if $(filter-out paper,$(BUDGET)),study=bench_$(BUDGET)) $(if $(METHODS),method=$(METHODS)) $(if $(and $(JOBS),$(filter local,$(LAUNCHER))),hydra.launcher.jobs=$(JOBS)) $(ARGS)

demo: $(STAMP)  ## all methods, two seeds, minutes: runs, figures and report as they will look, study my_demo [ENV=locomotion2d]
	$(BENCH) bench experiment=demo env=$(or $(ENV),locomotion2d) study=my_demo $(ARGS)
	$(BENCH) figures study=my_demo
	$(BENCH) report study=my_demo

figures: $(STAMP)  ## figures and tables of a study, without simulating, into figures/ [STUDY=reference AGAINST=other ARGS="env=gap only=comparison"]
	$(BENCH) figures study=$(STUDY) $(if $(AGAINST),against=$(AGAINST)) $(ARGS)

report: $(STAMP)  ## a study as one HTML file, figures/STUDY/report.html, without simulating [STUDY=reference]
	$(BENCH) report study=$(STUDY) $(ARGS)

# Zensical builds without a network; the pages on commands and environments are made from conf/ and docstrings first.
docs: $(VENV)/.docs  ## the documentation site into site/; fails on a broken link, or on anything that is loaded from elsewhere
	$(RUN) -m docs.generate
	$(BIN)/zensical build --clean --strict
	$(RUN) -m docs.generate.check site

$(VENV)/.docs: $(STAMP)
	$(RUN) -m pip install --quiet --constraint $(CONSTRAINTS) --editable '.[dev,docs]'
	touch $@

wheel: $(STAMP)  ## a wheel with methods and configuration, into dist/
	$(RUN) -m pip wheel --quiet --no-deps --wheel-dir dist .

test: $(STAMP)  ## the fast tests
	$(RUN) -m pytest -n 2 $(PYTEST)

test-full: $(STAMP)  ## all tests, with learning and fault injection
	$(RUN) -m pip install --quiet --constraint $(CONSTRAINTS) --editable '.[dev,launchers,docs,examples,sb3]'
	$(RUN) -m pytest -n 2 -m "slow or not slow" $(PYTEST)

.oldest.txt .newest.txt: .%.txt: pyproject.toml tests/versions.py
	"$(PYTHON)" tests/versions.py $* > $@

test-oldest test-newest: test-%:  ## the fast tests with the oldest or newest versions that pyproject.toml allows, in an environment of their own
	$(MAKE) test VENV=.venv-$* CONSTRAINTS=.$*.txt

soak: $(STAMP)  ## small runs of every method under random faults, and a table of what was lost [HOURS=1 SEED=0; CASE=17: one case again]
	@$(RUN) -m tests.faults.soak '$(HOURS)' '$(SEED)' '$(CASE)'

lint: $(STAMP)  ## ruff, mypy, and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(RUN) -m mypy
	$(BIN)/lint-imports

perf: $(STAMP)  ## speed as ratios within one run; fails below a bar [AGAINST=REVISION: whole iterations of this tree and of another]
	$(RUN) -m $(if $(AGAINST),tests.perf.against $(AGAINST),tests.perf) $(ARGS)

pictures: $(STAMP)  ## the pictures of the README and of the environments
	$(BENCH) render env=all out=docs/random_agents.png seed=3 agents=1
	$(RUN) -m docs.generate.pictures

clean:  ## remove the installation and caches (never results)
	@$(OWN_VENV)
	rm -rf $(VENV) .venv-oldest .venv-newest .oldest.txt .newest.txt .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
