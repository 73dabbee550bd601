# Every target works on a fresh machine with Python 3.11 to 3.13; `make` alone lists them.
PYTHON ?= python3
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help install demo test check bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: .venv/.installed ## create .venv with everything a developer needs

.venv/.installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: install ## run the village: events in, a crash, two memories, time travel, rebuild
	@$(BIN)/recallog demo

test: install ## run all tests
	$(BIN)/python -m pytest

check: install ## lint, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: install ## measure, print a table and write build/bench.json
	$(BIN)/python -m benchmarks

clean: ## remove what the targets made
	rm -rf .venv build .pytest_cache .mypy_cache .ruff_cache .hypothesis
