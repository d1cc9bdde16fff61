"""Build the scheduler's image from this checkout without an image registry.

python -m hack.images.scheduler_image build    # print the image's name and the path of its archive
"""

from __future__ import annotations

import sys

from hack.images import command, python_base
from schedspec.clusters.docker import Docker
from schedspec.clusters.images import scheduler_image
from schedspec.clusters.protocol import Progress


def build(docker: Docker, progress: Progress) -> str:
    """Build the image, and its base where neither the engine nor a registry has one.

    Returns:
        The image's name with its tag, and the path of its archive on a second line.

    Raises:
        ClusterError: the image could not be built.
    """
    python_base.ensure(docker, progress)
    tag, path = scheduler_image.archive(docker, progress)
    return f"{scheduler_image.NAME}:{tag}\n{path}"


if __name__ == "__main__":
    sys.exit(command.run("python -m hack.images.scheduler_image", {"build": build}))
