"""Run YuniKorn's scheduler as a process beside the cluster.

Its configuration is a ConfigMap, which YuniKorn watches: new queues and new policies need no restart. A scenario's
queues and its policy are one configuration, so that `configure` writes both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ...api import timeouts
from ...api.errors import PolicyRefusedError
from ..adapter import Site, UnsuitableClusterError
from ..daemon import Daemon
from ..readiness import NotReadyError, retrying
from . import queues
from .log import YuniKornLog

SCHEDULER: Final = "yunikorn-scheduler"
NAMESPACE: Final = "yunikorn"
_READY: Final = "scheduler state initialized"
_INTERVAL: Final = {"service.schedulingInterval": "100ms"}
"""How often YuniKorn submits what waits; its default is a second."""


class YuniKornProcess:
    """The scheduler with its configuration. It runs until `stop`, whatever the policy."""

    def __init__(self, site: Site, program: Path) -> None:
        self._site, self._program = site, program
        self._daemon = Daemon(SCHEDULER, site.folder / "scheduler.log")
        self._log = YuniKornLog(self._daemon.log)

    def launch(self, policy: str) -> None:
        """Do nothing yet: `start` writes the configuration first."""

    def start(self, policy: str) -> None:
        """Return when YuniKorn schedules, with the queue of work that names none."""
        self._site.create_if_absent("/api/v1/namespaces", "Namespace", name=NAMESPACE)
        self._write(queues.of_scenario((), (), queues.read(policy)))
        self._log.restart()
        environment = {"KUBECONFIG": str(self._site.kubeconfig), "NAMESPACE": NAMESPACE}
        self._daemon.launch([self._program], environment)
        for attempt in self._retrying():
            with attempt:
                self._daemon.check()
                if _READY not in self._daemon.text():
                    raise NotReadyError("YuniKorn has not read the objects of the cluster yet")

    def stop(self) -> None:
        self._daemon.stop()

    def handle(self) -> dict[str, Any]:
        return {"pid": self._daemon.pid}

    def attach(self, handle: dict[str, Any]) -> None:
        self._daemon.adopt(handle["pid"])

    def check(self) -> None:
        """Raise SchedulerDiedError if the program ended."""
        self._daemon.check()

    def use_policy(self, text: str) -> str:
        """Check a policy; `configure` puts it into force together with the queues.

        Raises:
            PolicyRefusedError: the file is not a policy of YuniKorn.
            UnsuitableClusterError: YuniKorn has no such policy.
        """
        if lacks := queues.read(text).lacks:
            raise UnsuitableClusterError(f"yunikorn lacks this policy ({lacks})")
        return hashlib.sha256(text.encode()).hexdigest()

    def configure(self, text: str) -> None:
        """Return when YuniKorn uses these queues.

        Raises:
            PolicyRefusedError: YuniKorn refused them.
            SchedulerDiedError: YuniKorn ended.
        """
        done, refused = self._log.configurations()
        if not self._write(text):
            return
        for attempt in self._retrying():
            with attempt:
                self._daemon.check()
                now, refusals = self._log.configurations()
                if len(refusals) > len(refused):
                    raise PolicyRefusedError(f"YuniKorn refused these queues:\n  {refusals[-1]}", refusals[-1])
                if now == done:
                    raise NotReadyError("YuniKorn has not taken over the queues")

    def eviction(self, uid: str) -> dict[str, Any] | None:
        """Return a condition that describes the preemption of a pod, or None."""
        return self._log.eviction(uid)

    def keep_recording(self, since: float, to: Path) -> bool:  # noqa: ARG002 - keeps no recording
        return False

    def last_lines(self, count: int) -> Sequence[str]:
        return self._daemon.last_lines(count)

    def _write(self, text: str) -> bool:
        """Write the ConfigMap. Return False if it has these queues already."""
        meta = {"name": "yunikorn-configs", "namespace": NAMESPACE}
        path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
        data = {**_INTERVAL, "queues.yaml": text}
        self._site.create_if_absent(path, "ConfigMap", **meta)
        if self._site.api.call("GET", f"{path}/{meta['name']}").get("data") == data:
            return False
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}
        self._site.api.apply(body, SCHEDULER)
        return True

    def _retrying(self) -> Any:
        return retrying(timeouts.READY * max(self._site.scale, 1.0), 0.05)
