"""Checks of the reasons that the scheduler has published for waiting work."""

from __future__ import annotations

from dataclasses import replace

from ..api.kinds import Kind
from ..api.timeouts import IN_FLUX
from ..observe import view as views
from ..observe.expect import Check, Outcome
from ..observe.history import Object, View
from .workloads import about, held, of_known, since


@of_known
def has_reason(workload: str) -> Check:
    """The scheduler has published why the workload waits: on every waiting pod, or else on its PodGroup."""

    def check(view: View) -> Outcome:
        pods = views.pods_of(view, workload)
        waiting = [pod for pod in pods if views.waits(pod)]
        group = views.podgroup_of(view, workload)
        waiting_objects: list[Object] = [_explained_on(view, pod) for pod in waiting] or (
            [group] if group is not None else []
        )
        silent = views.names(obj for obj in waiting_objects if not views.reason(obj))
        seen = f"no reason is published for {', '.join(silent)}" if silent else "none of its pods waits"
        ok = bool(waiting_objects) and not silent
        outcome = Outcome(ok, f"the scheduler publishes why {workload} waits", seen, about(view, workload))
        return outcome if ok or waiting else _unless_held(view, outcome, pods)

    return check


def _explained_on(view: View, pod: Object) -> Object:
    """Return the object on which the scheduler publishes why the pod waits."""
    return (views.group_of_gated(view, pod) if views.is_gated(pod) else None) or pod


def waits_with_reason(workload: str) -> Check:
    """The scheduler has published why the workload waits, and none of its pods was bound afterwards."""
    reason_is_published = has_reason(workload)

    def check(view: View) -> Outcome:
        return _unless_held(view, reason_is_published(view), views.pods_of(view, workload))

    return check


def _unless_held(view: View, outcome: Outcome, pods: list[Object]) -> Outcome:
    """Return the outcome, or a hopeless one if the pods are bound: no scheduler publishes a reason for a bound pod."""
    found = held(pods)
    return replace(outcome, ok=False, seen=since(view, found), hopeless=IN_FLUX) if found else outcome


def pod_has_reason(name: str) -> Check:
    """The scheduler has published why this pod waits."""

    def check(view: View) -> Outcome:
        pod = view.get(Kind.POD, name)
        reasons = "" if pod is None or not views.waits(pod) else views.reason(_explained_on(view, pod))
        seen = f"there is no pod {name}" if pod is None else views.summary(Kind.POD, pod)
        refs = (view.history.ref(Kind.POD, name),)
        outcome = Outcome(bool(reasons), f"the scheduler publishes why pod {name} waits", seen, refs)
        return _unless_held(view, outcome, [pod] if pod is not None else [])

    return check


@of_known
def waits_because(workload: str, text: str) -> Check:
    """The published reason contains `text`, ignoring case."""

    def check(view: View) -> Outcome:
        pods, group = views.pods_of(view, workload), views.podgroup_of(view, workload)
        objects = [*(_explained_on(view, pod) for pod in pods), *([group] if group is not None else [])]
        reasons = sorted({views.reason(obj) for obj in objects} - {""})
        ok = any(text.lower() in reason.lower() for reason in reasons)
        seen = "; ".join(reasons) or "the scheduler has published no reason"
        outcome = Outcome(ok, f'{workload} waits because of "{text}"', seen, about(view, workload))
        return outcome if ok or any(map(views.waits, pods)) else _unless_held(view, outcome, pods)

    return check


@of_known
def waits_for_check(workload: str, name: str) -> Check:
    """Kueue has reserved quota for the workload, and the admission check of that name has not answered yet."""

    def check(view: View) -> Outcome:
        status = (views.podgroup_of(view, workload) or {}).get("status") or {}
        true = [it["type"] for it in status.get("conditions") or () if it["status"] == "True"]
        states = {it["name"]: it["state"] for it in status.get("admissionChecks") or ()}
        has_quota = "QuotaReserved" in true and "Admitted" not in true
        shown = ", ".join(f"{other} is {state}" for other, state in states.items()) or "no admission check"
        seen = f"{shown}; {', '.join(true) or 'no condition'}"
        expected = f"{workload} has quota and waits for admission check {name}"
        return Outcome(has_quota and states.get(name) == "Pending", expected, seen, about(view, workload))

    return check
