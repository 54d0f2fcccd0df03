# Imprint: two commands are enough, `make run` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help install run demo test prove bench bench-peers lint format docs screenshots requirements clean

help: ## list what can be made
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Imprint needs Python 3.11 or newer; point to one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "Python's venv module is missing; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

# The stamps make a second call free, and a changed pin a new installation.
$(VENV)/.run: $(BIN)/python requirements/run.txt pyproject.toml hatch_build.py src/imprint/web/package-lock.json
	@echo "installing what Imprint needs (once, about a minute)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/run.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.run requirements/test.txt
	@echo "installing what the tests need (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/test.txt
	@touch $@

install: $(VENV)/.run ## set up .venv, nothing else

run: $(VENV)/.run ## start Imprint; Ctrl-C stops everything
	@exec $(BIN)/imprint up

demo: $(VENV)/.run ## the one-minute story
	@exec $(BIN)/imprint demo

test: $(VENV)/.test lint ## lint, types, import rules, docs freshness and all tests
	@$(BIN)/python -m pytest -n auto --dist worksteal

prove: $(VENV)/.test ## the long form of every proof, kept in docs/reliability.md; best overnight
	@$(BIN)/python -m docs.record model prove model
	@$(BIN)/python -m docs.record kills prove kills --publishes 10000 --kills 2000
	@$(BIN)/python -m docs.record kills-no-token prove kills --publishes 10000 --kills 2000 --no-token
	@$(BIN)/python -m docs.record database prove database
	@$(BIN)/python -m docs.record soak prove soak --minutes 10
	@$(BIN)/python -m docs.record defects prove defects
	@$(BIN)/python -m docs.generate

bench: $(VENV)/.test ## every bench beside its peers, and bench/REPORT.md; QUICK=1 for a first look
	@$(BIN)/python -m bench $(if $(QUICK),--quick)

bench-peers: $(VENV)/.test ## install the peers, each into a folder of its own
	@$(BIN)/python -m bench.peers

lint: $(VENV)/.test ## ruff, mypy and the import rules
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@$(BIN)/mypy
	@PYTHONPATH=src $(BIN)/lint-imports

format: $(VENV)/.test ## let ruff put the code in order
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

docs: $(VENV)/.test ## write the generated pages anew
	@$(BIN)/python -m docs.generate

screenshots: $(VENV)/.test ## a picture of every page, wide and narrow, light and dark, into build/screenshots
	@$(BIN)/python -m tests.browser.screenshots

requirements: $(VENV)/.test ## pin every version anew, with hashes
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --upgrade --python-version 3.11 \
	  pyproject.toml requirements/build.in -o requirements/run.txt
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --upgrade --python-version 3.11 \
	  --extra test pyproject.toml requirements/build.in -c requirements/run.txt -o requirements/test.txt

clean: ## remove .venv and what tools left behind
	@rm -rf $(VENV) build dist src/imprint/web/assets .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
