"""Kueue as a process beside the cluster.

Kueue runs without its webhooks: the templates set the fields that the webhooks would set. Kueue creates certificates,
writes them into a Secret and waits until they are files; outside of a pod, this module copies the Secret to files.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from ...api import timeouts
from ...clusters.programs import binaries
from ..adapter import Scheduler, Site
from ..daemon import Daemon, free_port
from ..readiness import NotReadyError, retrying
from .quota import KueuePolicy

NAMESPACE: Final = "kueue-system"
SECRET_NAME: Final = "kueue-webhook-server-cert"  # noqa: S105 - a name
_SECRET: Final = f"/api/v1/namespaces/{NAMESPACE}/secrets"
VERBOSE: Final = "--zap-log-level=2"
"""Argument of Kueue: its log then shows when a controller starts."""
_STARTED: Final = "Starting workers"
_READY: Final = 4 * timeouts.READY
"""Maximum seconds until its controllers run. Kueue creates certificates first; it took 40 s at a load of 20."""
_QUOTA: Final = ("workload", "clusterqueue", "localqueue", "cohort", "resourceflavor")
_LOGGERS: Final = ("job", "v1_pod", *(f"{kind}-reconciler" for kind in _QUOTA))
"""Loggers of the controllers that have to run before Kueue admits anything."""


class KueueProgram(Scheduler):
    """Kueue itself: a process, pods from an image, or an installation. `configure` starts it."""

    def prepare(self) -> None:
        """Create what Kueue needs before its first start."""

    def configure(self, policy: KueuePolicy) -> None:
        """Return when Kueue runs with the configuration of this policy. The first call starts it.

        Raises:
            SchedulerDiedError: Kueue ended; with the last lines of its log.
            UnsuitableClusterError: the policy needs another configuration, which the run may not change.
        """
        raise NotImplementedError


class KueueProcess(KueueProgram):
    """One program. A policy with another configuration restarts it."""

    def __init__(self, site: Site, program: binaries.Binary) -> None:
        self._site, self._program = site, program
        self._daemon = Daemon("kueue", site.folder / "kueue.log")
        self._file, self._certs = site.folder / "kueue.yaml", site.folder / "kueue-certs"
        self._port = free_port()
        self._running = ""

    def prepare(self) -> None:
        """Create Kueue's namespace and an empty Secret for its certificates."""
        self._site.create_if_absent("/api/v1/namespaces", "Namespace", name=NAMESPACE)
        self._site.create_if_absent(_SECRET, "Secret", name=SECRET_NAME, namespace=NAMESPACE)

    def stop(self) -> None:
        self._daemon.stop()
        self._running = ""

    def handle(self) -> dict[str, Any]:
        return {"pid": self._daemon.pid, "running": self._running, "port": self._port}

    def attach(self, handle: dict[str, Any]) -> None:
        self._daemon.adopt(handle["pid"])
        self._running, self._port = handle["running"], handle["port"]

    def check(self) -> None:
        self._daemon.check()

    def configure(self, policy: KueuePolicy) -> None:
        webhook = {"host": "127.0.0.1", "port": self._port, "certDir": str(self._certs)}
        configuration = configured(policy, self._program.version, webhook)
        if configuration == self._running:
            return
        self._daemon.stop()
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._certs.mkdir(parents=True, exist_ok=True)
        self._file.write_text(configuration, "utf-8")
        command: list[str | Path] = [self._program.path, "--config", self._file, VERBOSE]
        self._daemon.launch(command, {"KUBECONFIG": str(self._site.kubeconfig)})
        for attempt in retrying(_READY * max(self._site.scale, 1.0), 0.1):
            with attempt:
                self._daemon.check()
                self._copy_certificates()
                require_running(self._daemon.text())
        self._running = configuration

    def _copy_certificates(self) -> None:
        """Copy changed certificates from the Secret to files. In a pod, the kubelet does this for a volume."""
        data = self._site.api.call("GET", f"{_SECRET}/{SECRET_NAME}").get("data") or {}
        for name, value in data.items():
            content, file = base64.b64decode(value), self._certs / name
            if not file.exists() or file.read_bytes() != content:
                file.write_bytes(content)

    def last_lines(self, count: int) -> Sequence[str]:
        return self._daemon.last_lines(count)


def configured(policy: KueuePolicy, version: str, webhook: dict[str, Any]) -> str:
    configuration = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": "0"},
        "metrics": {"bindAddress": "0"},
        "webhook": webhook,
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": True},
        "clientConnection": {"qps": 1000, "burst": 2000},
        "waitForPodsReady": {"timeout": "24h"},
        "integrations": {"frameworks": ["batch/job", "pod", "deployment"]},
        "featureGates": {"VisibilityOnDemand": False, **policy.gates(version)},
        **policy.configuration,
    }
    return yaml.safe_dump(configuration, sort_keys=False)


def require_running(log: str) -> None:
    """Check the log of Kueue since its start. Raises NotReadyError: a controller does not run yet."""
    lines = [line for line in log.splitlines() if _STARTED in line]
    waiting = [name for name in _LOGGERS if not any(f'"logger":"{name}"' in line for line in lines)]
    if waiting:
        last = log.splitlines()[-1:] or ["its log is empty"]
        raise NotReadyError(f"Kueue has not started its controllers of {', '.join(waiting)}; last: {last[0][:200]}")
