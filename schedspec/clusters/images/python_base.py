"""Find the base image of the scheduler's image: in the engine, in the cache, or in a registry, in this order."""

from __future__ import annotations

from pathlib import Path

from ..docker import Docker
from ..protocol import BinaryError, Progress
from . import archives

OFFICIAL = "python:3.11-slim@sha256:9c900dea9e8fb7e16277c179b555cc72d29a352dbc33cff48ad5a0412fd5bfc7"
"""The base that deploy/Dockerfile names."""
PYTHON = "3.11"
"""Python version of every base."""


def own() -> str | None:
    """Return the image name of the newest base that `hack.images.python_base` built, or None."""
    archive = _archive()
    return None if archive is None else _reference(archive)


def is_available(docker: Docker) -> bool:
    """Whether `provide` finds a base."""
    return docker.has_image(OFFICIAL) or _archive() is not None or docker.offers(OFFICIAL)


def provide(docker: Docker, progress: Progress) -> str:
    """Return a base image after it was imported or pulled into the engine.

    Raises:
        BinaryError: no base image is available.
        DockerError: the engine could not import or pull it.
    """
    if docker.has_image(OFFICIAL):
        return OFFICIAL
    archive = _archive()
    if archive is not None:
        reference = _reference(archive)
        if not docker.has_image(reference):
            progress(f"{reference}: importing into the Docker engine")
            docker.call("import", archive, reference)
        return reference
    if docker.offers(OFFICIAL):
        docker.pull(OFFICIAL, progress)
        return OFFICIAL
    raise BinaryError(
        f"there is no base image: the registry of {OFFICIAL} is unreachable, and no base was built here",
        "docker images",
        f"load {OFFICIAL} into the engine (docker load --input FILE), "
        "or build a base in a checkout of schedspec: python -m hack.images.python_base build",
    )


def _archive() -> Path | None:
    return archives.newest(f"python-{PYTHON}")


def _reference(archive: Path) -> str:
    return f"schedspec.local/python:{archive.stem.removeprefix('python-')}"
