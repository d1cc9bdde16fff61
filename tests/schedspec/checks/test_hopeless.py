"""Checks that fail at once: for missing workloads, and for pods that run and should wait."""

from __future__ import annotations

from typing import Any

import pytest

from schedspec.api.kinds import Kind, Ref
from schedspec.api.timeouts import IN_FLUX
from schedspec.checks import phases, pods, reasons, topology
from schedspec.observe.expect import Check, Outcome
from schedspec.observe.history import History, View


class Scene:
    """A history written by hand: a job `train` of one pod, and a queue `team`."""

    def __init__(self) -> None:
        self.history = History("ns")
        self.show(Kind.VCJOB, "train", spec={"tasks": [{"replicas": 1}]})
        self.show(Kind.QUEUE, "team")

    def show(self, kind: Kind, name: str, change: Any = "changed", **fields: Any) -> None:
        space = "" if kind in (Kind.QUEUE, Kind.NODE) else "ns"
        meta = {"name": name, "namespace": space, "uid": fields.pop("uid", name), **fields.pop("meta", {})}
        self.history.record(Ref(kind, name, space), change, {"metadata": meta, "spec": {}, "status": {}, **fields})

    def pod(self, phase: str, *conditions: dict[str, str], node: str = "", **meta: Any) -> None:
        meta = {"labels": {"volcano.sh/job-name": "train"}, **meta}
        spec = {"nodeName": node} if node else {}
        self.show(Kind.POD, "train-task-0", meta=meta, spec=spec, status={"phase": phase, "conditions": [*conditions]})

    def now(self) -> View:
        return self.history.now()


@pytest.fixture
def scene() -> Scene:
    return Scene()


VICTIM = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "message": "no room"}

CHECKS = {
    "runs": pods.runs,
    "exactly none run": lambda name: pods.count_runs(name, 0),
    "is bound": pods.is_bound,
    "waits": pods.waits,
    "exactly none wait": lambda name: pods.count_waits(name, 0),
    "exactly none is evicted": lambda name: pods.count_evicted(name, 0),
    "runs on a node": lambda name: topology.runs_on(name, bool, "n1"),
    "is packed": lambda name: topology.is_packed(name, 1),
    "runs as a whole or not at all": pods.is_whole,
    "has run": pods.has_run,
    "has no pods": pods.has_no_pods,
    "its lost pods are re-created": pods.are_made,
    "has a reason": reasons.has_reason,
    "waits with a reason": reasons.waits_with_reason,
    "waits because": lambda name: reasons.waits_because(name, "room"),
    "phase of its PodGroup": lambda name: phases.group_is(name, "Pending"),
    "phases of its PodGroup": lambda name: phases.group_went_through(name, ["Pending"]),
    "its phase": lambda name: phases.job_is(name, "Pending"),
    "its phases": lambda name: phases.job_went_through(name, ["Pending"]),
    "minMember of its PodGroup": lambda name: phases.group_needs(name, 0),
}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_no_condition_on_a_workload_that_never_existed_holds(scene: Scene, check: Any) -> None:
    outcome: Outcome = check("trian")(scene.now())
    assert (outcome.ok, outcome.hopeless) == (False, IN_FLUX)
    assert outcome.seen == "there is no workload trian (is 'train' meant?); there are: train"


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_the_outcome_for_an_existing_workload_is_that_of_the_check(scene: Scene, check: Any) -> None:
    scene.pod("Pending", UNSCHEDULABLE)
    outcome: Outcome = check("train")(scene.now())
    assert "there is no workload" not in outcome.seen
    assert outcome.hopeless is None


@pytest.mark.parametrize(
    ("many", "seen"),
    [
        ("at most 1", "it wants 1: this always holds"),
        ("between 0 and 3", "it wants 1: this always holds"),
        ("half of the", "half of the 1 is 0.5: write a whole number, or a range"),
    ],
)
def test_a_number_of_pods_that_says_nothing_fails_at_once(scene: Scene, many: str, seen: str) -> None:
    outcome = pods.count_runs("train", many)(scene.now())
    assert (outcome.ok, outcome.hopeless, outcome.seen) == (False, 0.0, seen)


@pytest.mark.parametrize("nodes", [["n1"], ["n1", "n2"], ["n1", "n2", "n3"]])
def test_nodes_that_are_all_of_the_scenario_say_nothing(scene: Scene, nodes: list[str]) -> None:
    for name in nodes:
        scene.show(Kind.NODE, name)
    scene.pod("Running", node="n1")
    outcome = topology.runs_on("train", lambda node: node["metadata"]["name"] in ("n1", "n2"), "n1, n2")(scene.now())
    seen = "each node is one of n1, n2, so that this says nothing; write that train runs"
    assert (outcome.ok, outcome.hopeless) == ((True, None) if "n3" in nodes else (False, 0.0))
    assert "n3" in nodes or outcome.seen == seen


