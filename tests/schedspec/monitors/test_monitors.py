"""Each monitor finds the act it is for, and nothing in a history without it."""

from __future__ import annotations

from typing import Any

import pytest

from schedspec.api.kinds import Kind, Ref
from schedspec.monitors import Rules, judge
from schedspec.observe.history import Version

GANG = "scheduling.k8s.io/group-name"


class Told:
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


def findings(told: Told, policy: str = POLICY) -> list[str]:
    return [finding.monitor for finding in judge(told.versions, Rules(policy))]


def a_cluster() -> Told:
    told = Told()
    told.node("n1", cpu="4")
    told.queue("guest", deserved={"cpu": "2"})
    told.queue("owner", deserved={"cpu": "2"})
    told.group("batch", "guest")
    told.group("mine", "owner")
    return told


def test_a_reclaim_as_it_should_be_is_not_found_fault_with() -> None:
    told = a_cluster()
    for index in range(4):
        told.bind(f"batch-{index}", "batch", "n1", "1")
    told.evict("batch-2")
    told.evict("batch-3")
    told.bind("mine-0", "mine", "n1", "2")
    assert findings(told) == []


def test_a_bind_onto_a_full_node_is_found() -> None:
    told = a_cluster()
    told.bind("batch-0", "batch", "n1", "3")
    told.bind("batch-1", "batch", "n1", "2")
    assert findings(told) == ["node"]


def test_a_bind_above_capability_is_found() -> None:
    told = a_cluster()
    told.queue("guest", capability={"cpu": "1"})
    told.show(Kind.EVENT, "time passes")
    for _ in range(12):
        told.show(Kind.EVENT, "time passes")
    told.bind("batch-0", "batch", "n1", "2")
    assert findings(told) == ["capability"]


def test_a_capability_that_was_lowered_just_now_is_no_fault_of_the_scheduler() -> None:
    told = a_cluster()
    told.queue("guest", capability={"cpu": "1"})
    told.bind("batch-0", "batch", "n1", "2")
    assert findings(told) == []


def test_what_is_guaranteed_to_another_queue_is_not_taken() -> None:
    told = Told()
    told.node("n1", cpu="4")
    told.queue("owner", guarantee={"resource": {"cpu": "2"}})
    told.queue("guest")
    told.group("batch", "guest")
    told.bind("batch-0", "batch", "n1", "2")
    assert findings(told) == []
    told.bind("batch-1", "batch", "n1", "1")
    assert findings(told) == ["guarantee"]


def test_a_gang_left_in_part_is_found_unless_gang_has_no_say() -> None:
    told = Told()
    told.node("n1", cpu="4")
    told.queue("guest")
    told.queue("owner")
    told.group("batch", "guest", 2)
    told.group("mine", "owner")
    told.bind("batch-0", "batch", "n1", "2")
    told.bind("batch-1", "batch", "n1", "2")
    told.evict("batch-1")
    told.bind("mine-0", "mine", "n1", "2")
    for _ in range(25):
        told.show(Kind.EVENT, "time passes")
    assert findings(told) == ["gang"]
    assert findings(told, POLICY.replace("name: gang", "name: gang\n    enableReclaimable: false")) == []


def test_a_gang_bound_in_part_is_found() -> None:
    told = Told()
    told.node("n1", cpu="4")
    told.group("batch", "guest", 2)
    told.bind("batch-0", "batch", "n1", "2")
    for _ in range(25):
        told.show(Kind.EVENT, "time passes")
    assert findings(told) == ["gang"]


@pytest.mark.parametrize(
    ("annotations", "spec"),
    [
        pytest.param({"volcano.sh/preemptable": "false"}, {}, id="its-annotation"),
        pytest.param({}, {"reclaimable": False}, id="its-queue"),
    ],
)
def test_a_protected_victim_is_found(annotations: dict[str, str], spec: dict[str, Any]) -> None:
    told = Told()
    told.node("n1", cpu="2")
    told.queue("guest", **spec)
    told.queue("owner")
    told.group("batch", "guest")
    told.group("mine", "owner")
    told.bind("batch-0", "batch", "n1", "2", **annotations)
    told.evict("batch-0")
    told.bind("mine-0", "mine", "n1", "2")
    assert findings(told) == ["protection"]


