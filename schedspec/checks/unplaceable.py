"""Find waiting pods with a request that no node ever met, so that a misspelt request does not pass as a wait.

The requests are the node selector and the names of the requested resources. A workload is skipped if the scenario
asserts the reason for which it waits (`"train" waits because of "…"`): then the scenario is about such a request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..api.kinds import Kind
from ..gherkin.tables import nearest
from ..observe import view as views
from ..observe.history import History

_ALWAYS = {"cpu", "memory", "pods", "ephemeral-storage"}


def find(history: History, sentences: Sequence[str]) -> list[str]:
    """Return one line for each request of a waiting pod that no node of the scenario ever met."""
    nodes = [version.object for version in history.versions(Kind.NODE)]
    if not nodes:
        return []
    labels, resources = offered(nodes)
    found: dict[str, None] = {}
    for pod in history.now().mine(Kind.POD):
        workload = views.workload_of(pod)
        if views.waits(pod) and not any(f'"{workload}"' in sentence and _is_reason(sentence) for sentence in sentences):
            name = str(pod["metadata"]["name"])
            for request in unmet_requests(pod["spec"], labels, resources):
                found[f"pod {name} waits for what no node has: {request}"] = None
    return list(found)


def _is_reason(sentence: str) -> bool:
    return "because of" in sentence or "因" in sentence


def offered(nodes: Iterable[dict[str, Any]]) -> tuple[set[str], set[str]]:
    """Return the labels of nodes as `KEY=VALUE`, and the names of the resources that they have."""
    labels, resources = set[str](), set(_ALWAYS)
    for node in nodes:
        labels |= {f"{key}={value}" for key, value in (node["metadata"].get("labels") or {}).items()}
        resources |= (node.get("status") or {}).get("allocatable", {}).keys()
    return labels, resources


def unmet_requests(spec: dict[str, Any], labels: set[str], resources: set[str]) -> Iterator[str]:
    """Yield each label and each resource that a pod requests and no node has."""
    for key, value in (spec.get("nodeSelector") or {}).items():
        if (label := f"{key}={value}") not in labels:
            yield f"the label {label}{nearest(label, labels)}"
    for container in spec.get("containers") or ():
        for name in (container.get("resources") or {}).get("requests") or {}:
            if name not in resources:
                yield f"the resource {name}{nearest(name, resources)}"
