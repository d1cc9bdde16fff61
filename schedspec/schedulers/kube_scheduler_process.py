"""kube-scheduler as a process beside the cluster. Its policy is its configuration file, read when it starts."""

from __future__ import annotations

import re

from .. import distribution
from ..api.errors import PolicyRefusedError, SchedulerDiedError
from ..clusters.kwok_config import GANG_GATES
from ..clusters.programs import binaries
from .adapter import Site, sha256
from .daemon import ProgramScheduler
from .readiness import NotReadyError, retrying

_REFUSED = re.compile(r'"command failed" err="(.*)"$|^E\S*.*?\] "(.*)"$', re.MULTILINE)


class KubeSchedulerProcess(ProgramScheduler):
    """kube-scheduler beside the cluster. A new policy needs a new process."""

    def __init__(self, site: Site, minor: str, gates: str | None = None, version: str = "") -> None:
        """Prepare the process; `gates` are its feature gates, by default those of gang scheduling."""
        super().__init__(site, {}, {"kube-scheduler": "scheduler.log"})
        self._minor, self._version = minor, version
        self._gates = GANG_GATES[minor].feature_gates if gates is None else gates
        self._file = site.folder / "policy.yaml"

    def launch(self, policy: str) -> None:
        site = self._site
        chosen = {"kubernetes": self._minor, "version": self._version}
        folder, progress = site.scheduler_programs, site.progress
        program = binaries.provide(("kube-scheduler",), folder=folder, progress=progress, **chosen)["kube-scheduler"]
        self._file.parent.mkdir(parents=True, exist_ok=True)
        connection = f"clientConnection: {{kubeconfig: {site.kubeconfig}, qps: 1000, burst: 2000}}"
        self._file.write_text(f"{policy.rstrip()}\n{connection}\n", "utf-8")
        switches = ["--secure-port", "0", *(["--feature-gates", self._gates] if self._gates else []), "--v", "3"]
        self._scheduler.launch([program.path, "--config", self._file, *switches])
        self._sha256 = sha256(policy)

    def start(self, policy: str) -> None:
        """Start the process unless `launch` did, and return when its caches are filled."""
        if not self._scheduler.launched:
            self.launch(policy)
        try:
            for attempt in retrying(self.timeout, 0.02):
                with attempt:
                    self._scheduler.check()
                    if "Handlers synced" not in self._scheduler.text():
                        raise NotReadyError(f"kube-scheduler has not filled its caches\n{self._scheduler.log_tail()}")
        except SchedulerDiedError as problem:
            refusals = _REFUSED.findall(self._scheduler.text())
            if refusals:
                message = "".join(refusals[-1])
                raise PolicyRefusedError(
                    f"kube-scheduler refused its configuration:\n  {message}", message
                ) from problem
            raise

    def restart(self, policy: str) -> None:
        self._scheduler.stop()
        self.start(policy)


def default_policy() -> str:
    """Return kube-scheduler's configuration with its defaults, on the nodes of a run."""
    return (distribution.folder("templates") / "kube-scheduler" / "policies" / "default.yaml").read_text("utf-8")
