"""A real control plane without containers: etcd, kube-apiserver, kube-controller-manager and KWOK, started by kwokctl.

All files of a cluster are in one directory, whose path identifies its processes; registry.py describes the clean-up.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import time
from collections.abc import Callable
from pathlib import Path

from . import probe, subprocess_run
from .cleanup import sweep
from .kwok_config import GANG_GATES, NO_GATES, Ports, fingerprint, kwokctl_config
from .lifecycle import MadeCluster
from .paths import kind_config
from .programs import binaries
from .programs.pinned import EMBEDDED, kubernetes_versions
from .protocol import (
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
from .registry import ClusterRecord
from .subprocess_run import runs

_BOOT_SECONDS = 180.0
_ATTEMPTS = 3
_RESTARTABLE = "kube-controller-manager"
"""This program exits if the API server does not answer within 10 s, as on a busy machine. No flag changes that."""
_DO_NEXT = "run `python -m schedspec doctor` and follow its advice; then run again"


class EmbeddedCluster(MadeCluster):
    kind: ClusterKind = "embedded"
    simulated = True

    def __init__(self, settings: Settings, *, audit_policy: Path | None = None, with_controllers: bool = True) -> None:
        """Prepare a cluster; `up` starts it.

        Args:
            settings: Settings of the run.
            audit_policy: Audit policy file. `audit_log` then has the requests to the API server, and the cluster is
                not reused.
            with_controllers: Whether kube-controller-manager runs. Its garbage collector deletes objects whose owners
                are not in the cluster.
        """
        versions = kubernetes_versions()
        if settings.kubernetes_version not in (None, *versions):
            raise SettingsError(
                f"no Kubernetes {settings.kubernetes_version} is pinned",
                "--kubernetes-version",
                f"name one of: {', '.join(versions)}",
            )
        minor = settings.kubernetes_version or next(iter(versions))
        self._gates = GANG_GATES[minor] if settings.gang_api else NO_GATES
        unique = fingerprint(kind_config() / "stages", settings.kubernetes_version, self._gates)
        self._audit_policy, self._with_controllers = audit_policy, with_controllers
        super().__init__(settings, unique if settings.reuse else secrets.token_hex(3))

    def up(self, progress: Progress, served: Served = nobody_waits) -> None:
        if self._lifecycle.up:
            return
        sweep()
        settings = self._settings
        self._binaries = binaries.provide(
            EMBEDDED, folder=settings.binaries, progress=progress, kubernetes=settings.kubernetes_version
        )
        if self._settings.reuse and self._lifecycle.adopt(self._healthy):
            progress(f"{self.name}: reusing the running cluster")
            served()
            return
        progress(f"{self.name}: booting")
        self._boot(progress, served)

    def facts(self) -> ClusterFacts:
        made_of = tuple(str(binary) for name, binary in self._binaries.items() if name != "kwokctl")
        return ClusterFacts(_probe(self._lifecycle.record).version(), made_of, self._boot_seconds)

    @property
    def audit_log(self) -> Path:
        """Path of the audit log, one event a line. The file exists only with an audit policy.

        Raises:
            BootError: the cluster is not up.
        """
        return self._lifecycle.record.kubeconfig.parent / "logs" / "audit.log"

    @property
    def etcd(self) -> str:
        """Address of etcd, which serves plain HTTP on this machine only.

        Raises:
            BootError: the cluster is not up.
        """
        return f"http://127.0.0.1:{Ports(*self._lifecycle.record.ports).etcd}"

    def load_image(self, archive: Path) -> None:
        """Do nothing: no node runs containers."""

    def _boot(self, progress: Progress, served: Served) -> None:
        files = Path("clusters") / self.name
        for attempt in range(1, _ATTEMPTS + 1):
            start = time.monotonic()
            try:
                with self._lifecycle.making(
                    str(files / "kubeconfig.yaml"), f"kwok-{self.name}", ports=len(Ports._fields)
                ) as record:
                    self._create(record, record.home / files, progress, served)
            except PortTakenError as error:
                if attempt == _ATTEMPTS:
                    raise
                progress(f"{self.name}: {error.what.partition(':')[0]}; trying other ports")
            else:
                self._boot_seconds = time.monotonic() - start
                return

    def _create(self, record: ClusterRecord, files: Path, progress: Progress, served: Served) -> None:
        """Run kwokctl; return when all programs answer.

        Raises:
            BootError: a program failed or was late.
        """
        version = self._binaries["kube-apiserver"].version
        paths = {name: binary.path for name, binary in self._binaries.items()}
        config = record.home / "create.yaml"
        stages = kind_config() / "stages"
        ports, policy = Ports(*record.ports), self._audit_policy
        text = kwokctl_config(
            paths, version, ports, stages, self._gates, audit_policy=policy, with_controllers=self._with_controllers
        )
        config.write_text(text, "utf-8")
        command: list[str | Path] = [
            paths["kwokctl"],
            "create",
            "cluster",
            "--name",
            record.name,
            "--config",
            config,
            "--kubeconfig=",
        ]
        end = time.monotonic() + _BOOT_SECONDS
        done = subprocess_run.run(
            command,
            env={"KWOK_WORKDIR": str(record.home)},
            deadline=_BOOT_SECONDS,
            give_up=lambda: _ended_program(files) is not None,
        )
        if done.status == 0 and _wait_for(_probe(record).ready, files, end - time.monotonic()):
            served()

            def healthy() -> bool:
                if _gave_up_waiting(files):
                    progress(f"{self.name}: the API server was late; restarting {_RESTARTABLE}")
                    self._restart_late_program(record, files)
                return self._healthy(record)

            if _wait_for(healthy, files, end - time.monotonic()):
                return
        raise _boot_error(record, files, done)

    def _healthy(self, record: ClusterRecord) -> bool:
        """Whether the API server is ready, KWOK runs, and the namespace `default` accepts pods if controllers run."""
        api = _probe(record)
        return (
            api.ready()
            and probe.get(f"http://127.0.0.1:{Ports(*record.ports).kwok}/healthz") is not None
            and (not self._with_controllers or api.has("/api/v1/namespaces/default/serviceaccounts/default"))
        )

    def _restart_late_program(self, record: ClusterRecord, files: Path) -> None:
        """Restart the program that stopped waiting for the API server.

        kwokctl starts every program without a pid file.
        """
        (files / "logs" / f"{_RESTARTABLE}.log").unlink()
        (files / "pids" / f"{_RESTARTABLE}.pid").unlink()
        command: list[str | Path] = [self._binaries["kwokctl"].path, "start", "cluster", "--name", record.name]
        done = subprocess_run.run(command, env={"KWOK_WORKDIR": str(record.home)}, deadline=_BOOT_SECONDS)
        if done.status != 0:
            raise _boot_error(record, files, done)


def _probe(record: ClusterRecord) -> probe.ApiProbe:
    files = record.kubeconfig.parent
    return probe.ApiProbe(f"https://127.0.0.1:{Ports(*record.ports).kube_apiserver}", files / "pki")


def _wait_for(state: Callable[[], bool], files: Path, seconds: float) -> bool:
    """Wait until `state` holds. Return False if a program ends or `seconds` have passed."""
    return probe.wait(lambda: state() or _ended_program(files) is not None, seconds) and _ended_program(files) is None


def _ended_program(files: Path) -> str | None:
    """Return the first program that ended, or None. A controller manager that can be restarted does not count."""
    ended = (path.stem for path in sorted((files / "pids").glob("*.pid")) if _has_ended(path))
    return next((name for name in ended if name != _RESTARTABLE or not _gave_up_waiting(files)), None)


def _has_ended(pid_file: Path) -> bool:
    with contextlib.suppress(OSError, ValueError):
        return not runs(int(pid_file.read_text()))
    return False


def _gave_up_waiting(files: Path) -> bool:
    """Whether the controller manager ended because the API server did not answer in time."""
    log = files / "logs" / f"{_RESTARTABLE}.log"
    output = log.read_text("utf-8", "replace") if log.is_file() else ""
    return "failed to wait for apiserver being healthy" in output and _has_ended(files / "pids" / f"{_RESTARTABLE}.pid")


def _boot_error(record: ClusterRecord, files: Path, done: subprocess_run.Finished) -> BootError:
    ended = _ended_program(files)
    if ended is None:
        late = "did not finish in time" if done.status in (None, 0) else f"failed (exit status {done.status})"
        output = _errors(done.output) or done.last_lines
        return BootError(f"the boot of the embedded cluster {late}:\n{output}", record.name, _DO_NEXT)
    log = files / "logs" / f"{ended}.log"
    output = log.read_text("utf-8", "replace") if log.is_file() else ""
    taken = re.search(r"listen tcp \S*?:(\d+): bind: address already in use", output)
    if taken:
        return PortTakenError(
            f"port {taken[1]} was taken by another process before {ended} could listen on it",
            f"127.0.0.1:{taken[1]}",
            f"run it again; `ss -ltnp 'sport = :{taken[1]}'` shows the process that listens there",
        )
    last = "\n".join(output.splitlines()[-8:])
    return BootError(f"{ended} ended during the boot of the embedded cluster:\n{last}", record.name, _DO_NEXT)


def _errors(output: str) -> str:
    """Return the errors from kwokctl's log, which is JSON."""
    found = []
    for line in output.splitlines():
        with contextlib.suppress(ValueError, AttributeError):
            entry = json.loads(line)
            if entry.get("level") == "ERROR":
                found.append(f"{entry.get('msg')}: {entry.get('err', '')}".strip())
    return "\n".join(found)
