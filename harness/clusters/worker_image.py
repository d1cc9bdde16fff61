"""The image of the pods that run on real nodes: `schedspec.local/worker:1`, one program that takes room and time.

python -m harness.clusters.worker_image     # makes it, prints the archive's path
"""

from __future__ import annotations

import sys
from pathlib import Path

from harness.clusters import image_archive, images
from harness.clusters.binaries import Provider, named_folder
from harness.clusters.cache import Cache
from harness.clusters.download import Downloads
from harness.clusters.own_programs import worker
from harness.clusters.places import cache_root
from harness.clusters.protocol import Progress

NAME = "schedspec.local/worker:1"


def archive(progress: Progress) -> Path:
    """The image, as `Cluster.load_image` takes it; made anew when its sources have changed. Raises ClusterError."""
    program = worker()

    def make(path: Path) -> None:
        built = Provider(Cache(cache_root()), Downloads(), named_folder(None), progress).provide([program])
        image_archive.write(
            path,
            [image_archive.Image(NAME, {"/worker": built["worker"].path}, entrypoint=["/worker"], command=["run"])],
        )

    return images.kept(f"worker-{program.key}.tar", make, progress)


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.stdout.write(f"{archive(_tell)}\n")
