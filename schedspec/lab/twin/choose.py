"""Choose who decides in a plan: the scheduler's own program, or our model of it.

Unless the user names a scheduler, that one decides whose objects the state has, if its program is on this machine. It
runs in both worlds of a plan, as often as its order of decisions varies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psutil
import yaml

from ...api.errors import HarnessError
from ...clusters.programs import binaries
from ...monitors import amounts
from ...scheduler.model.objects import Pod
from ...scheduler.model.task import job_key_of
from ...scheduler.policy.loader import texts_in
from ...schedulers import Adapter, find
from ...schedulers.adapter import NoAdapter
from ...schedulers.kube_scheduler import KubeScheduler
from ...schedulers.kube_scheduler_process import default_policy
from ...schedulers.kueue import Kueue
from ...virtual.state import State, kueue, require_ours
from ..plan.answer import PlannedWorld
from ..plan.changes import PolicyUse, Worlds
from ..plan.make import Decided, DecidingScheduler, ModelScheduler, Request, resource_of
from .decisions import Work
from .world import Twin, World, run_world

_WORLD_BYTES = 1 << 30
"""Memory of one world; the largest programs are the API server and the scheduler."""
_BYTES_PER_POD = 60_000


def decide(request: Request, worlds: Worlds, old: Twin, new: Twin, runs: int) -> Decided:
    """Run each world `runs` times; two worlds at once where the memory suffices.

    `new`: how the proposed world runs: another version of the scheduler, if the plan is of an upgrade.

    Raises:
        HarnessError, ClusterError: a world could not be made, or the scheduler ended.
    """
    resource = request.resource or resource_of(worlds.state)
    sides = [(old, worlds.state, worlds.texts[0]), (new, worlds.proposed_state, worlds.texts[1])] * runs
    with ThreadPoolExecutor(2 if _fits_twice(worlds.state) else 1) as pool:
        try:
            futures = [pool.submit(_run, *side, resource) for side in sides]
            found = [future.result() for future in futures]
        except BaseException:
            old.stopped.set()
            new.stopped.set()
            pool.shutdown(cancel_futures=True)
            raise
    versions = [version for _, version in found[:2]]
    by = f"{new.adapter.name} {versions[1]}".strip() + (f" against {versions[0]}" if old is not new else "")
    ran = [world for world, _ in found]
    asked = str(old.adapter), str(new.adapter)
    return Decided(ran[::2], ran[1::2], _assumptions(new, worlds.state), by, asked)


def _fits_twice(state: State) -> bool:
    """Whether two worlds fit into the free memory. Raises HarnessError: not even one fits."""
    free, needs = psutil.virtual_memory().available, _WORLD_BYTES + _BYTES_PER_POD * len(state.objects["Pod"])
    if free < needs:
        raise HarnessError(
            f"a world of this state needs about {needs >> 20} MiB of memory, and {free >> 20} MiB are free\n"
            "  do next: end other programs, or use --model"
        )
    return free >= 2 * needs


def _run(twin: Twin, state: State, text: str, resource: str) -> tuple[PlannedWorld, str]:
    ours: Sequence[str] = state.scheduler_names
    if isinstance(twin.adapter, KubeScheduler):
        policy, ours = default_policy(), ("default-scheduler",)
    else:
        policy = kueue_policy(state) if twin.asks_kueue else policy_text(text)
    found, version = run_world(twin, World(state, policy, work_of(state), resource, ours))
    if twin.asks_kueue:
        found.deserved = _nominal(state, resource)
    return found, version


def policy_text(text: str) -> str:
    """Return the policy in a file: of a ConfigMap or a chart's values, the part that the scheduler reads."""
    node = yaml.compose(text) if text.strip() else None
    inner = next(texts_in(node), None) if node is not None else None
    return text if inner is None else str(inner[1].value)


_RUN_OUTSIDE = (
    *("namespace", "health", "metrics", "webhook", "leaderElection", "internalCertManagement", "clientConnection"),
    *("apiVersion", "kind", "controller", "pprofBindAddress", "tls"),
)
"""Settings of Kueue that depend on where it runs, and decide nothing."""


_NEVER = {"timeout": "87600h"}
"""Kueue waits for ready pods by default (v0.19), and would evict all work of a cluster that does not."""


_WITHOUT_OWNERS = {"v0.18.0": {"FinishOrphanedWorkloads": False}}
"""Kueue finishes a Workload whose Job does not exist, and the Jobs are not in a state."""


def kueue_policy(state: State) -> str:
    """Return Kueue's configuration in a state in the form of its adapter (`schedulers.kueue.policy`)."""
    found = yaml.safe_load(kueue.configuration_of(state) or "{}") or {}
    gates = found.pop("featureGates", None) or {}
    found.setdefault("waitForPodsReady", _NEVER)
    kept = {name: part for name, part in found.items() if name not in _RUN_OUTSIDE}
    return yaml.safe_dump({"configuration": kept, "featureGates": gates, "gatesSince": _WITHOUT_OWNERS})


def work_of(state: State) -> Work:
    jobs = {key: job_key_of(pod) or _owner_of(pod) or key for key, pod in state.objects["Pod"].items()}
    uids = {obj["metadata"]["uid"]: key for key, obj in state.others.get("Workload", {}).items()}
    return Work(jobs, state.queues_of_work(), uids)


def _owner_of(pod: Pod) -> str:
    owner = next(iter(pod.metadata.owner_references or ()), None)
    return f"{pod.metadata.namespace}/{owner.name}" if owner is not None else ""


def _nominal(state: State, resource: str) -> dict[str, float]:
    """Return the nominal quota of each ClusterQueue, over its flavors."""
    return {
        name: float(sum(amounts.parse_quantity(quota) for _, each, quota in kueue.quotas_of(queue) if each == resource))
        for name, queue in state.others.get("ClusterQueue", {}).items()
    }


def _assumptions(twin: Twin, state: State) -> list[str]:
    found = [
        f"at once: {twin.adapter} ran on the state's objects, without controllers of work; nothing ends by itself",
        "all times of the state are later by its age, so that waits and deadlines are those of its moment",
        f"a victim ends {twin.grace:g} s later, and its owner creates it again; the rest of its gang keeps running",
    ]
    if twin.asks_kueue:
        found.append("an evicted Workload gives its reservation back when its pods have ended, as job controllers do")
        if not kueue.configuration_of(state):
            found.append("the state has no configuration of Kueue: its defaults are used")
    return found


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

    def of(self, state: State) -> DecidingScheduler:
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

    def _model(self, state: State) -> ModelScheduler:
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
        return ModelScheduler()

    def _lacks(self, adapter: Adapter) -> bool:
        return self.programs is None and bool(binaries.missing(adapter.programs, folder=None))

    def _twin(self, adapter: Adapter) -> Twin:
        return Twin(adapter, self.programs, self.progress, self.settle or 120.0)


def _require_work(state: State, adapter: Adapter) -> None:
    """Raise HarnessError or StateError if an adapter has nothing to decide on a state, before a cluster boots."""
    if isinstance(adapter, NoAdapter):
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
        model = ModelScheduler().decide(request, worlds)
        return found._replace(model=(model.now[0], model.proposed[0]))
