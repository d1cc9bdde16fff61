"""What a twin shows is read as evictions, starts and waits, for schedulers of pods and for Kueue."""

from __future__ import annotations

from typing import Any

from schedspec.api.kinds import Kind
from schedspec.lab.plan.answer import PlannedWorld
from schedspec.lab.twin.decisions import Decisions, Work
from schedspec.observe.history import History
from schedspec.observe.watcher import HistoryWriter
from schedspec.schedulers import find
from tests.support.kueue_state import GPU, workload

POD_WORK = Work({"t/a-0": "t/a", "t/b-0": "t/b", "t/b-1": "t/b"}, {"t/a": "lender", "t/b": "owner"})


def pod(name: str, node: str = "", *, uid: str = "", leaving: bool = False, **status: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "t", "uid": uid or name, "resourceVersion": "1"}
    if leaving:
        meta["deletionTimestamp"] = "2026-11-20T10:00:00Z"
    containers = [{"name": "c", "resources": {"requests": {GPU: "2"}}}]
    spec = {"containers": containers, "schedulerName": "schedspec"} | ({"nodeName": node} if node else {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Pending", **status}}


Story = tuple[str, Kind, dict[str, Any]]


def told(scheduler: str, work: Work, *story: Story) -> PlannedWorld:
    return fed(scheduler, work, *story).result({}, "")


def fed(scheduler: str, work: Work, *story: Story) -> Decisions:
    """Feed a story: what was there, what changed, and what is gone."""
    adapter = find(scheduler)
    writer = HistoryWriter(adapter.marks)
    was = [(kind, obj) for change, kind, obj in story if change == "was"]
    for kind, obj in was:
        writer.record(kind, obj)
    history: History = writer.begin("")
    for number, (change, kind, obj) in enumerate(story):
        if change != "was":
            obj["metadata"]["resourceVersion"] = str(number + 10)
            writer.record(kind, obj, gone=change == "gone")
    found = Decisions(work, GPU, adapter.scheduler_name, by_workload=adapter.marks.unit_evicted is not None)
    for version in history.since(0):
        found.feed(version)
    return found


def test_a_deletion_is_an_eviction_and_a_node_is_a_start_for_which_it_was() -> None:
    target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "for t/b"}
    found = told(
        "volcano",
        POD_WORK,
        ("was", Kind.POD, pod("a-0", "n1")),
        ("was", Kind.POD, pod("b-0")),
        ("was", Kind.POD, pod("b-1", conditions=[{"type": "PodScheduled", "status": "False", "message": "no room"}])),
        ("changed", Kind.POD, pod("a-0", "n1", leaving=True, conditions=[target])),
        ("gone", Kind.POD, pod("a-0", "n1", leaving=True, conditions=[target])),
        ("changed", Kind.POD, pod("a-0", uid="again")),
        ("changed", Kind.POD, pod("b-0", "n1")),
    )
    (evicted,) = found.evictions
    assert (evicted.pod, evicted.job, evicted.queue, evicted.node) == ("t/a-0", "t/a", "lender", "n1")
    assert (evicted.preemptor, evicted.preemptor_queue, evicted.why) == ("t/b", "owner", "for t/b")
    assert not evicted.runs_again
    assert [(start.job, start.pods, start.nodes) for start in found.starts] == [("t/b", 1, ["n1"])]
    assert found.waiting == {"t/a": "the scheduler publishes no reason", "t/b": "no room"}
    assert found.held == {"owner": 2.0}


def test_a_victim_that_is_placed_again_is_no_start() -> None:
    found = told(
        "volcano",
        POD_WORK,
        ("was", Kind.POD, pod("a-0", "n1")),
        ("changed", Kind.POD, pod("a-0", "n1", leaving=True)),
        ("gone", Kind.POD, pod("a-0", "n1", leaving=True)),
        ("changed", Kind.POD, pod("a-0", uid="again")),
        ("changed", Kind.POD, pod("a-0", "n2", uid="again")),
    )
    assert [(one.pod, one.runs_again) for one in found.evictions] == [("t/a-0", True)]
    assert (found.starts, found.waiting, found.held) == ([], {}, {"lender": 2.0})


def test_what_was_decided_before_the_twin_began_is_no_decision() -> None:
    found = told(
        "volcano",
        POD_WORK,
        ("was", Kind.POD, pod("a-0", "n1", leaving=True)),
        ("was", Kind.POD, pod("b-0", "n1")),
        ("gone", Kind.POD, pod("a-0", "n1", leaving=True)),
    )
    assert (found.evictions, found.starts) == ([], [])


def test_kueue_decides_by_the_conditions_of_workloads() -> None:
    def evicted(message: str) -> dict[str, Any]:
        item = workload("old", "lender", 3, admitted=5)
        item["status"]["conditions"] += [
            {"type": kind, "status": "True", "reason": reason, "message": message}
            for kind, reason in (("Evicted", "Preempted"), ("Preempted", "InCohortReclamation"))
        ]
        return item

    waits = workload("late", "owner", 1)
    waits["status"]["conditions"] = [{"type": "QuotaReserved", "status": "False", "message": "no quota"}]
    work = Work({}, {"team/old": "lender", "team/new": "owner", "team/late": "owner"}, {"uid-new": "team/new"})
    found = told(
        "kueue",
        work,
        ("was", Kind.WORKLOAD, workload("old", "lender", 3, admitted=5)),
        ("was", Kind.WORKLOAD, workload("new", "owner", 3)),
        ("was", Kind.WORKLOAD, waits),
        ("changed", Kind.WORKLOAD, evicted("Preempted to accommodate a workload (UID: uid-new, JobUID: j)")),
        ("changed", Kind.WORKLOAD, workload("new", "owner", 3, admitted=20)),
    )
    (one,) = found.evictions
    assert (one.pod, one.queue, one.preemptor, one.preemptor_queue) == ("team/old", "lender", "team/new", "owner")
    assert one.action == "InCohortReclamation"
    assert [(start.job, start.queue) for start in found.starts] == [("team/new", "owner")]
    assert found.waiting["team/late"] == "no quota"


def test_a_scheduler_that_has_shown_nothing_of_waiting_work_may_still_decide_on_it() -> None:
    waits = [("was", Kind.POD, pod("a-0", "n1")), ("was", Kind.POD, pod("b-0")), ("was", Kind.POD, pod("b-1"))]
    refused = pod("b-0", conditions=[{"type": "PodScheduled", "status": "False", "message": "no room"}])
    some = ("changed", Kind.POD, refused)
    assert not fed("schedspec", POD_WORK, *waits).all_told
    assert not fed("schedspec", POD_WORK, *waits, some).all_told
    assert fed("schedspec", POD_WORK, *waits, some, ("changed", Kind.POD, pod("b-1", "n1"))).all_told
