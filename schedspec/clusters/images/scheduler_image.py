"""The scheduler as an image, made from this checkout by deploy/Dockerfile: what runs is what is under test.

The one rule: the build itself uses no network; the wheels are fetched before.

python -m schedspec.clusters.images.scheduler_image     # makes it, prints its name and the archive's path
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from pathlib import Path

from ..docker import Docker
from ..paths import part
from ..protocol import Progress
from . import archives, command, dockerfile, python_base, wheels

NAME = "schedspec.local/scheduler"
"""The image's name in deploy/deployment.yaml; its tag there is replaced by ours."""


def tag() -> str:
    """Changes with everything of ours that the image is made from."""
    digest = hashlib.sha256(python_base.recipe().read_bytes())
    for file in [_lock(), _dockerfile(), *_sources()]:
        digest.update(f"\0{file.name}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def archive(docker: Docker, progress: Progress) -> tuple[str, Path]:
    """The image's tag and its archive, as `Cluster.load_image` takes it, made if need be. Raises ClusterError."""
    docker.require()
    now = tag()
    return now, archives.kept(f"scheduler-{now}.tar", lambda path: _make(docker, now, path, progress), progress)


def _make(docker: Docker, now: str, to: Path, progress: Progress) -> None:
    packages = wheels.provide(docker, "wheels", _lock(), progress)
    with tempfile.TemporaryDirectory(dir=to.parent, prefix=".scheduler-") as folder:
        context = Path(folder)
        _fill(context, packages)
        dockerfile.build(docker, f"{NAME}:{now}", _dockerfile(), context=context, to=to, progress=progress)


def _fill(context: Path, packages: Path) -> None:
    """What the Dockerfile copies."""
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


if __name__ == "__main__":
    sys.exit(command.run(NAME, archive))
