"""Images of single programs for a Kind cluster's nodes: images that the user names, and images built from a program."""

from __future__ import annotations

from pathlib import Path

from ..docker import Docker
from ..programs.download import sha256
from ..protocol import Progress
from . import archives


def require(reference: str) -> None:
    """Check that an image is in the Docker engine, or in a registry that the engine can reach.

    Raises:
        DockerError: no engine answers, or it cannot provide the image.
    """
    docker = Docker()
    docker.require()
    docker.require_image(reference)


def saved(reference: str, to: Path, progress: Progress) -> Path:
    """Save an image of the engine as an archive for `Cluster.load_image`. Pull it first if the engine lacks it.

    Raises:
        DockerError: the engine cannot provide the image.
    """
    docker = Docker()
    if not docker.has_image(reference):
        docker.pull(reference, progress)
    to.parent.mkdir(parents=True, exist_ok=True)
    docker.call("save", "--output", to, reference, tick=lambda s: progress(f"{reference}: saving, {s:.0f} s"))
    return to


def made(program: Path, version: str, path: str, progress: Progress) -> tuple[str, Path]:
    """Return the name and the archive of an image of one static program.

    Args:
        program: The program.
        version: Its version: the tag of the image.
        path: Absolute path of the program in the image; also the entrypoint.
        progress: Receives a line of progress.
    """
    name = f"schedspec.local/{program.name}:{version}"
    image = archives.Image(name, {path: program}, entrypoint=[path])
    family, digest = program.name.replace("-", ""), sha256(program)[:12]
    return name, archives.kept(f"{family}-{digest}.tar", lambda to: archives.write(to, [image]), progress)
