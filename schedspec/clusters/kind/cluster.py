"""A cluster of real kubelets and containers that kind creates on a Docker engine, with additional KWOK nodes.

Each cluster has a Docker network of its own with the cluster's name. All parts can be found and removed by that name.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from .. import subprocess_run
from ..cleanup import sweep
from ..docker import Docker, DockerError
from ..images import node_image, worker_image
from ..images.node_image import NodeImage
from ..kwok import Kwok, configuration
from ..lifecycle import MadeCluster
from ..paths import kind_config, state_root
from ..programs import binaries
from ..protocol import (
    BootError,
    ClusterFacts,
    ClusterKind,
    PortTakenError,
    Progress,
    Served,
    Settings,
    SettingsError,
    nobody_waits,
)
from ..registry import ClusterRecord
from ..subprocess_run import programs_of

CARDS_LABEL = "nvidia.com/gpu.count"
"""Label with the number of cards that a node advertises; NVIDIA's GPU operator uses the same name."""
CARDS_RESOURCE = "nvidia.com/gpu"

_API = "kind.x-k8s.io/v1alpha4"
_ROLES = ("control-plane", "worker")


@dataclass(frozen=True, slots=True)
class KindFile:
    path: Path
    roles: tuple[str, ...]
    """One per node, in the file's order."""

    def __str__(self) -> str:
        return f"{self.path.name}: {len(self.roles)} node{'s' if len(self.roles) > 1 else ''}"


def read_config(path: Path) -> KindFile:
    """Read and validate a configuration file.

    Raises:
        SettingsError: kind could not create a cluster from the file, or a node's number of cards is invalid.
    """
    try:
        whole = yaml.compose(text := path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"the configuration of the Kind cluster cannot be read: {getattr(error, 'strerror', None) or error}",
            str(path),
            "name a file that exists: --kind-config FILE (kind-config/ has some)",
        ) from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise SettingsError(f"the file is not YAML: {error.problem}", f"{path}:{line}", "repair the file") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        what = f"the file is not YAML: character #x{error.character:04x}: {error.reason}"
        raise SettingsError(what, f"{path}:{line}", "remove this character") from error
    fields = _fields(whole) if isinstance(whole, MappingNode) else {}
    for field, wanted in (("kind", "Cluster"), ("apiVersion", _API)):
        node = fields.get(field, whole)
        if not isinstance(node, ScalarNode) or node.value != wanted:
            raise _invalid(path, node, field, f"must be {wanted}")
    nodes = fields.get("nodes")
    if nodes is None:
        return KindFile(path, ("control-plane",))  # kind's default
    if not isinstance(nodes, SequenceNode) or not nodes.value:
        raise _invalid(path, nodes, "nodes", "must be a list of nodes")
    roles = tuple(_role(path, node, f"nodes[{index}]") for index, node in enumerate(nodes.value))
    if "control-plane" not in roles:
        raise _invalid(path, nodes, "nodes", "has no node with role control-plane")
    return KindFile(path, roles)


def _role(path: Path, node: Node, where: str) -> str:
    if not isinstance(node, MappingNode):
        raise _invalid(path, node, where, "must be a mapping with a role")
    fields = _fields(node)
    role = fields.get("role")
    if role is not None and (not isinstance(role, ScalarNode) or role.value not in _ROLES):
        raise _invalid(path, role, f"{where}.role", f"must be one of: {', '.join(_ROLES)}")
    labels = fields.get("labels")
    if isinstance(labels, MappingNode):
        cards = _fields(labels).get(CARDS_LABEL)
        if cards is not None and not (isinstance(cards, ScalarNode) and re.fullmatch(r"[1-9]\d{0,5}", cards.value)):
            raise _invalid(path, cards, f"{where}.labels[{CARDS_LABEL}]", "must be a number of cards, 1 or more")
        if isinstance(cards, ScalarNode) and cards.tag != "tag:yaml.org,2002:str":
            raise _invalid(path, cards, f"{where}.labels[{CARDS_LABEL}]", f'must be a string: "{cards.value}"')
    return role.value if isinstance(role, ScalarNode) else "control-plane"


def _fields(node: MappingNode) -> dict[str, Node]:
    return {key.value: value for key, value in node.value if isinstance(key, ScalarNode)}


