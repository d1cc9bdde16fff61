"""Each monitor finds the act it is for, and nothing in a history without it."""

from __future__ import annotations

from typing import Any

import pytest

from schedspec.api.kinds import Kind, Ref
from schedspec.monitors import Rules, judge
from schedspec.observe.history import Version

GANG = "scheduling.k8s.io/group-name"


class WrittenHistory:
    """A history written down by hand: one version a call, a tenth of a second apart."""

    def __init__(self) -> None:
        self.versions: list[Version] = []
        self.pods: dict[str, dict[str, Any]] = {}

    def show(self, kind: Kind, name: str, change: str = "changed", **body: Any) -> None:
        number = len(self.versions) + 1
        metadata = {"name": name, "uid": f"{name}-uid", **body.pop("metadata", {}), "resourceVersion": str(number)}
        obj = {"metadata": metadata, **body}
        ref = Ref(kind, name, metadata.get("namespace", ""))
        self.versions.append(Version(number, number / 10, number / 10, change, ref, obj))  # type: ignore[arg-type]

    def node(self, name: str, **allocatable: str) -> None:
        self.show(Kind.NODE, name, status={"allocatable": {"pods": "110", **allocatable}})

    def queue(self, name: str, **spec: Any) -> None:
        self.show(Kind.QUEUE, name, spec=spec)

    def group(self, name: str, queue: str, min_member: int = 1) -> None:
        self.show(Kind.PODGROUP, name, metadata={"namespace": "ns"}, spec={"queue": queue, "minMember": min_member})

    def bind(self, name: str, group: str, node: str, cpu: str, *, uid: str = "", **annotations: str) -> None:
        self.pods[name] = {
            "metadata": {"namespace": "ns", "uid": uid or f"{name}-uid", "annotations": {GANG: group, **annotations}},
            "spec": {"nodeName": node, "containers": [{"resources": {"requests": {"cpu": cpu}}}]},
            "status": {"phase": "Running"},
        }
        self.show(Kind.POD, name, **self.pods[name])

    def wait(self, name: str, group: str, cpu: str) -> None:
        pod = {
            "metadata": {"namespace": "ns", "uid": f"{name}-uid", "annotations": {GANG: group}},
            "spec": {"containers": [{"resources": {"requests": {"cpu": cpu}}}]},
            "status": {"phase": "Pending"},
        }
        self.show(Kind.POD, name, "added", **pod)

    def evict(self, name: str, message: str = "reclaimed for ns/preemptor") -> None:
        pod = self.pods[name]
        mark = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": message}
        self.show(Kind.POD, name, **{**pod, "status": {"phase": "Running", "conditions": [mark]}})
        self.show(Kind.POD, name, "gone", **pod)


POLICY = """
actions: "allocate, reclaim"
tiers:
- plugins:
  - name: gang
  - name: conformance
- plugins:
  - name: capacity
"""


def findings(history: WrittenHistory, policy: str = POLICY) -> list[str]:
    return [finding.monitor for finding in judge(history.versions, Rules(policy))]


def a_cluster() -> WrittenHistory:
    history = WrittenHistory()
    history.node("n1", cpu="4")
    history.queue("guest", deserved={"cpu": "2"})
    history.queue("owner", deserved={"cpu": "2"})
    history.group("batch", "guest")
    history.group("mine", "owner")
    return history


def test_a_reclaim_as_it_should_be_is_not_found_fault_with() -> None:
    history = a_cluster()
    for index in range(4):
        history.bind(f"batch-{index}", "batch", "n1", "1")
    history.evict("batch-2")
    history.evict("batch-3")
    history.bind("mine-0", "mine", "n1", "2")
    assert findings(history) == []


def test_a_bind_onto_a_full_node_is_found() -> None:
    history = a_cluster()
    history.bind("batch-0", "batch", "n1", "3")
    history.bind("batch-1", "batch", "n1", "2")
    assert findings(history) == ["node"]


def test_a_bind_above_capability_is_found() -> None:
    history = a_cluster()
    history.queue("guest", capability={"cpu": "1"})
    history.show(Kind.EVENT, "time passes")
    for _ in range(12):
        history.show(Kind.EVENT, "time passes")
    history.bind("batch-0", "batch", "n1", "2")
    assert findings(history) == ["capability"]


def test_a_capability_that_was_lowered_just_now_is_no_fault_of_the_scheduler() -> None:
    history = a_cluster()
    history.queue("guest", capability={"cpu": "1"})
    history.bind("batch-0", "batch", "n1", "2")
    assert findings(history) == []


def test_what_is_guaranteed_to_another_queue_is_not_taken() -> None:
    history = WrittenHistory()
    history.node("n1", cpu="4")
    history.queue("owner", guarantee={"resource": {"cpu": "2"}})
    history.queue("guest")
    history.group("batch", "guest")
    history.bind("batch-0", "batch", "n1", "2")
    assert findings(history) == []
    history.bind("batch-1", "batch", "n1", "1")
    assert findings(history) == ["guarantee"]


def test_a_gang_left_in_part_is_found_unless_gang_has_no_say() -> None:
    history = WrittenHistory()
    history.node("n1", cpu="4")
    history.queue("guest")
    history.queue("owner")
    history.group("batch", "guest", 2)
    history.group("mine", "owner")
    history.bind("batch-0", "batch", "n1", "2")
    history.bind("batch-1", "batch", "n1", "2")
    history.evict("batch-1")
    history.bind("mine-0", "mine", "n1", "2")
    for _ in range(25):
        history.show(Kind.EVENT, "time passes")
    assert findings(history) == ["gang"]
    assert findings(history, POLICY.replace("name: gang", "name: gang\n    enableReclaimable: false")) == []


