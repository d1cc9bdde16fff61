"""The interface between the harness and a scheduler under test.

Every difference in how schedulers behave is in their adapters. The base class describes a scheduler that has the API,
the policies and the conditions of our own scheduler.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import msgspec
import yaml

from .. import distribution
from ..api.capabilities import Capability
from ..api.client import Api
from ..api.errors import HarnessError, PolicyRefusedError, RejectedError
from ..api.marks import USUAL, Marks
from ..clusters import Cluster, Settings
from ..clusters.programs import binaries
from ..clusters.programs.pinned import Program, program
from . import programs_folder


class AdapterError(HarnessError):
    """A scheduler is not available: its programs are missing, or it cannot run on this cluster."""


class UnsuitableClusterError(AdapterError):
    """The scheduler is available, but this cluster lacks something that it needs. Scenarios are skipped, not failed."""


OF_OTHERS: Mapping[Capability, str] = {
    Capability.COMMANDS: "it has no Commands",
    Capability.POD_NAMES: "Kubernetes names the pods of a Job",
    Capability.POLICY_REFUSAL: "its policies have no contradictions of this kind",
    Capability.PYTORCHJOBS: "no training operator is installed",
    Capability.REASONS: "its reasons have other texts",
}
"""Capabilities that schedulers with another API than Volcano's lack."""
OF_KUEUE: Mapping[Capability, str] = {
    Capability.KUEUE_QUEUES: "its queues are its own",
    Capability.PAST_USE: "its queues share what they hold now",
}
"""Capabilities that only Kueue has."""
VOLCANO, KUBERNETES = "volcano", "kubernetes"
"""The APIs for gangs: scheduling.volcano.sh and scheduling.k8s.io."""


class Scheduler:
    """The scheduler of one cluster, from `launch` to `stop`. Not thread-safe. A method without a body may stay so."""

    def launch(self, policy: str) -> None:
        """Start the scheduler without waiting for it, unless it needs its API or the nodes, which come meanwhile."""

    def start(self, policy: str) -> None:
        """Return when the scheduler schedules by this policy. `launch` may have been called before.

        Raises:
            SchedulerDiedError: the scheduler ended; with the last lines of its log.
            PolicyRefusedError: the scheduler rejected the policy.
            AdapterError: the scheduler could not be started.
        """
        raise NotImplementedError

    def stop(self) -> None:
        """Stop the scheduler. The second call does nothing."""

    def handle(self) -> dict[str, Any]:
        """Return the plain values that another process needs for `attach`."""
        return {}

    def attach(self, handle: dict[str, Any]) -> None:
        """Attach to a scheduler that another process started."""

    def check(self) -> None:
        """Check that the scheduler runs. Raises SchedulerDiedError: it ended."""

    def use_policy(self, text: str) -> str:
        """Put a policy into force and return its sha256. Raises PolicyRefusedError or SchedulerDiedError."""
        raise NotImplementedError

    def keep_recording(self, since: float, to: Path) -> bool:
        """Write the decisions from `since` on (wall time) as a recording to the folder `to`.

        Return False if there is no recording.
        """
        del since, to
        return False

    def last_lines(self, count: int) -> Sequence[str]:
        """Return the last lines of the log; none without one."""
        del count
        return ()


Objects = Sequence[dict[str, Any]]
_Policy = TypeVar("_Policy", bound=msgspec.Struct)


def read_policy(text: str, policy: type[_Policy], scheduler: str) -> _Policy:
    """Return the policy of another scheduler in a file. Raises PolicyRefusedError."""
    try:
        return msgspec.convert(yaml.safe_load(text) or {}, policy)
    except (msgspec.ValidationError, yaml.YAMLError) as problem:
        fields = [field.name for field in msgspec.structs.fields(policy)]
        raise PolicyRefusedError(
            f"this is not a policy of {scheduler}:\n  {_place_in(text, str(problem), fields)}", str(problem)
        ) from None


def _place_in(text: str, problem: str, fields: Sequence[str]) -> str:
    """Return the problem with the line and the nearest name of the field that it names."""
    unknown = re.search(r"unknown field `(.+?)`", problem)
    named = unknown or re.search(r"at `\$\.([^.`\[]+)", problem)
    key = named[1] if named else ""
    lines = [number for number, line in enumerate(text.splitlines(), 1) if key and line.lstrip("'\"").startswith(key)]
    near = difflib.get_close_matches(key, fields, n=1) if unknown else ()
    hint = f" (is {near[0]!r} meant?)" if near else ""
    known = f"; its fields: {', '.join(fields)}" if unknown else ""
    if unknown and key in ("apiVersion", "kind") and "configuration" in fields:
        hint = ": write the fields of a Configuration below `configuration:`"
    return f"{f'line {lines[0]}: ' if lines else ''}{problem}{hint}{known}"


