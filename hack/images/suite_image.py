"""Build the image of deploy/suite without an image registry: pytest, our features and the programs of a cluster.

The build uses no network. Wheels and programs are provided before the build.

    python -m hack.images.suite_image build    # print the image's name and the path of its archive
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hack.images import command, python_base
from schedspec.clusters.docker import Docker
from schedspec.clusters.images import archives, dockerfile, scheduler_image
from schedspec.clusters.images import dockerfile as base
from schedspec.clusters.programs.binaries import provide
from schedspec.clusters.programs.pinned import EMBEDDED, programs
from schedspec.clusters.protocol import Progress

ROOT = Path(__file__).parents[2]
SUITE = ROOT / "deploy" / "suite"

NAME = "schedspec.local/suite"
"""The image's name in deploy/suite/job.yaml; an overlay replaces the tag."""

_PARTS = ("schedspec", "steps", "scheduler", "templates", "kind-config", "features", "deploy/suite")
"""Folders that the Dockerfile copies."""


def tag() -> str:
    """Return a digest of everything that the image is made from."""
    digest = hashlib.sha256((base.own() or base.OFFICIAL).encode())
    for path, source in sorted(_sources()):
        digest.update(f"\0{path}\0".encode() + source.read_bytes())
    for program in programs(EMBEDDED):
        digest.update(program.key.encode())
    return digest.hexdigest()[:12]


def archive(docker: Docker, progress: Progress) -> tuple[str, Path]:
    """Return the image's tag and the path of its archive for `Cluster.load_image`. Builds the image if necessary.

    Raises:
        ClusterError: the image could not be built.
    """
    python_base.ensure(docker, progress)
    current = tag()
    return current, archives.kept(f"suite-{current}.tar", lambda path: _make(docker, current, path, progress), progress)


def _make(docker: Docker, current: str, to: Path, progress: Progress) -> None:
    packages = scheduler_image.provide_wheels(docker, "suitewheels", SUITE / "requirements.lock", progress)
    binaries = provide(EMBEDDED, folder=None, progress=progress)
    with tempfile.TemporaryDirectory(dir=to.parent, prefix=".suite-") as folder:
        context = Path(folder)
        for path, source in _sources():
            (context / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, context / path)
        scheduler_image.unpack_wheels(packages, context)
        (context / "programs").mkdir()
        for name, binary in binaries.items():
            shutil.copy(binary.path, context / "programs" / name)
        dockerfile.build(docker, f"{NAME}:{current}", SUITE / "Dockerfile", context=context, to=to, progress=progress)


def _sources() -> Iterator[tuple[str, Path]]:
    """Yield each file that the Dockerfile copies: its path in the build context, and its path here."""
    for part in _PARTS:
        for source in (ROOT / part).rglob("*"):
            if source.is_file() and "__pycache__" not in source.parts:
                yield source.relative_to(ROOT).as_posix(), source


def build(docker: Docker, progress: Progress) -> str:
    """Build the image. Return its name with its tag, and the path of its archive on a second line."""
    current, path = archive(docker, progress)
    return f"{NAME}:{current}\n{path}"


if __name__ == "__main__":
    sys.exit(command.run("python -m hack.images.suite_image", {"build": build}))
