"""Feed a ledger with the history of a cluster, in the order of the API server's writes.

The order is that of resource versions, not of arrival, because watches of different kinds overtake each other. etcd
numbers all writes in one sequence, so these numbers are comparable on every API server that this code runs against.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from ..api.kinds import GANGS, Kind
from ..observe import view
from ..observe.history import Version
from . import amounts
from .amounts import Object
from .ledger import Ledger

_DETAILS = re.compile(r" \(|[,;]")
_GROUPS = frozenset((*view.QUEUED, *GANGS))


def in_order(versions: Iterable[Version]) -> list[Version]:
    return sorted(versions, key=lambda seen: int(seen.object["metadata"].get("resourceVersion") or 0))


def feed(ledger: Ledger, versions: Iterable[Version]) -> Ledger:
    """Process all versions of a history; return the ledger."""
    for seen in in_order(versions):
        read(ledger, seen)
    return ledger


def read(ledger: Ledger, seen: Version) -> None:
    """Process the next version."""
    ledger.advance(seen.at)
    kind, obj = seen.ref.kind, None if seen.change == "gone" else seen.object
    if kind == Kind.POD:
        _read_pod(ledger, key_of(seen.object), seen.object)  # the last state may be the first that shows an eviction
        if obj is None:
            ledger.lose_pod(key_of(seen.object))
    elif kind == Kind.NODE:
        ledger.see_node(seen.ref.name, obj)
    elif kind == Kind.QUEUE:
        ledger.see_queue(seen.ref.name, obj)
    elif kind in (Kind.CLUSTERQUEUE, Kind.COHORT):
        ledger.see_quota(kind, seen.ref.name, obj)
    elif kind in _GROUPS:
        ledger.see_group(kind, key_of(seen.object), obj)


def _read_pod(ledger: Ledger, key: str, pod: Object) -> None:
    known, spec, status = ledger.pods.get(key), pod["spec"], pod.get("status") or {}
    is_known = known is not None and known.source["spec"].get("containers") == spec.get("containers")
    phase = status.get("phase", "")
    ledger.see_pod(
        key,
        str(pod["metadata"].get("uid", "")),
        group_of(pod),
        known.requests if known is not None and is_known else amounts.of_pod(pod),
        pod,
        node=spec.get("nodeName") or "",
        over=phase if phase in ("Succeeded", "Failed") else "",
        is_leaving=bool(pod["metadata"].get("deletionTimestamp")),
        is_nominated=bool(status.get("nominatedNodeName")),
    )
    mark = view.eviction(pod)
    if mark is not None:
        message = str(mark.get("message", ""))
        cause = _DETAILS.split(message, maxsplit=1)[0]
        ledger.evict(key, cause, action_of(message, ledger.rules.actions), message, preemptors_in(cause, ledger))


def action_of(message: str, actions: Collection[str]) -> str:
    """Return the action that a scheduler's message names: `reclaim`, `preempt` or none.

    Volcano's message speaks of preempting after a reclaim, too: it means a reclaim if the policy has no other action.
    """
    text = message.lower()
    if "reclaim" in text:
        return "reclaim"
    is_reclaim = "reclaim" in actions and "preempt" not in actions
    return ("reclaim" if is_reclaim else "preempt") if "preempt" in text else ""


def preemptors_in(cause: str, ledger: Ledger) -> list[str]:
    """Return the jobs that the cause of an eviction names; none if the scheduler does not name its preemptor."""
    return [word for word in dict.fromkeys(cause.split()) if word in ledger.jobs]


def key_of(obj: Object) -> str:
    """Return the name of an object, after its namespace if it has one."""
    metadata = obj["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])


def group_of(pod: Object) -> str:
    """Return the key of the pod's PodGroup, or an empty text."""
    name = view.group_of(pod)
    return f"{pod['metadata'].get('namespace', '')}/{name}" if name else ""
