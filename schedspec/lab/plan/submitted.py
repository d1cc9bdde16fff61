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

from ...api.kinds import SERVED, Kind, kind_of
from ...scenario import own_work
from ...scenario.own_work import LOCAL_QUEUE, WORKLOAD_CLASS, pod_specs
from ...scheduler.kube import PODGROUPS, PODS, PRIORITY_CLASSES, QUEUES
from ...scheduler.model.auxiliary import priority_of
from ...scheduler.model.objects import read_annotations
from ...scheduler.model.state_kinds import STATE_KINDS
from ...virtual.cluster import VirtualCluster
from ...virtual.state import State, kueue
from ...virtual.state.state import api_object
from .changes import ChangeError

Object = dict[str, Any]
_KINDS = (Kind.POD, Kind.DEPLOYMENT, Kind.JOB, Kind.VCJOB, Kind.PYTORCHJOB, Kind.PODGROUP)
_ADMITS = "actions: allocate\ntiers:\n- plugins: [{name: gang}]\n"
"""A policy without `enqueue`, under which the controllers create the pods of each job."""
_SECONDS = 10.0


def add_submitted(state: State, path: Path, definitions: Path | None = None) -> list[str]:
    """Add the work of a file to a state, and return the keys of its jobs.

    `definitions`: the folder of Kueue's definitions, if Kueue decides.

    Raises:
        ChangeError: the file cannot be read, or something in it is not work that can be submitted.
    """
    items = [*_read(path, definitions)]
    if not items:
        raise ChangeError(str(path), "has no object", "write the work to submit into it")
    taken = {*_taken(state)}
    for place, item in items:
        meta = item["metadata"]
        name = f"{item['kind']} {meta.setdefault('namespace', 'default')}/{meta['name']}"
        if name in taken:
            raise ChangeError(place, f"{name} exists in the cluster", "submit it by another name")
        for pod in pod_specs(item):
            values = {key: it.value for key, it in state.objects["PriorityClass"].items()}
            _priority_of(place, "PriorityClass", pod.get("priorityClassName", ""), values)
    return _add_workloads(state, items) if state.others else _add_pods(state, items)


def _taken(state: State) -> Iterator[str]:
    """Yield kind, namespace and name of the work of a state, and of its owners."""
    known = [(kind, api_object(kind, it)) for kind in ("PodGroup", "Pod") for it in state.objects[kind].values()]
    known += [("Workload", it) for it in state.others.get("Workload", {}).values()]
    for kind, obj in known:
        meta = obj["metadata"]
        for its, name in (
            (kind, meta["name"]),
            *((it["kind"], it["name"]) for it in meta.get("ownerReferences") or ()),
        ):
            yield f"{its} {meta.get('namespace', 'default')}/{name}"


def _read(path: Path, folder: Path | None) -> Iterator[tuple[str, Object]]:
    try:
        for found in own_work.read(path, _KINDS, kueue.GROUP, folder):
            yield found.place, found.item
    except own_work.WorkError as error:
        raise ChangeError(error.place, error.problem, error.remedy) from error


def _add_pods(state: State, items: list[tuple[str, Object]]) -> list[str]:
    """Run the controllers on the work, and add the pods and PodGroups that they create."""
    known = state.scheduler_names or sorted({pod.spec.scheduler_name for pod in state.objects["Pod"].values()} - {""})
    others = {name for _, item in items for name in _schedulers(item)} - {"default-scheduler"}
    names = known or sorted(others) or ["schedspec"]
    cluster = VirtualCluster(names)
    try:
        cluster.use_policy(_ADMITS)
        for resource, kind in ((PRIORITY_CLASSES, "PriorityClass"), (QUEUES, "Queue")):
            for item in state.objects[kind].values():
                obj = api_object(kind, item)
                obj["metadata"] = {"name": item.metadata.name}
                cluster.request("POST", resource.path(), msgspec.json.encode(obj))
        made = 0
        for place, item in items:
            if other := {*_schedulers(item)} - {*names}:
                text = f"{', '.join(other)} decides on it, and {', '.join(names)} on the work of the state"
                raise ChangeError(place, f"schedulerName: {text}", f"write schedulerName: {names[0]}")
            _submit(cluster, place, item)
            cluster.advance(_SECONDS)
            groups, pods = (_listed(cluster, resource.path()) for resource in (PODGROUPS, PODS))
            _check_made(place, item, len(pods) - made, _listed(cluster, "/api/v1/events"))
            made = len(pods)
    finally:
        cluster.close()
    if not pods:
        raise ChangeError(items[0][0], "no pod would be created from it", "add the pods of the PodGroup")
    for item in groups:
        item["status"] = {"phase": "Pending"}
        _put(state, "PodGroup", item)
    for item in pods:
        item["status"] = {"phase": "Pending"}
        item["spec"].pop("nodeName", None)
        _put(state, "Pod", item)
    return [f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in groups]


