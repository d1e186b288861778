# Every target makes .venv first when it is missing or stale (setup_env.sh). PYTHON=... chooses the Python.
.DEFAULT_GOAL := help
.PHONY: help env demo test lint bench clean

JOBS ?= 2
ARGS ?=
BIN := .venv/bin

# Compiled modules are written to disk, once; otherwise every process compiles its imports anew.
unexport PYTHONDONTWRITEBYTECODE

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-6s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "  variables: PYTHON=python3.12 (for .venv), JOBS=2 (test processes), ARGS=... (for fastrl run, pytest)"

env:
	@./setup_env.sh

demo: env ## train, evaluate and report the laptop study; the first time about ten minutes on two cores
	@$(BIN)/fastrl run study=laptop $(ARGS)
	@echo "report: $(CURDIR)/results/studies/laptop/report.html"

test: env ## run the tests
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile $(ARGS)

lint: env ## check style (ruff) and types (mypy)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: env ## run every benchmark of benchmarks/
	@set -e; for script in benchmarks/*.py; do \
	  name=$$(basename "$$script" .py); echo "== $$name"; $(BIN)/python -m "benchmarks.$$name"; done

clean: ## remove .venv and all caches; results/ stays
	@rm -rf .venv .venv.lock build dist *.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache outputs multirun
	@find . -name __pycache__ -type d -not -path './results/*' -prune -exec rm -rf {} +
	@echo "removed .venv and caches; results/ is kept (delete it yourself to start the studies anew)"
