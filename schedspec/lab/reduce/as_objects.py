"""Convert nodes, racks, queues, pods and owners of a case to API objects."""

from __future__ import annotations

from collections.abc import Iterable

from ...scheduler.model import names, objects, resources
from ...scheduler.model.objects.topology import ExactMatch, MemberSelector
from ...virtual import node
from ..simulate.present import opened
from .case import GPU, REQUIRED, Amounts, CaseNode, CaseQueue, Work

_PRODUCT = f"{GPU}.product"
_RACK = "schedspec.dev/rack"
_OWNERS = {
    is_service: [objects.OwnerReference(version, kind, kind.lower(), kind.lower(), controller=True)]
    for is_service, version, kind in ((False, "batch.volcano.sh/v1alpha1", "Job"), (True, "apps/v1", "ReplicaSet"))
}


def quantities(given: Amounts) -> dict[str, str]:
    return {name: str(quantity) for name, quantity in resources.quantities(dict(given)).items()}


def node_object(given: CaseNode) -> objects.Node:
    """Return a node; its labels name the model of its cards and its rack."""
    labels = {_PRODUCT: given.card, _RACK: given.rack}
    return node(given.name, quantities(given.has), {name: value for name, value in labels.items() if value})


def hyper_nodes(nodes: Iterable[CaseNode]) -> list[objects.HyperNode]:
    racks: dict[str, list[str]] = {}
    for given in nodes:
        if given.rack:
            racks.setdefault(given.rack, []).append(given.name)
    return [objects.HyperNode(objects.ObjectMeta(name=rack), _tier(members)) for rack, members in racks.items()]


def _tier(members: list[str]) -> objects.HyperNodeSpec:
    exact = (MemberSelector(ExactMatch(member)) for member in members)
    return objects.HyperNodeSpec(1, "rack", [objects.HyperNodeMember("Node", selector) for selector in exact])


def queue_object(given: CaseQueue, *, is_open: bool = True) -> objects.Queue:
    spec = objects.QueueSpec(
        weight=given.weight,
        priority=given.priority,
        parent=given.parent,
        reclaimable=given.reclaimable,
        capability={**quantities(given.capability)} or None,
        deserved={**quantities(given.deserved)} or None,
        guarantee=objects.queueing.Guarantee({**quantities(given.guarantee)}) if given.guarantee else None,
    )
    quota = ", ".join(f'"{model}": {amount // resources.unit_of(GPU)}' for model, amount in given.cards)
    marks = {names.CARD_QUOTA: f"{{{quota}}}"} if quota else None
    status = objects.QueueStatus("" if is_open else "Closing")
    return opened(objects.Queue(objects.ObjectMeta(name=given.name, annotations=marks), spec, status))


def pod_meta(work: Work, index: int, namespace: str, created: str) -> objects.ObjectMeta:
    """Return the metadata of a pod of a job or of a service."""
    name = f"{work.name}-task-{index}"
    marks = {names.GROUP_NAME: work.name}
    marks |= {names.CARD_NAME: work.card} if work.card else {}
    marks |= {} if work.preemptable else {names.PREEMPTABLE: "false"}
    return objects.ObjectMeta(
        name=name,
        namespace=namespace,
        uid=name,
        creation_timestamp=created,
        annotations=marks,
        owner_references=_OWNERS[work.is_service],
    )


def topology_of(work: Work) -> objects.NetworkTopology | None:
    """Return the topology of a job's PodGroup."""
    if not work.rack:
        return None
    hard = objects.NetworkTopology("hard", highest_tier_name="rack")
    return hard if work.rack == REQUIRED else objects.NetworkTopology("soft")
