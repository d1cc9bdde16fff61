"""Translate the queues of a scenario into Kueue's objects, by a policy. No I/O.

A queue becomes a ClusterQueue with a LocalQueue of the same name in the scenario's namespace; a queue with children
becomes a Cohort. The top Cohort holds the capacity of the nodes that no queue deserves.

| queue | ClusterQueue |
| --- | --- |
| deserved | nominalQuota |
| capability | borrowingLimit = capability − deserved |
| guarantee | lendingLimit = deserved − guarantee |
| parent | cohortName; parentName of a Cohort |
| weight | fairSharing.weight, where the policy shares by `weights`: only the top Cohort then has nominal quota |

Where a policy shares by `flavors`, a queue first uses its own quota of the first flavor, without borrowing. It then
borrows from a second flavor, whose quota belongs to the top Cohort alone, up to the queue's capability.

Where a policy shares by `use`, the queues are LocalQueues of one ClusterQueue with the capacity of all nodes. The
weight of each is the cpus that it deserves, or else its own weight. Where a policy shares by `parts`, the queues split
that capacity by their weights, because a ClusterQueue preempts only within its nominal quota.

A resource that no queue of the scenario names and that is neither cpu nor a device is not limited: each ClusterQueue
has a larger quota of it than any node offers, and lends none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, Literal

import msgspec
from kubernetes.utils.quantity import parse_quantity

from ...api.kinds import KUEUE_DEFAULT, LEVELS, WORLD
from ..adapter import read_policy


class KueuePolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A policy in one file: Kueue's configuration, and the preemption settings of every ClusterQueue.

    Attributes:
        configuration: Merged into Kueue's Configuration, for instance `{fairSharing: {…}}`.
        featureGates: For instance `{TopologyAwareScheduling: false}`.
        gatesSince: Feature gates by the version that has them first, `{v0.19.2: {PrioritizePreemptorWorkloads: true}}`.
            An older Kueue would reject them and runs without them.
        clusterQueue: Merged into each ClusterQueue's spec, for instance `{preemption: {reclaimWithinCohort: Any}}`.
        shares: How the scenario's queues become quotas.
        topology: Whether Kueue counts what is free on each node, also where the scenario's nodes are in no racks.
        tiers: The rules for the monitors, in the format of our policies.
    """

    configuration: dict[str, Any] = {}
    featureGates: dict[str, bool] = {}  # noqa: N815 - Kueue's word
    gatesSince: dict[str, dict[str, bool]] = {}  # noqa: N815 - like Kueue's words
    clusterQueue: dict[str, Any] = {}  # noqa: N815 - Kueue's word
    shares: Literal["amounts", "parts", "weights", "flavors", "use"] = "amounts"
    topology: bool = False
    tiers: list[dict[str, Any]] = []

    def gates(self, version: str) -> dict[str, bool]:
        known = [gates for since, gates in self.gatesSince.items() if _numbers(since) <= _numbers(version)]
        return {name: on for gates in (self.featureGates, *known) for name, on in gates.items()}

    def within(self, outer: KueuePolicy) -> KueuePolicy:
        """Return this policy in a configuration; what the policy says itself comes first."""
        return msgspec.structs.replace(
            self,
            configuration={**outer.configuration, **self.configuration},
            featureGates={**outer.featureGates, **self.featureGates},
            topology=self.topology or outer.topology,
        )


def _numbers(version: str) -> list[int]:
    """Return `[0, 19, 2]` for `v0.19.2`; for a name that is no version, a number above all versions."""
    parts = version.removeprefix("v").split("-")[0].split(".")
    return [int(part) for part in parts] if all(part.isdecimal() for part in parts) else [10**9]


def read(text: str) -> KueuePolicy:
    return read_policy(text, KueuePolicy, "Kueue")


Object = dict[str, Any]
Amounts = dict[str, Decimal]

API: Final = "kueue.x-k8s.io/v1beta2"
FLAVOR: Final = "schedspec"
IDLE: Final = "schedspec-idle"
"""The second flavor, where a policy shares by `flavors`."""
TOP: Final = "schedspec-root"
DEFAULT: Final = "default"
_UNLIMITED: Final = Decimal(10**15)
_NOT_QUOTA: Final = ("pods", "ephemeral-storage")


