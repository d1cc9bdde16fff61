"""What a Then can ask of why work waits: what the scheduler has published of it."""

from __future__ import annotations

from dataclasses import replace

from ..api.kinds import Kind
from ..api.timeouts import IN_FLUX
from ..observe import view as views
from ..observe.expect import Check, Outcome
from ..observe.history import Object, View
from .workloads import about, held, of_known, since


@of_known
def was_told_why(workload: str) -> Check:
    """The scheduler has published why it waits: on every pod of it that waits, else on its PodGroup."""

    def check(view: View) -> Outcome:
        pods = views.pods_of(view, workload)
        waiting = [pod for pod in pods if views.waits(pod)]
        group = views.podgroup_of(view, workload)
        asked: list[Object] = waiting or ([group] if group is not None else [])
        silent = views.names(obj for obj in asked if not views.reason(obj))
        seen = f"it has said nothing of {', '.join(silent)}" if silent else "nothing of it waits"
        ok = bool(asked) and not silent
        outcome = Outcome(ok, f"the scheduler says why {workload} waits", seen, about(view, workload))
        return outcome if ok or waiting else _unless_held(view, outcome, pods)

    return check


def waits_and_was_told_why(workload: str) -> Check:
    """The scheduler has published why it waits, and no pod of it has got a node all the same."""
    told = was_told_why(workload)

    def check(view: View) -> Outcome:
        return _unless_held(view, told(view), views.pods_of(view, workload))

    return check


def _unless_held(view: View, outcome: Outcome, pods: list[Object]) -> Outcome:
    """Of pods that have a node nobody says why they wait."""
    found = held(pods)
    return replace(outcome, ok=False, seen=since(view, found), hopeless=IN_FLUX) if found else outcome


def pod_was_told_why(name: str) -> Check:
    """The scheduler has published why this pod waits."""

    def check(view: View) -> Outcome:
        pod = view.get(Kind.POD, name)
        said = "" if pod is None or not views.waits(pod) else views.reason(pod)
        seen = f"there is no pod {name}" if pod is None else views.summary(Kind.POD, pod)
        refs = (view.history.ref(Kind.POD, name),)
        outcome = Outcome(bool(said), f"the scheduler says why pod {name} waits", seen, refs)
        return _unless_held(view, outcome, [pod] if pod is not None else [])

    return check


@of_known
def waits_because(workload: str, text: str) -> Check:
    """What the scheduler has published names `text`."""

    def check(view: View) -> Outcome:
        pods, group = views.pods_of(view, workload), views.podgroup_of(view, workload)
        objects = [*pods, *([group] if group is not None else [])]
        said = sorted({views.reason(obj) for obj in objects} - {""})
        ok = any(text.lower() in reason.lower() for reason in said)
        seen = "; ".join(said) or "the scheduler has said nothing"
        outcome = Outcome(ok, f'{workload} waits because of "{text}"', seen, about(view, workload))
        return outcome if ok or any(map(views.waits, pods)) else _unless_held(view, outcome, pods)

    return check