def _invalid(path: Path, node: Node | None, field: str, rule: str) -> SettingsError:
    line = node.start_mark.line + 1 if node is not None else 1
    value = f" and is {node.value!r}" if isinstance(node, ScalarNode) else ""
    return SettingsError(f"{field} {rule}{value}", f"{path}:{line}", "repair the file (kind-config/ has examples)")


_ANSWER_SECONDS = 15.0


class Kubectl:
    def __init__(self, program: Path, kubeconfig: Path) -> None:
        self._start = [str(program), "--kubeconfig", str(kubeconfig)]

    def ready(self) -> bool:
        return subprocess_run.run([*self._start, "get", "--raw", "/readyz"], deadline=_ANSWER_SECONDS).status == 0

    def version(self) -> str:
        """Return the version of the API server, for instance `v1.36.3`."""
        return str(json.loads(self._call("get", "--raw", "/version"))["gitVersion"])

    def wait_ready(self, seconds: float) -> None:
        """Return when every node is Ready and the namespace `default` accepts pods.

        Raises:
            BootError: they were not ready within `seconds`.
        """
        end = time.monotonic() + seconds
        for condition, what in (("condition=Ready", ("nodes", "--all")), ("create", ("serviceaccount/default",))):
            left = max(1, int(end - time.monotonic()))
            self._call("wait", f"--for={condition}", *what, f"--timeout={left}s", deadline=left + 5)

    def labels_of_nodes(self, label: str) -> dict[str, str]:
        """Return the value of a label by node, for the nodes that have the label."""
        nodes = json.loads(self._call("get", "nodes", "--selector", label, "--output", "json"))["items"]
        return {node["metadata"]["name"]: node["metadata"]["labels"][label] for node in nodes}

    def advertise(self, node: str, resource: str, amount: int) -> None:
        """Advertise an amount of a resource on a node, as a device plugin would. The kubelet keeps it."""
        has = {resource: str(amount)}
        patch = json.dumps({"status": {"capacity": has, "allocatable": has}})
        self._call("patch", "node", node, "--subresource=status", "--type=merge", "--patch", patch)

    def _call(self, *words: str, deadline: float = _ANSWER_SECONDS) -> str:
        done = subprocess_run.run([*self._start, *words], deadline=deadline)
        if done.status != 0:
            how = "did not end in time" if done.status is None else f"failed (exit status {done.status})"
            raise BootError(
                f"`kubectl {words[0]}` {how}:\n{done.last_lines}", " ".join([*self._start, *words]), "run again"
            )
        return done.output


_CREATE_SECONDS = 240.0
_READY_SECONDS = 120.0
_LOGS_SECONDS = 60.0
_LOAD_SECONDS = 600.0
_ATTEMPTS = 2
_PORT_TAKEN = ("port is already allocated", "address already in use")


