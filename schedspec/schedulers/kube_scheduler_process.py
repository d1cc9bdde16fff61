"""kube-scheduler as a process beside the cluster. Its policy is its configuration file, read when it starts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import distribution
from ..api import timeouts
from ..api.errors import PolicyRefusedError, SchedulerDiedError
from ..clusters.kwok_config import GANG_GATES
from ..clusters.programs import binaries
from .adapter import Site
from .daemon import Daemon
from .readiness import NotReadyError, retrying

_REFUSED = re.compile(r'"command failed" err="(.*)"$|^E\S*.*?\] "(.*)"$', re.MULTILINE)


class KubeSchedulerProcess:
    """kube-scheduler beside the cluster. A new policy needs a new process."""

    def __init__(self, site: Site, minor: str, gates: str | None = None, version: str = "") -> None:
        """Prepare the process; `gates` are its feature gates, by default those of gang scheduling."""
        self._site, self._minor, self._version = site, minor, version
        self._gates = GANG_GATES[minor].feature_gates if gates is None else gates
        self._daemon = Daemon("kube-scheduler", site.folder / "scheduler.log")
        self._file = site.folder / "policy.yaml"
        self._sha256 = ""

    def launch(self, policy: str) -> None:
        """Start the process without waiting for it."""
        site = self._site
        chosen = {"kubernetes": self._minor, "version": self._version}
        folder, progress = site.scheduler_programs, site.progress
        program = binaries.provide(("kube-scheduler",), folder=folder, progress=progress, **chosen)["kube-scheduler"]
        self._file.parent.mkdir(parents=True, exist_ok=True)
        connection = f"clientConnection: {{kubeconfig: {site.kubeconfig}, qps: 1000, burst: 2000}}"
        self._file.write_text(f"{policy.rstrip()}\n{connection}\n", "utf-8")
        switches = ["--secure-port", "0", *(["--feature-gates", self._gates] if self._gates else []), "--v", "3"]
        self._daemon.launch([program.path, "--config", self._file, *switches])
        self._sha256 = hashlib.sha256(policy.encode()).hexdigest()

    def start(self, policy: str) -> None:
        """Start the process unless `launch` did, and return when its caches are filled."""
        if not self._daemon.launched:
            self.launch(policy)
        try:
            for attempt in retrying(timeouts.READY * max(self._site.scale, 1.0), 0.02):
                with attempt:
                    self._daemon.check()
                    if "Handlers synced" not in self._daemon.text():
                        raise NotReadyError(f"kube-scheduler has not filled its caches\n{self._daemon.log_tail()}")
        except SchedulerDiedError as problem:
            refusals = _REFUSED.findall(self._daemon.text())
            if refusals:
                message = "".join(refusals[-1])
                raise PolicyRefusedError(
                    f"kube-scheduler refused its configuration:\n  {message}", message
                ) from problem
            raise

    def stop(self) -> None:
        """Stop the process."""
        self._daemon.stop()

    def handle(self) -> dict[str, Any]:
        return {"pid": self._daemon.pid, "sha256": self._sha256}

    def attach(self, handle: dict[str, Any]) -> None:
        self._daemon.adopt(handle["pid"])
        self._sha256 = handle["sha256"]

    def check(self) -> None:
        """Check that the process runs.

        Raises:
            SchedulerDiedError: it ended.
        """
        self._daemon.check()

    def use_policy(self, text: str) -> str:
        """Restart the process with this policy, unless the policy is in force already."""
        wanted = hashlib.sha256(text.encode()).hexdigest()
        if wanted != self._sha256:
            self.stop()
            self.start(text)
        return wanted

    def keep_recording(self, since: float, to: Path) -> bool:  # noqa: ARG002 - keeps no recording
        return False

    def last_lines(self, count: int) -> Sequence[str]:
        return self._daemon.last_lines(count)


def default_policy() -> str:
    """Return kube-scheduler's configuration with its defaults, on the nodes of a run."""
    return (distribution.folder("templates") / "kube-scheduler" / "policies" / "default.yaml").read_text("utf-8")
