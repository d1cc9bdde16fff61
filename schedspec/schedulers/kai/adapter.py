"""Adapter for KAI Scheduler: its scheduler and its binder. The templates make the PodGroups that its podgrouper would.

The programs are built from KAI's Go module as published when they are first needed, or come from a folder that the user
names (`--scheduler-binaries`: `kai-scheduler`, `kai-binder`, and the definitions in `crds/`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from ... import distribution
from ...api.capabilities import Capability
from ...clusters.programs import binaries
from ...clusters.programs.definitions import definitions
from ...clusters.programs.pinned import program
from ...clusters.protocol import BinaryError, Settings
from .. import programs_folder
from ..adapter import Adapter, AdapterError, Site
from . import queues as kai_queues
from .processes import BINDER, SCHEDULER, KaiProcesses

PROGRAMS = (SCHEDULER, BINDER)
DEFINITIONS = ("deployments/kai-scheduler/crds/*.yaml",)
"""Paths of the definitions in KAI's source."""
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
        Capability.POLICY_FILES: "its policy is a list of actions of its own",
        Capability.POLICY_REFUSAL: "its policies have no contradictions of this kind",
        Capability.ACTIONS: "its actions are others",
        Capability.CARDS: "its queues count cards of all models together",
        Capability.PROTECTION: "nothing exempts a queue; a PodGroup is preemptible or not",
        Capability.VALIDATION: "its webhooks are not installed",
        Capability.JOB_TASKS: _OF_VOLCANO,
        Capability.JOB_POLICIES: _OF_VOLCANO,
        Capability.COMMANDS: "it has no Commands",
        Capability.PYTORCHJOBS: "no training operator is installed",
        Capability.PHASES: "its PodGroups have conditions, no phases",
        Capability.GROWTH: "this adapter does not grow a PodGroup",
        Capability.POD_NAMES: "Kubernetes names the pods of a Job",
        Capability.REASONS: "its reasons have other texts",
        Capability.DESERVED: "the status of its queues has no deserved amounts",
        Capability.TOPOLOGY: "this adapter makes no Topology",
        Capability.PREFERRED_TOPOLOGY: "this adapter makes no Topology",
        Capability.PARTITIONS: "this adapter divides no PodGroup",
        Capability.SHARED_CARDS: "its parts of cards have annotations of their own",
        Capability.DISRUPTION_MODE: "a PodGroup loses the pods above its minimum, or all",
    }
    monitors_off: ClassVar[Mapping[str, str]] = {
        "needless-eviction": "its consolidation evicts pods that it places elsewhere at once",
        "disproportionate-eviction": "the monitor reads the plugins of our policies",
    }
    known_file: ClassVar[Path | None] = Path(__file__).with_name("known.yaml")

    def version(self, site: Site) -> str:
        del site
        return program(SCHEDULER, version=self.wanted).version

    def require_programs(self, settings: Settings, folder: Path | None, progress: Callable[[str], None]) -> None:
        del settings
        option = "--scheduler-binaries"
        binaries.require(PROGRAMS, folder=folder, progress=progress, option=option, version=self.wanted)
        self._source(folder)

    def scheduler(self, site: Site) -> KaiProcesses:
        folder = site.scheduler_programs
        found = binaries.provide(PROGRAMS, folder=folder, progress=site.progress, version=self.wanted)
        return KaiProcesses(site, {name: binary.path for name, binary in found.items()})

    def companions(
        self, queues: Sequence[dict[str, Any]], nodes: Sequence[dict[str, Any]], policy: str
    ) -> Sequence[dict[str, Any]]:
        del nodes, policy
        return kai_queues.of_scenario(queues)

    def definitions(self, site: Site) -> Path:
        """Return a folder with KAI's definitions and that of the Queue, which stores a scenario's table.

        Raises:
            AdapterError: the definitions are not available.
        """
        folder = site.folder / "definitions"
        folder.mkdir(parents=True, exist_ok=True)
        ours = (distribution.folder("scheduler") / "crds").glob("*queue*.yaml")
        for prefix, sources in (("", self._source(site.scheduler_programs).glob("*.yaml")), ("schedspec-", ours)):
            for source in sorted(sources):
                (folder / f"{prefix}{source.name}").write_bytes(source.read_bytes())
        return folder

    def _source(self, folder: Path | None) -> Path:
        if folder is not None and (folder / programs_folder.CRDS).is_dir():
            return folder / programs_folder.CRDS
        try:
            return definitions(program(SCHEDULER, version=self.wanted), DEFINITIONS)
        except BinaryError as problem:
            raise AdapterError(f"KAI's definitions: {problem}; or put them into crds/ of that folder") from problem
