"""Install Kueue in a cluster as its users do: with its own manifests, webhooks and default configuration.

python -m tests.support.kueue_installation KUBECONFIG CLUSTER     # into a Kind cluster
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import yaml

from schedspec.clusters import subprocess_run
from schedspec.clusters.images import program_image
from schedspec.clusters.paths import state_root
from schedspec.clusters.programs import binaries, build
from schedspec.clusters.programs.pinned import program

_PUBLISHED = "us-central1-docker.pkg.dev/k8s-staging-images/kueue/kueue"
"""The image in Kueue's manifests."""
_MANAGER = """\
- {op: add, path: /spec/template/spec/containers/0/imagePullPolicy, value: IfNotPresent}
- {op: add, path: /spec/template/spec/containers/0/securityContext/runAsUser, value: 65532}
"""


def install(kubeconfig: Path, cluster: str) -> None:
    """Load an image of the pinned Kueue into the nodes of a Kind cluster, and apply Kueue's manifests."""
    found = binaries.provide(("kueue", "kubectl", "kind"), folder=None, progress=print)
    pinned = program("kueue")
    reference, archive = program_image.made(found["kueue"].path, pinned.version, "/manager", print)
    _run(found["kind"].path, "load", "image-archive", archive, "--name", cluster)
    folder = state_root() / "kueue-installation"
    folder.mkdir(parents=True, exist_ok=True)
    name, _, tag = reference.rpartition(":")
    overlay = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(build.module_source(pinned) / "config" / "default", folder.resolve())],
        "images": [{"name": _PUBLISHED, "newName": name, "newTag": tag}],
        "patches": [{"target": {"kind": "Deployment"}, "patch": _MANAGER}],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(overlay, sort_keys=False), "utf-8")
    kubectl = found["kubectl"].path
    _run(kubectl, "--kubeconfig", kubeconfig, "apply", "--server-side", "-k", folder)
    rollout = ("rollout", "status", "deployment/kueue-controller-manager", "--namespace", "kueue-system")
    _run(kubectl, "--kubeconfig", kubeconfig, *rollout, "--timeout", "300s")


def _run(*command: str | Path) -> None:
    done = subprocess_run.run(list(command), deadline=600.0)
    assert done.status == 0, done.last_lines


if __name__ == "__main__":
    install(Path(sys.argv[1]), sys.argv[2])
