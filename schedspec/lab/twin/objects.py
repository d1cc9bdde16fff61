"""Make the API objects of a twin from a state.

A twin has its own names where a scheduler under test has them: its pods are placed by the scheduler that the adapter
starts, and its nodes have the label by which our runs select nodes. All times are later by the age of the state, so
that waits and deadlines are what they were when it was taken.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from ...api.client import Object
from ...api.kinds import WORLD
from ...scheduler.model.objects import Pod, Queue
from ...scheduler.model.task import job_key_of
from ...virtual.state import State
from ...virtual.state.api_objects import api_object
from ..simulate.present import opened

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_STOP_AFTER = "schedspec.dev/stop-after"


def objects_of(
    state: State,
    scheduler_name: str,
    shift: float,
    grace: float,
    ours: Collection[str] = (),
    *,
    serves_kueue: bool = True,
) -> Iterator[Object]:
    """Yield the objects of a state as a twin has them; namespaces first.

    Args:
        state: The state.
        scheduler_name: Name of the twin's scheduler in the spec of pods.
        ours: Names of the scheduler in the state's pods; empty: every pod of a PodGroup is its.
        shift: Seconds by which all times are later.
        grace: Seconds that a victim takes to end.
        serves_kueue: Whether the twin's API server has Kueue's kinds.
    """
    spaces = {item.metadata.namespace for found in state.objects.values() for item in found.values()}
    spaces |= {obj["metadata"].get("namespace", "") for found in state.others.values() for obj in found.values()}
    for name in sorted(spaces - {""} - state.objects["Namespace"].keys()):
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, **_ACTIVE}
    for kind, found in state.objects.items():
        for _, item in sorted(found.items()):
            obj = _for_twin(api_object(kind, opened(item) if isinstance(item, Queue) else item), grace)
            if isinstance(item, Pod) and (item.spec.scheduler_name in ours if ours else job_key_of(item)):
                obj["spec"]["schedulerName"] = scheduler_name
            yield _later(obj, shift)
    for found in state.others.values() if serves_kueue else ():
        for _, obj in sorted(found.items()):
            if obj["kind"] != "ConfigMap":
                yield _later(_unserved(obj), shift)


_ACTIVE = {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}


def _for_twin(obj: Object, grace: float) -> Object:
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