class KindCluster(MadeCluster):
    kind: ClusterKind = "kind"
    simulated = False

    def __init__(self, settings: Settings) -> None:
        self._file = read_config(settings.kind_config or kind_config() / "one-node.yaml")
        super().__init__(settings, _fingerprint(self._file, settings) if settings.reuse else secrets.token_hex(3))
        self._docker = Docker()
        self._image: NodeImage | None = None
        self._kwok: Kwok | None = None

    def up(self, progress: Progress, served: Served = nobody_waits) -> None:
        if self._lifecycle.up:
            return
        self._docker.require()
        sweep()
        self._binaries = binaries.provide(("kind", "kubectl"), folder=self._settings.binaries, progress=progress)
        if self._settings.reuse and self._lifecycle.adopt(self._healthy):
            progress(f"{self.name}: reusing the running cluster")
            served()
            return
        worker = worker_image.archive(progress)
        self._image = node_image.provide(self._settings, self._docker, progress)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._boot(worker, progress)
            except BootError as error:
                if attempt == _ATTEMPTS:
                    raise
                progress(f"{self.name}: {error.what.splitlines()[0]}; trying again (logs: {error.where})")
            else:
                break
        served()

    def down(self) -> None:
        if self._kwok is not None and not self._lifecycle.keep:
            self._kwok.stop()
        self._kwok = None
        super().down()

    def facts(self) -> ClusterFacts:
        made_of = (
            str(self._image or "node image of an earlier run"),
            str(self._file),
            str(self._binaries["kind"]),
            f"Docker {self._docker.version()}",
        )
        return ClusterFacts(self._kubectl(self._lifecycle.record).version(), made_of, self._boot_seconds)

    def load_image(self, archive: Path) -> None:
        done = subprocess_run.run(
            [self._binaries["kind"].path, "load", "image-archive", archive, "--name", self.name], deadline=_LOAD_SECONDS
        )
        if done.status != 0:
            how = f"within {_LOAD_SECONDS:.0f} s" if done.status is None else f"(exit status {done.status})"
            raise DockerError(
                f"kind could not load an image {how}:\n{done.last_lines}",
                f"kind load image-archive {archive} --name {self.name}",
                "pass an archive in the format of `docker save`",
            )

    def _boot(self, worker: Path, progress: Progress) -> None:
        progress(f"{self.name}: creating ({self._file}; {self._image})")
        start = time.monotonic()
        with self._lifecycle.making("kubeconfig.yaml", f"kind-{self.name}") as record:
            self._create(record, progress)
            self.load_image(worker)
            kubectl = self._kubectl(record)
            kubectl.wait_ready(_READY_SECONDS)
            for node, cards in kubectl.labels_of_nodes(CARDS_LABEL).items():
                kubectl.advertise(node, CARDS_RESOURCE, int(cards))
            kwok = Kwok(
                record.kubeconfig,
                record.home,
                progress=progress,
                folder=self._settings.binaries,
                keep=self._lifecycle.keep,
            )
            kwok.start()
            self._kwok = kwok
        self._boot_seconds = time.monotonic() - start

    def _create(self, record: ClusterRecord, progress: Progress) -> None:
        """Run kind.

        Raises:
            BootError: kind failed. `where` is a directory with the logs of the nodes.
        """
        assert self._image is not None
        command: list[str | Path] = [
            self._binaries["kind"].path,
            "create",
            "cluster",
            "--retain",
            "--name",
            record.name,
        ]
        command += ["--image", self._image.reference, "--config", self._file.path, "--kubeconfig", record.kubeconfig]
        done = subprocess_run.run(
            command,
            env={"KIND_EXPERIMENTAL_DOCKER_NETWORK": record.name},
            deadline=_CREATE_SECONDS,
            tick=lambda s: progress(f"{record.name}: creating, {s:.0f} s"),
        )
        if done.status != 0:
            raise _boot_error(record, done, self._export_logs(record))

    def _export_logs(self, record: ClusterRecord) -> Path:
        folder = state_root() / "logs" / record.name
        shutil.rmtree(folder, ignore_errors=True)
        subprocess_run.run(
            [self._binaries["kind"].path, "export", "logs", folder, "--name", record.name], deadline=_LOGS_SECONDS
        )
        return folder

    def _healthy(self, record: ClusterRecord) -> bool:
        return self._kubectl(record).ready() and bool(programs_of(record.home))

    def _kubectl(self, record: ClusterRecord) -> Kubectl:
        return Kubectl(self._binaries["kubectl"].path, record.kubeconfig)


def can_run(settings: Settings) -> bool:
    """Whether an engine answers and a node image is available, so that a Kind cluster needs no build."""
    return why_not(settings) is None


def why_not(settings: Settings) -> str | None:
    """Return the reason why a Kind cluster cannot run here, with a remedy, or None if it can."""
    docker = Docker()
    try:
        docker.require()
        node_image.require(settings, docker)
    except (DockerError, node_image.NodeImageError) as error:
        return str(error)
    return None


def _fingerprint(file: KindFile, settings: Settings) -> str:
    """Return a digest of everything that the cluster is made of. Clusters with equal digests are interchangeable."""
    digest = hashlib.sha256(file.path.read_bytes())
    digest.update(f"\0{settings.kind_image or node_image.fingerprint()}\0{configuration()}".encode())
    return digest.hexdigest()[:8]


def _boot_error(record: ClusterRecord, done: subprocess_run.Finished, logs: Path) -> BootError:
    taken = next((line.strip() for line in done.output.splitlines() if any(text in line for text in _PORT_TAKEN)), None)
    if taken:
        return PortTakenError(
            f"a port that the Kind cluster needs is taken by another process: {taken}",
            str(logs),
            "end the process that listens there (`docker ps`, `ss -ltnp`), or change the port in --kind-config",
        )
    late = done.status is None
    how = f"did not end within {_CREATE_SECONDS:.0f} s" if late else f"failed (exit status {done.status})"
    return BootError(
        f"`kind create cluster` {how} for {record.name}:\n{done.last_lines}",
        str(logs),
        "read the nodes' logs there (journal.log, kubelet.log), then run again",
    )
