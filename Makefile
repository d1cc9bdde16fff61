# The commands of this project. A newcomer needs two of them: `make demo` and `make test`.
PYTHON  ?= python3
BIN     := .venv/bin
PYTEST  := $(BIN)/python -m pytest
OUT     := out
WORKERS ?= 2
# Features run on Kind if a Docker engine answers and a node image is available; with `required`, they fail otherwise.
FEATURES_ON_KIND ?= auto
# The Kubernetes of the embedded cluster: 1.36 or 1.37; empty for the pinned one.
KUBERNETES  ?=
VERSION      = $(if $(KUBERNETES),--kubernetes-version $(KUBERNETES))
KIND_IMAGE  ?=
KIND_CONFIG ?= kind-config/cards.yaml

# On Kind, `make test` runs features that depend on cards and kubelets; .ci/run and `make test-nightly` run all features.
KIND_FEATURES ?= features/lifecycle/first_job.feature features/queue_weights/parts_of_the_cluster.feature $(addprefix features/cross_queue_reclaim/,\
        online_reclaims_offline.feature order_of_victims.feature what_becomes_of_the_job.feature)
KIND_TESTS    ?= kind and not nightly

UNIT := not embedded and not kind and not faults and not nightly
DEMO := features/lifecycle/first_job.feature features/cross_queue_reclaim/order_of_victims.feature \
        features/hierarchy/use_case.feature
# Features that run with the scheduler that deploy/ installs: its image, its rights, two replicas.
IN_CLUSTER := features/lifecycle/first_job.feature features/lifecycle/states.feature features/kubeflow
ON_KIND = --cluster kind --kind-config $(KIND_CONFIG) $(if $(KIND_IMAGE),--kind-image $(KIND_IMAGE))
PROPERTIES := tests/scheduler/backlog/test_lines.py tests/scheduler/backlog/test_quotas.py \
        $(addprefix tests/scheduler/preemption/,test_across_cycles.py test_changing_clusters.py test_properties.py test_shapes.py) \
        tests/schedspec/virtual/test_rest.py
# Options with which .ci/run repeats only failed tests.
ONLY ?=
# Results of `make features` and of `make features-simulated`.
OF_EMBEDDED  := $(OUT)/embedded/features-embedded/results.json
OF_SIMULATED := $(OUT)/simulated/features-simulated/results.json
PARTS := lint test-unit test-embedded test-faults features features-simulated features-kind

.DEFAULT_GOAL := test
help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 26

.PHONY: help demo test test-fast $(PARTS) test-nightly nightly-tests nightly-properties nightly-explore nightly-schedulers nightly-kind lint-workflows docs soak attacks test-the-tests features-gang matrix mutate bench-core bench-live bench-plan bench-recorder bench-simulation fidelity nights clean

.venv/.locked: requirements.lock
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

.venv-mutation/.locked: requirements-mutation.lock
	$(PYTHON) -m venv .venv-mutation
	.venv-mutation/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

demo: .venv/.locked ## boot a cluster, run three feature files on it, end with the path of their report
	@$(PYTEST) $(DEMO) --cluster embedded -v --junitxml=$(OUT)/demo/junit.xml; status=$$?; \
	echo "the report, for any browser: $(OUT)/demo/junit/report.html"; exit $$status

test: .venv/.locked ## all tests that can run on this machine; continues after a failure, and fails at the end
	@failed=; for part in $(PARTS); do $(MAKE) --no-print-directory $$part || failed="$$failed $$part"; done; \
	mkdir -p $(OUT); echo $$failed >$(OUT)/failed-parts; test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

test-fast: lint test-unit ## without a cluster

test-unit: .venv/.locked ## the tests that need no cluster
	$(PYTEST) tests -m "$(UNIT)" -n $(WORKERS) --dist worksteal -q $(ONLY) --junitxml=$(OUT)/tests-unit.xml

