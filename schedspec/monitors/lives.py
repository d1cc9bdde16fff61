"""What lives in a cluster, for the ledger: jobs with their pods, and the acts on these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..api.kinds import Kind
from .amounts import Amounts, Object

_MODE = "schedspec.dev/disruption-mode"


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation of a rule. `time` is on the ledger's clock, `about` names the pod or the PodGroup."""

    monitor: str
    time: float
    about: str
    text: str
    is_bind: bool = False
    """Whether a bind broke the rule. The pod may be evicted in the same moment."""
    job: str = ""
    cycle: int = 0
    """The cycle of the act, in virtual time."""
    action: str = ""
    reason: str = ""
    """The scheduler's own reason for an eviction."""
    pod: str = ""
    """Key of the pod; empty if it is about a PodGroup."""


@dataclass(slots=True, eq=False)
class Eviction:
    """An eviction of a pod, as the scheduler explains it."""

    cause: str
    """The action and the preemptor: the message without its details."""
    action: str
    """`reclaim` or `preempt`, if the scheduler reports it."""
    message: str
    preemptors: Sequence[str]
    """The jobs that the cause names."""
    at: float
    number: int
    """Number of the act in the ledger."""
    cycle: int
    changed: int = 0
    """Number of the last change of a node or a queue before it. A change begins a new decision for the same cause."""


@dataclass(slots=True, eq=False)
class Job:
    """A PodGroup or a Workload of Kueue with its pods; `key` is empty for pods of neither."""

    key: str
    groups: dict[Kind, Object] = field(default_factory=dict)
    queue: str = ""
    minimum: int = 0
    pods: dict[str, Pod] = field(default_factory=dict)
    waiting: dict[str, Pod] = field(default_factory=dict)
    """Its pods that have no node yet, in the order of their creation."""
    active: int = 0
    """Number of its pods that occupy capacity and do not leave."""
    claimed: int = 0
    """Number of the last eviction for this job in the ledger; 0 if there was none."""
    freed: Amounts = field(default_factory=dict)
    """The requests of pods evicted for this job, minus those of its pods bound since."""
    bound: int = 0
    """Number of its last bind in the ledger, and the same for its other acts; 0 if there was none."""
    evicted: int = 0
    ended: int = 0
    lost_to: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Job → numbers of the first and the last eviction of this job's pods for it."""
    last_evicted: dict[tuple[str, str], int] = field(default_factory=dict)
    """Pod and cause → number of the last eviction of a pod of this name for this cause."""

    @property
    def group(self) -> Object | None:
        return self.groups.get(Kind.PODGROUP)

    @property
    def loses_single_pods(self) -> bool:
        """Whether its disruption mode permits the eviction of single pods."""
        return ((self.group or {"metadata": {}})["metadata"].get("annotations") or {}).get(_MODE) == "pod"

    def waits_since(self, number: int) -> bool:
        """Whether a pod waits that was created before an act."""
        first = next(iter(self.waiting.values()), None)
        return first is not None and first.created < number


@dataclass(slots=True, eq=False)
class Pod:
    """A pod. What has a monitor of it may outlive it: it then keeps its last state."""

    key: str
    uid: str
    job: Job
    created: int
    """Number of its first version in the ledger."""
    requests: Amounts
    source: Any = None
    """Its last version, for `Ledger.shown`."""
    node: str = ""
    over: str = ""
    """`Succeeded` or `Failed`, or empty."""
    is_leaving: bool = False
    is_nominated: bool = False
    bound: int = 0
    """Number of its bind in the ledger; 0 if it was not bound."""
    eviction: Eviction | None = None

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def holds(self) -> bool:
        """Whether it occupies capacity on its node. A pod that is leaving still does."""
        return bool(self.node) and not self.over

    @property
    def keeps(self) -> bool:
        """Whether it occupies capacity on its node and is not leaving."""
        return bool(self.node) and not self.over and not self.is_leaving and self.eviction is None
