"""Check whether the pods of a service or a StatefulSet are those of its newest template."""

from __future__ import annotations

from typing import Any

from ..api.kinds import Kind
from ..observe import view as views
from ..observe.expect import Check, Outcome
from ..observe.history import Object, View
from .workloads import about, of_known, tally, wanted_pods

ROLLED_OUT = (Kind.DEPLOYMENT, Kind.STATEFULSET)
"""Kinds whose controller replaces pods of an older template."""


@of_known
def is_rolled_out(workload: str) -> Check:
    """Once the template has changed, all pods that the service wants run with the newest one, and no others exist."""

    def check(view: View) -> Outcome:
        expected = f"all pods of {workload} run with its newest template"
        found = next(((kind, it) for kind in ROLLED_OUT if (it := view.get(kind, workload)) is not None), None)
        if found is None:
            seen = f"{workload} is no service and no StatefulSet: no other work has a rollout"
            return Outcome(False, expected, seen, about(view, workload), hopeless=0)
        kind, owner = found
        template = owner["spec"]["template"]
        if all(it.object["spec"]["template"] == template for it in view.versions(kind, workload)):
            return Outcome(False, expected, f"the template of {workload} has not changed", about(view, workload))
        pods, wanted = views.pods_of(view, workload), wanted_pods(view, workload)
        old = [pod for pod in pods if not _is_of(pod, template)]
        ok = not old and len(pods) == wanted and all(map(views.runs, pods))
        seen = f"{tally(pods, wanted)}; {views.count(len(old), 'pod')} of an older template"
        return Outcome(ok, expected, seen, about(view, workload))

    return check


def _is_of(pod: Object, template: Object) -> bool:
    """Whether the pod has what the template says; admission may have added more."""
    meta, spec = template.get("metadata") or {}, template["spec"]
    marks = {field: meta[field] for field in ("labels", "annotations") if meta.get(field)}
    if not _has(pod["metadata"], marks) or not _has(pod["spec"], {k: spec[k] for k in _OF_TEMPLATE if k in spec}):
        return False
    own = {container["name"]: container for container in pod["spec"]["containers"]}
    return all(
        _has(own.get(container["name"]), {k: container[k] for k in ("image", "resources") if k in container})
        for container in spec["containers"]
    )


_OF_TEMPLATE = ("priorityClassName", "nodeSelector", "schedulerName")
"""Fields of a pod that admission leaves as the template says."""


def _has(given: Any, part: Any) -> bool:
    """Whether a value has everything that a part of it has."""
    if isinstance(part, dict):
        return isinstance(given, dict) and all(_has(given.get(key), value) for key, value in part.items())
    return bool(given == part)
