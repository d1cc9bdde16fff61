"""deploy/ applied to a cluster and taken away again.

The one rule: what users apply is what is applied, by `kubectl apply -k`; the overlay names the image, the nodes of the
scenarios and the policy, and nothing else.
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
from .readiness import NotYetError, patiently

NAMESPACE = NAME = "schedspec"
"""Of everything in deploy/; the ConfigMap alone is called `schedspec-policy`."""

DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{NAME}"
CONTROLLERS = f"{DEPLOYMENT}-controllers"
POLICY = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{NAME}-policy"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{NAME}"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
SELECTOR = {"labelSelector": f"app.kubernetes.io/name={NAME}"}
EVERY_POD = {"labelSelector": f"app.kubernetes.io/name in ({NAME}, {NAME}-controllers)"}

_APPLY_SECONDS = 60.0


def write_overlay(folder: Path, tag: str, policy: str) -> Path:
    """A kustomization over deploy/ for a run of the harness; its folder."""
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
                "target": {"kind": "Deployment"},  # what schedules and what controls see the same nodes
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
    """Apply an overlay. Raises HarnessError with what kubectl says."""
    command = [str(kubectl), "--kubeconfig", str(kubeconfig)]
    command += ["apply", "--server-side", "--force-conflicts", "-k", str(overlay)]
    done = subprocess_run.run(command, deadline=_APPLY_SECONDS)
    if done.status != 0:
        raise HarnessError(
            f"the scheduler could not be deployed (exit status {done.status}):\n{done.last_lines}\n"
            f"  where: {' '.join(command)}\n  do next: repair deploy/"
        )


def remove(api: Api) -> None:
    """Take the scheduler out of the cluster, if there is one: it would schedule beside the one under test."""
    there = [api.delete(path, propagation="Foreground") for path in (DEPLOYMENT, CONTROLLERS)]
    if not any(there):
        return
    for attempt in patiently(timeouts.REMOVED, 0.1):
        with attempt:
            left = api.call("GET", PODS, query=EVERY_POD)["items"]
            if left:
                raise NotYetError(f"pods of the scheduler do not go: {[pod['metadata']['name'] for pod in left]}")
