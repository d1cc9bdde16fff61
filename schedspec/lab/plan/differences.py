"""Compare an object of a manifest with that of the cluster, and describe what changes.

Objects of Kueue are compared field by field. The API server sets defaults that a manifest need not have: both sides are
completed by Kueue's definitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import yaml

from ...scheduler.lint.schemas import Definitions
from ...scheduler.model import objects, resources
from ...scheduler.model.names import GROUP_NAME
from ...scheduler.reasons.text import count
from ...virtual.disruptions import GuardedPods
from ...virtual.state import State
from ...virtual.state.kueue import CONFIGURATION
from ..simulate.present import opened

BUDGET = "PodDisruptionBudget"
_CORDON = "node.kubernetes.io/unschedulable"


def same(known: Any, item: Any) -> bool:
    """Whether a manifest describes the object that the cluster has."""
    if isinstance(item, objects.PriorityClass):
        return bool(known.value == item.value and known.preemption_policy == item.preemption_policy)
    if isinstance(item, objects.PodDisruptionBudget):
        return bool(known.spec == item.spec)
    if not isinstance(item, objects.Queue):
        return bool(with_status(known, item) == known)
    is_same = _comparable(known.spec) == _comparable(item.spec)
    return is_same and bool(known.metadata.annotations == item.metadata.annotations)


def _comparable(spec: objects.QueueSpec) -> dict[str, Any]:
    """Return a queue's spec with the defaults of the API server, and with its amounts as numbers."""
    found = {**_fields(spec), "reclaimable": spec.reclaimable is not False}
    guarantee = spec.guarantee.resource if spec.guarantee else None
    for name, amounts in (("deserved", spec.deserved), ("capability", spec.capability), ("guarantee", guarantee)):
        found[name] = resources.parse(amounts or {})
    return found


def _fields(spec: objects.QueueSpec) -> dict[str, Any]:
    return {name: msgspec.to_builtins(getattr(spec, name)) for name in spec.__struct_fields__}


def with_status(known: Any, item: Any) -> Any:
    """Return a manifest's object as the cluster would show it."""
    if isinstance(item, objects.PriorityClass) or known is None:
        return opened(item) if isinstance(item, objects.Queue) else item
    meta = msgspec.structs.replace(
        item.metadata, uid=known.metadata.uid, creation_timestamp=known.metadata.creation_timestamp
    )
    if isinstance(item, objects.HyperNode | objects.PodDisruptionBudget):
        return msgspec.structs.replace(item, metadata=meta)
    status = item.status if isinstance(item, objects.Node) and item.status.allocatable else known.status
    return msgspec.structs.replace(item, metadata=meta, status=status)


def describe(state: State, key: tuple[str, str], known: Any, item: Any) -> str:
    kind, name = key
    if kind == BUDGET:
        guarded, verb = _guarded(state, item), "is new" if known is None else "changes"
        return f"{kind} {name} {verb}: it permits {guarded.allowed} disruptions of {count(len(guarded.pods), 'pod')}"
    if known is None:
        return f"{kind} {name} is new"
    if kind == "PriorityClass":
        return f"PriorityClass {name}: value {known.value} → {item.value}"
    if kind == "Node":
        return f"Node {name} {_describe_node(known, item)}"
    if kind == "HyperNode":
        return f"{kind} {name} changes"
    old, new = _comparable(known.spec), _comparable(item.spec)
    before, after = _fields(known.spec), _fields(item.spec)
    fields = [
        f"{field} {_amounts(before[field])} → {_amounts(after[field])}" for field in new if old[field] != new[field]
    ]
    return f"Queue {name}: {', '.join(fields) or 'annotations'}"


def _describe_node(known: objects.Node, item: objects.Node) -> str:
    cordoned = item.spec.unschedulable
    words = [] if known.spec.unschedulable == cordoned else ["is cordoned" if cordoned else "is no longer cordoned"]
    old, new = _without_cordon(known), _without_cordon(item)
    before, after = (node.status.allocatable or node.status.capacity or {} for node in (old, with_status(old, new)))
    words += [
        f"{name} {_amounts(before.get(name))} → {_amounts(after.get(name))}"
        for name in sorted(before.keys() | after.keys())
        if resources.parse({name: before.get(name, 0)}) != resources.parse({name: after.get(name, 0)})
    ]
    words += ["changes its taints"] if (old.spec.taints or []) != (new.spec.taints or []) else []
    words += ["changes its labels"] if (old.metadata.labels or {}) != (new.metadata.labels or {}) else []
    return ", ".join(words) or "changes"


def _without_cordon(node: objects.Node) -> objects.Node:
    """Return a node without what `kubectl cordon` sets: the field, and the taint that the controller manager adds."""
    taints = [taint for taint in node.spec.taints or () if taint.key != _CORDON] or None
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, unschedulable=False, taints=taints))


def _amounts(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name} {_amounts(amount)}" for name, amount in value.items()) or "none"
    return "none" if value in (None, "") else str(value)


