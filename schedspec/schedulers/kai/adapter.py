"""Adapter for KAI Scheduler: its scheduler and its binder. The templates make the PodGroups that its podgrouper would.

The programs are built from KAI's Go module as published when they are first needed, or come from a folder that the user
names (`--scheduler-binaries`: `kai-scheduler`, `kai-binder`, and the definitions in `crds/`).

| queue | Queue of scheduling.run.ai/v2 |
| --- | --- |
| deserved | quota |
| capability | limit |
| weight | overQuotaWeight |
| priority | priority |
| parent | parentQueue; the top queues are below one Queue that has the whole cluster |

Quota of cpu is in thousandths, of memory in megabytes, of cards in cards (KAI, `docs/queues/README.md`). A queue has no
quota of cpu, cards or what another queue of the scenario names unless it deserves some: all that it holds is above it.
Memory that no queue names is not limited.

Both run as processes beside the cluster. The scheduler writes a BindRequest for each decision, and the binder binds the
pod. A policy is the list of actions in KAI's configuration, which the scheduler reads only when it starts: a new policy
restarts it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec
import yaml
from kubernetes.utils.quantity import parse_quantity

from ... import distribution
from ...api.capabilities import Capability
from ...api.errors import PolicyRefusedError
from ...api.kinds import GPU
from ...clusters.programs.pinned import program
from ...clusters.protocol import Settings
from ..adapter import OF_KUEUE, OF_OTHERS, Adapter, Objects, Site, UnsuitableClusterError, read_policy
from ..daemon import Daemon, ProgramScheduler, free_port
from ..installable import definitions_of
from ..readiness import NotReadyError, retrying

SCHEDULER, BINDER = "kai-scheduler", "kai-binder"
_NAMESPACES: Final = ("kai-scheduler", "kai-resource-reservation", "kai-scale-adjust")
_RUNS: Final = "End scheduling"
_REFUSED: Final = re.compile(r"failed to find Action (\S+)|error resolving configuration from file: (.*)")


class KaiPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parts of a policy file: KAI's actions, and the rules for the monitors in the format of our policies."""

    actions: str = "allocate"
    lacks: str = ""
    """Why KAI has no such policy here; empty if it has one."""
    tiers: list[dict[str, Any]] = []


def read(text: str) -> KaiPolicy:
    return read_policy(text, KaiPolicy, "KAI")


class KaiProcesses(ProgramScheduler):
    """Two programs. The binder keeps running when a new policy restarts the scheduler."""

    def __init__(self, site: Site, programs: Mapping[str, Path]) -> None:
        super().__init__(site, programs, {SCHEDULER: "scheduler.log", BINDER: "binder.log"})
        self._file = site.folder / "kai.yaml"

    def start(self, policy: str) -> None:
        """Return when both programs run and the scheduler has ended its first session."""
        for name in _NAMESPACES:
            self._site.create_if_absent("/api/v1/namespaces", "Namespace", name=name)
        self._launch(self._daemons[1], "--metrics-bind-address", "0", "--health-probe-bind-address", "0")
        self.use_policy(policy)

    def use_policy(self, text: str) -> str:
        if why := read(text).lacks:
            raise UnsuitableClusterError(f"kai lacks this policy ({why})")
        return super().use_policy(text)

    def restart(self, policy: str) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(yaml.safe_dump({"actions": read(policy).actions}), "utf-8")
        self._scheduler.stop()
        self._launch(
            self._scheduler,
            *("--scheduler-conf", str(self._file), "--schedule-period", "250ms", "--v", "1"),
            *("--listen-address", f"127.0.0.1:{free_port()}", "--plugin-server-port", str(free_port())),
            *("--update-pod-eviction-condition=true", "--qps", "1000", "--burst", "2000"),
        )
        for attempt in retrying(self.timeout, 0.05):
            with attempt:
                _require_running(self._scheduler)

    def _launch(self, daemon: Daemon, *switches: str) -> None:
        """Start the program that the daemon is named after."""
        common = ["--leader-elect=false", "--scheduler-name", "schedspec"]
        daemon.launch([self._programs[daemon.title], *common, *switches], {"KUBECONFIG": str(self._site.kubeconfig)})


def _require_running(scheduler: Daemon) -> None:
    """Check the log of a scheduler since its start. Raises PolicyRefusedError or NotReadyError."""
    log = scheduler.text()
    if refused := _REFUSED.search(log):
        raise PolicyRefusedError(f"KAI refused the policy:\n  {refused[0]}", refused[0])
    scheduler.check()
    if _RUNS not in log:
        raise NotReadyError("KAI's scheduler has not ended its first session")


Object = dict[str, Any]
API: Final = "scheduling.run.ai/v2"
TOP: Final = "schedspec-root"
DEFAULT: Final = "default"
_UNITS: Final = {"cpu": Decimal("0.001"), "memory": Decimal(10**6), GPU: Decimal(1)}
_NAMES: Final = {"cpu": "cpu", "memory": "memory", GPU: "gpu"}
_UNLIMITED: Final = -1


def of_scenario(queues: Sequence[Object]) -> list[Object]:
    found = {str(queue["metadata"]["name"]): queue.get("spec") or {} for queue in queues}
    found.setdefault(DEFAULT, {})
    named = {resource for spec in found.values() for amounts in _named(spec) for resource in amounts}
    shared = {"cpu", GPU, *named}
    top = _made(TOP, {"resources": {name: _amounts(_UNLIMITED, _UNLIMITED, 1) for name in _NAMES.values()}})
    return [top, *(_queue(name, spec, found, shared) for name, spec in found.items() if name != "root")]


