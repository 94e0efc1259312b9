# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
OLDEST := .venv-oldest
BUILD := .venv-build
# Two processes; the tests of a file stay in one, so that they share its fixtures.
PYTEST := -m pytest -n 2 --dist loadfile
# Which lines of src/rankgrove the tests run: [tool.slipcover] in pyproject.toml.
COVERED := -m slipcover --json --out .venv/coverage.json

.PHONY: demo test test-fast test-oldest lint hooks docs bench wheel clean

demo: .venv/.installed
	$(BIN)/rankgrove demo

test: .venv/.installed-dev lint
	$(BIN)/python $(COVERED) $(PYTEST)
	@$(BIN)/python -m tools.coverage

# While one works: without the tests that are marked slow, and without the linters.
test-fast: .venv/.installed-dev
	$(BIN)/python $(PYTEST) -m "not slow"

# The fast tests with the lowest versions that pyproject.toml allows, in an environment of their own.
test-oldest: $(OLDEST)/.installed
	$(OLDEST)/bin/python $(PYTEST) -m "not slow"

lint: .venv/.installed-dev
	$(BIN)/ruff check src papers tests benchmarks tools
	$(BIN)/ruff format --check src papers tests benchmarks tools
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# The linters before every commit: .pre-commit-config.yaml.
hooks: .venv/.installed-dev
	$(BIN)/pre-commit install

# The site, into build/docs/site.
docs: .venv/.installed-dev
	$(BIN)/python -m tools.site

bench: .venv/.installed-dev
	$(BIN)/python -m benchmarks

# The files of a release, into dist/: built twice, installed without a compiler, every command run.
wheel: $(BUILD)/.installed
	$(BUILD)/bin/python -m tools.wheel

# The stamps make a second run start at once; a changed pyproject.toml installs again.
.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.installed: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[plot]'
	touch $@

.venv/.installed-dev: .venv/bin/python pyproject.toml papers/pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' --editable ./papers
	touch $@ .venv/.installed

$(OLDEST)/bin/python:
	$(PYTHON) -m venv $(OLDEST)

$(OLDEST)/.installed: $(OLDEST)/bin/python pyproject.toml tools/oldest.py
	$(OLDEST)/bin/python -m tools.oldest > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint $(OLDEST)/constraints.txt --editable '.[test]'
	touch $@

# As [build-system] of pyproject.toml has it.
$(BUILD)/.installed: pyproject.toml
	$(PYTHON) -m venv $(BUILD)
	$(BUILD)/bin/python -m pip install --quiet --disable-pip-version-check 'hatchling>=1.27'
	touch $@

clean:
	rm -rf .venv $(OLDEST) $(BUILD) dist
