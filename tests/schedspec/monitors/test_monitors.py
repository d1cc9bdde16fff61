"""Each monitor finds its violation, and reports nothing in a history without it."""

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

    def node(self, name: str, *, rack: str = "", **allocatable: str) -> None:
        labels = {"schedspec.dev/rack": rack} if rack else {}
        self.show(Kind.NODE, name, metadata={"labels": labels}, status={"allocatable": {"pods": "110", **allocatable}})

    def queue(self, name: str, **spec: Any) -> None:
        self.show(Kind.QUEUE, name, spec=spec)

    def group(self, name: str, queue: str, min_member: int = 1) -> None:
        self.show(Kind.PODGROUP, name, metadata={"namespace": "ns"}, spec={"queue": queue, "minMember": min_member})

    def bind(
        self,
        name: str,
        group: str,
        node: str,
        cpu: str,
        *,
        uid: str = "",
        asks: dict[str, str] | None = None,
        **annotations: str,
    ) -> None:
        self.pods[name] = {
            "metadata": {"namespace": "ns", "uid": uid or f"{name}-uid", "annotations": {GANG: group, **annotations}},
            "spec": {"nodeName": node, "containers": [{"resources": {"requests": {"cpu": cpu, **(asks or {})}}}]},
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


PREEMPT = POLICY.replace("reclaim", "preempt")
FOR_URGENT = "preempted for ns/urgent of queue guest; tier 1 decided (priority permits)"


@pytest.mark.parametrize(("evicted", "found"), [(2, []), (3, ["disproportionate-eviction"])])
def test_more_evictions_than_a_pod_and_the_largest_victim_are_found(evicted: int, found: list[str]) -> None:
    history = a_cluster()
    history.queue("guest", capability={"cpu": "1"})
    history.group("urgent", "guest")
    for index in range(4):
        history.bind(f"batch-{index}", "batch", "n1", "1")
    history.wait("urgent-0", "urgent", "1")
    for index in range(evicted):
        history.evict(f"batch-{index}", FOR_URGENT)
    history.bind("urgent-0", "urgent", "n1", "1")
    assert [name for name in findings(history, PREEMPT) if name.startswith("dis")] == found


def test_a_gang_that_goes_whole_is_in_proportion_to_one_pod() -> None:
    history = a_cluster()
    history.group("gang", "guest", 4)
    history.group("urgent", "guest")
    for index in range(4):
        history.bind(f"gang-{index}", "gang", "n1", "1")
    history.wait("urgent-0", "urgent", "1")
    for index in range(4):
        history.evict(f"gang-{index}", FOR_URGENT)
    history.bind("urgent-0", "urgent", "n1", "1")
    assert findings(history, PREEMPT) == []


def test_evictions_after_a_queue_has_changed_are_judged_on_their_own() -> None:
    history = a_cluster()
    history.group("urgent", "guest")
    for index in range(4):
        history.bind(f"batch-{index}", "batch", "n1", "1")
    history.wait("urgent-0", "urgent", "1")
    for index in range(4):
        history.evict(f"batch-{index}", FOR_URGENT)
        changed = {"capability": {"cpu": str(4 - index)}}
        history.show(Kind.QUEUE, "guest", metadata={"generation": index + 1}, spec=changed)
    history.bind("urgent-0", "urgent", "n1", "1")
    assert [name for name in findings(history, PREEMPT) if name.startswith("dis")] == []


class WorkloadHistory(WrittenHistory):
    """Two queues on eight cpus; Kueue evicts two Workloads of `guest` for one of `owner`."""

    def __init__(self, requested: str, *, capability: str = "8", reserved: str = "0", ends: bool = False) -> None:
        super().__init__()
        self.node("n1", cpu="4")
        self.node("n2", cpu="4")
        self.queue("owner", deserved={"cpu": "4"})
        self.queue("guest", capability={"cpu": capability})
        self.queue("third", guarantee={"resource": {"cpu": reserved}})
        for name, queue in (("claim", "owner"), ("one", "guest"), ("two", "guest")):
            self.show(Kind.WORKLOAD, name, metadata={"namespace": "ns"}, spec={"queueName": queue})
        self.bind("one-0", "one", "n1", "4")
        self.bind("two-0", "two", "n2", "4")
        self.wait("claim-0", "claim", requested)
        if ends:
            self.bind("other-0", "other", "n1", "0")
        why = "Preempted to accommodate a workload (UID: claim-uid, JobUID: j) due to reclamation within the cohort"
        self.evict("one-0", why)
        self.evict("two-0", why)
        if ends:
            self.show(Kind.POD, "other-0", "gone", **self.pods["other-0"])
        self.bind("claim-0", "claim", "n1", requested)


class TestNeedlessWorkload:
    NAME = "needless-workload-eviction"

    def test_each_of_two_workloads_could_have_stayed(self) -> None:
        assert findings(WorkloadHistory("4")).count(self.NAME) == 2

    def test_both_were_needed(self) -> None:
        assert self.NAME not in findings(WorkloadHistory("8"))

    def test_nodes_do_not_count_but_the_quota_does(self) -> None:
        assert self.NAME not in findings(WorkloadHistory("5"))

    def test_the_capability_of_its_queue_is_a_reason(self) -> None:
        assert self.NAME not in findings(WorkloadHistory("4", capability="3"))

    def test_the_guarantee_of_another_queue_is_a_reason(self) -> None:
        assert self.NAME not in findings(WorkloadHistory("4", reserved="1"))

    def test_what_ended_meanwhile_is_not_held_against_kueue(self) -> None:
        assert self.NAME not in findings(WorkloadHistory("4", ends=True))


CARDS = {"volcano.sh/gpu-memory": "16000", "volcano.sh/gpu-number": "2"}
SHARING = Rules("tiers: [{plugins: [{name: deviceshare}]}]")


@pytest.mark.parametrize(
    ("indexes", "found"),
    [
        (["0", "1"], []),
        (["0", "0"], ["card 0 of n1 then has 10000 of 8000 MiB in use"]),
        (["0", ""], ["asks for 1 of the cards of n1, and has none"]),
        (
            ["0", "0,1"],
            ["asks for 1 of the cards of n1, and has 0, 1", "card 0 of n1 then has 10000 of 8000 MiB in use"],
        ),
        (["0", "2"], ["asks for 1 of the cards of n1, and has 2"]),
    ],
    ids=["a card each", "one card", "no card", "halves of two cards", "a card that the node lacks"],
)
def test_a_card_that_is_shared_beyond_its_memory_is_found(indexes: list[str], found: list[str]) -> None:
    history = WrittenHistory()
    history.node("n1", cpu="8", **CARDS)
    for number, index in enumerate(indexes):
        cards = {"volcano.sh/gpu-index": index} if index else {}
        history.bind(f"p{number}", "g", "n1", "1", asks={"volcano.sh/gpu-memory": "5000"}, **cards)

    seen = [it.text for it in judge(history.versions, SHARING) if it.monitor == "shared-cards"]
    assert seen == found
    assert not [it for it in judge(history.versions, Rules("tiers: []")) if it.monitor == "shared-cards"]


def test_what_others_wrote_in_annotations_and_amounts_is_read_or_does_not_count() -> None:
    history = WrittenHistory()
    history.node("n1", cpu="8", **{"volcano.sh/gpu-memory": "16k", "volcano.sh/gpu-number": "2"})
    history.bind("p0", "g", "n1", "1", asks={"volcano.sh/gpu-memory": "9k"}, **{"volcano.sh/gpu-index": "0"})
    ids = f"GPU-a,NVIDIA,{'9' * 5000},40:GPU-b,NVIDIA,much,40:"
    history.bind("p1", "g", "n1", "1", asks={"volcano.sh/vgpu-number": "1"}, **{"volcano.sh/vgpu-ids-new": ids})

    assert [it.text for it in judge(history.versions, SHARING) if it.monitor == "shared-cards"] == [
        "card 0 of n1 then has 9000 of 8000 MiB in use",
        "asks for 1 of the cards of n1, and has none",
    ]


def test_parts_and_cores_of_a_virtual_gpu_are_counted() -> None:
    history = WrittenHistory()
    register = "GPU-a,2,8000,NVIDIA-A10,true,hami-core:"
    has = {"allocatable": {"pods": "110", "cpu": "8", "volcano.sh/vgpu-number": "2", "volcano.sh/vgpu-cores": "100"}}
    history.show(Kind.NODE, "n1", metadata={"annotations": {"volcano.sh/node-vgpu-register": register}}, status=has)
    for number in range(3):
        card = {"volcano.sh/vgpu-ids-new": "GPU-a,NVIDIA,100,40:"}
        history.bind(f"p{number}", "g", "n1", "1", asks={"volcano.sh/vgpu-number": "1"}, **card)

    seen = [it.text for it in judge(history.versions, SHARING) if it.monitor == "shared-cards"]
    assert seen == [
        "card GPU-a of n1 then has 120 percent of its cores in use",
        "card GPU-a of n1 then has 3 of 2 parts",
    ]


REQUIRED = {"networkTopology": {"mode": "hard", "highestTierName": "rack"}}


@pytest.mark.parametrize(
    ("kind", "spec", "second", "found"),
    [
        (Kind.PODGROUP, REQUIRED, "n2", ["topology"]),
        (Kind.PODGROUP, REQUIRED, "n3", []),
        (Kind.PODGROUP, {"networkTopology": {"mode": "soft"}}, "n2", []),
        (Kind.PODGROUP, {}, "n2", []),
        (Kind.GANG, {"schedulingConstraints": {"topology": [{"key": "schedspec.dev/rack"}]}}, "n2", ["topology"]),
        (Kind.PODGROUP, REQUIRED, "outside", ["topology"]),
    ],
    ids=["hard, two racks", "hard, one rack", "soft", "no topology", "of Kubernetes", "hard, a node in no rack"],
)
def test_a_gang_that_requires_a_rack_is_found_in_two(
    kind: Kind, spec: dict[str, Any], second: str, found: list[str]
) -> None:
    history = WrittenHistory()
    for name, rack in {"n1": "rack-a", "n2": "rack-b", "n3": "rack-a", "outside": ""}.items():
        history.node(name, rack=rack, cpu="4")
    history.queue("guest")
    history.show(kind, "train", metadata={"namespace": "ns"}, spec={"queue": "guest", "minMember": 1, **spec})
    history.bind("train-0", "train", "n1", "1")
    history.bind("train-1", "train", second, "1")

    assert findings(history) == found
