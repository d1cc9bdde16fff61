"""The objects of Kueue in a state, as the API server served them: only the real Kueue decides on them.

Kinds that are not listed here (MultiKueue's, ProvisioningRequests) are left out of a state, by name and count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ...scheduler.model.objects import Object, ObjectMeta
from .state import State

GROUP = "kueue.x-k8s.io"
VERSIONS = ("v1beta2", "v1beta1")
PLURALS = {
    "AdmissionCheck": ("admissionchecks", False),
    "ClusterQueue": ("clusterqueues", False),
    "Cohort": ("cohorts", False),
    "LocalQueue": ("localqueues", True),
    "ResourceFlavor": ("resourceflavors", False),
    "Topology": ("topologies", False),
    "Workload": ("workloads", True),
    "WorkloadPriorityClass": ("workloadpriorityclasses", False),
}
"""Kind → its plural, and whether it has namespaces."""
CONFIGURATION = "controller_manager_config.yaml"
"""Key of a ConfigMap that has Kueue's configuration."""
CONFIG_NAMESPACE, CONFIG_NAME = "kueue-system", "kueue-manager-config"
READ_OF_PODS = (
    *("containers", "initContainers", "nodeSelector", "affinity", "tolerations", "priorityClassName", "priority"),
    *("restartPolicy", "overhead", "schedulingGates", "preemptionPolicy"),
)
"""Fields of the spec of a pod template that Kueue and kube-scheduler read."""
_READ_OF_CONTAINERS = ("name", "resources", "restartPolicy")


class ServedObject(Object):
    """An object of Kueue: everything of it that a decision of Kueue can depend on (`without_secrets`)."""

    metadata: ObjectMeta
    spec: dict[str, Any] | None = None
    status: dict[str, Any] | None = None
    value: int | None = None
    data: dict[str, str] | None = None


def put(state: State, kind: str, api_version: str, item: ServedObject) -> None:
    """Add an object to a state, without what people write for programs other than Kueue."""
    given = item.metadata.annotations or {}
    item.metadata.annotations = {key: value for key, value in given.items() if key.startswith(f"{GROUP}/")} or None
    item.spec = without_secrets(item.spec)
    put_served(state, as_served(kind, api_version, item))


def without_secrets(value: Any) -> Any:
    """Return a spec whose pod templates have only what decides where their pods may run: no environment, no command."""
    if isinstance(value, list):
        return [without_secrets(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    return {key: _template(part) if key == "template" else without_secrets(part) for key, part in value.items()}


def _template(given: Any) -> Any:
    spec = given.get("spec") if isinstance(given, Mapping) else None
    kept = {key: spec[key] for key in READ_OF_PODS if key in spec} if isinstance(spec, Mapping) else {}
    for key in ("containers", "initContainers"):
        if isinstance(kept.get(key), list):
            kept[key] = [
                {name: each[name] for name in _READ_OF_CONTAINERS if name in each} if isinstance(each, Mapping) else {}
                for each in kept[key]
            ]
    return {"spec": kept}


def as_served(kind: str, api_version: str, item: msgspec.Struct) -> dict[str, Any]:
    """Return an object as JSON has it, without empty fields."""
    found = {name: part for name, part in msgspec.to_builtins(item).items() if part is not None}
    found["metadata"] = {name: part for name, part in found["metadata"].items() if part not in (None, "", 0)}
    return {"apiVersion": api_version, "kind": kind, **found}


def is_kept(obj: Mapping[str, Any]) -> bool:
    """Whether an object is one by which Kueue decides. Recordings of a cluster note others, too."""
    of_kueue = str(obj.get("apiVersion", "")).startswith(f"{GROUP}/") and obj.get("kind") in PLURALS
    return of_kueue or (obj.get("kind") == "ConfigMap" and CONFIGURATION in (obj.get("data") or {}))


def put_served(state: State, obj: dict[str, Any]) -> None:
    """Add an object as `put` keeps it."""
    state.others.setdefault(obj["kind"], {})[key_of(obj)] = obj


def key_of(obj: Mapping[str, Any]) -> str:
    """Return the name of an object, after its namespace if it has one."""
    meta = obj["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else str(meta["name"])


def quotas_of(queue: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield flavor, resource and nominal quota of each quota of a ClusterQueue."""
    for group in queue.get("spec", {}).get("resourceGroups") or ():
        for flavor in group["flavors"]:
            for each in flavor["resources"]:
                yield flavor["name"], each["name"], str(each.get("nominalQuota", 0))


def configuration_of(state: State) -> str:
    """Return the text of Kueue's configuration; empty if the state has none."""
    found = (obj["data"] for obj in state.others.get("ConfigMap", {}).values())
    return next((data[CONFIGURATION] for data in found if CONFIGURATION in data), "")
