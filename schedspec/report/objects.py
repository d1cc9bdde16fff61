"""Reduce each object to the fields that a record keeps, flat and under plain names.

This module is pure. Quantities are summed over a pod's containers; unset fields are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from ..api.kinds import Kind, Ref
from ..monitors import amounts
from ..monitors.limits import card_quota
from ..observe import view
from ..observe.history import Object, Version

UNITS = {"cpu": "cores", "memory": "bytes", "ephemeral-storage": "bytes", "pods": "pods"}
"""Units of common resources. `unit_of` derives the others from the name: `nvidia.com/gpu` is counted in cards."""


def unit_of(resource: str) -> str:
    return UNITS.get(resource) or ("cards" if is_card(resource) else "bytes" if "hugepages" in resource else "")


def is_card(resource: str) -> bool:
    """Whether a resource is an accelerator of a vendor, such as `nvidia.com/gpu`."""
    return "/" in resource and not resource.startswith(("kubernetes.io/", "attachable-volumes"))


def quantities(parts: Mapping[str, Any]) -> dict[str, str]:
    """Return parsed amounts as strings, without pods and zeros."""
    return {name: plain(amount) for name, amount in sorted(parts.items()) if name != "pods" and amount}


def parsed(given: Mapping[str, Any] | None) -> dict[str, str]:
    """Return Kubernetes' quantities (`500m`, `64Gi`) as plain numbers."""
    return {name: plain(amount) for name, amount in sorted(amounts.parse(given).items())}


def plain(amount: Decimal) -> str:
    """Format an amount as `0.5` or `2`, never as `1E+3`."""
    return f"{amount.normalize():f}"


class QueueIndex:
    """Finds the queue of a pod by its PodGroup, even if the PodGroup appeared after the pod."""

    def __init__(self, versions: Iterable[Version]) -> None:
        self._of: dict[str, str] = {}
        for version in versions:
            self.see(version.ref, version.object)

    def see(self, ref: Ref, obj: Object) -> None:
        """Read a version of a PodGroup or a Workload; others are skipped."""
        if ref.kind in view.QUEUED:
            self._of[f"{ref.namespace}/{ref.name}"] = view.queue_named_by(obj)

    def of(self, pod: Object) -> str:
        """Return the queue's name; empty for a pod without a PodGroup."""
        return self._of.get(f"{pod['metadata'].get('namespace', '')}/{view.group_of(pod)}", "")


def state_of(kind: Kind, obj: Object, queues: QueueIndex) -> dict[str, Any]:
    """Return the fields of an object that a record keeps, by kind. Unset fields are left out."""
    return {name: value for name, value in _state(kind, obj, queues) if value not in (None, "", [], {}, False)}


def _state(kind: Kind, obj: Object, queues: QueueIndex) -> Iterator[tuple[str, Any]]:  # noqa: PLR0912 - kinds
    spec, status, metadata = obj.get("spec") or {}, obj.get("status") or {}, obj["metadata"]
    match kind:
        case Kind.POD:
            yield "phase", status.get("phase")
            yield "node", spec.get("nodeName")
            yield "workload", view.workload_of(obj)
            yield "group", view.group_of(obj)
            yield "queue", queues.of(obj)
            yield "requests", quantities(amounts.of_pod(obj))
            yield "card", (metadata.get("annotations") or {}).get("volcano.sh/card.name")
            yield "priority", spec.get("priorityClassName")
            yield "nominated", status.get("nominatedNodeName")
            yield "leaving", bool(metadata.get("deletionTimestamp"))
            yield "evicted", (view.eviction(obj) or {}).get("message")
            yield "waits", _message(obj, "PodScheduled", "False")
        case Kind.PODGROUP:
            for name in ("queue", "minMember", "priorityClassName"):
                yield name, spec.get(name)
            yield "phase", status.get("phase")
            yield "waits", _message(obj, "Unschedulable", "True")
        case Kind.GANG | Kind.GANG_ALPHA:
            yield "minMember", view.minimum_of(obj)
            for name in ("priorityClassName", "disruptionMode"):
                yield name, spec.get(name)
            yield "waits", view.reason(obj)
        case Kind.WORKLOAD:
            yield "queue", view.queue_named_by(obj)
            yield "minMember", view.minimum_of(obj)
            yield "conditions", _true_conditions(status)
            yield "waits", view.reason(obj)
        case Kind.VCJOB:
            yield "queue", spec.get("queue")
            yield "phase", (status.get("state") or {}).get("phase")
        case Kind.QUEUE:
            yield from spec.items()
            yield "card_quota", {name: plain(amount) for name, amount in card_quota(obj).items()}
            yield "state", status.get("state")
            yield "allocated", status.get("allocated")
        case Kind.NODE:
            yield "allocatable", parsed(status.get("allocatable"))
            yield "unschedulable", spec.get("unschedulable")
            labels = metadata.get("labels") or {}
            yield "card", next((value for key, value in labels.items() if key.endswith(".product")), None)
        case Kind.PYTORCHJOB | Kind.JOB | Kind.DEPLOYMENT:
            yield "conditions", _true_conditions(status)
        case Kind.EVENT:
            yield from _of_event(obj)
        case Kind.COMMAND:
            yield "action", obj.get("action")
            yield "target", (obj.get("target") or {}).get("name")
        case Kind.PRIORITYCLASS:
            yield "value", obj.get("value")


def _of_event(obj: Object) -> Iterator[tuple[str, Any]]:
    about, related = obj.get("involvedObject") or {}, obj.get("related") or {}
    for name in ("type", "reason", "message", "count", "action"):
        yield name, obj.get(name)
    yield "about", f"{about.get('kind')} {about.get('name')}"
    yield "uid", about.get("uid")
    yield "related", f"{related.get('kind')} {related.get('name')}" if related else None
    yield "source", (obj.get("source") or {}).get("component") or obj.get("reportingComponent")
    annotations = obj["metadata"].get("annotations") or {}
    yield "annotations", {key: value for key, value in annotations.items() if key.startswith("schedspec.dev/")}


def _message(obj: Object, condition: str, status: str) -> str:
    found = view.condition(obj, condition)
    return str(found.get("message", "")) if found.get("status") == status else ""


def _true_conditions(status: Mapping[str, Any]) -> list[Any]:
    conditions = status.get("conditions") or ()
    return [condition.get("type") for condition in conditions if condition.get("status") == "True"]
