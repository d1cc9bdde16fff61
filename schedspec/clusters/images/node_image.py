"""Which image the nodes of a Kind cluster get. What is at hand comes before what has to be fetched.

python -m schedspec.clusters.images.node_image build     # makes our own: about eight minutes once, then seconds
python -m schedspec.clusters.images.node_image where     # what a Kind cluster would get here
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

from ... import terminal
from ..docker import Docker
from ..protocol import ClusterError, Progress, Settings
from . import node_image_build as own

KINDEST = "kindest/node:v1.37.0@sha256:a1ed56cfb0e7b93589bdf97c8cd566405a265939e3620fc4f5de89adff580ae5"
"""What kind v0.33.0 names (sigs.k8s.io/kind, pkg/apis/config/defaults/image.go); a test compares the two."""


class NodeImageError(ClusterError):
    """There is no image that nodes could be made from."""


@dataclass(frozen=True, slots=True)
class NodeImage:
    reference: str
    how: str
    """How it is to be had: `present`, `archive` (in our cache, not in the engine yet) or `registry`."""

    def __str__(self) -> str:
        return f"node image {self.reference.partition('@')[0]}"


def find(settings: Settings, docker: Docker) -> NodeImage | None:
    """The image that nodes would get, and how; None if there is none. Fetches nothing."""
    if settings.kind_image:
        return _present_or_offered(settings.kind_image, docker)
    if docker.has_image(KINDEST):
        return NodeImage(KINDEST, "present")
    if docker.has_image(own.reference()):
        return NodeImage(own.reference(), "present")
    if own.archive().is_file():
        return NodeImage(own.reference(), "archive")
    return _present_or_offered(KINDEST, docker)


def require(settings: Settings, docker: Docker) -> NodeImage:
    """As `find`; raises NodeImageError, which says what to do, if there is none."""
    image = find(settings, docker)
    if image is None:
        raise _none(settings)
    return image


def provide(settings: Settings, docker: Docker, progress: Progress) -> NodeImage:
    """The image, now in the engine. Raises NodeImageError if there is none, DockerError if fetching it fails."""
    image = require(settings, docker)
    if image.how == "archive":
        docker.load(own.archive(), progress)
    elif image.how == "registry":
        docker.pull(image.reference, progress)
    return image


def fingerprint() -> str:
    """Changes with the images that are chosen from when none is named."""
    return f"{KINDEST} {own.reference()}"


def _present_or_offered(reference: str, docker: Docker) -> NodeImage | None:
    if docker.has_image(reference):
        return NodeImage(reference, "present")
    return NodeImage(reference, "registry") if docker.offers(reference) else None


def _none(settings: Settings) -> NodeImageError:
    if settings.kind_image:
        return NodeImageError(
            f"the node image {settings.kind_image} is not in the Docker engine, and no registry that has it is reached",
            "--kind-image",
            "name one that `docker images` shows, or load it (docker load --input FILE), or leave --kind-image out",
        )
    return NodeImageError(
        f"there is no node image: the registry of {KINDEST.partition('@')[0]} is not reached, and none was built here",
        "docker images",
        "build one, about eight minutes once: python -m schedspec.clusters.images.node_image build; "
        "or name one: --kind-image",
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m schedspec.clusters.images.node_image", description="The image of Kind nodes."
    )
    parser.add_argument("verb", choices=("build", "where"), help="build our own; or say what a cluster would get")
    verb = parser.parse_args(arguments).verb
    docker, lines = Docker(), terminal.on_stderr()
    try:
        docker.require()
        if verb == "build":
            made = own.build(docker, lines.tell)
            lines.close()
            sys.stdout.write(f"{made}\n")
            return 0
        image = require(Settings(kind="kind"), docker)
    except ClusterError as error:
        lines.close()
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{image.reference} ({image.how})\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
