"""Read facts from one version of an object, for monitors."""

from __future__ import annotations

from ..observe import view
from ..observe.view import eviction
from .amounts import Object


def key_of(obj: Object) -> str:
    """Return the name of an object, after its namespace if it has one."""
    metadata = obj["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])


def group_of(pod: Object) -> str:
    """Return the key of the pod's PodGroup, or an empty text."""
    name = view.group_of(pod)
    return f"{pod['metadata'].get('namespace', '')}/{name}" if name else ""


def generation_of(obj: Object) -> int:
    """Return the generation of an object, which grows with each change of its spec; 0 if it has none."""
    return int(obj["metadata"].get("generation") or 0)


def is_over(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def is_leaving(pod: Object) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp")) or eviction(pod) is not None


def holds(pod: Object) -> bool:
    """Whether a pod occupies capacity on a node. A pod that is leaving still does."""
    return bool(pod["spec"].get("nodeName")) and not is_over(pod)


def keeps(pod: Object) -> bool:
    """Whether a pod occupies capacity on a node and is not leaving."""
    return holds(pod) and not is_leaving(pod)


def waits(pod: Object) -> bool:
    """Whether a pod has no node yet."""
    return not pod["spec"].get("nodeName") and not is_over(pod)