def _named(spec: Object) -> list[Object]:
    """Return the amounts that a queue names."""
    guarantee = (spec.get("guarantee") or {}).get("resource")
    return [spec.get("deserved") or {}, spec.get("capability") or {}, guarantee or {}]


def _queue(name: str, spec: Object, queues: dict[str, Object], shared: set[str]) -> Object:
    parent = str(spec.get("parent") or "root")
    own: Object = {"parentQueue": parent if parent in queues and parent != "root" else TOP}
    if "priority" in spec:
        own["priority"] = spec["priority"]
    weight = spec.get("weight", 1)
    own["resources"] = {
        name: _amounts(
            _in_units(spec.get("deserved"), resource, 0 if resource in shared else _UNLIMITED),
            _in_units(spec.get("capability"), resource, _UNLIMITED),
            weight,
        )
        for resource, name in _NAMES.items()
    }
    return _made(name, own)


def _in_units(amounts: Object | None, resource: str, otherwise: int) -> int | float:
    if not amounts or resource not in amounts:
        return otherwise
    amount = Decimal(parse_quantity(str(amounts[resource]))) / _UNITS[resource]  # type: ignore[no-untyped-call]
    return int(amount) if amount == amount.to_integral_value() else float(amount)


def _amounts(quota: float, limit: float, weight: int) -> Object:
    return {"quota": quota, "limit": limit, "overQuotaWeight": weight}


def _made(name: str, spec: Object) -> Object:
    return {"apiVersion": API, "kind": "Queue", "metadata": {"name": name}, "spec": spec}


PROGRAMS = (SCHEDULER, BINDER)
DEFINITIONS = ("deployments/kai-scheduler/crds/*.yaml",)
_OF_VOLCANO = "its jobs are Kubernetes' own, with a PodGroup"


class Kai(Adapter):
    """KAI with its own definitions. Queues of the scenario's tables become its Queues."""

    name: ClassVar[str] = "kai"
    programs: ClassVar[Sequence[str]] = PROGRAMS
    has_versions: ClassVar[bool] = True
    watched: ClassVar[Mapping[str, str]] = {
        f"{kind}.scheduling.run.ai": "" for kind in ("bindrequests", "podgroups", "queues")
    }
    templates: ClassVar[str] = "kai"
    silent_for: ClassVar[float] = 3.0
    sees_all: bool = True
    lacks: ClassVar[Mapping[Capability, str]] = {
        **OF_OTHERS,
        **OF_KUEUE,
        Capability.POLICY_FILES: "its policy is a list of actions of its own",
        Capability.ACTIONS: "its actions are others",
        Capability.CARDS: "its queues count cards of all models together",
        Capability.PROTECTION: "nothing exempts a queue; a PodGroup is preemptible or not",
        Capability.VALIDATION: "its webhooks are not installed",
        **dict.fromkeys((Capability.JOB_TASKS, Capability.JOB_POLICIES), _OF_VOLCANO),
        Capability.PHASES: "its PodGroups have conditions, no phases",
        Capability.GROWTH: "this adapter does not grow a PodGroup",
        Capability.DESERVED: "the status of its queues has no deserved amounts",
        **dict.fromkeys((Capability.TOPOLOGY, Capability.PREFERRED_TOPOLOGY), "this adapter makes no Topology"),
        Capability.PARTITIONS: "this adapter divides no PodGroup",
        Capability.SHARED_CARDS: "its parts of cards have annotations of their own",
        Capability.DISRUPTION_MODE: "a PodGroup loses the pods above its minimum, or all",
    }
    monitors_off: ClassVar[Mapping[str, str]] = {
        "needless-eviction": "its consolidation evicts pods that it places elsewhere at once",
        "disproportionate-eviction": "the monitor reads the plugins of our policies",
    }
    known_file: ClassVar[Path | None] = Path(__file__).with_name("known.yaml")

    def read(self, policy: str) -> KaiPolicy:
        return read(policy)

    def require_programs(self, settings: Settings, folder: Path | None, progress: Callable[[str], None]) -> None:
        super().require_programs(settings, folder, progress)
        definitions_of(folder, self.first, DEFINITIONS, "KAI")

    def scheduler(self, site: Site) -> KaiProcesses:
        return KaiProcesses(site, self.found_programs(site))

    def companions(self, queues: Objects, nodes: Objects, policy: str) -> Objects:
        del nodes, policy
        return of_scenario(queues)

    def definitions(self, site: Site) -> Path:
        """Return a folder with KAI's definitions and that of the Queue, which stores a scenario's table."""
        first = program(SCHEDULER, version=self.wanted)
        found = definitions_of(site.scheduler_programs, first, DEFINITIONS, "KAI")
        folder = site.folder / "definitions"
        folder.mkdir(parents=True, exist_ok=True)
        ours = (distribution.folder("scheduler") / "crds").glob("*queue*.yaml")
        for prefix, sources in (("", found.glob("*.yaml")), ("schedspec-", ours)):
            for source in sorted(sources):
                (folder / f"{prefix}{source.name}").write_bytes(source.read_bytes())
        return folder
