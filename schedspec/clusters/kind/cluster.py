"""A cluster of real kubelets and containers that kind creates on a Docker engine, with additional KWOK nodes.

Each cluster has a Docker network of its own with the cluster's name. All parts can be found and removed by that name.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
import time
from pathlib import Path

from .. import subprocess_run
from ..cleanup import sweep
from ..docker import Docker, DockerError
from ..images import node_image, worker_image
from ..images.node_image import NodeImage
from ..kwok import Kwok, configuration
from ..managed import MadeCluster
from ..paths import kind_config, state_root
from ..processes import programs_of
from ..programs import binaries
from ..protocol import BootError, ClusterFacts, ClusterKind, PortTakenError, Progress, Served, Settings, nobody_waits
from ..registry import ClusterRecord
from .config_file import CARDS_LABEL, CARDS_RESOURCE, KindFile, read

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
        self._file = read(settings.kind_config or kind_config() / "one-node.yaml")
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
