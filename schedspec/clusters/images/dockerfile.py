"""Build an image from one of our Dockerfiles without network access, and save it as an archive.

The build context has everything that the build needs. Images of earlier versions are then removed from the engine.
"""

from __future__ import annotations

from pathlib import Path

from ..docker import Docker
from ..protocol import Progress
from . import python_base

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
    base = python_base.provide(docker, progress)
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
