"""Run YuniKorn's scheduler as a process beside the cluster.

Its configuration is a ConfigMap, which YuniKorn watches: new queues and new policies need no restart. A scenario's
queues and its policy are one configuration, so that `configure` writes both.

YuniKorn does not mark a pod that it preempts: it deletes the pod. Its event about this follows after up to two seconds,
and never if the pod has gone by then. The log names the pod before YuniKorn deletes it.
"""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import Any, Final

from ...api.errors import PolicyRefusedError
from ..adapter import Site, UnsuitableClusterError, sha256
from ..daemon import ProgramScheduler
from ..readiness import NotReadyError, retrying
from . import queues

_PREEMPTED: Final = re.compile(rb"\tPreempting task\t(\{.*\})$")
_REFUSED: Final = re.compile(rb"\t(?:reload configuration failed|Unable to update configmap, ignoring changes)\t(.*)$")
_IN_FORCE: Final = b"Updating placement manager rules on config reload"


class YuniKornLog:
    """The content of the log so far. Thread-safe: the watch of pods reads it, too."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()
        self.restart()

    def restart(self) -> None:
        """Forget everything: the program begins a new log."""
        with self._lock:
            self._read = 0
            self._in_force = 0
            self._refusals: list[str] = []
            self._preemptors: dict[str, str] = {}

    def eviction(self, uid: str) -> dict[str, Any] | None:
        """Return a condition that describes the preemption of the pod, or None if it was not preempted."""
        with self._lock:
            self._follow()
            preemptor = self._preemptors.get(uid)
        if preemptor is None:
            return None
        message = f"preempted for the application {preemptor}"
        return {"type": "DisruptionTarget", "status": "True", "reason": "PreemptedByYuniKorn", "message": message}

    def configurations(self) -> tuple[int, list[str]]:
        """Return how many configurations came into force, and why others were refused."""
        with self._lock:
            self._follow()
            return self._in_force, list(self._refusals)

    def _follow(self) -> None:
        """Read the complete lines that are new. The caller holds the lock."""
        if not self._path.is_file():
            return
        with self._path.open("rb") as log:
            log.seek(self._read)
            new, newline, _ = log.read().rpartition(b"\n")
        self._read += len(new) + len(newline)
        for line in new.splitlines():
            if found := _PREEMPTED.search(line):
                fields = json.loads(found[1])
                self._preemptors[fields["victimAllocationKey"]] = fields["askApplicationID"]
            elif found := _REFUSED.search(line):
                self._refusals.append(found[1].decode("utf-8", errors="replace"))
            elif _IN_FORCE in line:
                self._in_force += 1


SCHEDULER: Final = "yunikorn-scheduler"
NAMESPACE: Final = "yunikorn"
_READY: Final = "scheduler state initialized"
_INTERVAL: Final = {"service.schedulingInterval": "100ms"}
"""How often YuniKorn submits what waits; its default is a second."""


class YuniKornProcess(ProgramScheduler):
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