def test_no_pod_of_a_deleted_workload_runs(scene: Scene) -> None:
    scene.show(Kind.VCJOB, "train", "gone", spec={"tasks": [{"replicas": 1}]})
    assert pods.count_runs("train", 0)(scene.now()).ok
    assert pods.runs("train")(scene.now()).seen == "it is gone"


@pytest.mark.parametrize(
    "check",
    [phases.queue_is("taem", "Open"), phases.queue_has("taem", "deserved", {})],
    ids=["its state", "its amounts"],
)
def test_no_condition_on_a_missing_queue_holds(scene: Scene, check: Check) -> None:
    outcome = check(scene.now())
    assert (outcome.ok, outcome.hopeless) == (False, IN_FLUX)
    assert outcome.seen == "there is no queue taem (is 'team' meant?); there are: team"


CHECKS_IN_A_QUEUE = {"runs": pods.runs("train"), "is bound": pods.is_bound("train")}


@pytest.mark.parametrize("check", CHECKS_IN_A_QUEUE.values(), ids=CHECKS_IN_A_QUEUE)
@pytest.mark.parametrize(
    ("queue", "hopeless"), [("taem", IN_FLUX), ("team", None), ("", None), ("default", None), ("root", None)]
)
def test_a_workload_in_a_missing_queue_gets_no_node(
    scene: Scene, check: Check, queue: str, hopeless: float | None
) -> None:
    scene.show(Kind.PODGROUP, "train", spec={"queue": queue})
    outcome = check(scene.now())
    assert (outcome.ok, outcome.hopeless) == (False, hopeless)
    expected = "0 of 1 run; 0 pods exist" + "; there is no queue taem (is 'team' meant?); there are: team" * bool(
        hopeless
    )
    assert outcome.seen == expected


WAITING = {
    "the workload": reasons.waits_with_reason("train"),
    "the pod": reasons.pod_has_reason("train-task-0"),
    "the workload, of which no pod waits": reasons.has_reason("train"),
    "the text of the reason": reasons.waits_because("train", "room"),
}


@pytest.mark.parametrize("check", WAITING.values(), ids=WAITING)
def test_the_outcome_for_a_running_pod_that_should_wait_says_since_when_it_runs(
    scene: Scene, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(scene.history.began + at for at in (0.2, 0.44, 0.9))
    monkeypatch.setattr("schedspec.observe.history.clock.monotonic", lambda: next(clock))
    scene.pod("Pending", node="n1")
    scene.pod("Running", node="n1")
    scene.pod("Running", node="n1", annotations={"seen": "again"})
    outcome = check(scene.now())
    assert (outcome.ok, outcome.seen, outcome.hopeless) == (False, "it runs since 0.44 s", IN_FLUX)


def test_the_outcome_for_a_bound_pod_that_should_wait_names_its_node(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("schedspec.observe.history.clock.monotonic", lambda: scene.history.began + 0.3)
    scene.pod("Pending", node="n1")
    assert reasons.waits_with_reason("train")(scene.now()).seen == "it is on n1 since 0.30 s"
    assert pods.waits("train")(scene.now()).seen == "it is on n1 since 0.30 s"


@pytest.mark.parametrize(
    "state",
    [{"conditions": [VICTIM]}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}],
    ids=["marked as a victim", "being deleted"],
)
def test_a_running_pod_that_is_being_evicted_or_deleted_is_not_hopeless(scene: Scene, state: dict[str, Any]) -> None:
    scene.pod("Running", *state.pop("conditions", ()), node="n1", **state)
    for check in WAITING.values():
        assert check(scene.now()).hopeless is None


def test_a_waiting_pod_with_a_published_reason_meets_the_checks(scene: Scene) -> None:
    scene.pod("Pending", UNSCHEDULABLE)
    assert all(check(scene.now()).ok for check in WAITING.values())


def test_a_workload_that_wants_no_pods_does_not_run(scene: Scene) -> None:
    scene.show(Kind.VCJOB, "train", spec={"tasks": [{"replicas": 0}]})
    outcome = pods.runs("train")(scene.now())
    assert (outcome.ok, outcome.seen) == (False, "it wants no pods: replicas 0")


def test_a_workload_that_runs_in_part_has_a_lost_pod_that_is_not_yet_recreated(scene: Scene) -> None:
    check = pods.are_made("train")
    assert check(scene.now()).ok  # nothing runs: a gang may wait without pods
    scene.show(Kind.VCJOB, "train", spec={"tasks": [{"replicas": 2}]})
    scene.pod("Running", node="n1")
    assert not check(scene.now()).ok
    scene.show(Kind.POD, "train-task-1", meta={"labels": {"volcano.sh/job-name": "train"}})
    assert check(scene.now()).ok


def test_of_conditions_of_one_second_the_last_is_the_phase_of_a_job(scene: Scene) -> None:
    times = [("Created", "02"), ("Running", "02"), ("Other", "01")]
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": f"2026-01-01T00:00:{second}Z"} for kind, second in times
    ]
    scene.show(Kind.PYTORCHJOB, "torch", status={"conditions": conditions})
    assert phases.job_is("torch", "Running")(scene.now()).seen == "Running"
