"""Run Volcano's scheduler and controller-manager as processes beside the cluster.

A change of policy restarts the scheduler, and the policy is in force once that process has ended its first session.
Volcano watches its policy file, but continues with the old policy if it cannot read the new one, and reports both only
in its log.

A scheduler that ended is restarted for the next scenario, as its Deployment would do: only the scenario in which it
ended fails. If it ends in its first session, it is restarted at once: v1.14.1 panics if a session with a tree of queues
begins before the queue `root` is in its cache.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ..api.client import Api
from ..api.errors import PolicyRefusedError, RejectedError, SchedulerDiedError
from .adapter import Site, UnsuitableClusterError
from .daemon import Daemon, ProgramScheduler
from .readiness import NotReadyError, retrying

NAMESPACES: Final = ("volcano-system", "volcano-monitoring")
NODES: Final = "schedspec.dev/world:true"
SERVED: Final = (
    "--enable-metrics=true",
    "--enable-healthz=false",
    "-v=2",
    "--vmodule=session=3",
    "--schedule-period=250ms",
)
"""Arguments of the scheduler. Without metrics one of Volcano's plugins panics."""
_RUNS: Final = "Close Session"
_STARTS: Final = 5
"""Maximum number of starts of a scheduler that ends in its first session."""
_NEWER: Final = {"gangpreempt": "v1.15", "gangreclaim": "v1.15"}
"""Actions that the pinned version lacks, with the version that introduced them."""
_NO_ACTION: Final = re.compile(r"failed to find Action +(\w+)")
_INVALID: Final = re.compile(r"Scheduler config .* is invalid: (.*)$", re.MULTILINE | re.DOTALL)


class VolcanoProcesses(ProgramScheduler):
    """Two programs. The controllers keep running when a new policy restarts the scheduler.

    Without controllers, the cluster has its queues and PodGroups with their states.
    """

    def __init__(self, site: Site, programs: Mapping[str, Path], *, with_controllers: bool = True) -> None:
        controllers = {"vc-controller-manager": "controllers.log"} if with_controllers else {}
        super().__init__(site, programs, {"vc-scheduler": "scheduler.log", **controllers})
        # Volcano reads its policy again after every write in the policy's folder, and logs that.
        self._file = site.folder / "policy" / "policy.yaml"

    def start(self, policy: str) -> None:
        """Return when the queue `default` is open and the policy is in force."""
        for name in NAMESPACES:
            self._site.create_if_absent("/api/v1/namespaces", "Namespace", name=name)
        for controllers in self._daemons[1:]:
            self._launch(controllers, "--kube-api-qps", "1000", "--kube-api-burst", "2000")
        self.use_policy(policy)
        for attempt in retrying(self.timeout, 0.05) if self._daemons[1:] else ():
            with attempt:
                self.check()
                require_open(self._site.api)

    def restart(self, policy: str) -> None:
        """Return when the scheduler has ended its first session with this policy; it may take several starts."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(policy, "utf-8")
        for left in reversed(range(_STARTS)):
            try:
                self._start_scheduler()
                break
            except SchedulerDiedError:
                if not left:
                    raise

    def _start_scheduler(self) -> None:
        """Return when the scheduler has ended its first session."""
        self._scheduler.stop()
        options = ["--listen-address", "127.0.0.1:0", "--scheduler-conf", str(self._file), "--node-selector", NODES]
        self._launch(self._scheduler, *SERVED, *options)  # port 0 is any free port
        for attempt in retrying(self.timeout, 0.05):
            with attempt:
                self._scheduler.check()
                require_running(self._scheduler.text())

    def _launch(self, daemon: Daemon, *switches: str) -> None:
        """Start the program that the daemon is named after."""
        config = str(self._site.kubeconfig)
        common = ["--kubeconfig", config, "--leader-elect=false", "--scheduler-name", "schedspec"]
        daemon.launch([self._programs[daemon.title], *common, *switches], {"KUBECONFIG": config})


def require_running(log: str) -> None:
    """Check the log of a scheduler since its start.

    Raises:
        UnsuitableClusterError: this version of Volcano lacks an action of the policy.
        PolicyRefusedError: Volcano rejected the policy.
        NotReadyError: the first session has not ended yet.
    """
    refused = _INVALID.search(log)
    if refused:
        why = refused[1].splitlines()[0]
        action = _NO_ACTION.search(why)
        if action and (since := _NEWER.get(action[1])):
            todo = f"needs {since} from a folder, --scheduler-binaries, or in the cluster"
            raise UnsuitableClusterError(f"volcano lacks the action {action[1]} ({todo})")
        raise PolicyRefusedError(f"Volcano refused the policy:\n  {why}", why)
    if _RUNS not in log:
        raise NotReadyError("Volcano's scheduler has not ended its first session")


def require_open(api: Api) -> None:
    """Check that the queue `default` exists and is open, which shows that the controllers work.

    Raises:
        NotReadyError: the queue is missing or not open.
    """
    try:
        queue = api.call("GET", "/apis/scheduling.volcano.sh/v1beta1/queues/default")
    except RejectedError as problem:
        raise NotReadyError(f"Volcano has not created the queue `default` yet: {problem}") from None
    state = (queue.get("status") or {}).get("state")
    if state != "Open":
        raise NotReadyError(f"Volcano's queue `default` is {state or 'without a state'}, not Open")