test-embedded: .venv/.locked ## the live tests, on embedded clusters
	$(PYTEST) tests -m "embedded and not faults and not nightly" -n $(WORKERS) --dist loadfile -q $(ONLY) --junitxml=$(OUT)/tests-embedded.xml

test-faults: .venv/.locked ## crashes, partitions, hostile objects, on embedded clusters
	$(PYTEST) tests/fault_tolerance -m "not nightly" -n $(WORKERS) --dist worksteal -q $(ONLY) --junitxml=$(OUT)/tests-faults.xml

test-nightly: .venv/.locked ## what `make test` leaves out: rarer cases, Kueue and Volcano, all features on Kind, properties 10,000 times
	@failed=; for part in nightly-tests nightly-properties nightly-explore nightly-schedulers nightly-kind; do \
	$(MAKE) --no-print-directory $$part || failed="$$failed $$part"; done; \
	test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

nightly-tests: .venv/.locked
	$(PYTEST) tests -m "nightly and not kind" -n $(WORKERS) --dist loadfile -q --junitxml=$(OUT)/tests-nightly.xml

nightly-properties: .venv/.locked
	$(PYTEST) $(PROPERTIES) --hypothesis-profile=nightly -n $(WORKERS) -q --junitxml=$(OUT)/tests-properties.xml

nightly-explore: .venv/.locked
	$(BIN)/python -m schedspec explore --seeds 100000 --out $(OUT)/nightly/explore

nightly-schedulers: .venv/.locked
	@failed=; for name in kueue kai yunikorn volcano; do \
	$(PYTEST) features --scheduler $$name --cluster embedded -n $(WORKERS) -q --out $(OUT)/nightly/$$name || failed="$$failed $$name"; done; \
	test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

nightly-kind:
	$(MAKE) features-kind KIND_FEATURES=features KIND_TESTS=kind

features: .venv/.locked ## all features on the embedded cluster
	$(PYTEST) features --cluster embedded $(VERSION) -n $(WORKERS) --junitxml=$(OUT)/embedded/features-embedded.xml

features-simulated: .venv/.locked ## all features in virtual time; compare their verdicts with those of `make features`, if it has run
	$(PYTEST) features --cluster simulated --junitxml=$(OUT)/simulated/features-simulated.xml
	@if test -f $(OF_EMBEDDED); then $(BIN)/python -m tests.support.verdicts $(OF_EMBEDDED) $(OF_SIMULATED); \
	else echo "verdicts were not compared: there is no $(OF_EMBEDDED)"; \
	echo "  do next: make features, then make features-simulated again"; fi

features-gang: .venv/.locked ## the features of every gang scheduler, with Kubernetes' own API: on kube-scheduler and on ours
	$(PYTEST) features/gang --scheduler kube-scheduler --cluster embedded $(VERSION) --junitxml=$(OUT)/gang/kube-scheduler.xml
	$(PYTEST) features/gang --gang-api kubernetes --cluster embedded $(VERSION) --junitxml=$(OUT)/gang/schedspec.xml

features-kind: .venv/.locked ## the features that depend on real kubelets, if a Kind cluster can run
	@$(BIN)/python -m schedspec.clusters.kind.kind_gate $(FEATURES_ON_KIND) $(KIND_IMAGE); status=$$?; \
	test $$status != 3 || exit 0; test $$status = 0 || exit $$status; failed=0; \
	$(PYTEST) tests -m "$(KIND_TESTS)" -q --junitxml=$(OUT)/tests-kind.xml || failed=1; \
	$(PYTEST) $(KIND_FEATURES) $(ON_KIND) --junitxml=$(OUT)/kind/features-kind.xml || failed=1; \
	$(PYTEST) $(IN_CLUSTER) $(ON_KIND) --scheduler-in-cluster --junitxml=$(OUT)/in-cluster/features-in-cluster.xml || failed=1; \
	exit $$failed

