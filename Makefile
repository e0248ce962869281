# Yeoron: the commands a person types. `make help` lists them.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TOOLS := $(VENV)/.tools

.DEFAULT_GOAL := help
.PHONY: help setup tools lock demo up down test test-all hosts containers airflow-minor docs explore check format lint types contracts audit clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(STAMP) ## make .venv, install what running needs, find a Chromium: TORCH=cpu or cuda

$(STAMP): pyproject.toml $(wildcard $(addprefix infra/locks/,build.txt cpu.txt cuda.txt run.txt)) infra/setup.sh infra/install.sh
	@PYTHON=$(PYTHON) TORCH=$(TORCH) bash infra/setup.sh
	@touch $(STAMP)

tools: $(TOOLS) ## install what tests, checks and documentation need, too

$(TOOLS): $(STAMP) infra/locks/test.txt
	@echo "Installing what tests, checks and documentation need (infra/locks/test.txt)"
	@bash infra/install.sh test
	@touch $(TOOLS)

# Not after `setup`, which ends where pyproject.toml needs more than the locks have.
lock: ## write infra/locks for pyproject.toml; RAISE="numpy scipy" raises these, RAISE=all all (needs .venv, uv, and a network)
	@[ -x $(BIN)/python ] || { echo "lock: there is no .venv here; make setup." >&2; exit 2; }
	@command -v uv >/dev/null || { echo "lock: uv is missing; pipx install uv." >&2; exit 2; }
	@$(BIN)/python infra/lock.py $(RAISE)

demo: setup ## start the platform, play invented texts, check what was found
	@$(BIN)/yeoron demo

up: setup ## start the platform
	@$(BIN)/yeoron up

down: ## stop every process the platform started
	@if [ -x $(BIN)/yeoron ]; then $(BIN)/yeoron down; else echo "Nothing to stop: .venv does not exist."; fi

check: lint types contracts ## ruff, mypy strict, import contracts

lint: tools
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: tools
	@$(BIN)/mypy

contracts: tools
	@$(BIN)/lint-imports

format: tools ## format and fix what ruff can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

test: tools check ## everything CI runs, several files at a time
	@bash infra/test.sh

test-all: tools check ## make test, the long tests of the laboratory and all generated examples; writes down that the laboratory passed
	@bash infra/test.sh --all
	@$(BIN)/python tests/laboratory.py --passed

hosts: tools ## the test with five hosts in network namespaces, which takes minutes (needs root and PostgreSQL)
	@HOSTS_TEST=1 $(BIN)/python -m pytest -v tests/platform/test_server_host.py

airflow-minor: ## the tests of DAGs and provider with another Airflow, in a venv of its own: VERSION=3.2.2 (needs a network)
	@PYTHON=$(PYTHON) bash infra/airflow_minor.sh $(or $(VERSION),3.2.2)

containers: tools ## build the image and run the compose file, which takes minutes (needs root, podman-compose and a base image)
	@[ -n "$$YEORON_TEST_BASE_IMAGE" ] || { echo "containers: YEORON_TEST_BASE_IMAGE names no image; one of Debian is accepted." >&2; exit 2; }
	@$(BIN)/python -m pytest -v tests/infra/test_containers.py

audit: ## look up known vulnerabilities of the pinned packages (needs pip-audit on the path, and a network)
	@command -v pip-audit >/dev/null || { echo "audit: pip-audit is missing; pipx install pip-audit." >&2; exit 2; }
	@pip-audit --strict $(foreach lock,build run cuda test,--requirement infra/locks/$(lock).txt) --no-deps --disable-pip || { \
	  echo "audit: a package is vulnerable, or could not be looked up at PyPI; the lines above say which." >&2; exit 1; }

docs: tools ## write the reference pages and build the site into var/site
	@$(BIN)/python infra/reference.py
	@$(BIN)/mkdocs build --strict --quiet

explore: tools ## look for new examples that fail: SECONDS=1800 SEED=n ROUNDS=n SCALE=1 WHERE=tests/text
	@$(BIN)/python tests/explore.py --seconds $(or $(SECONDS),1800) --scale $(or $(SCALE),1) \
	  $(if $(SEED),--seed $(SEED)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(WHERE)

clean: down ## stop everything, remove .venv and var
	rm -rf $(VENV) var