def _schedulers(item: Object) -> Iterator[str]:
    """Yield the schedulers that work names; without a name, pods are those of Kubernetes' own."""
    if "schedulerName" in item["spec"]:
        yield item["spec"]["schedulerName"]
    elif item["kind"] in ("Pod", "Deployment") or item["apiVersion"] == "batch/v1":
        yield from (pod.get("schedulerName", "default-scheduler") for pod in pod_specs(item))


def _check_made(place: str, item: Object, pods: int, events: list[Object]) -> None:
    """Raise ChangeError for work of which no pod is created."""
    if item["spec"].get("suspend"):
        raise ChangeError(place, "spec.suspend: no pod is created of a suspended job", "leave it out")
    if not pods and item["kind"] != "PodGroup":
        own = [event["message"] for event in events if event["involvedObject"].get("name") == item["metadata"]["name"]]
        said = "".join(f": {message}" for message in own[-1:])
        raise ChangeError(
            place, f"no pod would be created from it{said}", "submit Jobs, VolcanoJobs, PyTorchJobs or pods"
        )


def _submit(cluster: VirtualCluster, place: str, item: Object) -> None:
    space = item["metadata"].setdefault("namespace", "default")
    cluster.request("POST", "/api/v1/namespaces", json.dumps({"metadata": {"name": space}}).encode())
    kind = kind_of(item)
    assert kind is not None
    status, answer = cluster.request("POST", SERVED[kind].path(namespace=space), json.dumps(item).encode())
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
            if item.get("status"):
                raise ChangeError(place, "status: Kueue itself decides on work that is submitted", "leave it out")
            made = {**item, "metadata": {"uid": f"submitted-{meta['name']}", **meta}}
        elif head == ("batch/v1", "Job"):
            made = _workload_of(place, item, state)
        else:
            raise ChangeError(
                place, f"{head[1]} ({head[0]}) is not work of Kueue", "submit Jobs (batch/v1) or Workloads"
            )
        if f"{space}/{(queue := made['spec'].get('queueName'))}" not in state.others.get("LocalQueue", {}):
            known = ", ".join(sorted(state.others.get("LocalQueue", {}))) or "none"
            raise ChangeError(place, f"there is no LocalQueue {space}/{queue}", f"name one of the state: {known}")
        kueue.put_served(state, made)
        keys.append(f"{space}/{made['metadata']['name']}")
    return keys


def _workload_of(place: str, job: Object, state: State) -> Object:
    meta, spec = job["metadata"], job["spec"]
    labels = meta.get("labels") or {}
    if LOCAL_QUEUE not in labels:
        raise ChangeError(place, f"Job {meta['name']} has no label {LOCAL_QUEUE}", "add it: Kueue admits by it")
    count = min(spec.get("parallelism", 1), spec.get("completions", spec.get("parallelism", 1)))
    if count < 1:
        raise ChangeError(place, f"no pod is created of {count} in parallel", "write parallelism: 1 or more")
    version = next((item["apiVersion"] for found in state.others.values() for item in found.values()), "")
    head = {"name": f"job-{meta['name']}", "namespace": meta["namespace"], "uid": f"submitted-{meta['name']}"}
    made = {
        "active": True,
        "queueName": labels[LOCAL_QUEUE],
        "priority": _priority(place, labels.get(WORKLOAD_CLASS, ""), spec["template"]["spec"], state),
        "podSets": [{"name": "main", "count": count, "template": spec["template"]}],
    }
    metadata = {**head, "creationTimestamp": state.moment}
    return {"apiVersion": version, "kind": "Workload", "metadata": metadata, "spec": made, "status": {}}


def _priority(place: str, name: str, pod: Object, state: State) -> int:
    if name:
        classes = state.others.get("WorkloadPriorityClass", {})
        return _priority_of(place, "WorkloadPriorityClass", name, {key: it["value"] for key, it in classes.items()})
    return priority_of(pod.get("priorityClassName", ""), state.objects["PriorityClass"])


def _priority_of(place: str, kind: str, name: str, values: dict[str, int]) -> int:
    if name and name not in values and not name.startswith("system-"):
        known = ", ".join(sorted(values)) or "none"
        raise ChangeError(place, f"there is no {kind} {name}", f"name one of the state: {known}")
    return values.get(name, 0)
