"""Make the root file system of an image from Debian packages, with mmdebstrap."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from schedspec.clusters import subprocess_run
from schedspec.clusters.protocol import BinaryError
from schedspec.clusters.subprocess_run import Tick

_SECONDS = 900.0


def make(recipe: Path, to: Path, tick: Tick, instead: str) -> None:
    """Run `recipe` with the path of the tar file to write.

    Args:
        recipe: Executable that calls mmdebstrap.
        to: The tar file.
        tick: Called every few seconds with the seconds since the start.
        instead: What a user can do without mmdebstrap.

    Raises:
        BinaryError: mmdebstrap is missing or failed.
    """
    if shutil.which("mmdebstrap") is None:
        raise BinaryError(
            "building the image needs mmdebstrap, and mmdebstrap is not installed",
            "PATH",
            f"apt-get install mmdebstrap (Debian or Ubuntu), or {instead}",
        )
    in_memory = {"TMPDIR": "/dev/shm"} if os.access("/dev/shm", os.W_OK) else {}  # noqa: S108 - four times as fast
    done = subprocess_run.run([recipe, to], deadline=_SECONDS, env=in_memory, tick=tick)
    if done.status != 0 or not to.is_file():
        raise BinaryError(
            f"mmdebstrap could not make the Debian root (exit status {done.status}):\n{done.last_lines}",
            str(recipe),
            "repair the failure above; if mmdebstrap cannot download packages, check apt's configuration",
        )
