"""A Volcano that runs in the cluster. Its ConfigMap holds the policy; the original content is restored at the end.

Volcano schedules on every node that its own `--node-selector` allows. On a cluster with other nodes than the
scenarios', the selector must be `schedspec.dev/world:true`.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ..api import timeouts
from ..api.client import MERGE
from ..api.errors import RejectedError, SchedulerDiedError
from .adapter import Site
from .readiness import NotReadyError, patiently

NAMESPACE: Final = "volcano-system"
DEPLOYMENT: Final = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/volcano-scheduler"
CONFIG: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps/volcano-scheduler-configmap"
PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
KEY: Final = "volcano-scheduler.conf"
SELECTOR: Final = {"labelSelector": "app=volcano-scheduler"}
_LOOK_EVERY = 1.0


class DeployedVolcano:
    """The Deployment `volcano-scheduler`, reached through the API server only."""

    def __init__(self, site: Site) -> None:
        self._api, self._scale = site.api, max(site.scale, 1.0)
        self._before: str | None = None
        self._sha256 = ""
        self._looked = 0.0

    def launch(self, policy: str) -> None:
        """Do nothing: Volcano runs already."""

    def start(self, policy: str) -> None:
        """Save the policy in force and replace it by this one."""
        self._before = str(self._api.call("GET", CONFIG)["data"].get(KEY, ""))
        self.use_policy(policy)

    def stop(self) -> None:
        """Restore the original policy. The second call does nothing."""
        before, self._before = self._before, None
        if before is not None:
            self._write(before)

    def handle(self) -> dict[str, Any]:
        return {"sha256": self._sha256}

    def attach(self, handle: dict[str, Any]) -> None:
        self._sha256 = handle["sha256"]

    def check(self) -> None:
        """Check once a second that no container ended.

        Raises:
            SchedulerDiedError: a container ended.
        """
        if time.monotonic() < self._looked + _LOOK_EVERY:
            return
        self._looked = time.monotonic()
        for pod in self._api.call("GET", PODS, query=SELECTOR)["items"]:
            for status in (pod.get("status") or {}).get("containerStatuses") or ():
                ended = status.get("state", {}).get("terminated") or status.get("lastState", {}).get("terminated")
                if ended:
                    name, code = pod["metadata"]["name"], ended.get("exitCode")
                    raise SchedulerDiedError(f"Volcano's pod {name} ended with exit code {code}")

    def use_policy(self, text: str) -> str:
        """Write the ConfigMap and restart the scheduler, which is safer than its watch of the file."""
        wanted = hashlib.sha256(text.encode()).hexdigest()
        if wanted == self._sha256:
            return wanted
        self._write(text)
        for attempt in patiently(timeouts.ROLLED_OUT * self._scale, 0.2):
            with attempt:
                self._require_rolled_out()
        self._sha256 = wanted
        return wanted

    def keep_recording(self, since: float, to: Path) -> bool:  # noqa: ARG002 - it keeps none
        return False

    def last_lines(self, count: int) -> Sequence[str]:
        lines: list[str] = []
        for pod in self._api.call("GET", PODS, query=SELECTOR)["items"]:
            answer = self._api.raw("GET", f"{PODS}/{pod['metadata']['name']}/log", query={"tailLines": count})
            lines += answer.data.decode(errors="replace").splitlines() if answer.status == 200 else []
        return lines[-count:]

    def _write(self, text: str) -> None:
        self._api.call("PATCH", CONFIG, body={"data": {KEY: text}}, content_type=MERGE)
        mark = {"schedspec.dev/policy": hashlib.sha256(text.encode()).hexdigest()}
        body = {"spec": {"template": {"metadata": {"annotations": mark}}}}
        self._api.call("PATCH", DEPLOYMENT, body=body, content_type=MERGE)

    def _require_rolled_out(self) -> None:
        try:
            found = self._api.call("GET", DEPLOYMENT)
        except RejectedError as problem:
            raise NotReadyError(f"Volcano's scheduler is not deployed: {problem}") from None
        status, wanted = found.get("status") or {}, found["spec"].get("replicas", 1)
        current = status.get("observedGeneration", 0) >= found["metadata"]["generation"]
        counts = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")]
        if not current or counts != [wanted] * 3:
            raise NotReadyError(f"Volcano's scheduler is not rolled out: {status}")
