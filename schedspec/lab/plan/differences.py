"""Compare an object of a manifest with that of the cluster, and describe what changes."""

from __future__ import annotations

from typing import Any

import msgspec

from ...scheduler.model import objects, resources
from ...scheduler.model.names import GROUP_NAME
from ...scheduler.reasons.text import count
from ...virtual.disruptions import GuardedPods
from ...virtual.state import State
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
    before, after = (_resources_of(node) for node in (old, with_status(old, new)))
    words += [
        f"{name} {_amounts(before.get(name))} → {_amounts(after.get(name))}"
        for name in sorted(before.keys() | after.keys())
        if resources.parse({name: before.get(name, 0)}) != resources.parse({name: after.get(name, 0)})
    ]
    words += ["changes its taints"] if (old.spec.taints or []) != (new.spec.taints or []) else []
    words += ["changes its labels"] if (old.metadata.labels or {}) != (new.metadata.labels or {}) else []
    return ", ".join(words) or "changes"


def _resources_of(node: objects.Node) -> objects.meta.Quantities:
    return node.status.allocatable or node.status.capacity or {}


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
