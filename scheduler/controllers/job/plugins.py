"""The supported Job plugins: `env` (always on) and `svc`, by which the pods of a Job find each other.

Each object that a plugin creates carries the Job's owner reference. Plugins never take over an object that existed
before under the same name.
"""

from __future__ import annotations

from typing import Any

from ...kube.resource import Resource
from ...model import names
from ..runtime.objects import CONFIG_MAPS, JOBS, NETWORK_POLICIES, SERVICES, TaskSpec, VolcanoJob
from ..runtime.pods import add_environment
from ..runtime.writes import Create, Write, owned_by
from .refusals import flag
from .state import pod_name, tasks_of

MANAGER = "schedspec-job-controller"
HOSTS_PATH = "/etc/volcano"


def add_svc(job: VolcanoJob, pod: str, spec: dict[str, Any]) -> None:
    """Add the host name, variables and host list of the plugin `svc` to a pod's spec, in place."""
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


def plugin_writes(job: VolcanoJob) -> list[Write]:
    """Return the writes of the objects of `svc`: host list, headless service and network policy.

    The host list follows the Job's tasks; the other two never change.
    """
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
    writes: list[Write] = [
        _create(job, CONFIG_MAPS, f"{name}-svc", {"data": _hosts(job)}, update=True),
        _create(job, SERVICES, name, {"spec": service}),
    ]
    if "disable-network-policy" not in flags:
        rule = {
            "podSelector": {"matchLabels": members},
            "ingress": [{"from": [{"podSelector": {"matchLabels": members}}]}],
            "policyTypes": ["Ingress"],
        }
        writes.append(_create(job, NETWORK_POLICIES, name, {"spec": rule}))
    return writes


def _create(
    job: VolcanoJob, resource: Resource[Any], name: str, content: dict[str, Any], *, update: bool = False
) -> Create:
    owner = owned_by(JOBS, job.metadata)
    metadata = {"name": name, "namespace": job.metadata.namespace, "ownerReferences": [owner]}
    return Create(resource, {"metadata": metadata, **content}, update)


def _key(task: TaskSpec) -> str:
    return task.name.replace("-", "_")


def _hosts(job: VolcanoJob) -> dict[str, str]:
    """Return for each task `<task>.host` (a line each), `VC_<TASK>_HOSTS` (with commas) and `VC_<TASK>_NUM`."""
    found = {}
    for task in tasks_of(job):
        key = _key(task)
        hosts = [f"{pod_name(job, task.name, index)}.{job.metadata.name}" for index in range(task.replicas)]
        found[f"{key}.host"] = "\n".join(hosts)
        found[f"VC_{key.upper()}_HOSTS"] = ",".join(hosts)
        found[f"VC_{key.upper()}_NUM"] = str(len(hosts))
    return found
