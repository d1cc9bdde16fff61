# The commands of this project. `make demo` and `make test` are the two that a newcomer needs.
PYTHON ?= python3
BIN    := .venv/bin
PYTEST := $(BIN)/python -m pytest
OUT    := out
WORKERS ?= 2
# Kind runs where a Docker engine answers and a node image is at hand; FEATURES_ON_KIND=required makes its absence a failure.
FEATURES_ON_KIND ?= auto

KIND_IMAGE ?=

.PHONY: demo test test-fast lint lint-workflows features features-kind bench-core bench-live soak test-the-tests mutate clean
.DEFAULT_GOAL := test

.venv/.locked: requirements.lock
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

demo: .venv/.locked
	$(BIN)/python -m harness.demo

test: test-fast
	$(PYTEST) tests -m "embedded and not faults" -n $(WORKERS) --junitxml=$(OUT)/tests-embedded.xml
	$(PYTEST) tests -m faults --junitxml=$(OUT)/tests-faults.xml
	$(MAKE) features
	$(MAKE) features-kind

test-fast: lint
	$(PYTEST) tests -m "not embedded and not kind and not faults" -n $(WORKERS) --junitxml=$(OUT)/tests-fast.xml

lint: .venv/.locked
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

features: .venv/.locked
	$(PYTEST) features --cluster embedded -n $(WORKERS) --junitxml=$(OUT)/features-embedded.xml

features-kind: .venv/.locked
	$(BIN)/python -m harness.clusters.onkind $(FEATURES_ON_KIND) && \
	  $(PYTEST) tests features -m "not embedded and not faults" --cluster kind --junitxml=$(OUT)/features-kind.xml || test $$? = 3

lint-workflows:
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

bench-core: .venv/.locked
	$(BIN)/python -m benchmarks.core

bench-live: .venv/.locked
	$(BIN)/python -m benchmarks.live

clean:
	rm -rf $(OUT) .pytest_cache .mypy_cache .ruff_cache
