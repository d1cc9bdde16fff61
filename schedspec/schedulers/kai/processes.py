"""Run KAI's scheduler and its binder as processes beside the cluster.

The scheduler writes a BindRequest for each decision, and the binder binds the pod. A policy is the list of actions in
KAI's configuration, which the scheduler reads only when it starts: a new policy restarts it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from ...api.errors import PolicyRefusedError
from ..adapter import Site, UnsuitableClusterError
from ..daemon import Daemon, Programs, free_port
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
    """Return the policy in a file. Raises PolicyRefusedError."""
    try:
        return msgspec.convert(yaml.safe_load(text) or {}, KaiPolicy)
    except (msgspec.ValidationError, yaml.YAMLError) as problem:
        raise PolicyRefusedError(f"this is not a policy of KAI:\n  {problem}", str(problem)) from None


class KaiProcesses(Programs):
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
    """Check the log of a scheduler since its start.

    Raises:
        PolicyRefusedError: KAI rejected the policy.
        NotReadyError: the first session has not ended yet.
    """
    log = scheduler.text()
    if refused := _REFUSED.search(log):
        raise PolicyRefusedError(f"KAI refused the policy:\n  {refused[0]}", refused[0])
    scheduler.check()
    if _RUNS not in log:
        raise NotReadyError("KAI's scheduler has not ended its first session")
