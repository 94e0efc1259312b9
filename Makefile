# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint docs bench clean

demo: .venv/.installed
	$(BIN)/rankgrove demo

test: .venv/.installed-dev lint
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: .venv/.installed-dev
	$(BIN)/ruff check src papers tests benchmarks tools
	$(BIN)/ruff format --check src papers tests benchmarks tools
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# The site, into build/docs/site.
docs: .venv/.installed-dev
	$(BIN)/python -m tools.site

bench: .venv/.installed-dev
	$(BIN)/python -m benchmarks

# The stamps make a second run start at once; a changed pyproject.toml installs again.
.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.installed: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[plot]'
	touch $@

.venv/.installed-dev: .venv/bin/python pyproject.toml papers/pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' --editable ./papers
	touch $@ .venv/.installed

clean:
	rm -rf .venv
