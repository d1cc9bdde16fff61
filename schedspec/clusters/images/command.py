"""The command line of an image that is made here: make it, tell its name and its archive."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from ... import terminal
from ..docker import Docker
from ..protocol import ClusterError, Progress


def run(name: str, archive: Callable[[Docker, Progress], tuple[str, Path]]) -> int:
    """Print the image's name with the tag that ``archive`` gives, and the archive's path. The exit status."""
    lines = terminal.on_stderr()
    try:
        now, path = archive(Docker(), lines.tell)
    except ClusterError as error:
        lines.close()
        sys.stderr.write(f"{error}\n")
        return 1
    lines.close()
    sys.stdout.write(f"{name}:{now}\n{path}\n")
    return 0