def sha256(policy: str) -> str:
    """Return the digest by which a policy in force is known."""
    return hashlib.sha256(policy.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Site:
    """The facts that an adapter needs to start a scheduler."""

    folder: Path
    """Folder for the log and the policy file, of this run alone."""
    api: Api
    kubeconfig: Path
    context: str
    cluster: Cluster
    programs: Path | None
    """The user's folder with the cluster's programs (`--binaries`), if any."""
    scheduler_programs: Path | None
    """The user's folder with the scheduler's programs (`--scheduler-binaries`), if any."""
    scale: float
    progress: Callable[[str], None]
    """Receives a line about the current step, for the waiting user."""
    namespace_prefix: str = ""
    """On a shared cluster, the prefix of the namespaces that the scheduler may change."""

    def create_if_absent(self, path: str, kind: str, **metadata: str) -> None:
        """Create an empty object of v1 that the scheduler expects. An object that exists stays as it is."""
        try:
            self.api.call("POST", path, body={"apiVersion": "v1", "kind": kind, "metadata": metadata})
        except RejectedError as problem:
            if problem.status != 409:
                raise


class Adapter:
    """One scheduler. A subclass overrides what differs from our own scheduler, and how it is started."""

    name: ClassVar[str] = ""
    """Name in `--scheduler NAME` and in the matrix."""
    disruption_modes_in: ClassVar[Sequence[str]] = (KUBERNETES,)
    """The gang APIs in which the scheduler reads a gang's disruption mode."""
    lacks: ClassVar[Mapping[Capability, str]] = OF_KUEUE
    """Capabilities that the scheduler lacks, with the reason for users."""
    monitors_off: ClassVar[Mapping[str, str]] = {}
    """Monitors whose rule does not hold for the scheduler, with the reason."""
    marks: ClassVar[Marks] = USUAL
    """Conditions by which the scheduler marks evictions and publishes reasons."""
    templates: ClassVar[str] = ""
    """Folder in templates/ that takes precedence, with the scheduler's own policies and objects; empty for none."""
    known_file: ClassVar[Path | None] = None
    """File with the known differences (known.py)."""
    runs: ClassVar[int] = 1
    """How often each scenario runs by default: more than once if the order of decisions is not deterministic."""
    silent_for: ClassVar[float] = 0.0
    """Seconds after which waiting work counts as refused, for a scheduler that does not publish every reason; else 0.
    """
    settles_after: ClassVar[float] = 3.0
    """Seconds without a decision after which the scheduler has nothing left to decide: its periods and back-offs."""
    names_preemptors: ClassVar[bool] = False
    """True if an event of each victim names its preemptor (`related`). The end of a scenario waits for these events."""
    sees_all: bool = False
    """True if the scheduler writes to every queue, job and PodGroup and cannot be restricted to those of a run."""
    gang_apis: ClassVar[Sequence[str]] = (VOLCANO,)
    """The APIs in which the scheduler accepts gangs; the first is the default."""
    programs: ClassVar[Sequence[str]] = ()
    """Programs that a folder of `--scheduler-binaries` must have."""
    has_versions: ClassVar[bool] = False
    """Whether `--scheduler NAME@VERSION` chooses the version of its programs."""
    watched: ClassVar[Mapping[str, str]] = {}
    """Definitions that `crds/` of that folder must have (`programs_folder.missing`)."""
    scheduler_name: str = "schedspec"
    """Name of the scheduler in the spec of pods."""
    gang_api: str = ""
    """The API of gangs in this run. If it is Kubernetes', the cluster serves it."""

    def missing_parts(self, folder: Path) -> list[str]:
        """Return the programs and definitions that the user's folder lacks; called before a cluster boots."""
        return programs_folder.missing(folder, self.programs, self.watched)

    def __init__(self, wanted: str = "", configuration: str = "") -> None:
        self.wanted = wanted
        """The version that the user chose; empty for the default."""
        self.configuration = configuration
        """The configuration that the user chose; empty for the usual one."""
        self.gang_api = self.gang_apis[0]
        self.in_pods = False
        """Whether the scheduler runs in pods of a Kind cluster, not as a process."""
        self.lacks_here: dict[Capability, str] = {}
        """Capabilities that the cluster of this run lacks, with the reason."""

    def run_in_pods(self, images: Sequence[str]) -> None:
        """Run in pods of a Kind cluster, from these images; if there are none, from images built of the programs.

        Raises:
            AdapterError: the scheduler does not run in pods, or not from these images.
        """
        del images
        raise AdapterError("does not run in pods of a Kind cluster")

    @classmethod
    def configurations(cls) -> Sequence[str]:
        """Return the configurations that `--scheduler NAME+CONFIGURATION` chooses: files beside the policies."""
        return sorted(file.stem for file in cls.configurations_folder().glob("*.yaml")) if cls.templates else ()

    @classmethod
    def configurations_folder(cls) -> Path:
        return distribution.folder("templates") / cls.templates / "configurations"

    @property
    def chosen_name(self) -> str:
        """The name with the configuration, as the user writes it."""
        return f"{self.name}+{self.configuration}" if self.configuration else self.name

    def __str__(self) -> str:
        """Return the name for the header of a run."""
        return self.chosen_name

    @property
    def title(self) -> str:
        """Return the name for results and records, with the API of gangs if that is not the default."""
        usual = self.gang_api == self.gang_apis[0]
        return self.chosen_name if usual else f"{self.chosen_name} with gangs of {self.gang_api}"

    def version(self, site: Site) -> str:
        """Return the scheduler's version, for instance `v1.36.3`; empty if it reports none."""
        del site
        return self.first.version

    @property
    def first(self) -> Program:
        """The program whose version is the scheduler's."""
        return program(self.programs[0], version=self.wanted)

    def scheduler(self, site: Site) -> Scheduler | None:
        """Return the scheduler before its start, or None if one runs already. Raises AdapterError."""
        raise NotImplementedError

    def alone(self, site: Site) -> Scheduler | None:
        """Return the scheduler without controllers that create or delete work, for a cluster that has its objects.

        Raises:
            AdapterError: the scheduler is not available.
        """
        return self.scheduler(site)

    def require_programs(self, settings: Settings, folder: Path | None, progress: Callable[[str], None]) -> None:
        """Check before the cluster boots that the scheduler's programs are present or can be built.

        `folder`: the user's folder (`--scheduler-binaries`), if any.

        Raises:
            AdapterError: programs are missing; the text names them, the place and what to do next.
            ClusterError: likewise.
        """
        del settings
        if self.programs:
            option = "--scheduler-binaries"
            binaries.require(self.programs, folder=folder, progress=progress, option=option, version=self.wanted)

    def found_programs(self, site: Site) -> dict[str, Path]:
        """Return the path of each program by name. Building them takes minutes, once. Raises BinaryError."""
        folder, progress = site.scheduler_programs, site.progress
        found = binaries.provide(self.programs, folder=folder, progress=progress, version=self.wanted)
        return {name: binary.path for name, binary in found.items()}

    def starts(self, site: Site) -> str:
        """Return the `schedulerName` of the scheduler that this run starts; empty if a scheduler runs already."""
        del site
        return self.scheduler_name

    def template_folders(self) -> list[str]:
        return [name for name in (self.templates, KUBERNETES if self.gang_api == KUBERNETES else "") if name]

    def missing(self, capability: Capability) -> str | None:
        """Return the reason why the scheduler lacks a capability, or None."""
        if capability in self.lacks_here:
            return self.lacks_here[capability]
        if capability == Capability.DISRUPTION_MODE and self.gang_api not in self.disruption_modes_in:
            return "only PodGroups of scheduling.k8s.io have one"
        if capability == Capability.PREFERRED_TOPOLOGY and self.gang_api == KUBERNETES:
            return "a PodGroup of scheduling.k8s.io can require a topology, not prefer one"
        return self.lacks.get(capability)

    def read(self, policy: str) -> object:
        """Return a policy as the scheduler reads it, before a cluster runs. Nothing is read of our own policies here.

        Raises:
            PolicyRefusedError: the file is no policy of the scheduler.
        """
        return policy

    def companions(self, queues: Objects, nodes: Objects, policy: str) -> Objects:
        """Return the objects that the scheduler needs in addition to those of a scenario.

        They are applied when the scenario opens and after each change of its policy, its queues or its nodes.

        `queues`: the scenario's queues, as its tables describe them.
        """
        del queues, nodes, policy
        return ()

    def configure(self, queues: Objects, nodes: Objects, policy: str) -> None:
        """Configure a scheduler whose queues are in its configuration. Called before `companions`, as it is.

        Raises:
            PolicyRefusedError: the scheduler refused the configuration.
        """

    def unmarked_eviction(self, uid: str) -> dict[str, Any] | None:
        """Return a condition for a pod that the scheduler evicts without a mark; None for other pods."""
        del uid
        return None

    def definitions(self, site: Site) -> Path | None:
        """Return the folder of the scheduler's custom resource definitions, or None if there is nothing to apply.

        Raises:
            AdapterError: the definitions are not available.
        """
        del site
        return distribution.folder("scheduler") / "crds"

    def judging_definitions(self, programs: Path | None) -> Path | None:
        """Return the folder of the definitions by which manifests are judged before a cluster runs.

        Nothing is built or downloaded.

        Returns:
            None if this machine does not have them.
        """
        del programs
        return distribution.folder("scheduler") / "crds"

    def judges(self, programs: Path | None) -> str:
        """Return by which definitions manifests are judged, in words."""
        folder = self.judging_definitions(programs)
        if folder is None:
            return f"our definitions: those of {self} are not on this machine"
        is_ours = folder == distribution.folder("scheduler") / "crds"
        return "our definitions" if is_ours else f"the definitions of {self}"


class NoAdapter(Adapter):
    """No scheduler is started. Scenarios that name a policy run with the policy in force."""

    name: ClassVar[str] = "none"

    def version(self, site: Site) -> str:
        del site
        return ""

    def scheduler(self, site: Site) -> None:
        del site

    def starts(self, site: Site) -> str:
        del site
        return ""
