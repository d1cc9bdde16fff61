"""Choose the image of a Kind cluster's nodes.

With `--kind-image`, it is the named image. Otherwise it is the first that exists: kind's own image in the engine; the
image that `python -m hack.images.node_image build` built in a checkout; kind's own image in its registry.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..docker import Docker
from ..protocol import ClusterError, Progress, Settings
from . import archives

KINDEST = "kindest/node:v1.37.0@sha256:a1ed56cfb0e7b93589bdf97c8cd566405a265939e3620fc4f5de89adff580ae5"
"""The default of kind v0.33.0 (sigs.k8s.io/kind, pkg/apis/config/defaults/image.go); a test compares the two."""
OWN = "schedspec.local/node:"
"""Prefix of the images that `hack.images.node_image` builds."""


class NodeImageError(ClusterError):
    """No node image is available."""


@dataclass(frozen=True, slots=True)
class NodeImage:
    reference: str
    how: str
    """Where the image is: `present` in the engine, `archive` in the cache only, or `registry`."""

    def __str__(self) -> str:
        return f"node image {self.reference.partition('@')[0]}"


def reference_of(archive: Path) -> str:
    """Return the image's name in an engine, from the name of its archive: `node-<version>-<key>.tar`."""
    return OWN + archive.stem.removeprefix("node-")


def find(settings: Settings, docker: Docker) -> NodeImage | None:
    """Return the image that nodes would get, or None if there is none. Fetches nothing."""
    if settings.kind_image:
        return _present_or_offered(settings.kind_image, docker)
    if docker.has_image(KINDEST):
        return NodeImage(KINDEST, "present")
    built = archives.newest("node")
    if built is not None:
        own = reference_of(built)
        return NodeImage(own, "present" if docker.has_image(own) else "archive")
    return _present_or_offered(KINDEST, docker)


def require(settings: Settings, docker: Docker) -> NodeImage:
    """Return the image that nodes would get.

    Raises:
        NodeImageError: no image is available.
    """
    image = find(settings, docker)
    if image is None:
        raise _missing_error(settings)
    return image


def provide(settings: Settings, docker: Docker, progress: Progress) -> NodeImage:
    """Load or pull the image that nodes get, unless the engine has it, and return the image.

    Raises:
        NodeImageError: no image is available.
        DockerError: the engine could not load or pull the image.
    """
    image = require(settings, docker)
    if image.how == "archive":
        docker.load(archives.place(f"node-{image.reference.removeprefix(OWN)}.tar"), progress)
    elif image.how == "registry":
        docker.pull(image.reference, progress)
    return image


def fingerprint() -> str:
    """Return a text that changes with the images that `find` chooses from when the user names none."""
    built = archives.newest("node")
    return f"{KINDEST} {built and built.name}"


def _present_or_offered(reference: str, docker: Docker) -> NodeImage | None:
    if docker.has_image(reference):
        return NodeImage(reference, "present")
    return NodeImage(reference, "registry") if docker.offers(reference) else None


def _missing_error(settings: Settings) -> NodeImageError:
    if settings.kind_image:
        return NodeImageError(
            f"the node image {settings.kind_image} is not in the Docker engine, and no reachable registry has it",
            "--kind-image",
            "name an image that `docker images` shows, load it (docker load --input FILE), or leave --kind-image out",
        )
    return NodeImageError(
        f"there is no node image: the registry of {KINDEST.partition('@')[0]} is unreachable, and none was built here",
        "docker images",
        "build one in a checkout of schedspec, about eight minutes once: python -m hack.images.node_image build; "
        "or name one: --kind-image",
    )
