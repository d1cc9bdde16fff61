"""What can be said of a workload in one view: the checks that steps hand to an expectation. Pure.

A workload is named as in the feature: a Volcano Job, a PyTorchJob, a Kubernetes Job or a service.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness import views
from harness.expect import Check, Outcome
from harness.history import Object, View
from harness.kinds import OWNERS, Kind, Ref


def runs(workload: str) -> Check:
    """Every pod that it wants is Running."""

    def check(view: View) -> Outcome:
        pods, wanted = views.pods_of(view, workload), wanted_pods(view, workload)
        if wanted is None:
            return Outcome(False, f"{workload} runs", f"there is no workload {workload}", ())
        running = [pod for pod in pods if views.runs(pod)]
        expected = f"all {wanted} pods of {workload} run" if wanted != 1 else f"the pod of {workload} runs"
        return Outcome(len(running) == wanted, expected, tally(pods, wanted), about(view, workload))

    return check


def count_runs(workload: str, number: int) -> Check:
    """Exactly so many of its pods are Running."""

    def check(view: View) -> Outcome:
        pods = views.pods_of(view, workload)
        ok = sum(map(views.runs, pods)) == number
        return Outcome(ok, f"exactly {number} pods of {workload} run", tally(pods), about(view, workload))

    return check


def waits(workload: str) -> Check:
    """It is there, and no pod of it has a node; whether its pods exist already is the admission's matter."""

    def check(view: View) -> Outcome:
        pods = views.pods_of(view, workload)
        there = wanted_pods(view, workload) is not None
        ok = there and not any(pod["spec"].get("nodeName") and not views.is_leaving(pod) for pod in pods)
        seen = tally(pods) if there else f"there is no workload {workload}"
        return Outcome(ok, f"no pod of {workload} has a node", seen, about(view, workload))

    return check


def is_refused(workload: str) -> Check:
    """The scheduler has published why it, or one of its pods, waits."""

    def check(view: View) -> Outcome:
        group = views.podgroup_of(view, workload)
        pods = views.pods_of(view, workload)
        said = [views.reason(obj) for obj in ([group] if group else []) + pods if views.reason(obj)]
        expected = f"the scheduler says why {workload} waits"
        return Outcome(bool(said), expected, "; ".join(said) or "it has said nothing", about(view, workload))

    return check


def podgroup_is(workload: str, phase: str) -> Check:
    """Its PodGroup is in that phase."""

    def check(view: View) -> Outcome:
        group = views.podgroup_of(view, workload)
        seen = "there is none" if group is None else views.phase(group) or "no phase yet"
        return Outcome(seen == phase, f"the PodGroup of {workload} is {phase}", seen, about(view, workload))

    return check


def wanted_pods(view: View, workload: str) -> int | None:
    """How many pods a workload wants; None if there is no such workload."""
    for kind in (*OWNERS, Kind.POD):
        obj = view.get(kind, workload)
        if obj is not None:
            return _replicas(kind, obj)
    return None


def _replicas(kind: Kind, obj: Object) -> int:
    spec = obj.get("spec") or {}
    match kind:
        case Kind.VCJOB:
            return sum(int(task.get("replicas", 1)) for task in spec.get("tasks") or ())
        case Kind.PYTORCHJOB:
            return sum(int(it.get("replicas", 1)) for it in (spec.get("pytorchReplicaSpecs") or {}).values())
        case Kind.DEPLOYMENT:
            return int(spec.get("replicas", 1))
        case Kind.JOB:
            return int(spec.get("parallelism", 1))
        case _:
            return 1


def about(view: View, workload: str) -> tuple[Ref, ...]:
    """What explains the state of a workload: itself; the story adds its pods and PodGroup."""
    found = [view.history.ref(kind, workload) for kind in (*OWNERS, Kind.POD) if view.get(kind, workload)]
    return tuple(found) or (view.history.ref(Kind.VCJOB, workload),)


def tally(pods: Iterable[Object], wanted: int | None = None) -> str:
    """`1 of 3 run; 2 Pending: train-task-1, train-task-2`."""
    found = list(pods)
    states: dict[str, list[str]] = {}
    for pod in found:
        if not views.runs(pod):
            state = "leaving" if views.is_leaving(pod) else "Pending" if views.waits(pod) else _bound(pod)
            states.setdefault(state, []).append(str(pod["metadata"]["name"]))
    total = len(found) if wanted is None else wanted
    head = f"{sum(map(views.runs, found))} of {total} run"
    if wanted is not None and len(found) != wanted:
        head += f"; {len(found)} pods exist"
    return "; ".join([head, *(f"{len(it)} {state}: {', '.join(sorted(it))}" for state, it in sorted(states.items()))])


def _bound(pod: Object) -> str:
    state = views.phase(pod) or "Pending"
    return f"{state} on {pod['spec']['nodeName']}" if pod["spec"].get("nodeName") else state
