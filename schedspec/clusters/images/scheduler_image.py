"""Build the scheduler's image for `--scheduler-in-cluster` from the sources under test, with deploy/Dockerfile.

The build uses no network: the packages, as wheels, and the base are fetched before it.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from .. import subprocess_run
from ..docker import Docker
from ..paths import part
from ..protocol import BinaryError, Progress
from . import archives, dockerfile

_FETCH_SECONDS = 600.0
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_PLATFORMS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")


def provide_wheels(docker: Docker, family: str, lock: Path, progress: Progress) -> Path:
    """Return the tar file of the locked packages, for the engine's machine and the base image's Python.

    Args:
        docker: The engine.
        family: First part of the archive's name.
        lock: The lock file.
        progress: Receives a line for each step.

    Raises:
        BinaryError: pip could not fetch the packages.
    """
    architecture = docker.call("version", "--format", "{{.Server.Arch}}").split()[-1]
    machine = _MACHINES.get(architecture, architecture)
    key = hashlib.sha256(f"{machine} {dockerfile.PYTHON}\0".encode() + lock.read_bytes()).hexdigest()[:12]
    return archives.kept(f"{family}-{key}.tar", lambda path: _fetch(lock, machine, path, progress), progress)


def unpack_wheels(archive: Path, context: Path) -> None:
    """Unpack the wheels into the folder that the Dockerfile expects."""
    with tarfile.open(archive) as tar:
        tar.extractall(context / "wheels", filter="data")


def _fetch(lock: Path, machine: str, to: Path, progress: Progress) -> None:
    with tempfile.TemporaryDirectory(dir=to.parent, prefix=".wheels-") as folder:
        command = [*(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check")]
        command += ["--require-hashes", "--only-binary", ":all:", "--dest", folder, "--requirement", str(lock)]
        command += ["--implementation", "cp", "--python-version", dockerfile.PYTHON]
        for platform in _PLATFORMS:
            command += ["--platform", f"{platform}_{machine}"]
        done = subprocess_run.run(
            command,
            deadline=_FETCH_SECONDS,
            tick=lambda s: progress(f"{lock.name}: fetching the locked packages, {s:.0f} s"),
        )
        if done.status != 0:
            raise BinaryError(
                f"pip could not fetch the packages of the image (exit status {done.status}):\n{done.last_lines}",
                str(lock),
                "repair the failure above; if pip reaches no index, check `pip config list`",
            )
        with tarfile.open(to, "w") as tar:
            for wheel in sorted(Path(folder).iterdir()):
                tar.add(wheel, wheel.name)


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
    packages = provide_wheels(docker, "wheels", _lock(), progress)
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
    unpack_wheels(packages, context)


def _lock() -> Path:
    return part("deploy") / "requirements.lock"


def _dockerfile() -> Path:
    return part("deploy") / "Dockerfile"


def _sources() -> list[Path]:
    return sorted(part("scheduler").rglob("*.py"))
