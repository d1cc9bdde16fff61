"""Make the API objects of a twin from a state.

A twin has its own names where a scheduler under test has them: its pods are placed by the scheduler that the adapter
starts, and its nodes have the label by which our runs select nodes. All times are later by the age of the state, so
that waits and deadlines are what they were when it was taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from ...api.client import Object
from ...api.kinds import WORLD
from ...virtual.state import State
from ...virtual.state.api_objects import api_object

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_STOP_AFTER = "schedspec.dev/stop-after"


def objects_of(state: State, scheduler_name: str, shift: float, grace: float) -> Iterator[Object]:
    """Yield the objects of a state as a twin has them; namespaces first.

    Args:
        state: The state.
        scheduler_name: Name of the twin's scheduler in the spec of pods.
        shift: Seconds by which all times are later.
        grace: Seconds that a victim takes to end.
    """
    spaces = {item.metadata.namespace for found in state.objects.values() for item in found.values()}
    spaces |= {obj["metadata"].get("namespace", "") for found in state.others.values() for obj in found.values()}
    for name in sorted(spaces - {""} - state.objects["Namespace"].keys()):
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, **_ACTIVE}
    for kind, found in state.objects.items():
        for _, item in sorted(found.items()):
            yield _later(_for_twin(api_object(kind, item), state, scheduler_name, grace), shift)
    for found in state.others.values():
        for _, obj in sorted(found.items()):
            if obj["kind"] != "ConfigMap":
                yield _later(_unserved(obj), shift)


_ACTIVE = {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}


def _for_twin(obj: Object, state: State, scheduler_name: str, grace: float) -> Object:
    meta = obj["metadata"]
    meta.pop("resourceVersion", None)
    for owner in meta.get("ownerReferences") or ():  # the API server refuses every later write without them
        owner.setdefault("uid", owner.get("name", "owner"))
    if obj["kind"] == "Namespace":
        obj.update(_ACTIVE)
    elif obj["kind"] == "Node":
        meta["labels"] = {**(meta.get("labels") or {}), WORLD: "true"}
    elif obj["kind"] == "Pod":
        spec = obj.setdefault("spec", {})
        is_ours = not state.scheduler_names or spec.get("schedulerName") in state.scheduler_names
        if is_ours:
            spec["schedulerName"] = scheduler_name
        meta["annotations"] = {**(meta.get("annotations") or {}), _STOP_AFTER: f"{grace:g}s"}
        spec["terminationGracePeriodSeconds"] = max(int(grace) + 1, 1)
        for container in spec.get("containers") or ():
            container.setdefault("name", "work")
            container.setdefault("image", "work")
    return obj


def _unserved(obj: Object) -> Object:
    """Return an object without what the API server adds to each that it serves."""
    unserved = ("resourceVersion", "managedFields", "selfLink")
    meta = {name: value for name, value in obj["metadata"].items() if name not in unserved}
    return {**obj, "metadata": meta}


def _later(value: Any, shift: float) -> Any:
    """Return a value with each time in it later by `shift` seconds."""
    if isinstance(value, dict):
        return {name: _later(item, shift) for name, item in value.items()}
    if isinstance(value, list):
        return [_later(item, shift) for item in value]
    if isinstance(value, str) and _TIME.fullmatch(value):
        moved = datetime.fromisoformat(value).astimezone(UTC) + timedelta(seconds=shift)
        return moved.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if "." in value else "%Y-%m-%dT%H:%M:%SZ")
    return value
