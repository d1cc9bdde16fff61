"""Turn the compact notation of tables into API objects.

Amounts: `4 cpu, 8Gi memory, 2 gpu` (`gpu` is `nvidia.com/gpu`); `nothing` means no requests. Names of nodes may be
ranges: `n[1-4]`. Tasks of a job: `8 x 1 cpu running on n1`, with a role before a colon (`ps: 1 x 2 cpu`). Tasks without
a state are pending.

    nodes:  [{name: "n[1-2]", has: "10 cpu", labels: {zone: a}, taints: ["dedicated=x:NoSchedule"]}]
    queues: [{name: a, deserved: "6 cpu", guarantee: "2 cpu", capability: "8 cpu", priority: 5, weight: 2, parent: p}]
    jobs:   [{name: old, queue: b, min: 1, priority: 10, tasks: "8 x 1 cpu running on n1", pod: {…}, podgroup: {…}}]

`min` defaults to the number of tasks; `pod` and `podgroup` overlay the generated objects. `requests` is minResources:
by default `min` times the first task's requests; `none` leaves it out. Each object is one second younger than the
object before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

Object = dict[str, Any]
EPOCH = 1_790_000_000
ALIASES = {"gpu": "nvidia.com/gpu"}
NAMESPACE = "t"
_TASKS = re.compile(
    r"(?:(?P<role>[\w-]+):\s*)?(?P<count>\d+) x (?P<requests>.+?)"
    r"(?: (?P<state>running|bound|leaving|done|failed)(?: on (?P<on>\S+))?)?$"
)


def amounts(text: str) -> dict[str, str]:
    """Return `4 cpu, 2 gpu` as quantities."""
    if text in ("nothing", "none", ""):
        return {}
    pairs = (part.split() for part in text.split(","))
    return {ALIASES.get(name, name): amount for amount, name in pairs}


def names(text: str) -> list[str]:
    """Return the names of a range: `n[1-3]` is n1, n2, n3."""
    match = re.fullmatch(r"(.*)\[(\d+)-(\d+)\](.*)", text)
    if match is None:
        return [text]
    head, first, last, tail = match.groups()
    return [f"{head}{number}{tail}" for number in range(int(first), int(last) + 1)]


def merged(base: Object, over: Mapping[str, Any]) -> Object:
    """Return `base` overlaid by `over`, mapping by mapping."""
    result = dict(base)
    for key, value in over.items():
        result[key] = (
            merged(result[key], value) if isinstance(value, dict) and isinstance(result.get(key), dict) else value
        )
    return result


def timestamp(age: float) -> str:
    return datetime.fromtimestamp(EPOCH + age, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Notation:
    """Turns tables into objects, each younger than the object before."""

    def __init__(self) -> None:
        self._count = 0

    def _meta(self, name: str, namespace: str = "", **more: Any) -> Object:
        self._count += 1
        meta = {"name": name, "uid": f"{name}-{self._count}", "creationTimestamp": timestamp(self._count), **more}
        return {**meta, "namespace": namespace} if namespace else meta

    def objects(self, table: Mapping[str, Any]) -> Iterator[tuple[str, Object]]:
        """Return all objects of a table as `(kind, object)`, in their order in the table."""
        for row in table.get("nodes") or ():
            yield from (("Node", item) for item in self.nodes(row))
        for row in table.get("queues") or ():
            yield "Queue", self.queue(row)
        for row in table.get("jobs") or ():
            yield from self.job(row)
        for kind, rows in (table.get("objects") or {}).items():
            for row in rows:
                yield kind, merged({"metadata": self._meta(row["metadata"]["name"])}, row)

    def nodes(self, row: Mapping[str, Any]) -> Iterator[Object]:
        for name in names(row["name"]):
            has = {"pods": "110", **amounts(row["has"])}
            labels = {"kubernetes.io/hostname": name, **row.get("labels", {})}
            yield {
                "metadata": self._meta(name, labels=labels, annotations=row.get("annotations")),
                "spec": {
                    "unschedulable": row.get("unschedulable", False),
                    "taints": [_taint(text) for text in row.get("taints", ())],
                },
                "status": {
                    "allocatable": has,
                    "capacity": has,
                    "conditions": [{"type": "Ready", "status": "True" if row.get("ready", True) else "False"}],
                },
            }

    def queue(self, row: Mapping[str, Any]) -> Object:
        spec = {key: row[key] for key in ("weight", "priority", "reclaimable", "parent") if key in row}
        for key in ("deserved", "capability"):
            if key in row:
                spec[key] = amounts(row[key])
        if "guarantee" in row:
            spec["guarantee"] = {"resource": amounts(row["guarantee"])}
        return {
            "metadata": self._meta(row["name"], annotations=row.get("annotations")),
            "spec": spec,
            "status": {"state": row.get("state", "Open")},
        }

    def job(self, row: Mapping[str, Any]) -> Iterator[tuple[str, Object]]:
        name = row["name"]
        lines = [row["tasks"]] if isinstance(row["tasks"], str) else row["tasks"]
        groups = [self._group(line) for line in lines]
        total = sum(group["count"] for group in groups)
        least = row.get("min", total)
        spec: Object = {"queue": row.get("queue", "default"), "minMember": least}
        min_resources = row.get("requests")
        if min_resources is None and groups:
            spec["minResources"] = _times(groups[0]["requests"], least)
        elif min_resources != "none":
            spec["minResources"] = amounts(min_resources or "")
        if "roles" in row:
            spec["minTaskMember"] = row["roles"]
        if "priority" in row:
            spec["priorityClassName"] = f"p{row['priority']}"
            yield "PriorityClass", {"metadata": {"name": f"p{row['priority']}"}, "value": row["priority"]}
        started = any(group["state"] in ("running", "bound") for group in groups)
        phase = row.get("phase", "Running" if started else "Pending")
        group = {
            "metadata": self._meta(name, NAMESPACE, annotations=row.get("annotations")),
            "spec": spec,
            "status": {"phase": phase},
        }
        yield "PodGroup", merged(group, row.get("podgroup", {}))
        number = 0
        for part in groups:
            for _ in range(part["count"]):
                yield "Pod", self._pod(row, name, number, part)
                number += 1

    @staticmethod
    def _group(line: str) -> Object:
        match = _TASKS.fullmatch(line)
        if match is None:
            raise ValueError(f"{line!r} is not a line of tasks; write for example '8 x 1 cpu running on n1'")
        found = match.groupdict()
        return {**found, "count": int(found["count"]), "requests": amounts(found["requests"])}

    def _pod(self, row: Mapping[str, Any], job: str, number: int, part: Object) -> Object:
        annotations = {"scheduling.k8s.io/group-name": job, **row.get("annotations", {})}
        if part["role"]:
            annotations["volcano.sh/task-spec"] = part["role"]
        spec: Object = {"containers": [{"name": "c", "resources": {"requests": part["requests"]}}]}
        if "priority" in row:
            spec["priority"] = row["priority"]
        if part["on"]:
            spec["nodeName"] = part["on"]
        phases = {"running": "Running", "leaving": "Running", "done": "Succeeded", "failed": "Failed"}
        of_role = {"volcano.sh/task-spec": part["role"]} if part["role"] else {}
        labels = {"job": job, **of_role, **row.get("labels", {})}
        meta = self._meta(f"{job}-{number}", NAMESPACE, annotations=annotations, labels=labels)
        if part["state"] == "leaving":
            meta["deletionTimestamp"] = timestamp(self._count)
        pod = {"metadata": meta, "spec": spec, "status": {"phase": phases.get(part["state"], "Pending")}}
        return merged(pod, row.get("pod", {}))


def _taint(text: str) -> Object:
    rest, effect = text.rsplit(":", 1)
    key, _, value = rest.partition("=")
    return {"key": key, "value": value, "effect": effect}


def _times(requests: Mapping[str, str], count: int) -> dict[str, str]:
    scaled = {}
    for name, text in requests.items():
        number, unit = re.fullmatch(r"([\d.]+)(.*)", text).groups()  # type: ignore[union-attr]
        scaled[name] = f"{float(number) * count:g}{unit}"
    return scaled
