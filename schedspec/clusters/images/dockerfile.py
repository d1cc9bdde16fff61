"""Build an image from one of our Dockerfiles without network access, and save it as an archive.

The build context has everything that the build needs. Images of earlier versions are then removed from the engine.
"""

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


def provide_base(docker: Docker, progress: Progress) -> str:
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


_BUILD_SECONDS = 900.0


def build(docker: Docker, reference: str, recipe: Path, *, context: Path, to: Path, progress: Progress) -> None:
    """Build `reference` (a name with a tag) and save it.

    Args:
        docker: The engine.
        reference: Name of the image.
        recipe: The Dockerfile.
        context: The build context.
        to: Archive to write.
        progress: Receives a line for each step.

    Raises:
        ClusterError: the build failed or no base is available.
    """
    base = provide_base(docker, progress)
    for path in context.rglob("*"):  # readable by everybody, independent of the umask of the checkout
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    progress(f"{reference}: building on {base}")
    docker.call(
        *("build", "--quiet", "--network", "none", "--tag", reference, "--file", recipe),
        *("--build-arg", f"BASE={base}", "--build-arg", "PIP_NO_INDEX=1", context),
        deadline=_BUILD_SECONDS,
        tick=lambda s: progress(f"{reference}: building on {base}, {s:.0f} s"),
    )
    docker.call("save", "--output", to, reference, tick=lambda s: progress(f"{reference}: saving, {s:.0f} s"))
    name, _, tag = reference.rpartition(":")
    for old in docker.call("images", "--format", "{{.Tag}}", name).split():
        if old != tag:
            docker.succeeds("rmi", f"{name}:{old}", deadline=60)
