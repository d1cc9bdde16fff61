"""The objects of Kueue in a state, as the API server served them: only the real Kueue decides on them.

Kinds that are not listed here (MultiKueue's, ProvisioningRequests) are left out of a state, by name and count.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...scheduler.kube import Client, Forbidden, NotFound, Resource
from ...scheduler.model.objects import Object, ObjectMeta
from .state import State

GROUP = "kueue.x-k8s.io"
VERSIONS = ("v1beta2", "v1beta1")
"""Versions of Kueue's API, the newest first."""
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
_CONFIG_NAMESPACE, _CONFIG_NAME = "kueue-system", "kueue-manager-config"


class Served(Object):
    """An object of Kueue: everything of it that a decision of Kueue can depend on."""

    metadata: ObjectMeta
    spec: dict[str, Any] | None = None
    status: dict[str, Any] | None = None
    value: int | None = None
    """Of a WorkloadPriorityClass."""
    data: dict[str, str] | None = None
    """Of the ConfigMap."""


def put(state: State, kind: str, api_version: str, item: Served) -> None:
    """Add an object to a state."""
    found = {name: part for name, part in msgspec.to_builtins(item).items() if part is not None}
    found["metadata"] = {name: part for name, part in found["metadata"].items() if part not in (None, "", 0)}
    put_served(state, {"apiVersion": api_version, "kind": kind, **found})


def put_served(state: State, obj: dict[str, Any]) -> None:
    """Add an object as `put` keeps it."""
    meta = obj["metadata"]
    key = f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]
    state.others.setdefault(obj["kind"], {})[key] = obj


async def take(client: Client, state: State) -> None:
    """Read Kueue's objects and its configuration from a cluster that serves them; else nothing."""
    for kind, (plural, namespaced) in PLURALS.items():
        for version in VERSIONS:
            resource = Resource(GROUP, version, plural, kind, Served, namespaced)
            try:
                listing = await client.list(resource)
            except NotFound:
                continue
            except Forbidden:
                state.notes.append(f"{resource.id} are missing: listing them is forbidden")
                break
            for item in listing.items:
                put(state, kind, resource.api_version, item)
            state.notes += [
                f"{resource.id} {item.metadata.key} is left out: {item.error}" for item in listing.malformed
            ]
            break
    if state.others:
        config = Resource("", "v1", "configmaps", "ConfigMap", Served)
        try:
            put(state, "ConfigMap", "v1", await client.get(config, _CONFIG_NAME, _CONFIG_NAMESPACE))
        except (NotFound, Forbidden):
            state.notes.append(
                f"no configuration of Kueue ({_CONFIG_NAMESPACE}/{_CONFIG_NAME}) can be read: its defaults are used"
            )


def configuration_of(state: State) -> str:
    """Return the text of Kueue's configuration; empty if the state has none."""
    found = (obj["data"] for obj in state.others.get("ConfigMap", {}).values())
    return next((data[CONFIGURATION] for data in found if CONFIGURATION in data), "")
