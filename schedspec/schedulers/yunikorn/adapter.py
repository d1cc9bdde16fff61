"""Adapter for Apache YuniKorn: its scheduler, with the queues of a scenario in its ConfigMap.

The program is built from YuniKorn's Go module as published when it is first needed, or comes from a folder that the
user names (`--scheduler-binaries`: `yunikorn-scheduler`). Its admission controller is not needed: the templates write
the annotations that it would write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from ... import distribution
from ...api.capabilities import Capability
from ..adapter import OF_KUEUE, OF_OTHERS, Adapter, AdapterError, Objects, Site
from . import queues as yunikorn_queues
from .process import SCHEDULER, YuniKornProcess

_OF_VOLCANO = "its jobs are Kubernetes' own"


class YuniKorn(Adapter):
    """YuniKorn without definitions: queues are in its configuration, applications and gangs in annotations of pods."""

    name: ClassVar[str] = "yunikorn"
    programs: ClassVar[Sequence[str]] = (SCHEDULER,)
    has_versions: ClassVar[bool] = True
    templates: ClassVar[str] = "yunikorn"
    scheduler_name: str = "yunikorn"
    silent_for: ClassVar[float] = 3.0
    sees_all: bool = True
    lacks: ClassVar[Mapping[Capability, str]] = {
        **OF_OTHERS,
        Capability.POLICY_FILES: "its policy is a part of its configuration",
        Capability.ACTIONS: "its cycle has no steps that a policy could leave out",
        Capability.CARDS: "its queues count cards of all models together",
        Capability.PROTECTION: "a queue or a pod may be preempted last, not never",
        Capability.VALIDATION: "its queues are no objects of the API server",
        **dict.fromkeys((Capability.JOB_TASKS, Capability.JOB_POLICIES), _OF_VOLCANO),
        Capability.PHASES: "its applications are no objects of the API server",
        Capability.GROWTH: "this adapter does not grow an application",
        Capability.DESERVED: "its queues have guaranteed amounts, and no status in the API server",
        Capability.NODE_ORDER: "it spreads or packs pods over all nodes, and knows no groups of nodes",
        **dict.fromkeys((Capability.TOPOLOGY, Capability.PREFERRED_TOPOLOGY), "a task group has no topology"),
        Capability.PARTITIONS: "a task group has no parts",
        Capability.SHARED_CARDS: "it counts resources by node, not by card",
        Capability.DISRUPTION_MODE: "it preempts single pods only",
        **OF_KUEUE,
    }
    monitors_off: ClassVar[Mapping[str, str]] = {
        "disproportionate-eviction": "the monitor reads the plugins of our policies",
    }
    known_file: ClassVar[Path | None] = Path(__file__).with_name("known.yaml")

    def __init__(self, wanted: str = "", configuration: str = "") -> None:
        super().__init__(wanted, configuration)
        self._process: YuniKornProcess | None = None

    def read(self, policy: str) -> yunikorn_queues.YuniKornPolicy:
        return yunikorn_queues.read(policy)

    def scheduler(self, site: Site) -> YuniKornProcess:
        self._process = YuniKornProcess(site, self.found_programs(site)[SCHEDULER])
        return self._process

    def alone(self, site: Site) -> YuniKornProcess:
        del site
        raise AdapterError(
            "yunikorn cannot decide on a dump: a dump has neither its queues nor its applications\n"
            "  do next: name another scheduler, or leave --scheduler out"
        )

    def configure(self, queues: Objects, nodes: Objects, policy: str) -> None:
        if self._process is not None:
            self._process.configure(yunikorn_queues.of_scenario(queues, nodes, yunikorn_queues.read(policy)))

    def definitions(self, site: Site) -> Path:
        """Return a folder with the definitions of Queue and PodGroup, which only checks and monitors read.

        Without our policies: they protect the queue `default`, which a scenario creates here as any other.
        """
        folder = site.folder / "definitions"
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("queue.yaml", "podgroup.yaml"):
            (folder / name).write_bytes((distribution.folder("scheduler") / "crds" / name).read_bytes())
        return folder

    def unmarked_eviction(self, uid: str) -> dict[str, Any] | None:
        return self._process.eviction(uid) if self._process is not None else None
