"""Install Kueue or Volcano in a Kind cluster as their users do: with their own manifests and default configuration.

Kueue is installed with its webhooks; Volcano's webhooks need a third image and are left out.

python -m tests.support.installations kueue|volcano KUBECONFIG CLUSTER
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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


def kueue(kubeconfig: Path, cluster: str) -> None:
    """Apply `config/default` of Kueue's source."""
    source = build.module_source(program("kueue")) / "config" / "default"
    folder = state_root() / "installations" / "kueue"
    folder.mkdir(parents=True, exist_ok=True)
    (reference,) = _load(cluster, {"kueue": "/manager"})
    name, _, tag = reference.rpartition(":")
    overlay = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [os.path.relpath(source, folder.resolve())],
        "images": [{"name": _PUBLISHED, "newName": name, "newTag": tag}],
        "patches": [{"target": {"kind": "Deployment"}, "patch": _MANAGER}],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(overlay, sort_keys=False), "utf-8")
    _apply(kubeconfig, ("-k", folder), "kueue-system", ["kueue-controller-manager"])


def volcano(kubeconfig: Path, cluster: str) -> None:
    """Apply the manifests of Volcano's source, without its webhooks. Its scheduler uses the scenarios' nodes only."""
    source = build.module_source(program("vc-scheduler")) / "installer" / "volcano-development.yaml"
    references = _load(cluster, {name: f"/{name}" for name in ("vc-scheduler", "vc-controller-manager")})
    images = {reference.rpartition("/")[2].partition(":")[0]: reference for reference in references}
    found = [obj for obj in yaml.safe_load_all(source.read_text("utf-8")) if obj and not _is_of_webhooks(obj)]
    for container in (part for obj in found if obj["kind"] == "Deployment" for part in _containers(obj)):
        name = container["image"].rpartition("/")[2].partition(":")[0]
        container |= {"image": images[name], "imagePullPolicy": "IfNotPresent"}
        container["args"] = [word for word in container["args"] if word != "2>&1"]
        container["args"] += ["--node-selector=schedspec.dev/world:true"] if name == "vc-scheduler" else []
    file = state_root() / "installations" / "volcano.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump_all(found), "utf-8")
    _apply(kubeconfig, ("-f", file), "volcano-system", ["volcano-scheduler", "volcano-controllers"])


def _is_of_webhooks(obj: dict[str, Any]) -> bool:
    return "admission" in obj["metadata"]["name"]


def _containers(obj: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = obj["spec"]["template"]["spec"]["containers"]
    return found


def _load(cluster: str, programs: dict[str, str]) -> list[str]:
    """Load images of the pinned programs into the nodes. Return the names of the images."""
    found = binaries.provide((*programs, "kind"), folder=None, progress=print)
    made = [program_image.made(found[name].path, found[name].version, path, print) for name, path in programs.items()]
    for _, archive in made:
        _run(found["kind"].path, "load", "image-archive", archive, "--name", cluster)
    return [reference for reference, _ in made]


def _apply(kubeconfig: Path, what: Sequence[str | Path], namespace: str, deployments: Sequence[str]) -> None:
    kubectl = binaries.provide(("kubectl",), folder=None, progress=print)["kubectl"].path
    _run(kubectl, "--kubeconfig", kubeconfig, "apply", "--server-side", *what)
    for name in deployments:
        rollout = ("rollout", "status", f"deployment/{name}", "--namespace", namespace, "--timeout", "300s")
        _run(kubectl, "--kubeconfig", kubeconfig, *rollout)


def _run(*command: str | Path) -> None:
    done = subprocess_run.run(list(command), deadline=600.0)
    assert done.status == 0, done.last_lines


if __name__ == "__main__":
    {"kueue": kueue, "volcano": volcano}[sys.argv[1]](Path(sys.argv[2]), sys.argv[3])
