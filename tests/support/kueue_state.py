"""A cluster of Kueue as `kubectl get -o json` prints it: queues, flavors, and Workloads without Jobs and pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Object = dict[str, Any]
_API = "kueue.x-k8s.io/v1beta2"
GPU = "nvidia.com/gpu"
TAKEN = "2026-11-20T10:00:00Z"


def flavor(name: str = "gpu") -> Object:
    return {"apiVersion": _API, "kind": "ResourceFlavor", "metadata": _meta(name), "spec": {}}


def cluster_queue(name: str, gpus: int, *, cohort: str = "all", quota: Mapping[str, Any] = {}, **spec: Any) -> Object:
    resource = {"name": GPU, "nominalQuota": str(gpus), **quota}
    groups = [{"coveredResources": [GPU], "flavors": [{"name": "gpu", "resources": [resource]}]}]
    found = {"cohortName": cohort, "namespaceSelector": {}, "resourceGroups": groups, **spec}
    return {"apiVersion": _API, "kind": "ClusterQueue", "metadata": _meta(name), "spec": found}


def cohort(name: str, *flavors: Object, parent: str = "") -> Object:
    spec: Object = {"parentName": parent} if parent else {}
    if flavors:
        spec["resourceGroups"] = [{"coveredResources": [GPU], "flavors": [*flavors]}]
    return {"apiVersion": _API, "kind": "Cohort", "metadata": _meta(name), "spec": spec}


def local_queue(name: str, space: str = "team") -> Object:
    meta = _meta(name) | {"namespace": space}
    return {"apiVersion": _API, "kind": "LocalQueue", "metadata": meta, "spec": {"clusterQueue": name}}


def workload(
    name: str, queue: str, gpus: int, *, admitted: int | None = None, priority: int = 0, flavor: str = "gpu"
) -> Object:
    """Return a Workload of one pod; `admitted`: the minute in which it was, else it waits."""
    created = f"2026-11-20T08:{admitted or 0:02}:00Z"
    container = {"name": "c", "image": "work", "resources": {"requests": {GPU: str(gpus)}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    item: Object = {
        "apiVersion": _API,
        "kind": "Workload",
        "metadata": _meta(name, created) | {"namespace": "team"},
        "spec": {
            "active": True,
            "queueName": queue,
            "priority": priority,
            "podSets": [{"name": "main", "count": 1, "template": template}],
        },
        "status": {},
    }
    if admitted is not None:
        assignment = {
            "name": "main",
            "count": 1,
            "flavors": {GPU: flavor},
            "resourceUsage": {GPU: str(gpus)},
        }
        conditions = [
            {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": created}
            for kind in ("QuotaReserved", "Admitted")
        ]
        item["status"] = {
            "admission": {"clusterQueue": queue, "podSetAssignments": [assignment]},
            "conditions": conditions,
        }
    return item


def listed(*items: Object) -> Object:
    """Return a list as kubectl prints it."""
    return {"apiVersion": "v1", "kind": "List", "items": [*items]}


def _meta(name: str, created: str = "2026-11-01T00:00:00Z") -> Object:
    return {"name": name, "uid": f"uid-{name}", "creationTimestamp": created, "resourceVersion": "1"}
