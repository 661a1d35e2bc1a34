# Everything a developer does. The first target that needs it makes .venv, or .venv-python3.12 for
# make PYTHON=python3.12: each interpreter has an environment of its own.
PYTHON ?= python3
WORKERS ?= 2
SUITE ?= core everyday
SECONDS ?= 600
SITE ?= site
VENV := $(if $(filter-out python3 python,$(notdir $(PYTHON))),.venv-$(notdir $(PYTHON)),.venv)
BIN := $(VENV)/bin
PIP := -m pip install --quiet --disable-pip-version-check
# Tests that touch every package that bestk imports, but few problems.
FEW := tests/base tests/readers tests/results tests/structure tests/cli/test_exit_codes.py tests/cli/test_structure.py tests/cli/test_doctor.py tests/problem/test_partitions.py tests/selection/test_estimators.py tests/show/test_plots.py tests/sindy/test_optimizer.py tests/whole/test_optimality.py
# Programs that docs/coming_from is about, and that need environments of their own.
PEERS := abess l0bnb okridge pysindy

.DEFAULT_GOAL := help
.PHONY: help demo test test-oldest test-peers test-gpu fuzz lint bench docs site dist clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.installed  ## find and prove the Lorenz equations in noisy data; draws demo.png
	$(BIN)/python examples/demo.py

# Inner loops are compiled once, beside the linters: both processes of the tests need them at once.
# These share the cores already: threads of BLAS would wait for each other.
test: $(VENV)/.installed  ## lint, types, then all tests
	$(BIN)/bestk warmup --quiet & warm=$$!; $(MAKE) --no-print-directory lint || { kill $$warm; exit 1; }; wait $$warm
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-oldest: .venv-oldest/.installed  ## a part of the tests with the oldest packages that pyproject.toml allows
	.venv-oldest/bin/bestk doctor --quiet
	.venv-oldest/bin/bestk warmup --quiet  # tests that send signals do not wait for a compiler
	.venv-oldest/bin/python -m pytest -p no:cacheprovider -n $(WORKERS) -m "not slow" $(FEW)

test-peers: $(VENV)/.installed  ## pages for users of other programs, beside those programs
	$(BIN)/python -m benchmarks.harness.environments $(PEERS)
	$(BIN)/python -m pytest -n $(WORKERS) tests/whole/test_coming_from.py

test-gpu:  ## tests that need an NVIDIA device, with the packages of PYTHON: nothing is installed
	PYTHONPATH=src:tests $(PYTHON) -m pytest -p no:cacheprovider -m cuda tests/devices tests/form/test_dense_on_device.py tests/problem/test_sums_on_device.py tests/verification/test_on_device.py

fuzz: $(VENV)/.installed  ## random problems against brute force and the verifier, for SECONDS
	$(BIN)/python tests/fuzz.py --seconds $(SECONDS) --workers $(WORKERS) $(ARGS)

lint: $(VENV)/.installed  ## ruff (rules and format), mypy, and which room may import which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.installed  ## benchmarks of SUITE (core everyday; synthetic, wide, tables, dynamics, flows, trust, near_optimal, structure, gpu, cluster, pysindy_tests); tables go to benchmarks/results/
	for suite in $(SUITE); do $(BIN)/python -m benchmarks.$$suite $(ARGS) || exit 1; done

docs: $(VENV)/.installed-docs  ## HTML documentation in docs/_build/html, warnings are errors
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/python .ci/check_docs.py docs/_build/html
	@echo "open docs/_build/html/index.html"

site: docs  ## the same in SITE (site), beside the documentation of other versions that is there
	$(BIN)/python .ci/arrange_site.py docs/_build/html $(SITE)

dist: $(VENV)/.installed  ## sdist and wheel in dist/, each installed in a new environment and tried
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python .ci/check_dist.py dist

clean:  ## remove what was built, but keep .venv and the peers' environments
	rm -rf build dist docs/_build docs/auto_examples .mypy_cache .pytest_cache .ruff_cache .hypothesis demo.png
	find src tests benchmarks examples -name __pycache__ -type d -not -path '*/.venvs/*' -prune -exec rm -rf {} +

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("bestk needs Python 3.11 or newer; try make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	@echo "setting up $(VENV) (once; a minute or two)"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) -e ".[dev]"
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	$(BIN)/python $(PIP) -e ".[docs]"
	@touch $@

# Not editable: its compiled loops are its own. Sources that changed are installed again.
.venv-oldest/.installed: pyproject.toml .ci/oldest.py $(shell find src -name '*.py' -o -name '*.cu')
	test -x .venv-oldest/bin/python || $(PYTHON) -m venv .venv-oldest
	$(PYTHON) .ci/oldest.py > .venv-oldest/oldest.txt
	.venv-oldest/bin/python $(PIP) -r .venv-oldest/oldest.txt
	.venv-oldest/bin/python $(PIP) --no-deps --force-reinstall .
	@touch $@
