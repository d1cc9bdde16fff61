"""Choose who decides in a plan: the scheduler's own program, or our model of it.

Unless the user names a scheduler, that one decides whose objects the state has, if its program is on this machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ...api.errors import HarnessError
from ...clusters.programs import binaries
from ...schedulers import Adapter, find
from ...schedulers.adapter import Nobody
from ...schedulers.kube_scheduler import KubeScheduler
from ...schedulers.kueue import Kueue
from ...virtual.state import State, require_ours
from ..plan.changes import PolicyUse, Worlds
from ..plan.make import Decided, Decider, Model, Request
from .decide import decide
from .world import Twin

_RANGE = re.compile(r"(?P<name>[a-z-]+)@(?P<old>[^@]+?)\.\.(?P<new>[^@]+)")


@dataclass(frozen=True, slots=True)
class Choice:
    """What the user says about the scheduler of a plan."""

    scheduler: str = ""
    """`NAME`, `NAME@VERSION` or `NAME@OLD..NEW`; empty for that of the state."""
    by_model: bool = False
    programs: Path | None = None
    """The user's folder with the scheduler's programs."""
    runs: int = 0
    """How often each world runs; 0 for the scheduler's usual number."""
    settle: float = 0.0
    """Seconds after which a world that has not settled is cut; 0 for the usual number."""
    progress: Callable[[str], None] = print

    @property
    def is_upgrade(self) -> bool:
        """Whether two versions are compared."""
        return ".." in self.scheduler

    def of(self, state: State) -> Decider:
        """Return who decides.

        Raises:
            StateError: only Kueue decides in this cluster, and the model was asked.
            AdapterError: no scheduler has this name.
            HarnessError: several schedulers decide in this cluster, and none was named.
        """
        named = "" if self.by_model else self.scheduler or _scheduler_of(state)
        if not named:
            return self._model(state)
        bounds = _RANGE.fullmatch(named)
        if bounds:
            old, new = (find(f"{bounds['name']}@{version}") for version in (bounds["old"], bounds["new"]))
            if bounds["old"] == bounds["new"]:
                raise HarnessError(
                    f"--scheduler {named}: both versions are {bounds['new']}\n  do next: name two versions"
                )
            _require_work(state, new)
            return OwnProgram(self._twin(old), self._twin(new), self.runs or new.runs)
        adapter = find(named)
        if not self.scheduler and not isinstance(adapter, Kueue) and self._lacks(adapter):
            return self._model(state)
        _require_work(state, adapter)
        twin = self._twin(adapter)
        return OwnProgram(twin, twin, self.runs or adapter.runs)

    def _model(self, state: State) -> Model:
        require_ours(state)
        for option, is_set in (
            ("--scheduler", self.scheduler),
            ("--runs", self.runs),
            ("--settle", self.settle),
            ("--scheduler-binaries", self.programs),
        ):
            if is_set:
                remedy = "--model out" if self.by_model else f"{option} out, or name the scheduler with --scheduler"
                raise HarnessError(
                    f"{option}: our model decides on this state, and asks no program of a scheduler\n"
                    f"  do next: leave {remedy}"
                )
        return Model()

    def _lacks(self, adapter: Adapter) -> bool:
        return self.programs is None and bool(binaries.missing(adapter.programs, folder=None))

    def _twin(self, adapter: Adapter) -> Twin:
        return Twin(adapter, self.programs, self.progress, self.settle or 120.0)


def _require_work(state: State, adapter: Adapter) -> None:
    """Raise HarnessError or StateError if an adapter has nothing to decide on a state, before a cluster boots."""
    if isinstance(adapter, Nobody):
        raise HarnessError(
            "--scheduler none: no program decides\n  do next: name the scheduler of the cluster, or --model"
        )
    if not isinstance(adapter, Kueue):
        require_ours(state)
    elif not state.others:
        raise HarnessError(
            f"{state.source} has no object of Kueue, on which Kueue could decide\n"
            "  do next: add those of the cluster (docs/plan.md lists the kinds), or name its scheduler"
        )


def _scheduler_of(state: State) -> str:
    """Return the name of the scheduler that decides on a state; empty for ours."""
    pods = {pod.spec.scheduler_name for found in state.of_job().values() for pod in found}
    others = sorted(pods - {"", "schedspec"})
    if state.others and state.objects["PodGroup"]:
        raise HarnessError(
            f"{state.source} has work of Kueue and PodGroups: two schedulers decide in this cluster\n"
            "  do next: name the one that the plan asks, with --scheduler kueue or --scheduler volcano"
        )
    if state.others:
        return Kueue.name
    return "volcano" if others == ["volcano"] else ""


def reads_policies(adapter: Adapter) -> bool:
    """Whether a scheduler reads policy files: Kueue and kube-scheduler have configurations of their own."""
    return not isinstance(adapter, Kueue | KubeScheduler)


@dataclass(frozen=True, slots=True)
class OwnProgram:
    """The scheduler's own program decides, in the world as it is and in the proposed one."""

    now: Twin
    proposed: Twin
    runs: int

    @property
    def definitions(self) -> Path | None:
        """The folder of Kueue's definitions, by which its manifests are read."""
        adapter = self.proposed.adapter
        return adapter.source(self.proposed.programs) if isinstance(adapter, Kueue) else None

    @property
    def policies(self) -> PolicyUse:
        """What it does with policy files."""
        return PolicyUse.PASSED_ON if reads_policies(self.proposed.adapter) else PolicyUse.NONE

    def decide(self, request: Request, worlds: Worlds) -> Decided:
        """Run both worlds, and our model beside them if it can read the policy. Raises HarnessError, ClusterError."""
        found = decide(request, worlds, self.now, self.proposed, self.runs)
        if self.policies is PolicyUse.NONE:
            return found
        if worlds.unread:
            why = worlds.unread.splitlines()[0]
            return found._replace(assumptions=[*found.assumptions, f"our model cannot read the policy: {why}"])
        model = Model().decide(request, worlds)
        return found._replace(model=(model.now[0], model.proposed[0]))
