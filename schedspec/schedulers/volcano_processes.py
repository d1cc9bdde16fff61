"""Volcano's scheduler and controller-manager as processes beside the cluster.

The one rule: a policy is in force when a scheduler that was started with it has filled its caches. Volcano watches its
policy file, but goes on with the old one where it cannot read the new one, and says neither but in its log.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ..api import timeouts
from ..api.client import Api
from ..api.errors import PolicyRefusedError, RejectedError
from .adapter import Site
from .daemon import Daemon
from .readiness import NotYetError, patiently

NAMESPACES: Final = ("volcano-system", "volcano-monitoring")
_NODES: Final = "schedspec.dev/world:true"
_RUNS: Final = "completes Initialization and start to run"
_INVALID: Final = re.compile(r"Scheduler config .* is invalid: (.*)$", re.MULTILINE | re.DOTALL)


class VolcanoProcesses:
    """Two programs; a new policy starts the scheduler anew, the controllers stay."""

    def __init__(self, site: Site, programs: Path) -> None:
        self._site, self._programs = site, programs
        self._scheduler = Daemon("vc-scheduler", site.folder / "scheduler.log")
        self._controllers = Daemon("vc-controller-manager", site.folder / "controllers.log")
        self._file = site.folder / "policy.yaml"
        self._sha256 = ""

    def launch(self, policy: str) -> None:
        """Nothing yet: Volcano ends where its definitions are not there."""

    def start(self, policy: str) -> None:
        """Return when the queue `default` is open and the policy is in force."""
        for name in NAMESPACES:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            try:
                self._site.api.call("POST", "/api/v1/namespaces", body=body)
            except RejectedError as problem:
                if problem.status != 409:  # it is there
                    raise
        self._launch(self._controllers, "--kube-api-qps", "1000", "--kube-api-burst", "2000")
        self.use_policy(policy)
        for attempt in patiently(self._patience, 0.05):
            with attempt:
                self.check()
                require_open(self._site.api)

    def stop(self) -> None:
        """End both."""
        self._scheduler.stop()
        self._controllers.stop()
        self._sha256 = ""

    def handle(self) -> dict[str, Any]:
        return {"scheduler": self._scheduler.pid, "controllers": self._controllers.pid, "sha256": self._sha256}

    def attach(self, handle: dict[str, Any]) -> None:
        self._scheduler.adopt(handle["scheduler"])
        self._controllers.adopt(handle["controllers"])
        self._sha256 = handle["sha256"]

    def check(self) -> None:
        """Raise SchedulerDiedError unless both run."""
        self._scheduler.check()
        self._controllers.check()

    def use_policy(self, text: str) -> str:
        """Start the scheduler with it, unless it is the one that it has. Raises PolicyRefusedError."""
        wanted = hashlib.sha256(text.encode()).hexdigest()
        if wanted == self._sha256:
            return wanted
        self._scheduler.stop()
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(text, "utf-8")
        # Without metrics one of its plugins panics; port 0 is any that is free.
        served = ["--enable-metrics=true", "--listen-address", "127.0.0.1:0", "--enable-healthz=false", "-v=2"]
        decides = ["--scheduler-conf", str(self._file), "--node-selector", _NODES, "--schedule-period", "250ms"]
        self._launch(self._scheduler, *served, *decides)
        for attempt in patiently(self._patience, 0.05):
            with attempt:
                self._scheduler.check()
                require_running(self._scheduler.text())
        self._sha256 = wanted
        return wanted

    def _launch(self, daemon: Daemon, *switches: str) -> None:
        """The program that the daemon is called by."""
        config = str(self._site.kubeconfig)
        common = ["--kubeconfig", config, "--leader-elect=false", "--scheduler-name", "schedspec"]
        daemon.launch([self._programs / daemon.title, *common, *switches], {"KUBECONFIG": config})

    @property
    def _patience(self) -> float:
        return timeouts.READY * max(self._site.scale, 1.0)

    def keep_recording(self, since: float, to: Path) -> bool:  # noqa: ARG002 - it keeps none
        return False

    def last_lines(self, count: int) -> Sequence[str]:
        return self._scheduler.last_lines(count)


def require_running(log: str) -> None:
    """Judge what a scheduler has logged since its start. Raises PolicyRefusedError, NotYetError."""
    refused = _INVALID.search(log)
    if refused:
        why = refused[1].splitlines()[0]
        raise PolicyRefusedError(f"Volcano refused the policy:\n  {why}", why)
    if _RUNS not in log:
        raise NotYetError("Volcano's scheduler has not filled its caches")


def require_open(api: Api) -> None:
    """The queue `default` must be there and open: the controllers work. Raises NotYetError."""
    try:
        queue = api.call("GET", "/apis/scheduling.volcano.sh/v1beta1/queues/default")
    except RejectedError as problem:
        raise NotYetError(f"Volcano has made no queue `default`: {problem}") from None
    state = (queue.get("status") or {}).get("state")
    if state != "Open":
        raise NotYetError(f"Volcano's queue `default` is {state or 'without a state'}, not Open")
