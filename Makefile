# make run        the scenarios, every variant beside the contract that mends it
# make test       what a newcomer runs: all but the long tests, the notebooks included
# make check      the long tests
# make lab        JupyterLab, at the first chapter
# make notebooks  runs every chapter and stores its outputs in their normal form
# make chaos      processes that are killed, on SQLite and on PostgreSQL, and an audit
# make bench      the measurements
# make oracle     counts the explorer's states once more, by Debian's spin (apt-get install spin gcc)
# make readme     writes the parts of README.md that are made from the code
# make figures    draws README's picture
# make clean      removes what these make, .venv too
#
# Each installs into .venv first if that is missing or older than pyproject.toml or constraints.txt.
# Another interpreter: make clean, then make PYTHON=python3.12 run.

PYTHON ?= python3

# Notebooks and tests start `jobslab` by its name. Paths below stay relative: the checkout may lie in a folder with spaces.
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.PHONY: run test check lab notebooks chaos bench oracle readme figures install clean

run: .venv/installed
	@.venv/bin/jobslab run

test: .venv/installed
	.venv/bin/pytest --nbval

check: .venv/installed
	.venv/bin/pytest -m long

lab: .venv/installed
	.venv/bin/jobslab lab

notebooks: .venv/installed
	.venv/bin/python tools/notebooks.py

chaos: .venv/installed
	.venv/bin/jobslab chaos --store sqlite
	.venv/bin/jobslab chaos --store postgresql

bench: .venv/installed
	.venv/bin/python -m bench

oracle: .venv/installed
	@command -v spin >/dev/null && command -v gcc >/dev/null || { echo 'This needs spin and gcc: apt-get install spin gcc.' >&2; exit 2; }
	.venv/bin/python -m tests.oracle.counts

readme: .venv/installed
	.venv/bin/python tools/readme.py

figures: .venv/installed
	.venv/bin/python tools/figures.py

install: .venv/installed

# pip's warnings are about the machine (a notice, a mirror that lacks a package); what fails it says at -qq too.
.venv/installed: pyproject.toml constraints.txt
	@command -v "$(PYTHON)" >/dev/null || { echo 'No interpreter named "$(PYTHON)": say make PYTHON=python3.12 (3.11 or newer).' >&2; exit 2; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "jobslab needs Python 3.11 or newer, and $(PYTHON) is $$("$(PYTHON)" -V 2>&1): say make PYTHON=python3.12." >&2; exit 2; }
	@echo 'installing into .venv (once, a minute or two) ...'
	@if command -v uv >/dev/null; then \
		uv venv --quiet --allow-existing --python "$(PYTHON)" .venv && \
		uv pip install --quiet --python .venv/bin/python -c constraints.txt -e '.[lab,postgres,test,bench]'; \
	else \
		"$(PYTHON)" -m venv .venv && \
		.venv/bin/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[lab,postgres,test,bench]'; \
	fi
	@touch $@

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .schemathesis
	find . -name __pycache__ -prune -exec rm -rf {} +