class _Queue:
    def __init__(self, obj: Object, *, weights: bool) -> None:
        spec = obj.get("spec") or {}
        self.name = str(obj["metadata"]["name"])
        self.parent = str(spec.get("parent") or "root")
        self.weight = spec.get("weight", 1)
        self.capability = _parsed(spec.get("capability"))
        self.guarantee = _parsed((spec.get("guarantee") or {}).get("resource"))
        deserved = _parsed(spec.get("deserved"))
        self.nominal = {} if weights else {**self.guarantee, **deserved}

    @property
    def named(self) -> set[str]:
        return {*self.nominal, *self.capability, *self.guarantee}


def of_scenario(queues: Sequence[Object], nodes: Sequence[Object], policy: KueuePolicy) -> list[Object]:
    weights = policy.shares == "weights"
    found = {queue.name: queue for queue in (_Queue(obj, weights=weights) for obj in queues)}
    found.setdefault(DEFAULT, _Queue({"metadata": {"name": DEFAULT}}, weights=weights))
    total: Amounts = {}
    for name, amount in _allocatable(nodes):
        total[name] = total.get(name, Decimal(0)) + amount
    managed = {name for name in total if name == "cpu" or "/" in name}
    managed |= {name for queue in found.values() for name in queue.named}
    resources = sorted({*total, *managed, "cpu", "memory"})
    if policy.shares == "use":
        return _by_use(list(found.values()), total, resources, policy)
    if policy.shares == "parts":
        _split(total, [queue for queue in found.values() if queue.name != DEFAULT or len(found) == 1])
    children: dict[str, list[_Queue]] = {}
    for queue in found.values():
        children.setdefault(queue.parent if queue.parent in found else "root", []).append(queue)
    shared = IDLE if policy.shares == "flavors" else FLAVOR
    objects = _flavors(nodes, dict.fromkeys((FLAVOR, shared)), always=policy.topology)
    objects.append(_cohort(TOP, "", _rest(total, children["root"]), managed, flavor=shared))
    for queue in found.values():
        parent = queue.parent if queue.parent in found else TOP
        if queue.name in children:
            own = _rest(queue.nominal, children[queue.name])
            objects.append(_cohort(queue.name, parent, own, managed, _limit(queue, managed)))
        else:
            name = KUEUE_DEFAULT if queue.name == DEFAULT else queue.name
            objects.append(_made("ClusterQueue", name, _cluster_queue(queue, parent, resources, managed, policy)))
            objects.append(_made("LocalQueue", name, {"clusterQueue": name}))
    return objects


def _flavors(nodes: Sequence[Object], names: Iterable[str], *, always: bool) -> list[Object]:
    """Return the flavors, each for all nodes, with a Topology if nodes are in racks or spines, or always."""
    labels = {label for node in nodes for label in (node.get("metadata") or {}).get("labels") or {}}
    levels = [{"nodeLabel": label} for label in reversed(LEVELS.values()) if label in labels]
    if not levels and not (always and nodes):
        return [_made("ResourceFlavor", name, {}) for name in names]
    topology = _made("Topology", FLAVOR, {"levels": [*levels, {"nodeLabel": "kubernetes.io/hostname"}]})
    spec = {"nodeLabels": {WORLD: "true"}, "topologyName": FLAVOR}
    return [topology, *(_made("ResourceFlavor", name, spec) for name in names)]


def _cluster_queue(
    queue: _Queue, cohort: str, resources: Sequence[str], managed: set[str], policy: KueuePolicy
) -> Object:
    quotas = [_quota(queue, name) if name in managed else _unlimited(name) for name in resources]
    flavors = [{"name": FLAVOR, "resources": quotas}]
    if policy.shares == "flavors":
        flavors = [{"name": FLAVOR, "resources": [{**quota, "borrowingLimit": "0"} for quota in quotas]}]
        flavors.append({"name": IDLE, "resources": [_borrowed(q) if q["name"] in managed else q for q in quotas]})
    spec: Object = {
        "cohortName": cohort,
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": list(resources), "flavors": flavors}],
        **policy.clusterQueue,
    }
    if policy.shares == "weights":
        spec["fairSharing"] = {"weight": str(queue.weight)}
    return spec


