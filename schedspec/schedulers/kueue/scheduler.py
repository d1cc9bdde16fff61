"""Kueue with kube-scheduler: Kueue admits work, and kube-scheduler places what is admitted.

kube-scheduler is a process beside the cluster, wherever Kueue runs: it uses only the nodes of scenarios.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from ...api.errors import PolicyRefusedError, SchedulerDiedError
from ..kube_scheduler_process import KubeSchedulerProcess
from .policy import KueuePolicy

_REFUSED: Final = re.compile(r'"Unable to (?:load|validate) the configuration","error":"((?:[^"\\]|\\.)*)"')


class Manager(Protocol):
    """Kueue itself: a process, pods from an image, or an installation."""

    def prepare(self) -> None:
        """Create what Kueue needs before its first start."""

    def configure(self, policy: KueuePolicy) -> None:
        """Return when Kueue runs with the configuration of this policy. The first call starts it.

        Raises:
            SchedulerDiedError: Kueue ended; with the last lines of its log.
            UnsuitableClusterError: the policy needs another configuration, which the run may not change.
        """

    def stop(self) -> None:
        """Stop the Kueue that this run has started. The second call does nothing."""

    def check(self) -> None:
        """Check that Kueue runs.

        Raises:
            SchedulerDiedError: it ended.
        """

    def handle(self) -> dict[str, Any]:
        """Return the plain values that another process needs for `attach`."""

    def attach(self, handle: dict[str, Any]) -> None:
        """Attach to a Kueue that another process started."""

    def last_lines(self, count: int) -> Sequence[str]:
        """Return the last lines of the log."""


class KueueScheduler:
    """Two programs. A policy with another configuration restarts Kueue; kube-scheduler keeps running."""

    def __init__(
        self,
        manager: Manager,
        placement: KubeSchedulerProcess,
        placement_policy: str,
        read: Callable[[str], KueuePolicy],
    ) -> None:
        self._manager, self._placement, self._placement_policy = manager, placement, placement_policy
        self._read = read
        self._sha256 = ""

    def launch(self, policy: str) -> None:
        """Do nothing yet: Kueue exits if its CRDs are missing."""

    def start(self, policy: str) -> None:
        """Return when Kueue and kube-scheduler have filled their caches."""
        self._manager.prepare()
        self._placement.launch(self._placement_policy)
        self.use_policy(policy)
        self._placement.start(self._placement_policy)

    def stop(self) -> None:
        """Stop both programs."""
        self._manager.stop()
        self._placement.stop()
        self._sha256 = ""

    def handle(self) -> dict[str, Any]:
        own = {"manager": self._manager.handle(), "sha256": self._sha256}
        return {**own, "placement": self._placement.handle()}

    def attach(self, handle: dict[str, Any]) -> None:
        self._sha256 = handle["sha256"]
        self._manager.attach(handle["manager"])
        self._placement.attach(handle["placement"])

    def check(self) -> None:
        """Check that both programs run.

        Raises:
            SchedulerDiedError: one of them ended.
        """
        self._manager.check()
        self._placement.check()

    def use_policy(self, text: str) -> str:
        """Restart Kueue if the policy has another configuration. The settings of queues are applied with the queues.

        Raises:
            PolicyRefusedError: the file is not a policy of Kueue, or Kueue refused its configuration.
        """
        wanted = hashlib.sha256(text.encode()).hexdigest()
        if wanted != self._sha256:
            try:
                self._manager.configure(self._read(text))
            except SchedulerDiedError as problem:
                refused = _REFUSED.search(str(problem))
                if refused is None:
                    raise
                text = f"Kueue refused its configuration:\n  {refused[1]}"
                raise PolicyRefusedError(text, refused[1]) from problem
            self._sha256 = wanted
        return wanted

    def keep_recording(self, since: float, to: Path) -> bool:  # noqa: ARG002 - keeps no recording
        return False

    def last_lines(self, count: int) -> Sequence[str]:
        return self._manager.last_lines(count)
