"""What a Then can ask of why work waits: what the scheduler has published of it."""

from __future__ import annotations

from ..api.kinds import Kind
from ..observe import view as views
from ..observe.expect import Check, Outcome
from ..observe.history import Object, View
from .workloads import about


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
