"""Facts about nodes, computed from views. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from ..api import kinds
from ..api.errors import DirtyClusterError
from ..api.kinds import Kind, Ref
from ..observe.expect import Outcome
from ..observe.history import Object, View
from ..observe.view import count

WORLD = kinds.WORLD
"""Label of the nodes that the scheduler under test schedules to."""
SIMULATED = "kwok.x-k8s.io/node"
"""Annotation of a KWOK node."""
_HOUSEKEEPING = (
    *("kube-system", "kube-public", "kube-node-lease", "local-path-storage"),
    *("schedspec", "kueue-system", "volcano-system"),
)


def real(view: View) -> list[str]:
    """Return the nodes that have a kubelet and accept ordinary pods."""
    return sorted(node["metadata"]["name"] for node in view.all(Kind.NODE) if is_real(node))


def is_real(node: Object) -> bool:
    """Whether a node has a kubelet and accepts ordinary pods."""
    return SIMULATED not in (node["metadata"].get("annotations") or {}) and not any(
        taint["effect"] != "PreferNoSchedule" for taint in node["spec"].get("taints") or ()
    )


def cards(node: Object | None) -> tuple[str, int]:
    """Return the model of a node's cards, from the GPU operator's label, and their allocatable number."""
    if node is None:
        return "", 0
    model = (node["metadata"].get("labels") or {}).get("nvidia.com/gpu.product", "")
    return str(model), int((node.get("status", {}).get("allocatable") or {}).get("nvidia.com/gpu", 0))


def without_housekeeping(pods: Iterable[Object]) -> list[Object]:
    """Leave out DaemonSets' pods, static pods, and the pods of the cluster and of schedulers, by namespace."""
    return [
        pod
        for pod in pods
        if pod["metadata"]["namespace"] not in _HOUSEKEEPING
        and not any(owner["kind"] in ("DaemonSet", "Node") for owner in pod["metadata"].get("ownerReferences") or ())
    ]


def require_empty(view: View, names: Collection[str]) -> None:
    """Check that no pod is bound to these nodes.

    Raises:
        DirtyClusterError: there are such pods.
    """
    found = without_housekeeping(pod for pod in view.all(Kind.POD) if pod["spec"].get("nodeName") in names)
    if found:
        listed = ", ".join(
            f"{pod['metadata']['namespace']}/{pod['metadata']['name']} on {pod['spec']['nodeName']}"
            for pod in found[:5]
        )
        raise DirtyClusterError(f"the scenario's nodes are not empty; bound to them: {listed}")


def ready(names: Sequence[str]) -> Callable[[View], Outcome]:
    """Check that all of these nodes are Ready and without the taints of unready nodes."""

    def check(view: View) -> Outcome:
        missing = [name for name in names if not _is_ready(view.get(Kind.NODE, name))]
        about = tuple(Ref(Kind.NODE, name) for name in missing)
        are = "is" if len(names) == 1 else "are"
        return Outcome(
            not missing, f"{count(len(names), 'node')} {are} Ready", f"not Ready: {', '.join(missing)}", about
        )

    return check


def _is_ready(node: Object | None) -> bool:
    if node is None:
        return False
    conditions = node.get("status", {}).get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions) and not any(
        taint["key"].startswith("node.kubernetes.io/") for taint in node["spec"].get("taints") or ()
    )
