"""Deploy a scheduler from images into a Kind cluster, and remove it again.

Each program becomes a Deployment with one pod and the rights of an administrator: the cluster belongs to the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ..api import timeouts
from ..api.client import Api, Object
from ..clusters.images import program_image
from ..clusters.protocol import SCENARIO
from .adapter import Site
from .deployed import OF_A_RUN, DeploymentSite
from .readiness import NotReadyError, retrying

_MANAGER: Final = "schedspec"
_NAMESPACES: Final = "/api/v1/namespaces"
_REAL_NODES: Final = {"nodeSelectorTerms": [{"matchExpressions": [{"key": SCENARIO, "operator": "DoesNotExist"}]}]}
"""Excludes the nodes of scenarios: KWOK plays most of them, and no program runs on such a node."""
_BINDINGS: Final = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


@dataclass(frozen=True, slots=True)
class ImageProgram:
    program: str
    deployment: str
    inside: str
    """Path of the program in an image that we build."""
    arguments: Sequence[str]
    volumes: Mapping[str, Object] = field(default_factory=dict)
    """Folder in the container → source of its volume."""


@dataclass(frozen=True, slots=True)
class Images:
    """The images of a scheduler: named by the user, or built from its programs."""

    version: str
    named: Sequence[str] = ()
    """One image for each program."""
    programs: Mapping[str, Path] = field(default_factory=dict)


class FromImages:
    """The Deployments of one scheduler."""

    def __init__(self, site: Site, place: DeploymentSite, parts: Sequence[ImageProgram], images: Images) -> None:
        self._site, self._place, self._parts, self._images = site, place, parts, images

    def apply(self, configuration: str, *more: Object) -> None:
        """Load the images into the nodes and create everything. Return without waiting for the pods.

        Raises:
            ClusterError: an image could not be loaded.
        """
        references = dict(self._load(part, number) for number, part in enumerate(self._parts))
        for obj in (*_common(self._place, configuration), *more):
            self._site.api.apply(obj, _MANAGER)
        for part in self._parts:
            self._site.api.apply(_deployment(self._place, part, references[part.program]), _MANAGER)

    def remove(self) -> None:
        remove(self._site.api)

    def _load(self, part: ImageProgram, number: int) -> tuple[str, str]:
        progress = self._site.progress
        if self._images.named:
            reference = self._images.named[number]
            archive = program_image.saved(reference, self._site.folder / f"{part.program}.tar", progress)
        else:
            program = self._images.programs[part.program]
            reference, archive = program_image.made(program, self._images.version, part.inside, progress)
        progress(f"{reference}: loading into the nodes")
        self._site.cluster.load_image(archive)
        return part.program, reference


def remove(api: Api) -> None:
    """Remove what any run, even a killed one, has deployed: it would schedule beside the scheduler under test."""
    labelled = {"labelSelector": OF_A_RUN}
    for path in (_BINDINGS, _NAMESPACES):
        for item in api.call("GET", path, query=labelled)["items"]:
            name = item["metadata"]["name"]
            if path == _NAMESPACES:  # stop the pods at once: the namespace's removal takes seconds
                api.delete_all(f"/apis/apps/v1/namespaces/{name}/deployments", propagation="Foreground")
                api.delete_all(f"{_NAMESPACES}/{name}/pods", grace=0)
            api.delete(f"{path}/{name}")
    for attempt in retrying(timeouts.REMOVED, 0.2):
        with attempt:
            left = [item["metadata"]["name"] for item in api.call("GET", _NAMESPACES, query=labelled)["items"]]
            if left:
                raise NotReadyError(f"namespaces of a deployed scheduler are not deleted yet: {', '.join(left)}")


def _common(place: DeploymentSite, configuration: str) -> list[Object]:
    """Return namespace, rights and configuration."""
    name, space = f"schedspec-{place.namespace}", place.namespace
    subject = {"kind": "ServiceAccount", "name": name, "namespace": space}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    return [
        made("v1", "Namespace", space),
        made("v1", "ServiceAccount", name, space),
        made("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", name, roleRef=role, subjects=[subject]),
        made("v1", "ConfigMap", place.config, space, data={place.key: configuration}),
    ]


def _deployment(place: DeploymentSite, part: ImageProgram, image: str) -> Object:
    labels = {"app": part.deployment}
    volumes = [{"name": f"v{number}", **source} for number, source in enumerate(part.volumes.values())]
    mounts = [{"name": f"v{number}", "mountPath": path} for number, path in enumerate(part.volumes)]
    container = {"name": "main", "image": image, "imagePullPolicy": "IfNotPresent", "args": list(part.arguments)}
    pod = {
        "serviceAccountName": f"schedspec-{place.namespace}",
        "terminationGracePeriodSeconds": 1,
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _REAL_NODES}},
        "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}],
        "containers": [{**container, "volumeMounts": mounts}],
        "volumes": volumes,
    }
    spec = {
        "strategy": {"type": "Recreate"},  # two pods would both schedule
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return made("apps/v1", "Deployment", part.deployment, place.namespace, spec=spec)


def made(version: str, kind: str, name: str, namespace: str = "", **fields: Any) -> Object:
    """Return an object with the label by which `remove` finds it."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), "labels": {OF_A_RUN: "true"}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}
