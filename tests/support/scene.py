"""Build the record of a scenario from a short description in a test.

`Scene` writes a history as the watches do, but the test sets the time of each change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from schedspec.api.errors import Unmet
from schedspec.api.kinds import Kind, Ref
from schedspec.observe.history import Change, History, Object, Version
from schedspec.report.from_run import make_record
from schedspec.report.record import ScenarioRecord
from schedspec.scenario.run import ScenarioRun, SentenceRun

BEGAN = 1_800_000_000.0
POLICY = """# A service reclaims the cards of training.
actions: "enqueue, allocate, reclaim, preempt"
tiers:
- plugins:
  - name: gang
  - name: priority
- plugins:
  - name: capacity
"""


class Scene:
    """The history of a cluster. `now` is the scenario's clock; every call records a change at that time."""

    def __init__(self, namespace: str = "spec-1") -> None:
        self.history = History(namespace)
        self.history.began, self.history.opened = 1000.0, 1000.0
        self.namespace, self.now, self._version = namespace, 0.0, 0
        self._objects: dict[Ref, Object] = {}
        self.sentences: list[SentenceRun] = []
        self.cleanup_at: float | None = None

    def put(self, kind: Kind, name: str, obj: Object, *, namespaced: bool = True, change: Change | None = None) -> None:
        """Record one version of an object."""
        ref = Ref(kind, name, self.namespace if namespaced else "")
        self._version += 1
        meta = {"name": name, "namespace": ref.namespace, "uid": f"uid-{name}", **obj.get("metadata", {})}
        meta["resourceVersion"] = str(self._version)
        obj = {**obj, "metadata": meta}
        found: Change = change or ("changed" if ref in self._objects else "added")
        if found == "gone":
            self._objects.pop(ref, None)
        else:
            self._objects[ref] = obj
        at = 1000.0 + self.now
        self.history._versions.append(Version(self._version, at, BEGAN + self.now, found, ref, obj))
        self.history._by_ref.setdefault(ref, []).append(self.history._versions[-1])

    def node(self, name: str, cpu: int = 64, cards: int = 0, model: str = "A100") -> None:
        """Record a ready node."""
        amounts = {"cpu": str(cpu), "memory": "256Gi", "pods": "110"}
        amounts |= {"nvidia.com/gpu": str(cards)} if cards else {}
        labels = {"nvidia.com/gpu.product": model} if cards else {}
        self.put(
            Kind.NODE, name, {"metadata": {"labels": labels}, "status": {"allocatable": amounts}}, namespaced=False
        )

    def queue(self, name: str, quota: Mapping[str, object] | None = None, **spec: object) -> None:
        """Record a queue; `quota` is its quota of cards, by model."""
        notes = {"annotations": {"volcano.sh/card.quota": json.dumps(quota)}} if quota else {}
        self.put(Kind.QUEUE, name, {"metadata": notes, "spec": spec}, namespaced=False)

    def gang(self, name: str, queue: str, minimum: int = 1) -> None:
        """Record a PodGroup."""
        self.put(Kind.PODGROUP, name, {"spec": {"queue": queue, "minMember": minimum}, "status": {"phase": "Inqueue"}})

    def pod(self, name: str, group: str, cards: int = 0, cpu: str = "1", priority: str = "") -> None:
        """Record a pending pod."""
        requests = {"cpu": cpu} | ({"nvidia.com/gpu": str(cards)} if cards else {})
        spec: Object = {"containers": [{"resources": {"requests": requests}}]}
        spec |= {"priorityClassName": priority} if priority else {}
        meta = {
            "annotations": {"scheduling.k8s.io/group-name": group},
            "labels": {"schedspec.dev/workload": group},
        }
        self.put(Kind.POD, name, {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}})

    def waits(self, name: str, why: str) -> None:
        """Record the scheduler's reason why a pod waits."""
        self._change(name, conditions=[{"type": "PodScheduled", "status": "False", "message": why}])

    def bind(self, name: str, node: str) -> None:
        """Record the bind of a pod."""
        pod = self._pod(name)
        self.put(Kind.POD, name, {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": {"phase": "Pending"}})

    def run(self, name: str) -> None:
        """Record that a pod runs."""
        self._change(name, phase="Running")

    def evict(
        self, name: str, preemptor: str = "", *, text: str = "", action: str = "reclaim", votes: Sequence[str] = ()
    ) -> None:
        """Record an eviction: the scheduler marks the victim and deletes it. An event names the preemptor, if given."""
        text = text or f"{action}ed for {self.namespace}/{preemptor or 'somebody'}"
        mark = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": text}
        self._change(name, conditions=[mark])
        if preemptor:
            self.put(
                Kind.EVENT,
                f"{name}.evict",
                {
                    "metadata": {
                        "annotations": {
                            "schedspec.dev/preemptor-queue": "inference",
                            "schedspec.dev/tier": "2",
                            "schedspec.dev/votes": json.dumps(dict.fromkeys(votes or ("gang", "capacity"), "permits")),
                        }
                    },
                    "involvedObject": {"kind": "Pod", "name": name, "uid": f"uid-{name}"},
                    "related": {"kind": "Pod", "name": preemptor, "namespace": self.namespace},
                    "reason": "Evict",
                    "message": text,
                    "action": action,
                    "source": {"component": "schedspec"},
                },
            )
        self._change(name, deleted=True)

    def delete(self, name: str) -> None:
        """Record the deletion of a pod."""
        self.put(Kind.POD, name, self._pod(name), change="gone")

    def add_sentence(
        self, keyword: str, text: str, seconds: float, *, verdict: str = "passed", table: Any = ()
    ) -> None:
        """Record a sentence that begins now and takes `seconds`; the clock does not advance."""
        began = 1000.0 + self.now
        row = SentenceRun(keyword, text, 10 + len(self.sentences), began, began + seconds, cast("Any", verdict))
        row.table = [list(map(str, cells)) for cells in table]
        self.sentences.append(row)

    def running(self, name: str = "A scenario", **more: Any) -> ScenarioRun:
        """Return the scenario's run as the pytest plugin would pass it to the report."""
        config = SimpleNamespace(rootpath=Path("/repo"))
        item = SimpleNamespace(config=config, nodeid=f"features/area/some.feature::{name}")
        run = ScenarioRun(
            cast("Any", item), "Some feature", Path("/repo/features/area/some.feature"), name, 7, Path("out/x")
        )
        run.began, run.began_wall = 1000.0, BEGAN
        run.sentences, run.planned = self.sentences, list(self.sentences)
        run.cleanup_began = 1000.0 + (self.now if self.cleanup_at is None else self.cleanup_at)
        run.ended = 1000.0 + self.now
        run.world = cast("Any", SimpleNamespace(history=self.history, policy=POLICY, policy_name="cross-queue-reclaim"))
        for key, value in more.items():
            setattr(run, key, value)
        return run

    def record(self, name: str = "A scenario", **more: Any) -> ScenarioRecord:
        """Return the record of everything so far."""
        return make_record(self.running(name, **more))

    def _pod(self, name: str) -> Object:
        return self._objects[Ref(Kind.POD, name, self.namespace)]

    def _change(self, name: str, *, phase: str = "", conditions: Sequence[Object] = (), deleted: bool = False) -> None:
        pod = self._pod(name)
        status = {**pod.get("status", {})}
        status |= {"phase": phase} if phase else {}
        status |= {"conditions": list(conditions)} if conditions or phase else {}
        meta = {**pod["metadata"]} | ({"deletionTimestamp": "2026-11-22T00:00:00Z"} if deleted else {})
        self.put(Kind.POD, name, {**pod, "metadata": meta, "status": status})


def reclaim(*, fails: bool = False, names_preemptor: bool = True) -> ScenarioRecord:
    """Return a record in which a service of six cards evicts both low jobs and one of the medium jobs."""
    it = Scene()
    it.add_sentence("Given", 'the policy "cross-queue-reclaim"', 0.02)
    it.now = 0.05
    it.add_sentence("And", 'a cluster with 8 cards "A100"', 0.04)
    it.node("card-node-1", cards=8)
    it.now = 0.1
    rows = [["queue", "priority", "card quota"], ["inference", "80000", "8"], ["training", "20000", "8"]]
    it.add_sentence("And", "these queues:", 0.03, table=rows)
    it.queue("inference", {"A100": 8}, deserved={"nvidia.com/gpu": "6"})
    it.queue("training", {"A100": 8}, deserved={"nvidia.com/gpu": "2"}, capability={"nvidia.com/gpu": "8"})
    it.now = 0.15
    jobs = ["medium-1", "medium-2", "low-1", "low-2"]
    table = [["job", "queue", "priority", "cards", "replicas", "min available", "memory"]]  # wider than its column
    table += [[job, "training", job[:-2], "2", "1", "1", "64Gi"] for job in jobs]
    it.add_sentence("Given", "these jobs run:", 0.35, table=table)
    for n, job in enumerate(jobs):
        it.now = 0.16 + 0.002 * n
        it.gang(job, "training")
        it.pod(f"{job}-task-0", job, cards=2, priority=job[:-2])
    for n, job in enumerate(jobs):
        it.now = 0.2 + 0.003 * n
        it.bind(f"{job}-task-0", "card-node-1")
    for n, job in enumerate(jobs):
        it.now = 0.3 + 0.003 * n
        it.run(f"{job}-task-0")
    it.now = 0.5
    it.add_sentence("When", "these services are submitted:", 0.05, table=[["service", "cards"], ["chat", "6"]])
    it.now = 0.52
    it.gang("chat", "inference")
    it.pod("chat-5f7-x2", "chat", cards=6, priority="high")
    it.now = 0.53
    it.waits("chat-5f7-x2", "1 node: 1 lacks nvidia.com/gpu; reclaim is under way")
    it.now = 0.55
    problem = Unmet('"chat" keeps waiting', "it runs on card-node-1", (), "for 1 s") if fails else None
    it.add_sentence(
        "Then", '"chat" runs' if not fails else '"chat" keeps waiting', 0.4, verdict="failed" if fails else "passed"
    )
    for n, victim in enumerate(("low-2", "low-1", "medium-2")):
        it.now = 0.56 + 0.002 * n
        it.evict(f"{victim}-task-0", "chat-5f7-x2" if names_preemptor else "")
    for victim in ("low-2", "low-1", "medium-2"):
        it.now += 0.01
        it.delete(f"{victim}-task-0")
    it.now = 0.61
    it.bind("chat-5f7-x2", "card-node-1")
    it.now = 0.72
    it.run("chat-5f7-x2")
    it.now = 0.96
    if not fails:
        it.add_sentence("And", "exactly 3 pods are evicted, once each", 2.0)
        it.now = 2.96
        it.add_sentence("And", '"low-1" is evicted', 0.0)
    it.cleanup_at = it.now
    it.now += 0.1
    for name in ("chat-5f7-x2", "medium-1-task-0"):
        it.delete(name)
    return it.record("A service of six cards evicts both low jobs and one of the medium jobs", problem=problem)


def large(pods: int = 5_000, nodes: int = 1_000) -> ScenarioRecord:
    """Return a record of gangs of twenty on many nodes; a tenth of their pods is evicted for a late gang."""
    it = Scene("spec-large")
    it.add_sentence("Given", f"{nodes} nodes", 0.5)
    for n in range(nodes):
        it.now = 0.0005 * n
        it.node(f"node-{n:04}", cpu=8)
    it.now = 0.6
    for queue in ("batch", "research"):
        it.queue(queue, deserved={"cpu": str(nodes * 2)}, capability={"cpu": str(nodes * 8)})
    it.add_sentence("Given", f"{pods} pods run", pods / 900)
    for n in range(pods):
        it.now = 0.7 + n / 2000
        if n % 20 == 0:
            it.gang(f"gang-{n // 20}", "batch" if n % 3 else "research", 20)
        it.pod(f"gang-{n // 20}-{n % 20}", f"gang-{n // 20}", cpu="1")
    for n in range(pods):
        it.now = 1.0 + pods / 2000 + n / 1000
        it.bind(f"gang-{n // 20}-{n % 20}", f"node-{n % nodes:04}")
        it.run(f"gang-{n // 20}-{n % 20}")
    it.now += 0.5
    it.add_sentence("When", "a gang comes late", 0.1)
    it.gang("late", "research", pods // 10)
    for n in range(pods // 10):
        it.pod(f"late-{n}", "late", cpu="2")
    it.now += 0.2
    it.add_sentence("Then", '"late" runs', 2.0)
    for n in range(pods // 10):
        it.now += 0.001
        victim = n * 10
        it.evict(f"gang-{victim // 20}-{victim % 20}", f"late-{n}")
        it.delete(f"gang-{victim // 20}-{victim % 20}")
    for n in range(pods // 10):
        it.now += 0.001
        it.bind(f"late-{n}", f"node-{(n * 10) % nodes:04}")
        it.run(f"late-{n}")
    it.now += 1.0
    return it.record(f"{pods} pods on {nodes} nodes")


def blocked() -> ScenarioRecord:
    """Return a record of a waiting service: the gang that borrowed its gpus must not be evicted in part."""
    it = Scene()
    it.node("gpu-1", cards=8)
    it.queue("research", deserved={"nvidia.com/gpu": "4"})
    it.queue("serving", deserved={"nvidia.com/gpu": "4"})
    it.add_sentence("Given", "these jobs run:", 0.3, table=[["job", "queue", "gpus"], ["train", "research", "1"]])
    it.gang("train", "research", 8)
    for number in range(8):
        it.now = 0.1 + 0.01 * number
        it.pod(f"train-task-{number}", "train", cards=1)
        it.bind(f"train-task-{number}", "gpu-1")
        it.run(f"train-task-{number}")
    it.now = 0.5
    it.add_sentence("When", "these services are submitted:", 0.1, table=[["service", "gpus"], ["chat", "4"]])
    it.gang("chat", "serving")
    it.pod("chat-1", "chat", cards=4)
    text = (
        "1 node: 1 lacks nvidia.com/gpu; reclaim: 8 candidates: 8 needed by gang spec-1/train, which needs all 8 pods "
        "(gang, tier 1), queue research holds 4 of 8 nvidia.com/gpu above deserved"
    )
    gang = {"type": "gang-minimum", "job": "spec-1/train", "minimum": 8, "pods": 8, "tier": 0}
    gang["text"] = "needed by gang spec-1/train, which needs all 8 pods (gang, tier 1)"
    surplus = {"queue": "research", "dimension": "nvidia.com/gpu", "allocated": "8", "deserved": "4"}
    why = {"type": "no-victims", "action": "reclaim", "task": "spec-1/chat-1", "candidates": 8, "text": text}
    why |= {"spared": [{"count": 8, "why": gang}], "surplus": [surplus]}
    it.now = 0.6
    it.waits("chat-1", text)
    group = {"spec": {"queue": "serving", "minMember": 1}, "status": {"phase": "Inqueue"}}
    group["status"] |= {"conditions": [{"type": "Unschedulable", "status": "True", "message": text}]}
    it.put(Kind.PODGROUP, "chat", group)
    event = {
        "metadata": {"annotations": {"schedspec.dev/waits": json.dumps([why])}},
        "involvedObject": {"kind": "PodGroup", "name": "chat", "uid": "uid-chat"},
        "reason": "Unschedulable",
        "message": text,
    }
    it.put(Kind.EVENT, "chat.unschedulable", event)
    it.now = 4.0
    problem = Unmet('the pod of "chat" runs', "0 of 1 run; 1 Pending: chat-1", (), "within 20 s")
    it.add_sentence("Then", '"chat" runs', 3.0, verdict="failed")
    it.now = 7.0
    return it.record("A service gets its gpus", problem=problem)