@pytest.mark.parametrize(("tenths", "found"), [(1, []), (25, ["gang"])])
def test_a_gang_bound_in_part_is_found_unless_the_scenario_ended_right_then(tenths: int, found: list[str]) -> None:
    history = WrittenHistory()
    history.node("n1", cpu="4")
    history.group("batch", "guest", 2)
    history.bind("batch-0", "batch", "n1", "2")
    for _ in range(tenths):
        history.show(Kind.EVENT, "time passes")
    assert findings(history) == found


@pytest.mark.parametrize(
    ("annotations", "spec"),
    [
        pytest.param({"volcano.sh/preemptable": "false"}, {}, id="its-annotation"),
        pytest.param({}, {"reclaimable": False}, id="its-queue"),
    ],
)
def test_a_protected_victim_is_found(annotations: dict[str, str], spec: dict[str, Any]) -> None:
    history = WrittenHistory()
    history.node("n1", cpu="2")
    history.queue("guest", **spec)
    history.queue("owner")
    history.group("batch", "guest")
    history.group("mine", "owner")
    history.bind("batch-0", "batch", "n1", "2", **annotations)
    history.evict("batch-0")
    history.bind("mine-0", "mine", "n1", "2")
    assert findings(history) == ["protection"]


def test_a_victim_too_many_is_found() -> None:
    history = a_cluster()
    for index in range(4):
        history.bind(f"batch-{index}", "batch", "n1", "1")
    for index in (1, 2, 3):
        history.evict(f"batch-{index}")
    history.bind("mine-0", "mine", "n1", "2")
    assert set(findings(history)) == {"needless-eviction"}


def test_a_victim_too_many_is_found_whatever_else_its_reason_says() -> None:
    history = a_cluster()
    for index in range(4):
        history.bind(f"batch-{index}", "batch", "n1", "1")
    for index, details in enumerate((" (victim's queue: guest)", "; tier 2 decided", "; others: 1 is not needed"), 1):
        history.evict(f"batch-{index}", f"reclaimed for ns/mine of queue owner{details}")
    history.bind("mine-0", "mine", "n1", "2")
    assert set(findings(history)) == {"needless-eviction"}


@pytest.mark.parametrize("why", ["reclaimed for ns/mine of queue owner (victim's queue: guest)", "reclaimed"])
@pytest.mark.parametrize(("members", "found"), [(2, []), (1, ["needless-eviction", "needless-eviction"])])
def test_a_preemptor_whose_last_pod_comes_after_others_have_left_needed_its_room(
    members: int, found: list[str], why: str
) -> None:
    history = a_cluster()
    for index in range(4):
        history.bind(f"batch-{index}", "batch", "n1", "1")
    for index in range(members):
        history.wait(f"mine-{index}", "mine", "1")
    for index in (2, 3):
        history.evict(f"batch-{index}", why)
    history.bind("mine-0", "mine", "n1", "1")
    for index in (0, 1):  # the job starts anew, all of it
        history.show(Kind.POD, f"batch-{index}", "gone", **history.pods[f"batch-{index}"])
    for index in range(1, members):
        history.bind(f"mine-{index}", "mine", "n1", "1")
    assert findings(history) == found


def test_a_gang_that_must_go_whole_is_one_victim() -> None:
    history = WrittenHistory()
    history.node("n1", cpu="2")
    history.node("n2", cpu="4")
    history.queue("guest")
    history.queue("owner")
    history.group("batch", "guest", 2)
    history.group("mine", "owner")
    history.bind("batch-0", "batch", "n1", "2")
    history.bind("batch-1", "batch", "n2", "2")
    history.evict("batch-0")
    history.evict("batch-1")
    history.bind("mine-0", "mine", "n1", "2")
    assert findings(history) == []


@pytest.mark.parametrize(("cpu", "found"), [("4", set()), ("6", {"needless-eviction"})])
def test_a_gang_that_must_go_whole_was_needed_if_not_all_of_it_could_have_stayed(cpu: str, found: set[str]) -> None:
    history = WrittenHistory()
    history.node("n1", cpu=cpu)
    history.queue("guest")
    history.queue("owner")
    history.group("batch", "guest", 4)
    history.group("mine", "owner")
    for index in range(4):
        history.bind(f"batch-{index}", "batch", "n1", "1")
    for index in range(4):
        history.evict(f"batch-{index}")
    history.bind("mine-0", "mine", "n1", "2")
    assert set(findings(history)) == found


def test_a_successor_evicted_for_the_same_preemptor_is_found() -> None:
    history = WrittenHistory()
    history.node("n1", cpu="2")
    history.queue("guest")
    history.queue("owner")
    history.group("batch", "guest")
    history.bind("batch-0", "batch", "n1", "2", uid="first")
    history.evict("batch-0")
    history.bind("batch-0", "batch", "n1", "2", uid="second")
    history.evict("batch-0")
    assert "repeated-eviction" in findings(history)


def test_a_monitor_can_be_turned_off_by_name() -> None:
    history = a_cluster()
    history.bind("batch-0", "batch", "n1", "5")
    assert [f.monitor for f in judge(history.versions, Rules(POLICY), off=["node"])] == []
