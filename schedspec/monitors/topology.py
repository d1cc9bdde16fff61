"""Monitor: a gang that requires one rack or one spine never has pods in two.

The constraint is read from the gang's PodGroup (Volcano's or Kubernetes') at the time of the bind. A node is in the
rack that its label names; this holds for HyperNodes too, because the harness makes them from the labels. The policy
does not matter: a scheduler without support for topology has to let the gang wait.
"""

from __future__ import annotations

from ..api.kinds import LEVELS, Kind
from .ledger import Monitor
from .lives import Job, Pod

_GROUPS = (Kind.PODGROUP, Kind.GANG, Kind.GANG_ALPHA)


class TopologyMonitor(Monitor):
    """Compares the domains of all bound pods of a gang after each of its binds."""

    NAME = "topology"

    def on_bound(self, pod: Pod) -> None:
        label = _required(pod.job)
        found = self._domains(pod.job, label) if label else {}
        if len(found) > 1:
            where = ", ".join(f"{name or 'no domain'}: {pods}" for name, pods in sorted(found.items()))
            self.find(f"its gang has to be in one {_level(label)}, and is in {where}", pod)

    def _domains(self, job: Job, label: str) -> dict[str, int]:
        """Return how many pods of the gang are in each domain. Pods on deleted nodes are not counted."""
        found: dict[str, int] = {}
        for pod in job.pods.values():
            node = self.ledger.nodes.get(pod.node) if pod.keeps else None
            if node is not None:
                name = str((node["metadata"].get("labels") or {}).get(label) or "")
                found[name] = found.get(name, 0) + 1
        return found


def _required(job: Job) -> str:
    """Return the node label whose value has to be the same for all pods of the gang; empty if there is none."""
    group = next((job.groups[kind] for kind in _GROUPS if kind in job.groups), None) if job.key else None
    if group is None:
        return ""
    request = group["spec"].get("networkTopology") or {}
    if request.get("mode", "hard") != "soft" and request.get("highestTierName") in LEVELS:
        return LEVELS[request["highestTierName"]]
    keys = (group["spec"].get("schedulingConstraints") or {}).get("topology") or ()
    return next((str(constraint.get("key", "")) for constraint in keys), "")


def _level(label: str) -> str:
    return next((level for level, key in LEVELS.items() if key == label), label)
