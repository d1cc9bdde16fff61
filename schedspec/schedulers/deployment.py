"""Apply deploy/ to a cluster and remove it again.

`kubectl apply -k` applies exactly what users apply. The overlay sets only the image, the nodes of the scenarios and the
policy.
"""

from __future__ import annotations

import os
from pathlib import Path

import yaml

from ..api import timeouts
from ..api.client import Api
from ..api.errors import HarnessError
from ..clusters import subprocess_run
from ..clusters.images import scheduler_image
from ..clusters.paths import part
from .readiness import NotReadyError, retrying

NAMESPACE = NAME = "schedspec"
"""The namespace in deploy/, and the name of the scheduler's objects; the controllers' objects have other names."""

DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{NAME}"
CONTROLLERS = f"{DEPLOYMENT}-controllers"
POLICY = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{NAME}-policy"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{NAME}"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
SELECTOR = f"app.kubernetes.io/name={NAME}"
EVERY_POD = f"app.kubernetes.io/name in ({NAME}, {NAME}-controllers)"

_APPLY_SECONDS = 60.0


def write_overlay(folder: Path, tag: str, policy: str) -> Path:
    """Write a kustomization over deploy/ for a run of the harness. Return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "policy.yaml").write_text(policy, "utf-8")
    argument = {"op": "add", "path": "/spec/template/spec/containers/0/args/-"}
    overlay = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(part("deploy"), folder.resolve())],
        "images": [{"name": scheduler_image.NAME, "newTag": tag}],
        "patches": [
            {
                "target": {"kind": "Deployment"},  # scheduler and controllers see the same nodes
                "patch": yaml.safe_dump([{**argument, "value": "--node-selector=schedspec.dev/world=true"}]),
            }
        ],
        "configMapGenerator": [
            {"name": f"{NAME}-policy", "namespace": NAMESPACE, "behavior": "replace", "files": ["policy.yaml"]}
        ],
        "generatorOptions": {"disableNameSuffixHash": True},
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(overlay, sort_keys=False), "utf-8")
    return folder


def apply(kubectl: Path, kubeconfig: Path, overlay: Path) -> None:
    """Apply an overlay.

    Raises:
        HarnessError: kubectl failed; with its message.
    """
    command = [str(kubectl), "--kubeconfig", str(kubeconfig)]
    command += ["apply", "--server-side", "--force-conflicts", "-k", str(overlay)]
    done = subprocess_run.run(command, deadline=_APPLY_SECONDS)
    if done.status != 0:
        raise HarnessError(
            f"the scheduler could not be deployed (exit status {done.status}):\n{done.last_lines}\n"
            f"  where: {' '.join(command)}\n  do next: repair deploy/"
        )


def remove(api: Api) -> None:
    """Remove a deployed scheduler from the cluster. It would schedule beside the scheduler under test."""
    deleted = [api.delete(path, propagation="Foreground") for path in (DEPLOYMENT, CONTROLLERS)]
    if not any(deleted):
        return
    for attempt in retrying(timeouts.REMOVED, 0.1):
        with attempt:
            left = api.call("GET", PODS, query={"labelSelector": EVERY_POD})["items"]
            if left:
                raise NotReadyError(
                    f"pods of the scheduler are not deleted yet: {[pod['metadata']['name'] for pod in left]}"
                )