def _by_use(queues: Sequence[_Queue], total: Amounts, resources: Sequence[str], policy: KueuePolicy) -> list[Object]:
    quotas = [{"name": name, "nominalQuota": _formatted(total.get(name, Decimal(0)))} for name in resources]
    flavors = [{"name": FLAVOR, "resources": quotas}]
    group = {"coveredResources": list(resources), "flavors": flavors}
    spec = {"namespaceSelector": {}, "resourceGroups": [group], **policy.clusterQueue}
    # The LocalQueue of the queue `default` exists already, and its ClusterQueue is immutable.
    weights = {
        queue.name: _formatted(queue.nominal.get("cpu", Decimal(queue.weight)))
        for queue in queues
        if queue.name != DEFAULT
    }
    local = [
        _made("LocalQueue", name, {"clusterQueue": TOP, "fairSharing": {"weight": weight}})
        for name, weight in weights.items()
    ]
    return [_made("ResourceFlavor", FLAVOR, {}), _made("ClusterQueue", TOP, spec), *local]


def _quota(queue: _Queue, name: str) -> Object:
    nominal = queue.nominal.get(name, Decimal(0))
    found: Object = {"name": name, "nominalQuota": _formatted(nominal)}
    if name in queue.capability:
        found["borrowingLimit"] = _formatted(max(queue.capability[name] - nominal, Decimal(0)))
    if name in queue.guarantee:
        found["lendingLimit"] = _formatted(max(nominal - queue.guarantee[name], Decimal(0)))
    return found


def _borrowed(quota: Object) -> Object:
    """Return the quota of the second flavor: no nominal quota, and a borrowing limit by the queue's capability."""
    return {"nominalQuota": "0", **{key: quota[key] for key in ("name", "borrowingLimit") if key in quota}}


def _unlimited(name: str) -> Object:
    return {"name": name, "nominalQuota": _formatted(_UNLIMITED), "lendingLimit": "0"}


def _limit(queue: _Queue, managed: set[str]) -> Amounts:
    """Return how much a Cohort may borrow in each dimension that its capability limits."""
    limits = {name: amount - queue.nominal.get(name, Decimal(0)) for name, amount in queue.capability.items()}
    return {name: max(amount, Decimal(0)) for name, amount in limits.items() if name in managed}


def _cohort(
    name: str,
    parent: str,
    own: Amounts,
    managed: set[str],
    borrows: Mapping[str, Decimal] | None = None,
    *,
    flavor: str = FLAVOR,
) -> Object:
    quotas = []
    for resource in sorted(managed):
        quota: Object = {"name": resource, "nominalQuota": _formatted(own.get(resource, Decimal(0)))}
        if resource in (borrows or {}):
            quota["borrowingLimit"] = _formatted((borrows or {})[resource])
        quotas.append(quota)
    spec: Object = {"parentName": parent} if parent else {}
    if quotas:
        flavors = [{"name": flavor, "resources": quotas}]
        spec["resourceGroups"] = [{"coveredResources": sorted(managed), "flavors": flavors}]
    return _made("Cohort", name, spec)


def _split(total: Amounts, queues: Sequence[_Queue]) -> None:
    """Set the nominal quota of each queue to its part of the total, by weight and up to its capability."""
    sum_of_weights = sum(int(queue.weight) for queue in queues)
    for queue in queues:
        split = {name: amount * int(queue.weight) / sum_of_weights for name, amount in total.items()}
        queue.nominal = {name: min(amount, queue.capability.get(name, amount)) for name, amount in split.items()}


def _rest(total: Amounts, queues: Sequence[_Queue]) -> Amounts:
    """Return the part of the total that is not in the nominal quotas of the queues; never negative."""
    taken = {name: sum((queue.nominal.get(name, Decimal(0)) for queue in queues), Decimal(0)) for name in total}
    return {name: max(amount - taken[name], Decimal(0)) for name, amount in total.items()}


def _allocatable(nodes: Sequence[Object]) -> Iterator[tuple[str, Decimal]]:
    for node in nodes:
        amounts = _parsed((node.get("status") or {}).get("allocatable"))
        yield from ((name, amount) for name, amount in amounts.items() if name not in _NOT_QUOTA)


def _parsed(amounts: Mapping[str, Any] | None) -> Amounts:
    return {name: Decimal(parse_quantity(str(value))) for name, value in (amounts or {}).items()}  # type: ignore[no-untyped-call]


def _formatted(amount: Decimal) -> str:
    """Return a quantity as Kubernetes writes it: whole units, or thousandths."""
    return f"{amount:.0f}" if amount == amount.to_integral_value() else f"{amount * 1000:.0f}m"


def _made(kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}
