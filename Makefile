# What a person types: the environment is made when it is first needed and renewed only when a lock file changes.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help release test fuzz check installs matrix coverage mutants gate shapes hooks lock bench pictures docs clean

# Without byte code the orchestrator alone takes several times as long to import.
unexport PYTHONDONTWRITEBYTECODE
# A package that only this shell can see must not stand in for a locked one.
unexport PYTHONPATH

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
UV := $(BIN)/uv --quiet pip
# The locks list every package, so there is nothing to resolve; a check then proves that nothing was missing.
LOCKED := install --no-deps --require-hashes
# uv unpacks on all processors; pip, which may know an index that uv does not, where it cannot. The hashes decide.
define INSTALL
$(UV) $(LOCKED) --python $(BIN)/python -r $(1) || $(PIP) $(LOCKED) -r $(1)
$(UV) check --python $(BIN)/python
endef

help:
	@echo "make release   sanitise the embedded sample and publish it under releases/"
	@echo "make test      run the tests"
	@echo "make fuzz      run the tests of properties with many random examples"
	@echo "make check     run the linters, the type checker and the import contracts"
	@echo "make installs  prove both installs, library and pipeline, in clean environments"
	@echo "make matrix    the same on every Python that is supported"
	@echo "make coverage  branches that no test of their own room takes, of the rooms that decide"
	@echo "make mutants   change lines of those rooms and count the changes that tests notice"
	@echo "make gate      sabotage the pipeline and list what refuses it; false alarms and power of the gate"
	@echo "make shapes    hold catalogue entries of releases against a file of SHACL shapes, such as the official one"
	@echo "make hooks     check every commit before it is made"
	@echo "make lock      renew the lock files from pyproject.toml"
	@echo "make bench     run the benchmarks"
	@echo "make pictures  take the pictures of both reports in docs/pictures"
	@echo "make docs      build the site of the documentation in build/site, to be opened as it is"
	@echo "make clean     remove the environment and everything built or cached, but no release, record or secret"

release: $(STAMPS)/project
	$(BIN)/funnel release data/adult.toml

# A file of tests stays on one of the workers, and so do all of tests/flows, so that they share what is slow to start. One
# worker more than the two processors of a small machine, since tests of flows wait for other processes now and then.
test: $(STAMPS)/dev $(STAMPS)/project
	scripts/install-system-packages.sh
	$(BIN)/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder

# Other seeds every time, and TIMES as many examples as in the tests: what it finds becomes an @example.
TIMES ?= 20
TESTS ?= tests
fuzz: $(STAMPS)/dev $(STAMPS)/project
	env -u CI FUNNEL_FUZZ=$(TIMES) $(BIN)/python -m pytest --numprocesses 2 -m hypothesis --timeout 3600 $(TESTS)

check: $(STAMPS)/dev $(STAMPS)/project
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

installs: $(STAMPS)/dev
	VENV=$(VENV) scripts/check-installs.sh

matrix: $(STAMPS)/dev
	VENV=$(VENV) scripts/check-installs.sh 3.11 3.12 3.13

coverage: $(STAMPS)/dev $(STAMPS)/project
	$(BIN)/python scripts/rooms.py

# Fourteen lines of each room, or as many as MUTANTS=200 says; a run that was stopped goes on where it was.
mutants: $(STAMPS)/dev $(STAMPS)/project
	$(BIN)/python scripts/mutants.py $(if $(MUTANTS),--sample $(MUTANTS))

# What was measured before is kept in benchmarks/results/gate.json and not measured again: remove it to begin anew.
gate: $(STAMPS)/dev $(STAMPS)/project
	$(BIN)/python -m benchmarks.gate_mutants
	$(BIN)/python -m benchmarks.gate

# make shapes SHAPES=dcat-ap-SHACL.ttl; the file of SEMIC is not kept here (docs/formats.md says where it is).
RELEASES ?= releases/*
shapes: $(STAMPS)/dev $(STAMPS)/project
	@test -n "$(SHAPES)" || { echo "make: name the file of shapes with SHAPES=..." >&2; exit 1; }
	$(BIN)/python scripts/official_shapes.py $(SHAPES) $(RELEASES)

hooks: $(STAMPS)/dev
	$(BIN)/pre-commit install

# The locks name no index and no local file: whatever index this machine uses, the hashes decide.
# PIP_FIND_LINKS and the settings of uv would let one machine's packages into everybody's lock.
COMPILE := env -u PIP_FIND_LINKS -u UV_FIND_LINKS $(BIN)/uv pip compile pyproject.toml --no-config --quiet --upgrade \
	--universal --python-version 3.11 --generate-hashes --no-strip-extras \
	--no-annotate --no-header --no-emit-index-url --no-emit-find-links

lock: $(STAMPS)/dev
	$(COMPILE) --extra pipeline --group build --output-file requirements.lock
	$(COMPILE) --extra dev --group build --constraint requirements.lock --output-file requirements-dev.lock
	@if grep -nE '^ *(-|[^ ]+ @ )|https?://|file:|find-links|(^|[ =])/' requirements.lock requirements-dev.lock | grep -v -- '--hash='; \
	then echo "make: a lock file names an index or a local path; see the lines above." >&2; exit 1; fi

bench: $(STAMPS)/dev $(STAMPS)/project
	$(BIN)/python -m benchmarks.ldp_polytope
	$(BIN)/python -m benchmarks.solver
	$(BIN)/python -m benchmarks.robust
	$(BIN)/python -m benchmarks.sanitise
	$(BIN)/python -m benchmarks.engines

pictures: $(STAMPS)/dev $(STAMPS)/project
	$(BIN)/python scripts/pictures.py

# Warnings are errors; nothing is fetched, neither here nor when it is read (decision 0064).
docs: $(STAMPS)/dev $(STAMPS)/project
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs --quiet build
	@echo "Open build/site/index.html."

# Not .funnel: beside what can be made again it holds release secrets and the record of what was published.
clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis \
		.coverage .mutants
	find . -name .funnel -prune -o -name releases -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMPS)/created:
	@command -v $(PYTHON) >/dev/null || { echo "make: funnel needs Python 3.11 or newer, and '$(PYTHON)' was not found." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "make: funnel needs Python 3.11 or newer, and '$(PYTHON)' is $$($(PYTHON) --version); name a newer one with make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	{ echo "make: '$(PYTHON)' cannot make virtual environments; install its venv module (on Debian: apt-get install python3-venv)." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS) && touch $@

# The second has no wheel at every index: pip keeps the one that it builds, where uv builds it anew every time.
$(STAMPS)/installer: requirements-dev.lock $(STAMPS)/created
	@scripts/locked.sh requirements-dev.lock uv pycddlib-standalone >$(STAMPS)/first.lock
	$(PIP) $(LOCKED) -r $(STAMPS)/first.lock
	@touch $@

$(STAMPS)/runtime: requirements.lock $(STAMPS)/installer
	@echo "Installing the locked packages into $(VENV); the first time takes some minutes."
	$(call INSTALL,requirements.lock)
	@touch $@

$(STAMPS)/dev: requirements-dev.lock $(STAMPS)/runtime
	$(call INSTALL,requirements-dev.lock)
	@touch $@

$(STAMPS)/project: pyproject.toml reproduce/pyproject.toml $(STAMPS)/runtime
	$(PIP) install --no-deps --no-build-isolation --editable . --editable reproduce
	@touch $@
