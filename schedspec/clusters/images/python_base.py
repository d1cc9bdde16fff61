"""Which image the scheduler's image is built upon. What is at hand comes before what has to be fetched or made."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from .. import subprocess_run
from ..docker import Docker
from ..paths import part
from ..protocol import BinaryError, Progress
from . import archives

OFFICIAL = "python:3.11-slim@sha256:9c900dea9e8fb7e16277c179b555cc72d29a352dbc33cff48ad5a0412fd5bfc7"
"""What deploy/Dockerfile names."""
PYTHON = "3.11"
"""Of every base that is chosen here."""

_ROOT_SECONDS = 900.0


def own() -> str:
    """The name, in an engine, of the base that is made here."""
    return f"schedspec.local/python:{PYTHON}-{_key()}"


def provide(docker: Docker, progress: Progress) -> str:
    """A base that the engine has now. Raises ClusterError: none is to be had."""
    for reference in (OFFICIAL, own()):
        if docker.has_image(reference):
            return reference
    if not _archive().is_file() and docker.offers(OFFICIAL):
        docker.pull(OFFICIAL, progress)
        return OFFICIAL
    root = archives.kept(_archive().name, lambda path: _make(path, progress), progress)
    progress(f"{own()}: importing into the Docker engine")
    docker.call("import", root, own())
    return own()


def recipe() -> Path:
    return part("deploy") / "base"


def _key() -> str:
    return hashlib.sha256(recipe().read_bytes()).hexdigest()[:12]


def _archive() -> Path:
    return archives.place(f"python-{PYTHON}-{_key()}.tar")


def _make(to: Path, progress: Progress) -> None:
    if shutil.which("mmdebstrap") is None:
        raise BinaryError(
            f"no registry that has {OFFICIAL} is reached, and making a base needs mmdebstrap, which is not installed",
            "PATH",
            f"load {OFFICIAL} into the engine (docker load --input FILE), or apt-get install mmdebstrap",
        )
    in_memory = {"TMPDIR": "/dev/shm"} if os.access("/dev/shm", os.W_OK) else {}  # noqa: S108 - four times as fast
    done = subprocess_run.run(
        [recipe(), to],
        deadline=_ROOT_SECONDS,
        env=in_memory,
        tick=lambda s: progress(f"base of the scheduler's image: installing Debian and Python, {s:.0f} s"),
    )
    if done.status != 0 or not to.is_file():
        raise BinaryError(
            f"mmdebstrap could not make the base (exit status {done.status}):\n{done.last_lines}",
            str(recipe()),
            "repair what it says above; if it cannot download packages, look at apt's configuration",
        )
