"""A Volcano that runs in the cluster. Its ConfigMap holds the policy.

The policy of an installed Volcano is restored at the end; a Volcano that the run deployed is removed. Volcano schedules
on every node that its own `--node-selector` allows. On a cluster that has other nodes than those of scenarios, the
selector must be `schedspec.dev/world:true`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from .adapter import Site
from .deployed import Deployed, DeploymentPlace
from .from_images import FromImages, ImageProgram, Images, made
from .volcano_processes import NAMESPACES, NODES, SERVED, require_open, require_running

PLACE: Final = DeploymentPlace(
    "volcano-system", "volcano-scheduler", "volcano-scheduler-configmap", "volcano-scheduler.conf"
)
_CONFIG: Final = "/volcano"
PARTS: Final = (
    ImageProgram(
        "vc-scheduler",
        PLACE.deployment,
        "/vc-scheduler",
        ("--leader-elect=false", f"--scheduler-conf={_CONFIG}/{PLACE.key}", f"--node-selector={NODES}", *SERVED),
        {_CONFIG: {"configMap": {"name": PLACE.config}}},
    ),
    ImageProgram(
        "vc-controller-manager",
        "volcano-controllers",
        "/vc-controller-manager",
        ("--leader-elect=false", "--kube-api-qps=1000", "--kube-api-burst=2000"),
    ),
)


class DeployedVolcano:
    """The Deployment `volcano-scheduler`, reached through the API server only.

    Args:
        site: Where it runs.
        images: The images that the run deploys; None if Volcano is installed.
    """

    def __init__(self, site: Site, images: Images | None = None) -> None:
        self._api = site.api
        self._images = None if images is None else FromImages(site, PLACE, PARTS, images)
        self._deployed = Deployed(site.api, PLACE, "Volcano's scheduler", site.scale)
        self._before: str | None = None
        self._applied = False
        self._sha256 = ""

    def launch(self, policy: str) -> None:
        """Do nothing: Volcano runs already, or its images can be loaded only when the nodes exist."""

    def start(self, policy: str) -> None:
        """Deploy Volcano with this policy; if it is installed, save the policy in force and replace it."""
        if self._images is None:
            self._before = self._deployed.configuration()
            self.use_policy(policy)
            return
        self._applied = True
        self._images.apply(policy, *(made("v1", "Namespace", name) for name in NAMESPACES))
        self._deployed.wait(self._require_ready)
        self._sha256 = _sha256(policy)

    def stop(self) -> None:
        """Restore the original policy, or remove what the run deployed. The second call does nothing."""
        before, self._before = self._before, None
        if before is not None:
            self._deployed.configure(before)
        if self._applied and self._images is not None:
            self._applied = False
            self._images.remove()

    def handle(self) -> dict[str, Any]:
        return {"sha256": self._sha256}

    def attach(self, handle: dict[str, Any]) -> None:
        self._sha256 = handle["sha256"]

    def check(self) -> None:
        """Check once a second that no container ended.

        Raises:
            SchedulerDiedError: a container ended.
        """
        self._deployed.check()

    def use_policy(self, text: str) -> str:
        """Put a policy into force by restarting the scheduler."""
        wanted = _sha256(text)
        if wanted != self._sha256:
            self._deployed.configure(text)
            self._sha256 = ""
            self._deployed.wait(self._require_ready)
            self._sha256 = wanted
        return wanted

    def _require_ready(self) -> None:
        """Check that a Volcano which the run deployed has ended its first session, according to its log.

        Raises:
            PolicyRefusedError: Volcano rejected the policy.
            NotReadyError: it does not schedule yet.
        """
        if self._images is not None:
            require_running("\n".join(self._deployed.last_lines()))
            require_open(self._api)

    def keep_recording(self, since: float, to: Path) -> bool:  # noqa: ARG002 - keeps no recording
        return False

    def last_lines(self, count: int) -> Sequence[str]:
        return self._deployed.last_lines(count)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
