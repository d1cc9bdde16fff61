"""Make the pods and PodGroups, or the Workloads of Kueue, of work that is submitted to a cluster.

Our controllers and the virtual cluster's owners make them from Jobs, VolcanoJobs, PyTorchJobs and Deployments, as they
do in a cluster; only Kueue's own Workloads of Jobs are made here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ...scheduler.kube import PODGROUPS, PODS, PRIORITY_CLASSES, QUEUES
from ...scheduler.lint.objects import ManifestError, documents, refusals
from ...scheduler.model.objects import read_annotations
from ...scheduler.model.state_kinds import STATE_KINDS
from ...virtual.cluster import VirtualCluster
from ...virtual.state import State, kueue
from ...virtual.state.api_objects import api_object
from .changes import ChangeError

Object = dict[str, Any]
_PATHS = {
    ("v1", "Pod"): "/api/v1/namespaces/{}/pods",
    ("apps/v1", "Deployment"): "/apis/apps/v1/namespaces/{}/deployments",
    ("batch/v1", "Job"): "/apis/batch/v1/namespaces/{}/jobs",
    ("batch.volcano.sh/v1alpha1", "Job"): "/apis/batch.volcano.sh/v1alpha1/namespaces/{}/jobs",
    ("kubeflow.org/v1", "PyTorchJob"): "/apis/kubeflow.org/v1/namespaces/{}/pytorchjobs",
    ("scheduling.volcano.sh/v1beta1", "PodGroup"): "/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups",
}
"""Kinds of work that can be submitted, and where."""
_ADMITS = "actions: allocate\ntiers:\n- plugins: [{name: gang}]\n"
"""A policy without `enqueue`, under which the controllers create the pods of each job."""
_SECONDS = 10.0
_QUEUE_NAME, _CLASS = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"


def add_submitted(state: State, path: Path) -> list[str]:
    """Add the work of a file to a state, and return the keys of its jobs.

    Raises:
        ChangeError: the file cannot be read, or something in it is not work that can be submitted.
    """
    items = [*_read(path)]
    if not items:
        raise ChangeError(str(path), "has no object", "write the work to submit into it")
    return _add_workloads(state, items) if state.others else _add_pods(state, items)


def _read(path: Path) -> Iterator[tuple[str, Object]]:
    try:
        for document in documents(path.read_text("utf-8")):
            place = f"{path}:{document.line}"
            for refusal in refusals(document, str(path)):
                if refusal.is_error:
                    raise ChangeError(f"{path}:{refusal.line}", f"{refusal.field}: {refusal.text}", refusal.remedy)
            yield place, document.item
    except ManifestError as error:
        raise ChangeError(f"{path}:{error.line}", error.problem, error.remedy) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ChangeError(str(path), f"cannot be read: {error}", "name a file with the work to submit") from error


def _add_pods(state: State, items: list[tuple[str, Object]]) -> list[str]:
    """Run the controllers on the work, and add the pods and PodGroups that they create."""
    names = state.scheduler_names or sorted({pod.spec.scheduler_name for pod in state.objects["Pod"].values()} - {""})
    cluster = VirtualCluster(names or ["schedspec"])
    try:
        cluster.use_policy(_ADMITS)
        for resource, kind in ((PRIORITY_CLASSES, "PriorityClass"), (QUEUES, "Queue")):
            for item in state.objects[kind].values():
                obj = api_object(kind, item)
                obj["metadata"] = {"name": item.metadata.name}
                cluster.request("POST", resource.path(), msgspec.json.encode(obj))
        for place, item in items:
            _submit(cluster, place, item)
        cluster.advance(_SECONDS)
        groups, pods = (_listed(cluster, resource.path()) for resource in (PODGROUPS, PODS))
    finally:
        cluster.close()
    for item in groups:
        item["status"] = {"phase": "Pending"}
        _put(state, "PodGroup", item)
    for item in pods:
        item["status"] = {"phase": "Pending"}
        item["spec"].pop("nodeName", None)
        _put(state, "Pod", item)
    if not pods:
        place = items[0][0]
        raise ChangeError(place, "no pod would be created from it", "submit Jobs, VolcanoJobs, PyTorchJobs or pods")
    return [f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in groups]


def _submit(cluster: VirtualCluster, place: str, item: Object) -> None:
    head = item.get("apiVersion", ""), item.get("kind", "")
    if head not in _PATHS:
        known = ", ".join(f"{kind} ({version})" for version, kind in _PATHS)
        raise ChangeError(place, f"{head[1] or 'an object without a kind'} ({head[0]}) is not work", f"submit {known}")
    space = item["metadata"].setdefault("namespace", "default")
    cluster.request("POST", "/api/v1/namespaces", json.dumps({"metadata": {"name": space}}).encode())
    status, answer = cluster.request("POST", _PATHS[head].format(space), json.dumps(item).encode())
    if status >= 400:
        raise ChangeError(place, f"refused: {json.loads(answer).get('message', '')}", "correct this object")


def _listed(cluster: VirtualCluster, path: str) -> list[Object]:
    _, answer = cluster.request("GET", path)
    return list(json.loads(answer)["items"])


def _put(state: State, kind: str, item: Object) -> None:
    item["metadata"]["creationTimestamp"] = state.moment
    struct: Any = msgspec.convert(item, STATE_KINDS[kind].struct)
    struct.metadata.annotations = read_annotations(struct.metadata.annotations)
    state.put(kind, struct)


def _add_workloads(state: State, items: list[tuple[str, Object]]) -> list[str]:
    """Add the Workload of each Job, as Kueue's controller of Jobs makes it."""
    keys = []
    for place, item in items:
        meta = item["metadata"]
        space, head = meta.setdefault("namespace", "default"), (item.get("apiVersion", ""), item.get("kind", ""))
        if head[0].startswith(kueue.GROUP) and head[1] == "Workload":
            made = {**item, "metadata": {"uid": f"submitted-{meta['name']}", **meta}}
        elif head == ("batch/v1", "Job"):
            made = _workload_of(place, item, state)
        else:
            raise ChangeError(
                place, f"{head[1]} ({head[0]}) is not work of Kueue", "submit Jobs (batch/v1) or Workloads"
            )
        kueue.put_served(state, made)
        keys.append(f"{space}/{made['metadata']['name']}")
    return keys


def _workload_of(place: str, job: Object, state: State) -> Object:
    meta, spec = job["metadata"], job["spec"]
    labels = meta.get("labels") or {}
    if _QUEUE_NAME not in labels:
        raise ChangeError(place, f"Job {meta['name']} has no label {_QUEUE_NAME}", "add it: Kueue admits by it")
    named = state.others.get("WorkloadPriorityClass", {}).get(labels.get(_CLASS, ""))
    known = state.objects["PriorityClass"].get(spec["template"]["spec"].get("priorityClassName", ""))
    priority = named["value"] if named is not None else known.value if known is not None else 0
    version = next(iter(state.others.get("ClusterQueue", {}).values()))["apiVersion"]
    count = min(spec.get("parallelism", 1), spec.get("completions", spec.get("parallelism", 1)))
    return {
        "apiVersion": version,
        "kind": "Workload",
        "metadata": {
            "name": f"job-{meta['name']}",
            "namespace": meta["namespace"],
            "uid": f"submitted-{meta['name']}",
            "creationTimestamp": state.moment,
        },
        "spec": {
            "active": True,
            "queueName": labels[_QUEUE_NAME],
            "priority": priority,
            "podSets": [{"name": "main", "count": count, "template": spec["template"]}],
        },
        "status": {},
    }
