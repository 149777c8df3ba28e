# The two commands are `make run` and `make test`; both install what is missing first.
PYTHON ?= python3
SETUP := $(PYTHON) kernelhub/launch/install.py
BIN := .venv/bin
ARGS ?=
WITH ?=
# Commands that need no running database take the settings of the tests.
TEST_ENV := DJANGO_SETTINGS_MODULE=kernelhub.settings.test
# Looking for missing migrations asks no database, not even whether one is there.
OFFLINE_ENV := DJANGO_SETTINGS_MODULE=kernelhub.settings.offline

.DEFAULT_GOAL := help
.PHONY: help setup run test check fmt perf sweep lock clean

help: ## Show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-7s %s\n", $$1, $$2}'

setup: ## Install into .venv (WITH="services" leaves out torch and the developer's tools)
	@$(SETUP) $(if $(WITH),--with "$(WITH)")
	@echo "setup: done, .venv has what is asked for"

run: ## Start everything, judge the demo corpus, serve http://127.0.0.1:8000
	@$(SETUP) --with "runner services"
	@exec $(BIN)/python -m kernelhub.launch --stop-with-parent $(ARGS)

test: ## Run the whole test suite (ARGS are passed to pytest)
	@$(SETUP)
	@exec $(BIN)/python -m pytest -n 3 --dist worksteal $(ARGS)

check: ## Lint, formatting, types, import rules, Django's checks, missing migrations
	@$(SETUP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(TEST_ENV) $(BIN)/python manage.py check --fail-level WARNING
	$(OFFLINE_ENV) $(BIN)/python manage.py makemigrations --check --dry-run

fmt: ## Format the code and repair what lint can repair
	@$(SETUP)
	$(BIN)/ruff check --fix --exit-zero
	$(BIN)/ruff format

perf: ## Start a private hub and print start times, memory and verification times
	@$(SETUP)
	@exec $(BIN)/python -m tests.perf.report $(ARGS)

sweep: ## Judge every kernel whose truth is known, on this device (ARGS="--workers 8 --only softmax")
	@$(SETUP)
	@exec $(BIN)/python -m tests.perf.sweep $(ARGS)

lock: ## Write constraints.txt anew from pyproject.toml, newest versions first
	@$(SETUP) --lock

clean: ## Remove caches and collected static files; keeps .venv and var/
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis staticfiles
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
