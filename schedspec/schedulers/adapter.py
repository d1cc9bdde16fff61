"""What the harness knows of a scheduler: the seam that every scheduler under test is reached through.

The one rule: whatever differs from scheduler to scheduler is asked of its adapter; nothing outside of this room knows
one by name. An adapter that says nothing is one of a scheduler with the API, the policies and the words of our own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from .. import distribution
from ..api.capabilities import Capability
from ..api.client import Api
from ..api.errors import HarnessError
from ..api.marks import USUAL, Marks
from ..clusters import Cluster


class AdapterError(HarnessError):
    """A scheduler cannot be had: its programs are not there, or it cannot run on this cluster."""


class UnsuitableClusterError(AdapterError):
    """The scheduler could be had, and this cluster has not what it needs: its scenarios are skipped, not failed."""


VOLCANO, KUBERNETES = "volcano", "kubernetes"
"""The APIs that gangs can be written in: scheduling.volcano.sh and scheduling.k8s.io."""


class Scheduler(Protocol):
    """A scheduler of one cluster, from `launch` to `stop`. Not thread-safe."""

    def launch(self, policy: str) -> None:
        """Let it begin, without waiting: its API may be made meanwhile."""

    def start(self, policy: str) -> None:
        """Return when it schedules by this policy; `launch` may have come before.

        Raises SchedulerDiedError with its last words, PolicyRefusedError, AdapterError.
        """

    def stop(self) -> None:
        """End it. The second call does nothing."""

    def handle(self) -> dict[str, Any]:
        """What another process needs to reach it; plain values."""

    def attach(self, handle: dict[str, Any]) -> None:
        """Be the face of a scheduler that another process has started."""

    def check(self) -> None:
        """Raise SchedulerDiedError if it runs no more."""

    def use_policy(self, text: str) -> str:
        """Put a policy into force; return its sha256 when it is. Raises PolicyRefusedError, SchedulerDiedError."""

    def keep_recording(self, since: float, to: Path) -> bool:
        """Keep what it decided from `since` on (wall time) as a recording in the folder `to`; False where it records
        nothing.
        """

    def last_lines(self, count: int) -> Sequence[str]:
        """The end of its log."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where a scheduler is to run: what an adapter needs to start it."""

    folder: Path
    """For its log and its policy file; of this run alone."""
    api: Api
    kubeconfig: Path
    context: str
    cluster: Cluster
    programs: Path | None
    """The folder of the cluster's programs, where the user has named one (`--binaries`)."""
    scheduler_programs: Path | None
    """The folder of the scheduler's programs (`--scheduler-binaries`)."""
    scale: float
    """Stretches every timeout."""
    tell: Callable[[str], None]
    """Says to who waits what is going on."""
    namespace_prefix: str = ""
    """On a cluster that is shared with others: how the names of the namespaces begin that the scheduler may touch."""


class Adapter:
    """One scheduler. A subclass says what differs from our own, and how it is started."""

    name: ClassVar[str] = ""
    """As in `--scheduler NAME`, and in the matrix."""
    lacks: ClassVar[Mapping[Capability, str]] = {}
    """What it does not have, and why, for people."""
    monitors_off: ClassVar[Mapping[str, str]] = {}
    """The monitors whose law does not hold for it, and why."""
    marks: ClassVar[Marks] = USUAL
    """What counts as an eviction and as a reason: the conditions by which it says so."""
    templates: ClassVar[str] = ""
    """A folder in templates/ that is looked into first: its own policies and objects; empty for none."""
    known_file: ClassVar[Path | None] = None
    """Its known differences (known.py)."""
    runs: ClassVar[int] = 1
    """How often each scenario is run where nobody says: more than once if the order of its decisions is not
    deterministic."""
    silent_for: ClassVar[float] = 0.0
    """Seconds after which work that is still waiting counts as refused, where the scheduler publishes no reason;
    0: it always does."""
    names_preemptors: ClassVar[bool] = False
    """It says in an event of each victim (`related`) for which pod that was evicted; the end of a scenario waits for
    these."""
    sees_all: ClassVar[bool] = False
    """It writes to every queue, job and PodGroup that there is, and cannot be kept from those of others."""
    gang_apis: ClassVar[Sequence[str]] = (VOLCANO,)
    """The APIs that it takes gangs in; the first is the usual one."""
    scheduler_name: str = "schedspec"
    """What pods name as their scheduler."""
    gang_api: str = ""
    """The one that this run uses; where it is Kubernetes' own, the cluster serves it."""

    def __init__(self) -> None:
        self.gang_api = self.gang_apis[0]

    def __str__(self) -> str:
        """For the header of a run."""
        return self.name

    @property
    def title(self) -> str:
        """For results and records: its name, and how gangs are written where that is not the usual way."""
        usual = self.gang_api == self.gang_apis[0]
        return self.name if usual else f"{self.name} with gangs of {self.gang_api}"

    def version(self, site: Site) -> str:
        """Which version of it this is, for instance `v1.36.3`; empty where it does not say."""
        raise NotImplementedError

    def scheduler(self, site: Site) -> Scheduler | None:
        """The scheduler, not yet started; None where one runs already. Raises AdapterError."""
        raise NotImplementedError

    def starts(self, site: Site) -> str:
        """What pods name as the scheduler that this run starts; empty where one runs already."""
        del site
        return self.scheduler_name

    def template_folders(self) -> list[str]:
        """The folders in templates/ that are looked into first."""
        return [name for name in (self.templates, KUBERNETES if self.gang_api == KUBERNETES else "") if name]

    def missing(self, capability: Capability) -> str | None:
        """Why it lacks a capability; None if it has it."""
        if capability == Capability.DISRUPTION_MODE and self.gang_api == VOLCANO:
            return "only PodGroups of scheduling.k8s.io have one"
        return self.lacks.get(capability)

    def definitions(self, site: Site) -> Path | None:
        """The folder of its custom resource definitions; None where there is nothing to apply. Raises AdapterError."""
        del site
        return distribution.folder("scheduler") / "crds"