def left_behind(state: State, kind: str, name: str) -> str:
    """Return what a removed object leaves behind: work in a queue, pods that name a class, pods on a node."""
    if kind == "Queue":
        groups = {key for key, group in state.objects["PodGroup"].items() if (group.spec.queue or "default") == name}
        pods = [pod for pod in state.objects["Pod"].values() if pod.spec.node_name and _group_of(pod) in groups]
        return (
            f": {count(len(groups), 'job')} and {count(len(pods), 'running pod')} in it have no queue" if groups else ""
        )
    if kind == "PriorityClass":
        named = sum(pod.spec.priority_class_name == name for pod in state.objects["Pod"].values())
        named += sum(group.spec.priority_class_name == name for group in state.objects["PodGroup"].values())
        return f": {count(named, 'object')} that name it cannot be created again" if named else ""
    if kind == BUDGET:
        return f": it covers {count(len(_guarded(state, state.objects[kind][name]).pods), 'pod')}"
    pods = [pod for pod in state.objects["Pod"].values() if pod.spec.node_name == name] if kind == "Node" else []
    return f" with {count(len(pods), 'pod')} on it" if pods else ""


def _guarded(state: State, budget: objects.PodDisruptionBudget) -> GuardedPods:
    found = GuardedPods(budget)
    for pod in state.objects["Pod"].values():
        if pod.metadata.namespace == budget.metadata.namespace:
            found.put(pod)
    return found


def _group_of(pod: objects.Pod) -> str:
    return f"{pod.metadata.namespace}/{(pod.metadata.annotations or {}).get(GROUP_NAME, '')}"


Key = tuple[str, str]
Object = dict[str, Any]


def changed_objects(
    state: State, before: Mapping[Key, Object] | None, after: Mapping[Key, Object], definitions: Definitions
) -> tuple[dict[str, dict[str, Object]], list[str], list[str]]:
    """Return Kueue's objects with the changes of the files, the changes in words, and notes.

    `before`: the objects of the files as they are; None: the cluster itself.
    """
    others = {kind: {**found} for kind, found in state.others.items()}
    changes, notes = [], []
    for (kind, key), item in sorted(after.items()):
        known = others.get(kind, {}).get(key)
        was, old, new = (
            None if it is None else _content(it, definitions) for it in (known, (before or {}).get((kind, key)), item)
        )
        if old is not None and old == new:
            continue
        fields = [] if was is None else [*differences(was, new)]
        if was is not None and not fields:
            continue
        if old is not None and was is not None and old != was:
            notes.append(f"{kind} {key}: the cluster's object differs from that of the present files")
        changes.append(f"{kind} {key} is new" if known is None else f"{kind} {key}: {', '.join(fields)}")
        others.setdefault(kind, {})[key] = _as_served(item, known)
    for kind, key in sorted((before or {}).keys() - after.keys()):
        if others.get(kind, {}).pop(key, None) is not None:
            changes.append(f"{kind} {key} is removed")
    return others, changes, notes


def _content(obj: Object, definitions: Definitions) -> Object:
    """Return the parts of an object that people write."""
    if obj["kind"] == "ConfigMap":
        return {"configuration": yaml.safe_load((obj.get("data") or {}).get(CONFIGURATION, "")) or {}}
    full = definitions.complete({name: part for name, part in obj.items() if name != "status"})
    return {name: part for name, part in full.items() if name in ("spec", "value")}


def _as_served(item: Object, known: Object | None) -> Object:
    """Return a manifest's object as the cluster would serve it."""
    if known is None:
        return {**item, "metadata": {"uid": f"new-{item['metadata']['name']}", **item["metadata"]}}
    kept = {name: known["metadata"][name] for name in ("uid", "creationTimestamp") if name in known["metadata"]}
    served = {**item, "metadata": {**item["metadata"], **kept}}
    return served | ({"status": known["status"]} if known.get("status") else {})


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Yield each field that differs: `spec.queueingStrategy A → B`. Parts of lists go by their names.

    >>> [*differences({"a": [{"name": "x", "n": 1}]}, {"a": [{"name": "x", "n": 2}]})]
    ['a[x].n 1 → 2']
    """
    if isinstance(old, list) and isinstance(new, list):
        one, other = _by_name(old), _by_name(new)
        if one is not None and other is not None:
            for name in sorted(one.keys() | other.keys()):
                yield from differences(one.get(name), other.get(name), f"{path}[{name}]")
            return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in sorted(old.keys() | new.keys()):
            yield from differences(old.get(name), new.get(name), f"{path}.{name}" if path else name)
    elif old != new and str(old) != str(new):
        yield f"{path} {_short(old)} → {_short(new)}"


def _by_name(parts: list[Any]) -> dict[str, Any] | None:
    """Return the parts of a list by their names; groups of resources go by what they cover. None without names."""
    found = {}
    for part in parts:
        name = part.get("name") or ",".join(part.get("coveredResources") or ()) if isinstance(part, Mapping) else ""
        if not name:
            return None
        found[str(name)] = part
    return found


def _short(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
