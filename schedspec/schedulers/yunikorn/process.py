"""Run YuniKorn's scheduler as a process beside the cluster.

Its configuration is a ConfigMap, which YuniKorn watches: new queues and new policies need no restart. A scenario's
queues and its policy are one configuration, so that `configure` writes both.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from ...api.errors import PolicyRefusedError
from ..adapter import Site, UnsuitableClusterError, sha256
from ..daemon import Programs
from ..readiness import NotReadyError, retrying
from . import queues
from .log import YuniKornLog

SCHEDULER: Final = "yunikorn-scheduler"
NAMESPACE: Final = "yunikorn"
_READY: Final = "scheduler state initialized"
_INTERVAL: Final = {"service.schedulingInterval": "100ms"}
"""How often YuniKorn submits what waits; its default is a second."""


class YuniKornProcess(Programs):
    """The scheduler with its configuration. It runs until `stop`, whatever the policy."""

    def __init__(self, site: Site, program: Path) -> None:
        super().__init__(site, {SCHEDULER: program}, {SCHEDULER: "scheduler.log"})
        self._log = YuniKornLog(self._scheduler.log)

    def start(self, policy: str) -> None:
        """Return when YuniKorn schedules, with the queue of work that names none."""
        self._site.create_if_absent("/api/v1/namespaces", "Namespace", name=NAMESPACE)
        self._write(queues.of_scenario((), (), queues.read(policy)))
        self._log.restart()
        environment = {"KUBECONFIG": str(self._site.kubeconfig), "NAMESPACE": NAMESPACE}
        self._scheduler.launch([self._programs[SCHEDULER]], environment)
        for attempt in retrying(self.timeout, 0.05):
            with attempt:
                self._scheduler.check()
                if _READY not in self._scheduler.text():
                    raise NotReadyError("YuniKorn has not read the objects of the cluster yet")

    def use_policy(self, text: str) -> str:
        """Check a policy; `configure` puts it into force together with the queues."""
        if lacks := queues.read(text).lacks:
            raise UnsuitableClusterError(f"yunikorn lacks this policy ({lacks})")
        return sha256(text)

    def configure(self, text: str) -> None:
        """Return when YuniKorn uses these queues."""
        done, refused = self._log.configurations()
        if not self._write(text):
            return
        for attempt in retrying(self.timeout, 0.05):
            with attempt:
                self._scheduler.check()
                now, refusals = self._log.configurations()
                if len(refusals) > len(refused):
                    raise PolicyRefusedError(f"YuniKorn refused these queues:\n  {refusals[-1]}", refusals[-1])
                if now == done:
                    raise NotReadyError("YuniKorn has not taken over the queues")

    def eviction(self, uid: str) -> dict[str, Any] | None:
        return self._log.eviction(uid)

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
