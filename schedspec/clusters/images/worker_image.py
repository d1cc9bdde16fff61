"""The image of pods that run on real nodes, `schedspec.local/worker:1`: one program that uses resources for a while.

python -m schedspec.clusters.images.worker_image     # build it if necessary, print the archive's path
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from ... import terminal
from ..paths import cache_root, kind_config
from ..programs.binaries import Provider, named_folder
from ..programs.cache import Cache
from ..programs.download import Downloads
from ..programs.pinned import Program, target
from ..protocol import Progress
from . import archives


class SourceProgram(Program):
    """A program whose sources are in the folder of its go.mod. The sources are part of the key."""

    __slots__ = ()

    @property
    def key(self) -> str:
        digest = hashlib.sha256("\0".join([self.name, self.version, self.package, self.ldflags, *target()]).encode())
        sources = kind_config() / "worker"
        for source in sorted([*sources.glob("go.*"), *sources.glob("*.go")]):
            digest.update(f"\0{source.name}\0".encode() + source.read_bytes())
        return digest.hexdigest()[:12]


def worker() -> Program:
    """Return the program of the worker image; kind-config/worker/main.go documents its arguments."""
    return SourceProgram("worker", "v1", kind_config() / "worker", ".", "", None)


NAME = "schedspec.local/worker:1"


def archive(progress: Progress) -> Path:
    """Return the image's archive for `Cluster.load_image`. Builds it again when its sources have changed.

    Raises:
        ClusterError: the image could not be built.
    """
    program = worker()

    def make(path: Path) -> None:
        built = Provider(Cache(cache_root()), Downloads(), named_folder(None), progress).provide([program])
        archives.write(
            path,
            [archives.Image(NAME, {"/worker": built["worker"].path}, entrypoint=["/worker"], command=["run"])],
        )

    return archives.kept(f"worker-{program.key}.tar", make, progress)


if __name__ == "__main__":
    lines = terminal.on_stderr()
    made = archive(lines.show)
    lines.close()
    sys.stdout.write(f"{made}\n")
