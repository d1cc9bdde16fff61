"""The image of the pods that run on real nodes: `schedspec.local/worker:1`, one program that takes room and time.

python -m schedspec.clusters.images.worker_image     # makes it, prints the archive's path
"""

from __future__ import annotations

import sys
from pathlib import Path

from ... import terminal
from ..paths import cache_root
from ..programs.binaries import Provider, named_folder
from ..programs.cache import Cache
from ..programs.download import Downloads
from ..programs.kind_programs import worker
from ..protocol import Progress
from . import archive_format, archives

NAME = "schedspec.local/worker:1"


def archive(progress: Progress) -> Path:
    """The image, as `Cluster.load_image` takes it; made anew when its sources have changed. Raises ClusterError."""
    program = worker()

    def make(path: Path) -> None:
        built = Provider(Cache(cache_root()), Downloads(), named_folder(None), progress).provide([program])
        archive_format.write(
            path,
            [archive_format.Image(NAME, {"/worker": built["worker"].path}, entrypoint=["/worker"], command=["run"])],
        )

    return archives.kept(f"worker-{program.key}.tar", make, progress)


if __name__ == "__main__":
    lines = terminal.on_stderr()
    made = archive(lines.tell)
    lines.close()
    sys.stdout.write(f"{made}\n")
