# Everything a developer does. The first target that needs it makes .venv.
PYTHON ?= python3
WORKERS ?= 2
SUITE ?= core everyday
SECONDS ?= 600
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help demo test test-gpu fuzz lint bench docs clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/.installed  ## find and prove the Lorenz equations in noisy data; draws demo.png
	$(BIN)/python examples/demo.py

test: lint  ## lint, types, then all tests
	$(BIN)/python -m pytest -n $(WORKERS)

test-gpu:  ## tests that need an NVIDIA device, with the packages of PYTHON: nothing is installed
	PYTHONPATH=src:tests $(PYTHON) -m pytest -p no:cacheprovider -m cuda tests/devices tests/form/test_dense_on_device.py tests/problem/test_sums_on_device.py tests/verification/test_on_device.py

fuzz: .venv/.installed  ## random problems against brute force and the verifier, for SECONDS
	$(BIN)/python tests/fuzz.py --seconds $(SECONDS) --workers $(WORKERS) $(ARGS)

lint: .venv/.installed  ## ruff (rules and format), mypy, and which room may import which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/.installed  ## benchmarks of SUITE (core everyday; synthetic, wide, tables, dynamics, flows, trust, near_optimal, structure, gpu, cluster); tables go to benchmarks/results/
	for suite in $(SUITE); do $(BIN)/python -m benchmarks.$$suite $(ARGS) || exit 1; done

docs: .venv/.installed-docs  ## HTML documentation in docs/_build/html, warnings are errors
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

clean:  ## remove what was built, but keep .venv and the peers' environments
	rm -rf build dist docs/_build docs/auto_examples .mypy_cache .pytest_cache .ruff_cache .hypothesis demo.png
	find src tests benchmarks examples -name __pycache__ -type d -not -path '*/.venvs/*' -prune -exec rm -rf {} +

.venv/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("bestk needs Python 3.11 or newer; try make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	@echo "setting up .venv (once; a minute or two)"
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $@

.venv/.installed-docs: .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	@touch $@
