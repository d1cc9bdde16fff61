"""Find waiting pods with a request that no node ever met, so that a misspelt request does not pass as a wait.

The requests are the node selector, the required node affinity and the names of the requested resources. A workload is
skipped if the scenario asserts the reason for which it waits (`"train" waits because of "…"`): then the scenario is
about such a request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..api.kinds import Kind
from ..gherkin.tables import nearest
from ..observe import view as views
from ..observe.history import History

_ALWAYS = {"cpu", "memory", "pods", "ephemeral-storage"}
_NAME = "metadata.name"
Offered = tuple[set[str], set[str], list[dict[str, str]]]
"""What nodes offer: labels as `KEY=VALUE`, names of resources, and the labels and name of each node."""


def find(history: History, sentences: Sequence[str]) -> list[str]:
    """Return one line for each request of a waiting pod that no node of the scenario ever met."""
    nodes = [version.object for version in history.versions(Kind.NODE)]
    if not nodes:
        return []
    has = offered(nodes)
    found: dict[str, None] = {}
    for pod in history.now().mine(Kind.POD):
        workload = views.workload_of(pod)
        if views.waits(pod) and not any(f'"{workload}"' in sentence and _is_reason(sentence) for sentence in sentences):
            name = str(pod["metadata"]["name"])
            for request in unmet_requests(pod["spec"], has):
                found[f"pod {name} waits for what no node has: {request}"] = None
    return list(found)


def _is_reason(sentence: str) -> bool:
    return "because of" in sentence or "因" in sentence


def offered(nodes: Iterable[dict[str, Any]]) -> Offered:
    """Return what these nodes offer."""
    labels, resources, each = set[str](), set(_ALWAYS), []
    for node in nodes:
        each.append({**(node["metadata"].get("labels") or {}), _NAME: node["metadata"]["name"]})
        labels |= {f"{key}={value}" for key, value in each[-1].items()}
        resources |= (node.get("status") or {}).get("allocatable", {}).keys()
    return labels, resources, each


def unmet_requests(spec: dict[str, Any], has: Offered) -> Iterator[str]:
    """Yield each label, the node affinity and each resource that a pod requests and no node has."""
    labels, resources, nodes = has
    chosen = [
        {"key": key, "operator": "In", "values": [value]} for key, value in (spec.get("nodeSelector") or {}).items()
    ]
    missing = [label for label in _labels(chosen) if label not in labels]
    yield from (f"the label {label}{nearest(label, labels)}" for label in missing)
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    terms = [
        [*(term.get("matchExpressions") or ()), *(term.get("matchFields") or ())]
        for term in required.get("nodeSelectorTerms") or ()
    ]
    terms = [[*chosen, *term] for term in terms] or [chosen]
    if not missing and not any(all(_meets(part, node) for part in term) for term in terms for node in nodes):
        words = " or ".join(" and ".join(map(_words, term)) for term in terms)
        near = "".join(
            dict.fromkeys(nearest(label, labels) for term in terms for label in _labels(term) if label not in labels)
        )
        yield f"a node with {words}{near}"
    for container in spec.get("containers") or ():
        for name in (container.get("resources") or {}).get("requests") or {}:
            if name not in resources:
                yield f"the resource {name}{nearest(name, resources)}"


def _meets(part: dict[str, Any], node: dict[str, str]) -> bool:
    """Whether a node meets an expression of a node selector, as Kubernetes defines its operators."""
    has, values = node.get(part["key"]), part.get("values") or []
    if part["operator"] in ("Gt", "Lt"):
        try:
            more = int(has or "") - int(values[0])
        except (ValueError, IndexError):
            return False
        return more > 0 if part["operator"] == "Gt" else more < 0
    return {
        "In": has in values,
        "NotIn": has not in values,
        "Exists": has is not None,
        "DoesNotExist": has is None,
    }.get(part["operator"], True)


def _words(part: dict[str, Any]) -> str:
    return " ".join(filter(None, [part["key"], part["operator"], ", ".join(part.get("values") or ())]))


def _labels(term: list[dict[str, Any]]) -> Iterator[str]:
    yield from (f"{part['key']}={value}" for part in term if part["operator"] == "In" for value in part["values"])