# Kueue and Volcano are built from pinned modules; VOLCANO=FOLDER names Volcano's programs instead. Volcano's scenarios run
# three times each. Some wait 20 s for an event that does not occur: idle workers take over scenarios not yet begun.
MATRIX := --cluster embedded -n $(WORKERS) --dist worksteal -q
MATRIX_FEATURES ?= features
matrix: .venv/.locked ## ours, Kueue, Volcano and kube-scheduler side by side, scenario by scenario: out/matrix/
	-$(PYTEST) $(MATRIX_FEATURES) $(MATRIX) --out $(OUT)/matrix/schedspec
	-$(PYTEST) $(MATRIX_FEATURES) $(MATRIX) --scheduler kube-scheduler --out $(OUT)/matrix/kube-scheduler-1.36
	-for column in kueue kueue+topology kueue+wait-for-pods-ready kueue+fair-sharing; do \
	$(PYTEST) $(MATRIX_FEATURES) $(MATRIX) --scheduler $$column --out $(OUT)/matrix/$$column; done
	-for column in kai yunikorn; do \
	$(PYTEST) $(MATRIX_FEATURES) $(MATRIX) --scheduler $$column --out $(OUT)/matrix/$$column; done
	-$(PYTEST) $(MATRIX_FEATURES) $(MATRIX) --scheduler volcano $(if $(VOLCANO),--scheduler-binaries $(VOLCANO)) --out $(OUT)/matrix/volcano
	-$(PYTEST) $(MATRIX_FEATURES) $(MATRIX) --scheduler kube-scheduler --kubernetes-version 1.37 --out $(OUT)/matrix/kube-scheduler-1.37
	$(BIN)/python -m schedspec matrix $(OUT)/matrix/*/results.json --out $(OUT)/matrix

lint: .venv/.locked ## ruff, mypy, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

lint-workflows: .venv/.locked ## actionlint and zizmor on the workflows and on the Action
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
	$(BIN)/zizmor --offline --no-progress --quiet .github action.yml

.venv-docs/.locked: requirements-docs.lock
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

docs: .venv-docs/.locked ## the site of docs/, with the sentences and options generated
	.venv-docs/bin/mkdocs build --strict

soak: .venv/.locked ## every feature five times in random order on both clusters, then an hour of churn with hostile objects
	$(BIN)/python -m tests.soak

attacks: .venv/.locked ## attacks of a hostile tenant, one by one, and their cost for another tenant
	$(BIN)/python -m tests.soak.attacks

test-the-tests: .venv/.locked ## faulty schedulers, and which tests detect each of them
	$(BIN)/python -m tests.test_the_tests

mutate: .venv/.locked .venv-mutation/.locked ## a sample of mutants of actions and plugins, and the share that tests detect
	.venv-mutation/bin/python -m tests.mutation

bench-core: .venv/.locked ## figures of the scheduling core
	$(BIN)/python -m benchmarks.core

bench-simulation: .venv/.locked ## figures of the simulation: jobs a second
	$(BIN)/python -m benchmarks.simulation

bench-recorder: .venv/.locked ## what recording 1,000 nodes and 20,000 pods costs
	$(BIN)/python -m benchmarks.recorder

bench-plan: .venv/.locked ## a plan of 5,000 nodes and 50,000 pods, in seconds
	$(BIN)/python -m benchmarks.plan

fidelity: .venv/.locked ## does what the twin foretells happen? 40 states each of Kueue and Volcano; an interrupted run continues (hours)
	$(BIN)/python -m benchmarks.fidelity

nights: .venv/.locked ## nights of Volcano, Kueue and kube-scheduler, recorded and judged; an interrupted run continues (hours)
	$(BIN)/python -m tests.schedspec.lab.recorder.nights

bench-live: .venv/.locked ## figures of the live scheduler, beside bare loops and kube-scheduler
	$(BIN)/python -m benchmarks.live

clean: ## remove the files of runs and tools
	rm -rf $(OUT) .pytest_cache .mypy_cache .ruff_cache
