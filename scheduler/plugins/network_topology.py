"""network-topology-aware: place the pods of a gang on nodes that are close to each other.

Semantics: Volcano's plugin of that name. HyperNodes define which nodes are close: the lower the tier, the closer. A
PodGroup's `networkTopology` limits the tier of the HyperNode that holds all its pods (hard), or prefers the lowest tier
with room (soft). `subGroupPolicy` creates subgroups with their own limits. `scheduler.actions.domain_allocation` places
such jobs; this plugin resolves their constraints and scores domains. Without the plugin, or with its switch
`enabledHyperNodeGradient` off, a job with such a constraint waits, and its reason names the plugin.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..framework.plugin import Plugin
from ..framework.session import Session
from ..model import names
from ..model.job import Job
from ..model.nodes import Amounts, Mask, Vector
from ..model.resources import CPU, MEMORY, Resource
from ..model.task import Task
from ..policy.hooks import DomainGradient, DomainOrder, JobValid, Score
from ..policy.model import PluginOption
from ..policy.schema import BOOL, FLOAT, INT, TEXT, Argument
from ..reasons import TopologyUnmet, UnschedulableReason
from ..topology.closeness import COMPARED, Closeness, ClosenessOfJobs, UnmetClosenessError
from ..topology.domains import DomainSet, Topology
from ..topology.hyper_nodes import topology_now
from ..topology.subgroups import SubGroup, SubGroups

_BINPACK = "hypernode.binpack."
_NORMAL = f"{_BINPACK}normal-pod."
_TRIED = "hypernode.gradient.evict.max-hypernodes"


class NetworkTopology(Plugin, JobValid, DomainGradient, DomainOrder, Score):
    """Keep gangs within domains of the network."""

    name = "network-topology-aware"
    arguments: ClassVar = {
        "weight": Argument(INT, 0, default=1, means="weight of this score among all"),
        f"{_BINPACK}cpu": Argument(INT, 0, default=1, means="weight of cpu"),
        f"{_BINPACK}memory": Argument(INT, 0, default=1, means="weight of memory"),
        f"{_BINPACK}resources": Argument(TEXT, default="", means="further resources that count, separated by commas"),
        f"{_NORMAL}enable": Argument(BOOL, default=True, means="pods without a topology prefer HyperNodes in use"),
        f"{_NORMAL}fading": Argument(
            FLOAT, 0, default=0.8, means="weight of each tier in that preference, relative to the tier below it"
        ),
        _TRIED: Argument(INT, 1, default=COMPARED, means="in how many HyperNodes victims are sought for one job"),
    }
    families: ClassVar = {f"{_BINPACK}resources.": Argument(INT, 0, default=1, means="weight of one of these")}

    def __init__(self, option: PluginOption) -> None:
        super().__init__(option)
        self._weights = {CPU: self.argument(f"{_BINPACK}cpu"), MEMORY: self.argument(f"{_BINPACK}memory")}
        for name in filter(None, (part.strip() for part in self.argument(f"{_BINPACK}resources").split(","))):
            self._weights[name] = self.argument(f"{_BINPACK}resources.{name}")

    def open(self, session: Session) -> None:
        self._nodes, self._cluster = session.nodes, session.cluster
        self._idle = session.nodes.idle.copy(order="F")
        """What was idle when the cycle began: a score that is computed once a cycle depends on nothing later."""
        self._closeness = ClosenessOfJobs(session.cluster, self.argument(_TRIED))
        self._groups = session.shared(SubGroups)

    # ---------------------------------------------------------------------------------------------------- the request

    def closeness(self, job: Job, group: SubGroup | None) -> Closeness | None:
        return (
            self._closeness.of(job) if group is None else self._closeness.of_subgroup(job, group.name, group.topology)
        )

    def job_valid(self, job: Job) -> UnschedulableReason | None:
        try:
            for group in (None, *self._groups.of(job).values()):
                self.closeness(job, group)
        except UnmetClosenessError as error:
            return TopologyUnmet(job.key, str(error))
        return None

    # ----------------------------------------------------------------------------------------------------- the scores

    def domain_order(self, request: Resource, domains: DomainSet) -> Vector:
        return self._order(request, domains, self._nodes.idle)

    def _order(self, request: Resource, domains: DomainSet, idle: Amounts) -> Vector:
        """Return how full each domain would be, as a weighted mean over the requested resources: 0 to 100 x weight."""
        total, weights = np.zeros(len(domains)), 0.0
        for name, weight in self._weights.items():
            requested, column = request.get(name, 0), self._nodes.dimensions.get(name)
            if requested <= 0 or not weight or column is None:
                continue
            whole = domains.sums(self._nodes.allocatable[:, column]).astype(np.float64)
            used = whole - domains.sums(idle[:, column]) + requested
            with np.errstate(divide="ignore", invalid="ignore"):
                part = used / whole
            total += weight * np.where((whole > 0) & (used <= whole), part, 0.0)
            weights += weight
        return total * (100.0 * self.argument("weight") / weights) if weights else total

    def score(self, task: Task, feasible: Mask) -> Vector | None:  # noqa: ARG002
        """Score nodes for a pod without a topology by how full their HyperNodes are; lower tiers count most.

        Called once a cycle for each kind of pod: changes within the cycle do not count.
        """
        weight = self.argument("weight")
        topology = topology_now(self._cluster) if self.argument(f"{_NORMAL}enable") and weight else None
        if topology is None or not topology.tiers or self._has_topology(task):
            return None
        scores: Vector = weight * self._fading_mean(task, topology)
        return scores

    def _has_topology(self, task: Task) -> bool:
        job = self._cluster.jobs.get(task.job)
        group = job.group if job is not None else None
        if group is None:
            return False
        by_label = names.TOPOLOGY_KEY in (group.metadata.annotations or {})
        return by_label or group.spec.network_topology is not None or bool(group.spec.sub_group_policy)

    def _fading_mean(self, task: Task, topology: Topology) -> Vector:
        fading = float(self.argument(f"{_NORMAL}fading"))
        total: Vector = np.zeros(len(self._nodes.rows))
        factor, factors = 1.0, 0.0
        for found in topology.tiers.values():
            by_domain = self._fullness(task.request, found)
            values = np.ones(len(self._nodes.rows))  # a node in no domain of the tier counts as if its domain were full
            for domain, value in zip(found.domains, by_domain, strict=True):
                values[domain.rows] = value
            total += factor * values
            factors += factor
            factor *= fading
        total *= 100.0 / factors
        return total

    def _fullness(self, request: Resource, domains: DomainSet) -> Vector:
        full = self._order(request, domains, self._idle)
        full /= 100.0 * self.argument("weight")
        return full
