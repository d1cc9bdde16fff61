"""Names of objects in the further namespaces of a scenario: `team-b/train` is the object train of namespace team-b.

A scenario has one namespace of its own on the cluster. Work that a table calls `team-b/train` is in a second one, whose
name is that of the first with `-team-b`. This module owns the mapping:

1. `real` returns namespace and name on the cluster, for requests.
2. `plain` returns an observed object as one of the scenario's own namespace, with `team-b/` before its name and before
   the names in its metadata and status that refer to objects of its namespace. Every other module sees these names.
   Its spec stays as it is, because sentences write parts of it back.
"""

from __future__ import annotations

from typing import Any, Final

_NAMES: Final = frozenset(
    (
        *("schedspec.dev/workload", "batch.kubernetes.io/job-name", "training.kubeflow.org/job-name"),
        *("volcano.sh/job-name", "scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"),
        *("kueue.x-k8s.io/workload", "pod-group-name", "podGroupName"),
    )
)
"""Fields, labels and annotations that name an object of the same namespace."""


def real(namespace: str, name: str) -> tuple[str, str]:
    """Return namespace and name on the cluster of an object of a scenario with this namespace."""
    space, slash, own = name.rpartition("/")
    return (f"{namespace}-{space}", own) if slash and namespace else (namespace, name)


def space_of(namespace: str, real_namespace: str) -> str:
    """Return the part after the scenario's own namespace: `team-b`; empty for any other namespace."""
    before, dash, space = real_namespace.partition(f"{namespace}-")
    return space if namespace and dash and not before else ""


def plain(obj: dict[str, Any], namespace: str, space: str) -> dict[str, Any]:
    """Return an object of a further namespace with the names that the scenario uses. The object stays unchanged."""
    texts = f"{namespace}-{space}/", f"{namespace}/{space}/", f"{space}/"
    found = {key: part if key == "spec" else _plain(part, *texts) for key, part in obj.items()}
    if group := (obj.get("spec") or {}).get("schedulingGroup"):
        found["spec"] = {**obj["spec"], "schedulingGroup": _plain(group, *texts)}
    meta = {**found["metadata"], "name": f"{space}/{obj['metadata']['name']}", "namespace": namespace}
    if owners := meta.get("ownerReferences"):
        meta["ownerReferences"] = [{**owner, "name": f"{space}/{owner['name']}"} for owner in owners]
    found["metadata"] = meta
    if about := found.get("involvedObject"):
        found["involvedObject"] = {**about, "name": f"{space}/{about.get('name', '')}", "namespace": namespace}
    return found


def _plain(value: Any, before: str, after: str, prefix: str) -> Any:
    """Return a value in which texts name objects as the scenario does."""
    if isinstance(value, dict):
        return {
            key: prefix + part if key in _NAMES and isinstance(part, str) else _plain(part, before, after, prefix)
            for key, part in value.items()
        }
    if isinstance(value, list):
        return [_plain(part, before, after, prefix) for part in value]
    return value.replace(before, after) if isinstance(value, str) else value
