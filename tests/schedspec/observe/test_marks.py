"""Evictions and reasons are read from recorded answers of schedulers."""

from __future__ import annotations

from typing import Any

import pytest

from schedspec.api.kinds import Kind
from schedspec.api.marks import USUAL, Mark, Marks
from schedspec.monitors import Ledger, Rules
from schedspec.monitors.reading import feed
from schedspec.observe import view
from schedspec.observe.history import History
from schedspec.observe.watcher import HistoryWriter
from schedspec.report.course import ActMonitor
from schedspec.schedulers import ADAPTERS

VICTIMS = {
    "volcano": {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": "volcano: preempting to accommodate a higher priority pod",
    },
    "kube-scheduler": {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": "kube-scheduler: preempting to accommodate a higher priority pod",
    },
    "schedspec": {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": "preempt for t/new-0 (of job t/new in queue a)",
    },
}
WAITING = {
    "a pod": (
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"},
        "0/2 nodes",
    ),
    "a PodGroup of Volcano": (
        {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "2/0 tasks in gang"},
        "2/0 tasks in gang",
    ),
    "a PodGroup of Kubernetes 1.36": (
        {"type": "PodGroupScheduled", "status": "False", "reason": "Unschedulable", "message": "gang does not fit"},
        "gang does not fit",
    ),
    "a PodGroup of Kubernetes 1.37": (
        {"type": "PodGroupInitiallyScheduled", "status": "False", "reason": "Unschedulable", "message": ""},
        "Unschedulable",
    ),
}
NOT_YET = {"type": "PodScheduled", "status": "True"}
KUEUE = Marks(
    evicted=(Mark("TerminationTarget", "True", "WorkloadEvictedDueToPreempted"),),
    waits=(Mark("QuotaReserved", "False"),),
)


def obj(*conditions: dict[str, Any], version: str = "1") -> dict[str, Any]:
    meta = {"name": "p", "namespace": "t", "uid": "u", "resourceVersion": version}
    return {"metadata": meta, "spec": {"nodeName": "n1"}, "status": {"conditions": list(conditions)}}


@pytest.mark.parametrize("condition", VICTIMS.values(), ids=VICTIMS)
def test_the_mark_of_a_victim_is_recognized(condition: dict[str, Any]) -> None:
    assert view.eviction(obj(condition)) == condition
    assert view.eviction(obj({**condition, "reason": "EvictionByEvictionAPI"})) is None
    assert view.eviction(obj({**condition, "status": "False"})) is None


@pytest.mark.parametrize(("condition", "why"), WAITING.values(), ids=WAITING)
def test_a_reason_is_read(condition: dict[str, Any], why: str) -> None:
    assert view.reason(obj(NOT_YET, condition)) == why
    assert view.reason(obj({**condition, "status": "Unknown"})) == ""
    assert view.reason(obj()) == ""


def test_only_kueue_has_conditions_of_its_own() -> None:
    assert {name for name, adapter in ADAPTERS.items() if adapter.marks != USUAL} == {"kueue"}


def test_evictions_and_reasons_in_conditions_of_another_scheduler_are_read() -> None:
    victim = {"type": "TerminationTarget", "status": "True", "reason": "WorkloadEvictedDueToPreempted", "message": "m"}
    writer = HistoryWriter(KUEUE)
    history: History = writer.begin("t")
    writer.record(Kind.POD, obj(version="2"))
    writer.record(Kind.POD, obj(victim, version="3"))
    ledger = Ledger(Rules(""))
    done = ActMonitor(ledger, ledger.rules)
    ledger.attach(done)
    feed(ledger, history.versions(Kind.POD))
    assert [act.eviction is None for act in done.acts] == [True, False]
    assert view.eviction(history.now().get(Kind.POD, "p") or {}) == victim
    writer.record(Kind.POD, obj({"type": "QuotaReserved", "status": "False", "message": "no quota"}, version="4"))
    assert view.reason(history.now().get(Kind.POD, "p") or {}) == "no quota"


CHECKS = {
    "asked": ([("budget", "Pending")], "admission check budget is Pending"),
    "one of two": ([("a", "Ready"), ("b", "Retry")], "admission check b is Retry"),
    "approved": ([("budget", "Ready")], ""),
    "none": ([], ""),
}


@pytest.mark.parametrize(("checks", "why"), CHECKS.values(), ids=CHECKS)
def test_a_workload_with_quota_waits_for_its_admission_checks(checks: list[tuple[str, str]], why: str) -> None:
    workload = obj({"type": "QuotaReserved", "status": "True"})
    workload["status"]["admissionChecks"] = [{"name": name, "state": state} for name, state in checks]
    assert KUEUE.reason(workload) == why
    workload["status"]["conditions"] = [{"type": "QuotaReserved", "status": "False", "message": "no quota"}]
    assert KUEUE.reason(workload) == "no quota"


def test_conditions_that_are_no_marks_of_the_scheduler_are_ignored() -> None:
    writer = HistoryWriter(KUEUE)
    history = writer.begin("t")
    writer.record(Kind.POD, obj(VICTIMS["volcano"], WAITING["a pod"][0]))
    found = history.now().get(Kind.POD, "p") or {}
    assert (view.eviction(found), view.reason(found)) == (None, "")
