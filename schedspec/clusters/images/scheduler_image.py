"""Build the scheduler's image for `--scheduler-in-cluster` from the sources under test, with deploy/Dockerfile.

The build uses no network. `wheels.provide` fetches the packages before the build, `dockerfile.provide_base` the base.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path

from ..docker import Docker
from ..paths import part
from ..protocol import Progress
from . import archives, dockerfile, wheels

NAME = "schedspec.local/scheduler"
"""The image's name in deploy/deployment.yaml; an overlay replaces the tag."""


def tag() -> str:
    """Return a digest of everything that the image is made from."""
    digest = hashlib.sha256((dockerfile.own() or dockerfile.OFFICIAL).encode())
    for file in [_lock(), _dockerfile(), *_sources()]:
        digest.update(f"\0{file.name}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def archive(docker: Docker, progress: Progress) -> tuple[str, Path]:
    """Return the image's tag and the path of its archive for `Cluster.load_image`. Builds the image if necessary.

    Raises:
        ClusterError: the image could not be built.
    """
    docker.require()
    current = tag()
    file = f"scheduler-{current}.tar"
    return current, archives.kept(file, lambda path: _build(docker, current, path, progress), progress)


def _build(docker: Docker, tag: str, to: Path, progress: Progress) -> None:
    packages = wheels.provide(docker, "wheels", _lock(), progress)
    with tempfile.TemporaryDirectory(dir=to.parent, prefix=".scheduler-") as folder:
        context = Path(folder)
        _fill(context, packages)
        dockerfile.build(docker, f"{NAME}:{tag}", _dockerfile(), context=context, to=to, progress=progress)


def _fill(context: Path, packages: Path) -> None:
    """Fill the build context with the files that the Dockerfile copies."""
    (context / "deploy").mkdir()
    shutil.copyfile(_lock(), context / "deploy" / _lock().name)
    root = part("scheduler")
    for source in _sources():
        copy = context / "scheduler" / source.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
    wheels.unpack(packages, context)


def _lock() -> Path:
    return part("deploy") / "requirements.lock"


def _dockerfile() -> Path:
    return part("deploy") / "Dockerfile"


def _sources() -> list[Path]:
    return sorted(part("scheduler").rglob("*.py"))
