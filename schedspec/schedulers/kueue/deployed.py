"""Kueue in the cluster: deployed by the run from an image, or installed by the user.

The configuration of an installed Kueue is never changed: a policy that needs another configuration is not available.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import yaml

from ...api.client import Api
from ..adapter import AdapterError, Site, UnsuitableClusterError
from ..deployed import DeployedProgram, DeploymentSite
from ..from_images import FromImages, ImageProgram, Images, made
from .processes import NAMESPACE, SECRET_NAME, VERBOSE, KueueProgram, configured, require_running
from .quota import KueuePolicy

PLACE: Final = DeploymentSite(
    NAMESPACE, "kueue-controller-manager", "kueue-manager-config", "controller_manager_config.yaml"
)
_CONFIG, _CERTS = "/config", "/certs"
PARTS: Final = (
    ImageProgram(
        "kueue",
        PLACE.deployment,
        "/manager",
        (f"--config={_CONFIG}/{PLACE.key}", VERBOSE),
        {_CONFIG: {"configMap": {"name": PLACE.config}}, _CERTS: {"secret": {"secretName": SECRET_NAME}}},
    ),
)
_WEBHOOK: Final = {"port": 9443, "certDir": _CERTS}
_FRAMEWORKS: Final = ("batch/job", "pod", "deployment")
"""Integrations that Kueue needs for the jobs, gangs and services of scenarios."""
_SHARING: Final = ("fairSharing", "admissionFairSharing")
"""Parts of Kueue's configuration that differ between policies."""


class KueueInPods(KueueProgram):
    """Kueue in a pod of a Kind cluster. A policy with another configuration restarts the pod."""

    def __init__(self, site: Site, images: Images) -> None:
        self._images, self._version = FromImages(site, PLACE, PARTS, images), images.version
        self._deployed = DeployedProgram(site.api, PLACE, "Kueue", site.scale)
        self._running = ""

    def configure(self, policy: KueuePolicy) -> None:
        configuration = configured(policy, self._version, _WEBHOOK)
        if configuration == self._running:
            return
        if self._running:
            self._deployed.configure(configuration)
        else:
            self._images.apply(configuration, made("v1", "Secret", SECRET_NAME, NAMESPACE))
        self._running = configuration
        # Kueue waits until its certificates, which it writes into the Secret, are in its files.
        self._deployed.wait(lambda: require_running("\n".join(self._deployed.last_lines())), touch=True)

    def stop(self) -> None:
        running, self._running = self._running, ""
        if running:
            self._images.remove()

    def check(self) -> None:
        self._deployed.check()

    def handle(self) -> dict[str, Any]:
        return {"running": self._running}

    def attach(self, handle: dict[str, Any]) -> None:
        self._running = handle["running"]

    def last_lines(self, count: int) -> Sequence[str]:
        return self._deployed.last_lines(count)


class InstalledKueue(KueueProgram):
    """Kueue as the user has installed it. The run changes nothing."""

    def __init__(self, site: Site, version: str) -> None:
        self._deployed = DeployedProgram(site.api, PLACE, "Kueue", site.scale)
        self._version = version

    def configure(self, policy: KueuePolicy) -> None:
        found = yaml.safe_load(self._deployed.configuration()) or {}
        differs = [name for name in _SHARING if _is_on(found, name) != _is_on(policy.configuration, name)]
        gates = found.get("featureGates") or {}
        differs += [name for name, on in policy.gates(self._version).items() if gates.get(name, False) != on]
        if differs:
            raise UnsuitableClusterError(
                f"kueue lacks this policy here (the installed Kueue has another setting of {', '.join(differs)}, and "
                "its configuration is not changed)"
            )

    def check(self) -> None:
        self._deployed.check()

    def last_lines(self, count: int) -> Sequence[str]:
        return self._deployed.last_lines(count)


def require_usable(api: Api, version: str) -> None:
    """Check that an installed Kueue serves the API of the templates and manages the objects of scenarios.

    Raises:
        AdapterError: it does not; with what is missing.
    """
    if api.raw("GET", "/apis/kueue.x-k8s.io/v1beta2").status != 200:
        raise AdapterError(
            f"the installed Kueue {version} does not serve kueue.x-k8s.io/v1beta2\n"
            f"  where: {api.server}\n  do next: install Kueue v0.17 or later, or run on a cluster of your own"
        )
    configuration = yaml.safe_load(DeployedProgram(api, PLACE, "Kueue", 1.0).configuration()) or {}
    managed = (configuration.get("integrations") or {}).get("frameworks") or ["batch/job"]
    if missing := [name for name in _FRAMEWORKS if name not in managed]:
        raise AdapterError(
            f"the installed Kueue {version} does not manage {', '.join(missing)}\n"
            f"  where: {PLACE.key} in the ConfigMap {PLACE.namespace}/{PLACE.config}\n"
            "  do next: add them to integrations.frameworks there, or run on a cluster of your own"
        )


def _is_on(configuration: dict[str, Any], name: str) -> bool:
    part = configuration.get(name)
    return part is not None and part.get("enable", True) is True
