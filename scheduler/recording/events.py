"""Everything that ever changes the state of the cluster, as data.

The one rule: the live scheduler changes its state through :func:`apply_input` only, and ``replay`` through the same
function, so that a recording of the inputs is all it takes to come to the same decisions again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ..framework.decisions import Decisions, Waiting
from ..framework.work import UNLIMITED, Budget
from ..model import objects
from ..model.cluster import Cluster


class ObjectSeen(msgspec.Struct, tag="seen"):
    """The API showed an object. ``kind`` as in :data:`KINDS`."""

    kind: str
    object: Any


class ObjectGone(msgspec.Struct, tag="lost"):
    """The object of this key (and uid) is gone, or cannot be read any more."""

    kind: str
    key: str
    uid: str = ""


class Assumed(msgspec.Struct, tag="assumed"):
    """A write is in flight: a bind to ``node``, or an eviction where ``node`` is empty."""

    key: str
    uid: str
    node: str = ""


class Nominated(msgspec.Struct, tag="nominated"):
    """A nomination is in flight: room on ``node`` is kept for the pod, or given up where ``node`` is empty."""

    key: str
    uid: str
    node: str = ""


class Reverted(msgspec.Struct, tag="reverted"):
    """The API refused a write that was in flight."""

    key: str
    uid: str


class PolicyLoaded(msgspec.Struct, tag="policy"):
    """From now on this policy is in force. ``text`` is the file."""

    source: str
    text: str


class Decided(msgspec.Struct, tag="decided"):
    """A cycle ran at ``now`` (seconds since the epoch) on the state as it is here, with ``budget``, and came to
    ``decisions``, part of which the next cycle is to know.
    """

    cycle: int
    now: float
    decisions: Decisions
    budget: Budget = UNLIMITED


class Remembered(msgspec.Struct, tag="remembered"):
    """What the state knows of waiting jobs: the end of a checkpoint (:class:`scheduler.model.backlog.Backlog`)."""

    policy: str
    waiting: dict[str, Waiting]
    due: list[str]
    freed: list[str]
    turns: dict[str, dict[str, int]]
    claims: dict[str, str]


class Started(msgspec.Struct, tag="started"):
    """The first line of a record: what the state was made with. The objects that follow until the first cycle are the
    checkpoint.
    """

    version: int
    scheduler_names: list[str]
    node_selector: dict[str, str]


Input = ObjectSeen | ObjectGone | Assumed | Nominated | Reverted | PolicyLoaded | Decided | Remembered | Started

KINDS: dict[str, type[msgspec.Struct]] = {
    "CSINode": objects.CSINode,
    "Namespace": objects.Namespace,
    "Node": objects.Node,
    "PersistentVolume": objects.PersistentVolume,
    "PersistentVolumeClaim": objects.PersistentVolumeClaim,
    "Pod": objects.Pod,
    "PodDisruptionBudget": objects.PodDisruptionBudget,
    "PodGroup": objects.PodGroup,
    "PriorityClass": objects.PriorityClass,
    "Queue": objects.Queue,
}
"""The kinds of objects that the state is made of."""

_SET: dict[str, Callable[[Cluster, Any], None]] = {
    "CSINode": Cluster.set_csi_node,
    "Namespace": Cluster.set_namespace,
    "Node": Cluster.set_node,
    "PersistentVolume": Cluster.set_volume,
    "PersistentVolumeClaim": Cluster.set_claim,
    "Pod": Cluster.set_pod,
    "PodDisruptionBudget": Cluster.set_budget,
    "PodGroup": Cluster.set_podgroup,
    "PriorityClass": Cluster.set_priority_class,
    "Queue": Cluster.set_queue,
}

_DELETE: dict[str, Callable[[Cluster, str], None]] = {
    "CSINode": Cluster.delete_csi_node,
    "Namespace": Cluster.delete_namespace,
    "Node": Cluster.delete_node,
    "PersistentVolume": Cluster.delete_volume,
    "PersistentVolumeClaim": Cluster.delete_claim,
    "PodDisruptionBudget": Cluster.delete_budget,
    "PodGroup": Cluster.delete_podgroup,
    "PriorityClass": Cluster.delete_priority_class,
    "Queue": Cluster.delete_queue,
}


def apply_input(cluster: Cluster, given: Input) -> None:
    """Change the state by one input. Raises ValueError where an object is not what its kind should be (a quantity,
    say).
    """
    match given:
        case ObjectSeen():
            meta = given.object.metadata
            meta.annotations = objects.read_annotations(meta.annotations)
            _SET[given.kind](cluster, given.object)
        case ObjectGone(kind="Pod"):
            cluster.delete_pod(given.key, given.uid)
        case ObjectGone():
            _DELETE[given.kind](cluster, given.key)
        case Assumed(node=""):
            cluster.assume_evicted(given.key, given.uid)
        case Assumed():
            cluster.assume_bound(given.key, given.uid, given.node)
        case Nominated():
            cluster.assume_nominated(given.key, given.uid, given.node)
        case Reverted():
            cluster.revert(given.key, given.uid)
        case Decided():
            cluster.backlog.apply(given.decisions.memory, given.decisions.pipelined)
        case Remembered():
            cluster.backlog.restore(
                given.policy,
                given.waiting,
                due=given.due,
                freed=given.freed,
                turns=given.turns,
                claims=given.claims,
            )


_decoder = msgspec.json.Decoder(Input)


def read_line(line: bytes) -> Input:
    """One line of a record. Raises msgspec.DecodeError (msgspec.ValidationError names the field)."""
    given: Input = _decoder.decode(line)
    if isinstance(given, ObjectSeen):
        given.object = msgspec.convert(given.object, KINDS[given.kind])
    return given


write_line = msgspec.json.Encoder().encode