def test_a_victim_too_many_is_found() -> None:
    told = a_cluster()
    for index in range(4):
        told.bind(f"batch-{index}", "batch", "n1", "1")
    for index in (1, 2, 3):
        told.evict(f"batch-{index}")
    told.bind("mine-0", "mine", "n1", "2")
    assert set(findings(told)) == {"needless-eviction"}


def test_a_victim_too_many_is_found_whatever_else_its_reason_says() -> None:
    told = a_cluster()
    for index in range(4):
        told.bind(f"batch-{index}", "batch", "n1", "1")
    for index, details in enumerate((" (victim's queue: guest)", "; tier 2 decided", "; others: 1 is not needed"), 1):
        told.evict(f"batch-{index}", f"reclaimed for ns/mine of queue owner{details}")
    told.bind("mine-0", "mine", "n1", "2")
    assert set(findings(told)) == {"needless-eviction"}


@pytest.mark.parametrize(("members", "found"), [(2, []), (1, ["needless-eviction", "needless-eviction"])])
def test_a_preemptor_whose_last_pod_comes_after_others_have_left_needed_its_room(
    members: int, found: list[str]
) -> None:
    told = a_cluster()
    for index in range(4):
        told.bind(f"batch-{index}", "batch", "n1", "1")
    for index in range(members):
        told.wait(f"mine-{index}", "mine", "1")
    for index in (2, 3):
        told.evict(f"batch-{index}", "reclaimed for ns/mine of queue owner (victim's queue: guest)")
    told.bind("mine-0", "mine", "n1", "1")
    for index in (0, 1):  # the job starts anew, all of it
        told.show(Kind.POD, f"batch-{index}", "gone", **told.pods[f"batch-{index}"])
    for index in range(1, members):
        told.bind(f"mine-{index}", "mine", "n1", "1")
    assert findings(told) == found


def test_a_gang_that_must_go_whole_is_one_victim() -> None:
    told = Told()
    told.node("n1", cpu="2")
    told.node("n2", cpu="4")
    told.queue("guest")
    told.queue("owner")
    told.group("batch", "guest", 2)
    told.group("mine", "owner")
    told.bind("batch-0", "batch", "n1", "2")
    told.bind("batch-1", "batch", "n2", "2")
    told.evict("batch-0")
    told.evict("batch-1")
    told.bind("mine-0", "mine", "n1", "2")
    assert findings(told) == []


@pytest.mark.parametrize(("cpu", "found"), [("4", set()), ("6", {"needless-eviction"})])
def test_a_gang_that_must_go_whole_was_needed_if_not_all_of_it_could_have_stayed(cpu: str, found: set[str]) -> None:
    told = Told()
    told.node("n1", cpu=cpu)
    told.queue("guest")
    told.queue("owner")
    told.group("batch", "guest", 4)
    told.group("mine", "owner")
    for index in range(4):
        told.bind(f"batch-{index}", "batch", "n1", "1")
    for index in range(4):
        told.evict(f"batch-{index}")
    told.bind("mine-0", "mine", "n1", "2")
    assert set(findings(told)) == found


def test_a_successor_evicted_for_the_same_preemptor_is_found() -> None:
    told = Told()
    told.node("n1", cpu="2")
    told.queue("guest")
    told.queue("owner")
    told.group("batch", "guest")
    told.bind("batch-0", "batch", "n1", "2", uid="first")
    told.evict("batch-0")
    told.bind("batch-0", "batch", "n1", "2", uid="second")
    told.evict("batch-0")
    assert "repeated-eviction" in findings(told)


def test_a_monitor_can_be_turned_off_by_name() -> None:
    told = a_cluster()
    told.bind("batch-0", "batch", "n1", "5")
    assert [f.monitor for f in judge(told.versions, Rules(POLICY), off=["node"])] == []
