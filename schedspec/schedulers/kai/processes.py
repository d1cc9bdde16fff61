"""Run KAI's scheduler and its binder as processes beside the cluster.

The scheduler writes a BindRequest for each decision, and the binder binds the pod. A policy is the list of actions in
KAI's configuration, which the scheduler reads only when it starts: a new policy restarts it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from ...api import timeouts
from ...api.errors import PolicyRefusedError
from ..adapter import Site, UnsuitableClusterError
from ..daemon import Daemon, free_port
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


class KaiProcesses:
    """Two programs. A new policy restarts the scheduler; the binder keeps running."""

    def __init__(self, site: Site, programs: Mapping[str, Path]) -> None:
        self._site, self._programs = site, programs
        self._scheduler = Daemon(SCHEDULER, site.folder / "scheduler.log")
        self._binder = Daemon(BINDER, site.folder / "binder.log")
        self._file = site.folder / "kai.yaml"
        self._sha256 = ""

    def launch(self, policy: str) -> None:
        """Do nothing yet: KAI exits if its definitions are missing."""

    def start(self, policy: str) -> None:
        """Return when both programs run and the scheduler has ended its first session."""
        for name in _NAMESPACES:
            self._site.create_if_absent("/api/v1/namespaces", "Namespace", name=name)
        self._launch(self._binder, "--metrics-bind-address", "0", "--health-probe-bind-address", "0")
        self.use_policy(policy)

    def stop(self) -> None:
        """Stop both programs."""
        self._scheduler.stop()
        self._binder.stop()
        self._sha256 = ""

    def handle(self) -> dict[str, Any]:
        return {"scheduler": self._scheduler.pid, "binder": self._binder.pid, "sha256": self._sha256}

    def attach(self, handle: dict[str, Any]) -> None:
        self._scheduler.adopt(handle["scheduler"])
        self._binder.adopt(handle["binder"])
        self._sha256 = handle["sha256"]

    def check(self) -> None:
        """Check that both programs run.

        Raises:
            SchedulerDiedError: one of them ended.
        """
        self._scheduler.check()
        self._binder.check()

    def use_policy(self, text: str) -> str:
        """Start the scheduler with this policy, unless it runs with it already.

        Raises:
            PolicyRefusedError: the file is not a policy of KAI, or KAI refused it.
            UnsuitableClusterError: KAI has no such policy here.
            SchedulerDiedError: the scheduler ended.
        """
        policy, wanted = read(text), hashlib.sha256(text.encode()).hexdigest()
        if policy.lacks:
            raise UnsuitableClusterError(f"kai lacks this policy ({policy.lacks})")
        if wanted == self._sha256 and self._scheduler.runs:
            return wanted
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(yaml.safe_dump({"actions": policy.actions}), "utf-8")
        self._sha256 = ""
        self._scheduler.stop()
        self._launch(
            self._scheduler,
            *("--scheduler-conf", str(self._file), "--schedule-period", "250ms", "--v", "1"),
            *("--listen-address", f"127.0.0.1:{free_port()}", "--plugin-server-port", str(free_port())),
            *("--update-pod-eviction-condition=true", "--qps", "1000", "--burst", "2000"),
        )
        for attempt in retrying(timeouts.READY * max(self._site.scale, 1.0), 0.05):
            with attempt:
                _require_running(self._scheduler)
        self._sha256 = wanted
        return wanted

    def keep_recording(self, since: float, to: Path) -> bool:  # noqa: ARG002 - keeps no recording
        return False

    def last_lines(self, count: int) -> Sequence[str]:
        return self._scheduler.last_lines(count)

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
