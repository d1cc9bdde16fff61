"""Build the base of the scheduler's and the suite's image where no image registry is reachable: Debian with Python.

python -m hack.images.python_base build    # build the base and keep its archive in the cache
python -m hack.images.python_base where    # print the base that an image build would use here
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from hack.images import command, debian_root
from schedspec.clusters.docker import Docker
from schedspec.clusters.images import archives
from schedspec.clusters.images import dockerfile as found
from schedspec.clusters.protocol import Progress

RECIPE = Path(__file__).parent / "python-base"


def archive() -> Path:
    """Return the path of the built base in the cache. The name changes with the recipe. The file may be missing."""
    key = hashlib.sha256(RECIPE.read_bytes()).hexdigest()[:12]
    return archives.place(f"python-{found.PYTHON}-{key}.tar")


def build(progress: Progress) -> Path:
    """Build the base and keep its archive in the cache.

    Raises:
        BinaryError: mmdebstrap is missing or failed.
    """

    def make(path: Path) -> None:
        debian_root.make(
            RECIPE,
            path,
            lambda s: progress(f"{path.stem}: installing Debian and Python, {s:.0f} s"),
            f"load {found.OFFICIAL} into the engine (docker load --input FILE)",
        )

    return archives.kept(archive().name, make, progress)


def ensure(docker: Docker, progress: Progress) -> None:
    """Build the base unless the engine, the cache or a registry has one.

    Raises:
        BinaryError: mmdebstrap is missing or failed.
    """
    if not found.is_available(docker):
        build(progress)


if __name__ == "__main__":
    sys.exit(
        command.run(
            "python -m hack.images.python_base",
            {"build": lambda _, progress: str(build(progress)), "where": found.provide_base},
        )
    )
