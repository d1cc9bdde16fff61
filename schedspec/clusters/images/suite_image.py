"""The suite as an image, for deploy/suite: pytest with our features and the programs of an embedded cluster.

The one rule: the build itself uses no network; wheels and programs are provided before.

python -m schedspec.clusters.images.suite_image     # makes it, prints its name and the archive's path
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ... import distribution
from ..docker import Docker
from ..paths import part
from ..programs.binaries import provide
from ..programs.pinned import EMBEDDED, programs
from ..protocol import Progress
from . import archives, command, dockerfile, python_base, wheels

NAME = "schedspec.local/suite"
"""The image's name in deploy/suite/job.yaml; its tag there is to be replaced by ours."""

_PARTS = ("steps", "scheduler", "templates", "kind-config", "features")


def tag() -> str:
    """Changes with everything that the image is made from."""
    digest = hashlib.sha256(python_base.recipe().read_bytes())
    for path, source in sorted(_sources()):
        digest.update(f"\0{path}\0".encode() + source.read_bytes())
    for program in programs(EMBEDDED):
        digest.update(program.key.encode())
    return digest.hexdigest()[:12]


def archive(docker: Docker, progress: Progress) -> tuple[str, Path]:
    """The image's tag and its archive, as `Cluster.load_image` takes it, made if need be. Raises ClusterError."""
    docker.require()
    now = tag()
    return now, archives.kept(f"suite-{now}.tar", lambda path: _make(docker, now, path, progress), progress)


def _make(docker: Docker, now: str, to: Path, progress: Progress) -> None:
    packages = wheels.provide(docker, "suitewheels", _suite() / "requirements.lock", progress)
    binaries = provide(EMBEDDED, folder=None, progress=progress)
    with tempfile.TemporaryDirectory(dir=to.parent, prefix=".suite-") as folder:
        context = Path(folder)
        for path, source in _sources():
            (context / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, context / path)
        wheels.unpack(packages, context)
        (context / "programs").mkdir()
        for name, binary in binaries.items():
            shutil.copy(binary.path, context / "programs" / name)
        dockerfile.build(docker, f"{NAME}:{now}", _suite() / "Dockerfile", context=context, to=to, progress=progress)


def _sources() -> Iterator[tuple[str, Path]]:
    """What the Dockerfile copies, by its place in the context: laid out as a checkout, also from an installed wheel."""
    package = Path(distribution.__file__).parent
    inside = {*_PARTS, "deploy"} if distribution.INSTALLED else set()
    folders = {"schedspec": package, **{name: part(name) for name in _PARTS}, "deploy/suite": _suite()}
    for name, folder in folders.items():
        for source in folder.rglob("*"):
            path = source.relative_to(folder)
            if (
                source.is_file()
                and "__pycache__" not in path.parts
                and not (folder == package and path.parts[0] in inside)
            ):
                yield f"{name}/{path.as_posix()}", source


def _suite() -> Path:
    return part("deploy") / "suite"


if __name__ == "__main__":
    sys.exit(command.run(NAME, archive))
