"""The workload that a check asks about: how many pods it wants, how they are, and what explains it. Pure.

A workload is named as in the feature: a Volcano Job, a PyTorchJob, a Kubernetes Job or a service.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..api.kinds import OWNERS, Kind, Ref
from ..observe import view as views
from ..observe.history import Object, View


def wanted_pods(view: View, workload: str) -> int | None:
    """How many pods a workload wants; None if there is no such workload."""
    for kind in (*OWNERS, Kind.POD):
        obj = view.get(kind, workload)
        if obj is not None:
            return _replicas(kind, obj) if kind != Kind.JOB else _of_jobs(view, workload, obj)
    return None


def _of_jobs(view: View, workload: str, job: Object) -> int:
    """Of a gang that has grown, more than one Job makes the pods."""
    jobs = [job, *(it for it in view.mine(Kind.JOB) if it is not job and _workload(it) == workload)]
    return sum(_replicas(Kind.JOB, it) for it in jobs)


def _workload(job: Object) -> str:
    return str((job["spec"]["template"]["metadata"].get("labels") or {}).get(views.WORKLOAD, ""))


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
