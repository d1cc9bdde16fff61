"""An image from a Dockerfile of ours: built by the engine without a network, saved as an archive.

Whatever the build needs is in its context before; what the engine had of earlier versions is removed.
"""

from __future__ import annotations

from pathlib import Path

from ..docker import Docker
from ..protocol import Progress
from . import python_base

_BUILD_SECONDS = 900.0


def build(docker: Docker, reference: str, recipe: Path, *, context: Path, to: Path, progress: Progress) -> None:
    """Build `reference` (a name with a tag) and save it. Raises ClusterError."""
    base = python_base.provide(docker, progress)
    for path in context.rglob("*"):  # readable by anybody, whatever umask the checkout was made with
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    progress(f"{reference}: building on {base}")
    docker.call(
        *("build", "--quiet", "--network", "none", "--tag", reference, "--file", recipe),
        *("--build-arg", f"BASE={base}", "--build-arg", "PIP_NO_INDEX=1", context),
        deadline=_BUILD_SECONDS,
        tick=lambda s: progress(f"{reference}: building on {base}, {s:.0f} s"),
    )
    docker.call("save", "--output", to, reference, tick=lambda s: progress(f"{reference}: saving, {s:.0f} s"))
    name, _, now = reference.rpartition(":")
    for old in docker.call("images", "--format", "{{.Tag}}", name).split():
        if old != now:
            docker.succeeds("rmi", f"{name}:{old}", deadline=60)
