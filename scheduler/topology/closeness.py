"""Resolve the topology constraint of a gang, or of one of its subgroups, against the existing domains.

No constraint is dropped silently. If no domain has the tier, no node has the label, or fields contradict each other,
the job waits with that reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from ..model import names
from ..model.cluster import Cluster
from ..model.job import Job
from ..model.objects import NetworkTopology
from .domains import Domain, DomainSet, Topology, topology_of_label
from .hyper_nodes import topology_now

ANYWHERE = 1 << 40
"""The tier of the whole cluster."""
COMPARED = 8
"""Default number of domains in which victims are sought for one job; the policy can change it."""


@dataclass(frozen=True, slots=True, eq=False)
class Closeness:
    """How close to each other the pods of a job or subgroup have to be.

    Attributes:
        limit: The highest tier of a domain that may hold all these pods.
        is_hard: Whether the pods wait if no such domain has room; otherwise they are placed on any nodes.
        requested: The limit as the user wrote it, for reasons.
        compared: The number of domains in which victims are sought; the domain whose victims cost least is chosen.
    """

    topology: Topology
    limit: int
    is_hard: bool
    requested: str = ""
    compared: int = COMPARED

    def tiers(self, inside: Domain | None = None) -> Iterator[DomainSet]:
        """Yield the permitted domains, tier by tier, the closest first; with `inside`, only the parts of a domain."""
        for tier, found in self.topology.tiers.items():
            if tier > self.limit:
                return
            if inside is None:
                yield found
            elif tier < inside.tier:
                yield DomainSet(domain for domain in found.domains if inside.mask[domain.rows[0]])
            elif tier == inside.tier:
                yield DomainSet((inside,))

    def around(self, rows: Iterable[int]) -> list[Domain]:
        """Return the permitted domains that contain all of these rows, the closest first."""
        return [domain for domain in self.topology.around(rows) if domain.tier <= self.limit]

    def widest(self) -> list[Domain]:
        """Return the permitted domains that are not inside of another permitted domain."""
        by_name = self.topology.by_name
        permitted = (domain for domain in by_name.values() if domain.tier <= self.limit)
        return [
            domain for domain in permitted if domain.parent not in by_name or by_name[domain.parent].tier > self.limit
        ]

    @property
    def kind(self) -> str:
        """Return the users' name for the widest permitted domains, such as `rack`."""
        widest = max((tier for tier in self.topology.tiers if tier <= self.limit), default=None)
        return self.topology.tiers[widest].domains[0].kind if widest is not None else "domain"


class UnmetClosenessError(ValueError):
    """A topology constraint that cannot be resolved; the text names the problem and the remedy."""


def closeness_of(cluster: Cluster, requested: NetworkTopology, field: str) -> Closeness:
    """Resolve a `networkTopology` against the HyperNodes.

    Raises:
        UnmetClosenessError: the request contradicts itself, or names a tier that no HyperNode has.
    """
    topology = topology_now(cluster)
    if requested.mode not in ("", "hard", "soft"):
        raise UnmetClosenessError(f"{field}.mode: {requested.mode}; write hard or soft")
    if requested.highest_tier_allowed is not None and requested.highest_tier_name:
        raise UnmetClosenessError(f"{field}: has highestTierAllowed and highestTierName; remove one of them")
    if not requested.is_hard:
        return Closeness(topology, ANYWHERE, is_hard=False)
    if not topology.tiers:
        raise UnmetClosenessError(f"{field}: there is no HyperNode with nodes; create HyperNodes, or write mode: soft")
    if requested.highest_tier_name:
        tier = topology.tier_named(requested.highest_tier_name)
        if tier is None:
            known = sorted({domain.tier_name for domain in topology.by_name.values()} - {""})
            raise UnmetClosenessError(
                f"{field}.highestTierName: no HyperNode has tier name {requested.highest_tier_name!r}; there are: "
                f"{', '.join(known) or 'none'}"
            )
        return Closeness(topology, tier, is_hard=True, requested=requested.highest_tier_name)
    if requested.highest_tier_allowed is None:
        return Closeness(topology, topology.highest, is_hard=True)
    lowest = min(topology.tiers)
    if requested.highest_tier_allowed < lowest:
        text = (
            f"{field}.highestTierAllowed: {requested.highest_tier_allowed} is below every tier, the lowest is {lowest}"
        )
        raise UnmetClosenessError(text)
    return Closeness(
        topology, requested.highest_tier_allowed, is_hard=True, requested=f"tier {requested.highest_tier_allowed}"
    )


def closeness_by_label(cluster: Cluster, key: str) -> Closeness:
    """Resolve a constraint of Kubernetes' PodGroups: all pods on nodes with the same value of a label.

    Raises:
        UnmetClosenessError: no node has the label.
    """
    topology = topology_of_label(cluster.nodes, key)
    if not topology.tiers:
        raise UnmetClosenessError(f"spec.schedulingConstraints.topology: no node has the label {key}; label the nodes")
    return Closeness(topology, 0, is_hard=True, requested=key)


class ClosenessOfJobs:
    """The topology constraints of the jobs of a cycle; each is resolved once. For `compared` see `Closeness`."""

    def __init__(self, cluster: Cluster, compared: int = COMPARED) -> None:
        self._cluster, self._compared = cluster, compared
        self._known: dict[tuple[str, str], Closeness | UnmetClosenessError | None] = {}

    def of(self, job: Job) -> Closeness | None:
        """Return the constraint of a job as a whole; None if it has none. Raises UnmetClosenessError."""
        return self._resolved(job.key, "", lambda: self._of_group(job))

    def of_subgroup(self, job: Job, name: str, requested: NetworkTopology | None) -> Closeness | None:
        """Return the constraint of a subgroup of a job; None if it has none of its own. Raises UnmetClosenessError."""
        if requested is None:
            return None
        field = f"spec.subGroupPolicy[{name}].networkTopology"
        return self._resolved(job.key, name, lambda: closeness_of(self._cluster, requested, field))

    def _of_group(self, job: Job) -> Closeness | None:
        group = job.group
        if group is None:
            return None
        if key := (group.metadata.annotations or {}).get(names.TOPOLOGY_KEY):
            return closeness_by_label(self._cluster, key)
        requested = group.spec.network_topology
        return None if requested is None else closeness_of(self._cluster, requested, "spec.networkTopology")

    def _resolved(self, job: str, name: str, resolve: Callable[[], Closeness | None]) -> Closeness | None:
        known = self._known.get((job, name), self)
        if known is self:
            try:
                found = resolve()
                known = found and replace(found, compared=self._compared)
            except UnmetClosenessError as error:
                known = error
            self._known[job, name] = known
        if isinstance(known, UnmetClosenessError):
            raise known
        return known  # type: ignore[return-value]
