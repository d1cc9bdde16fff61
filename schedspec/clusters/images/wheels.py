"""Fetch the packages of a lock file as a tar file of wheels, for builds without a network. Uses pip's configuration."""

from __future__ import annotations

import hashlib
import sys
import tarfile
import tempfile
from pathlib import Path

from .. import subprocess_run
from ..docker import Docker
from ..protocol import BinaryError, Progress
from . import archives, dockerfile

_FETCH_SECONDS = 600.0
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_PLATFORMS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")


def provide(docker: Docker, family: str, lock: Path, progress: Progress) -> Path:
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


def unpack(archive: Path, context: Path) -> None:
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
