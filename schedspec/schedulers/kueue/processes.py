"""Kueue and kube-scheduler as processes beside the cluster.

Kueue runs without its webhooks: the templates set what the webhooks would. Kueue makes its own certificates and waits
until the Secret with them is mounted as files; outside of a container, this module copies the Secret.
"""

from __future__ import annotations

import base64
import hashlib
import re
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from ...api import timeouts
from ...api.errors import PolicyRefusedError, RejectedError, SchedulerDiedError
from ...clusters.programs import binaries
from ..adapter import Site
from ..daemon import Daemon
from ..kube_scheduler_process import KubeSchedulerProcess
from ..readiness import NotReadyError, patiently
from . import policy as policies
from .policy import KueuePolicy

NAMESPACE: Final = "kueue-system"
SECRET: Final = f"/api/v1/namespaces/{NAMESPACE}/secrets"
SECRET_NAME: Final = "kueue-webhook-server-cert"  # noqa: S105 - a name
_STARTED: Final = "Starting workers"
_READY: Final = 4 * timeouts.READY
"""Seconds until its controllers run: Kueue makes certificates first, and took 40 s on a machine with a load of 20."""
_QUOTA: Final = ("workload", "clusterqueue", "localqueue", "cohort", "resourceflavor")
_LOGGERS: Final = ("job", "v1_pod", *(f"{kind}-reconciler" for kind in _QUOTA))
"""Loggers of the controllers that have to run before Kueue admits anything."""
_REFUSED: Final = re.compile(r'"Unable to (?:load|validate) the configuration","error":"((?:[^"\\]|\\.)*)"')


class KueueProcesses:
    """Two programs. A policy with another configuration restarts Kueue; kube-scheduler keeps running."""

    def __init__(
        self, site: Site, program: binaries.Binary, placement: KubeSchedulerProcess, placement_policy: str
    ) -> None:
        self._site, self._program = site, program
        self._placement, self._placement_policy = placement, placement_policy
        self._kueue = Daemon("kueue", site.folder / "kueue.log")
        self._file, self._certs = site.folder / "kueue.yaml", site.folder / "kueue-certs"
        self._port = _free_port()
        self._sha256 = self._running = ""

    @property
    def port(self) -> int:
        """Port of the conversion webhook, which the definitions name."""
        return self._port

    def launch(self, policy: str) -> None:
        """Do nothing yet: Kueue exits if its definitions are missing."""

    def start(self, policy: str) -> None:
        """Return when Kueue and kube-scheduler have filled their caches."""
        self._make("/api/v1/namespaces", "Namespace", {"name": NAMESPACE})
        self._make(SECRET, "Secret", {"name": SECRET_NAME, "namespace": NAMESPACE})
        self._placement.launch(self._placement_policy)
        self.use_policy(policy)
        self._placement.start(self._placement_policy)

    def stop(self) -> None:
        """Stop both programs."""
        self._kueue.stop()
        self._placement.stop()
        self._sha256 = self._running = ""

    def handle(self) -> dict[str, Any]:
        own = {"pid": self._kueue.pid, "sha256": self._sha256, "running": self._running, "port": self._port}
        return {**own, "placement": self._placement.handle()}

    def attach(self, handle: dict[str, Any]) -> None:
        self._kueue.adopt(handle["pid"])
        self._sha256, self._running, self._port = handle["sha256"], handle["running"], handle["port"]
        self._placement.attach(handle["placement"])

    def check(self) -> None:
        """Check that both programs run.

        Raises:
            SchedulerDiedError: one of them ended.
        """
        self._kueue.check()
        self._placement.check()

    def use_policy(self, text: str) -> str:
        """Restart Kueue if the policy has another configuration. The settings of queues are applied with the queues.

        Raises:
            PolicyRefusedError: the file is not a policy of Kueue, or Kueue refused its configuration.
        """
        wanted = hashlib.sha256(text.encode()).hexdigest()
        if wanted == self._sha256:
            return wanted
        found = policies.read(text)
        configuration = yaml.safe_dump(configured(found, self._port, self._certs), sort_keys=False)
        gates = found.gates(self._program.version)
        switches = ",".join(f"{name}={str(on).lower()}" for name, on in {"VisibilityOnDemand": False, **gates}.items())
        if self._running != configuration + switches:
            self._restart(configuration, switches)
            self._running = configuration + switches
        self._sha256 = wanted
        return wanted

    def _restart(self, configuration: str, gates: str) -> None:
        self._kueue.stop()
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._certs.mkdir(parents=True, exist_ok=True)
        self._file.write_text(configuration, "utf-8")
        environment = {"KUBECONFIG": str(self._site.kubeconfig)}
        command: list[str | Path] = [
            self._program.path,
            "--config",
            self._file,
            f"--feature-gates={gates}",
            "--zap-log-level=2",
        ]
        self._kueue.launch(command, environment)
        try:
            for attempt in patiently(_READY * max(self._site.scale, 1.0), 0.1):
                with attempt:
                    self._kueue.check()
                    self._copy_certificates()
                    require_running(self._kueue.text())
        except SchedulerDiedError as problem:
            refused = _REFUSED.search(self._kueue.text())
            if refused:
                raise PolicyRefusedError(f"Kueue refused its configuration:\n  {refused[1]}", refused[1]) from problem
            raise

    def _copy_certificates(self) -> None:
        """Write the certificates of the Secret as files, where they differ: in a container a volume would."""
        data = self._site.api.call("GET", f"{SECRET}/{SECRET_NAME}").get("data") or {}
        for name, value in data.items():
            content, file = base64.b64decode(value), self._certs / name
            if not file.exists() or file.read_bytes() != content:
                file.write_bytes(content)

    def _make(self, path: str, kind: str, metadata: dict[str, str]) -> None:
        try:
            self._site.api.call("POST", path, body={"apiVersion": "v1", "kind": kind, "metadata": metadata})
        except RejectedError as problem:
            if problem.status != 409:  # it exists already
                raise

    def keep_recording(self, since: float, to: Path) -> bool:  # noqa: ARG002 - it keeps none
        return False

    def last_lines(self, count: int) -> Sequence[str]:
        return self._kueue.last_lines(count)


def configured(policy: KueuePolicy, port: int, certificates: Path) -> dict[str, Any]:
    """Return Kueue's configuration for this policy."""
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": "0"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": port, "certDir": str(certificates)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": True},
        "clientConnection": {"qps": 1000, "burst": 2000},
        "waitForPodsReady": {"timeout": "24h"},
        "integrations": {"frameworks": ["batch/job", "pod", "deployment"]},
        **policy.configuration,
    }


def require_running(log: str) -> None:
    """Check the log of Kueue since its start.

    Raises:
        NotReadyError: a controller does not run yet.
    """
    lines = [line for line in log.splitlines() if _STARTED in line]
    waiting = [name for name in _LOGGERS if not any(f'"logger":"{name}"' in line for line in lines)]
    if waiting:
        last = log.splitlines()[-1:] or ["its log is empty"]
        raise NotReadyError(f"Kueue has not started its controllers of {', '.join(waiting)}; last: {last[0][:200]}")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
