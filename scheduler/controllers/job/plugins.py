"""The Job plugins that we honour: ``env`` (always on) and ``svc``, by which the pods of a Job find each other.

The one rule: what a plugin makes belongs to the Job and goes with it.
"""

from __future__ import annotations

from typing import Any

from ...kube.resource import Resource
from ...model import names
from ..runtime.objects import CONFIG_MAPS, JOBS, NETWORK_POLICIES, SERVICES, Job, TaskSpec
from ..runtime.pods import add_environment
from ..runtime.writes import ApplyObject, Write, owned_by
from .refusals import flag
from .state import pod_name, tasks_of

MANAGER = "schedspec-job-controller"
HOSTS_PATH = "/etc/volcano"


def equip(job: Job, pod: str, spec: dict[str, Any]) -> None:
    """Give a pod's spec what the plugins add to it, in place."""
    if "svc" not in (job.spec.plugins or {}):
        return
    spec.setdefault("hostname", pod)
    spec.setdefault("subdomain", job.metadata.name)
    hosts = f"{job.metadata.name}-svc"
    keys = [f"VC_{_key(task).upper()}_{what}" for task in tasks_of(job) for what in ("HOSTS", "NUM")]
    add_environment(
        spec,
        ({"name": key, "valueFrom": {"configMapKeyRef": {"name": hosts, "key": key}}} for key in keys),
    )
    spec["volumes"] = [*(spec.get("volumes") or ()), {"name": hosts, "configMap": {"name": hosts}}]
    for container in [*spec.get("initContainers", ()), *spec.get("containers", ())]:
        mount = {"name": hosts, "mountPath": HOSTS_PATH}
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]


def plugin_writes(job: Job) -> list[Write]:
    """What the plugins need beside the pods: a headless service, the list of hosts, who may reach them."""
    arguments = (job.spec.plugins or {}).get("svc")
    if arguments is None:
        return []
    flags = {name for name, is_set in map(flag, arguments) if is_set}
    name = job.metadata.name
    members = {names.JOB_NAME: name, names.JOB_NAMESPACE: job.metadata.namespace}
    service = {
        "clusterIP": "None",
        "selector": members,
        "publishNotReadyAddresses": "publish-not-ready-addresses" in flags,
    }
    writes = [
        _apply(job, CONFIG_MAPS, f"{name}-svc", {"data": _hosts(job)}),
        _apply(job, SERVICES, name, {"spec": service}),
    ]
    if "disable-network-policy" not in flags:
        rule = {
            "podSelector": {"matchLabels": members},
            "ingress": [{"from": [{"podSelector": {"matchLabels": members}}]}],
            "policyTypes": ["Ingress"],
        }
        writes.append(_apply(job, NETWORK_POLICIES, name, {"spec": rule}))
    return writes


def _apply(job: Job, resource: Resource[Any], name: str, content: dict[str, Any]) -> Write:
    body = {"metadata": {"ownerReferences": [owned_by(JOBS, job.metadata)]}, **content}
    return ApplyObject(resource, job.metadata.namespace, name, body, manager=MANAGER)


def _key(task: TaskSpec) -> str:
    return task.name.replace("-", "_")


def _hosts(job: Job) -> dict[str, str]:
    """For each task ``<task>.host`` (a line each), ``VC_<TASK>_HOSTS`` (with commas) and ``VC_<TASK>_NUM``."""
    found = {}
    for task in tasks_of(job):
        key = _key(task)
        hosts = [f"{pod_name(job, task.name, index)}.{job.metadata.name}" for index in range(task.replicas)]
        found[f"{key}.host"] = "\n".join(hosts)
        found[f"VC_{key.upper()}_HOSTS"] = ",".join(hosts)
        found[f"VC_{key.upper()}_NUM"] = str(len(hosts))
    return found
