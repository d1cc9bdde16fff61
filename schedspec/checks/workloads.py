"""Facts about a workload for checks: how many pods it wants, the state of its pods, and the objects that explain it.

Pure. A workload is a Volcano Job, a PyTorchJob, a Kubernetes Job or a service, by its name in the feature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import wraps
from itertools import chain
from typing import Concatenate, ParamSpec

from ..api.kinds import BUILT_IN_QUEUES, GANGS, OWNERS, Kind, Ref
from ..api.timeouts import IN_FLUX
from ..gherkin.tables import nearest
from ..observe import view as views
from ..observe.expect import Check, Outcome
from ..observe.history import Object, View

P = ParamSpec("P")


def of_known(factory: Callable[Concatenate[str, P], Check]) -> Callable[Concatenate[str, P], Check]:
    """Wrap a check of a workload: its outcome is hopeless if no workload of that name ever existed."""

    @wraps(factory)
    def make_check(workload: str, /, *args: P.args, **named: P.kwargs) -> Check:
        check = factory(workload, *args, **named)

        def known(view: View) -> Outcome:
            outcome = check(view)
            if _is_known(view, workload):
                return outcome
            names = sorted({str(owner["metadata"]["name"]) for kind in OWNERS for owner in view.mine(kind)})
            text = f"there is no workload {workload}{nearest(workload, names)}; there are: {', '.join(names) or 'none'}"
            return replace(outcome, ok=False, seen=text, hopeless=IN_FLUX)

        return known

    return make_check


def in_queue(workload: str, view: View, outcome: Outcome) -> Outcome:
    """Return the outcome, or a hopeless one if the workload's queue is missing: without a queue no pod gets a node."""
    if outcome.ok:
        return outcome
    queue = views.queue_of(view, workload)
    text = "" if queue in ("", *BUILT_IN_QUEUES) else no_queue(view, queue)
    return replace(outcome, seen=f"{outcome.seen}; {text}", hopeless=IN_FLUX) if text else outcome


def no_queue(view: View, name: str) -> str:
    """Return an error text that lists the existing queues if the queue is missing; else an empty text."""
    if any(view.get(kind, name) is not None for kind in (Kind.QUEUE, Kind.LOCALQUEUE)):
        return ""
    names = views.names(it for kind in (Kind.QUEUE, Kind.LOCALQUEUE) for it in view.mine(kind))
    return f"there is no queue {name}{nearest(name, names)}; there are: {', '.join(names) or 'none'}"


def _is_known(view: View, workload: str) -> bool:
    """Whether the workload exists or existed."""
    if wanted_pods(view, workload) is not None or views.podgroup_of(view, workload) is not None:
        return True
    own = (version for kind in (*OWNERS, Kind.POD, *GANGS) for version in view.versions(kind, workload))
    pods = (version for version in view.versions(Kind.POD) if views.workload_of(version.object) == workload)
    return next(chain(own, pods), None) is not None


def held(pods: Iterable[Object]) -> list[Object]:
    """Return the pods that have a node and are not being evicted or deleted."""
    return [
        pod for pod in pods if pod["spec"].get("nodeName") and not views.is_leaving(pod) and not views.eviction(pod)
    ]


def since(view: View, pods: Iterable[Object]) -> str:
    """Describe since when pods run: `it runs since 0.44 s`, counted from the scenario's start; several pods by name."""
    states = [(str(pod["metadata"]["name"]), *_since(view, pod)) for pod in pods]
    if len(states) == 1:
        return f"it {states[0][1]} since {states[0][2]:.2f} s"
    return ", ".join(f"{name} {does} since {at:.2f} s" for name, does, at in states)


def _since(view: View, pod: Object) -> tuple[str, float]:
    does = "runs" if views.runs(pod) else f"is on {pod['spec']['nodeName']}"
    meta = pod["metadata"]
    seen = (
        version for version in view.versions(Kind.POD, str(meta["name"])) if version.uid == str(meta.get("uid", ""))
    )
    matching = (
        version
        for version in seen
        if views.runs(version.object) or (version.object["spec"].get("nodeName") and not views.runs(pod))
    )
    first = next(matching, None)
    return does, view.history.seconds(first.at) if first is not None else 0.0


def wanted_pods(view: View, workload: str) -> int | None:
    """Return how many pods a workload wants, or None if the workload is missing."""
    for kind in (*OWNERS, Kind.POD):
        obj = view.get(kind, workload)
        if obj is not None:
            return _replicas(kind, obj) if kind != Kind.JOB else _of_jobs(view, workload, obj)
    return None


def _of_jobs(view: View, workload: str, job: Object) -> int:
    """Return the number of pods of all Jobs of a gang. A gang that has grown has several Jobs."""
    jobs = [job, *(other for other in view.mine(Kind.JOB) if other is not job and _workload(other) == workload)]
    return sum(_replicas(Kind.JOB, obj) for obj in jobs)


def _workload(job: Object) -> str:
    own = str((job["spec"]["template"]["metadata"].get("labels") or {}).get(views.WORKLOAD, ""))
    space, slash, _ = str(job["metadata"]["name"]).rpartition("/")
    return f"{space}{slash}{own}"


def _replicas(kind: Kind, obj: Object) -> int:
    spec = obj.get("spec") or {}
    match kind:
        case Kind.VCJOB:
            return sum(int(task.get("replicas", 1)) for task in spec.get("tasks") or ())
        case Kind.PYTORCHJOB:
            return sum(int(replica.get("replicas", 1)) for replica in (spec.get("pytorchReplicaSpecs") or {}).values())
        case Kind.DEPLOYMENT | Kind.STATEFULSET:
            return int(spec.get("replicas", 1))
        case Kind.JOB:
            return int(spec.get("parallelism", 1))
        case _:
            return 1


def about(view: View, workload: str) -> tuple[Ref, ...]:
    """Return the references that explain a workload's state; the report adds the pods and the PodGroup."""
    found = [view.history.ref(kind, workload) for kind in (*OWNERS, Kind.POD) if view.get(kind, workload)]
    return tuple(found) or (view.history.ref(Kind.VCJOB, workload),)


def tally(pods: Iterable[Object], wanted: int | None = None) -> str:
    """Summarize the states of pods: `1 of 3 run; 2 Pending: train-task-1, train-task-2`."""
    found = list(pods)
    states: dict[str, list[str]] = {}
    for pod in found:
        if not views.runs(pod):
            state = "leaving" if views.is_leaving(pod) else "Pending" if views.waits(pod) else _bound(pod)
            states.setdefault(state, []).append(str(pod["metadata"]["name"]))
    total = len(found) if wanted is None else wanted
    head = f"{sum(map(views.runs, found))} of {total} run"
    if wanted is not None and len(found) != wanted:
        head += f"; {views.count(len(found), 'pod')} exist{'s' * (len(found) == 1)}"
    return "; ".join(
        [head, *(f"{len(names)} {state}: {', '.join(sorted(names))}" for state, names in sorted(states.items()))]
    )


def _bound(pod: Object) -> str:
    state = views.phase(pod) or "Pending"
    return f"{state} on {pod['spec']['nodeName']}" if pod["spec"].get("nodeName") else state
