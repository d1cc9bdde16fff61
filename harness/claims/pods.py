"""What can be claimed of a workload's pods beyond that they run: bound, so many, waiting, and why."""

from __future__ import annotations

from harness import views
from harness.checks import about, tally, wanted_pods
from harness.expect import Check, Outcome
from harness.history import Object, View
from harness.kinds import Kind


def is_bound(workload: str) -> Check:
    """Every pod that it wants has a node."""

    def check(view: View) -> Outcome:
        pods, wanted = views.pods_of(view, workload), wanted_pods(view, workload)
        bound = [pod for pod in pods if pod["spec"].get("nodeName") and not views.is_leaving(pod)]
        return Outcome(len(bound) == wanted, f"{workload} is bound", tally(pods, wanted), about(view, workload))

    return check


def count_waits(workload: str, number: int) -> Check:
    """Exactly so many of its pods have no node."""

    def check(view: View) -> Outcome:
        pods = views.pods_of(view, workload)
        ok = sum(map(views.waits, pods)) == number
        return Outcome(ok, f"exactly {number} of the pods of {workload} wait", tally(pods), about(view, workload))

    return check


def has_no_pods(workload: str) -> Check:
    """It is there and none of its pods is."""

    def check(view: View) -> Outcome:
        pods = views.pods_of(view, workload)
        there = wanted_pods(view, workload) is not None
        seen = tally(pods) if there else f"there is no workload {workload}"
        return Outcome(there and not pods, f"{workload} has no pods", seen, about(view, workload))

    return check


def is_done(workload: str) -> Check:
    """No pod of it is left that has not run to its end."""

    def check(view: View) -> Outcome:
        left = [pod for pod in views.pods_of(view, workload) if not views.is_over(pod)]
        return Outcome(not left, f"{workload} completes", tally(left), about(view, workload))

    return check


def is_gone(workload: str) -> Check:
    """No pod of it is left."""

    def check(view: View) -> Outcome:
        left = views.pods_of(view, workload)
        return Outcome(not left, f"{workload} is gone with its pods", tally(left), about(view, workload))

    return check


def pod_waits(name: str) -> Check:
    """A pod, by its own name, is there and has no node."""

    def check(view: View) -> Outcome:
        pod = view.get(Kind.POD, name)
        seen = f"there is no pod {name}" if pod is None else views.summary(Kind.POD, pod)
        return Outcome(
            pod is not None and views.waits(pod), f"pod {name} waits", seen, (view.history.ref(Kind.POD, name),)
        )

    return check


def pod_was_told_why(name: str) -> Check:
    """The scheduler has published why this pod waits."""

    def check(view: View) -> Outcome:
        pod = view.get(Kind.POD, name)
        said = "" if pod is None or not views.waits(pod) else views.reason(pod)
        seen = f"there is no pod {name}" if pod is None else views.summary(Kind.POD, pod)
        return Outcome(
            bool(said), f"the scheduler says why pod {name} waits", seen, (view.history.ref(Kind.POD, name),)
        )

    return check


def was_told_why(workload: str) -> Check:
    """The scheduler has published why it waits: on every pod of it that waits, else on its PodGroup."""

    def check(view: View) -> Outcome:
        waiting = [pod for pod in views.pods_of(view, workload) if views.waits(pod)]
        group = views.podgroup_of(view, workload)
        asked: list[Object] = waiting or ([group] if group is not None else [])
        silent = views.names(obj for obj in asked if not views.reason(obj))
        seen = f"it has said nothing of {', '.join(silent)}" if silent else "nothing of it waits"
        expected = f"the scheduler says why {workload} waits"
        return Outcome(bool(asked) and not silent, expected, seen, about(view, workload))

    return check


def waits_because(workload: str, text: str) -> Check:
    """What the scheduler has published names `text`."""

    def check(view: View) -> Outcome:
        group = views.podgroup_of(view, workload)
        objects = [*views.pods_of(view, workload), *([group] if group is not None else [])]
        said = sorted({views.reason(obj) for obj in objects} - {""})
        ok = any(text.lower() in reason.lower() for reason in said)
        seen = "; ".join(said) or "the scheduler has said nothing"
        return Outcome(ok, f'{workload} waits because of "{text}"', seen, about(view, workload))

    return check
