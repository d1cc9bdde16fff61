"""Remove the cluster of a killed run, in a small process that outlives the cluster's owner for a moment.

    python -m schedspec.clusters.reaper NAME

The process waits until the owner ends, or until the record disappears because the owner removed the cluster itself.
"""

from __future__ import annotations

import subprocess
import sys
import time

from .. import distribution
from .cleanup import destroy
from .paths import state_root
from .registry import ClusterRecord, Registry

_POLL = 0.25


def start(record: ClusterRecord) -> subprocess.Popen[bytes]:
    """Start a reaper for a cluster of this process. Call `stop` after the cluster was removed."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", __name__, record.name],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={**distribution.environment(), "SCHEDSPEC_STATE": str(state_root())},
        start_new_session=True,  # Ctrl-C at the terminal goes to the owner only
    )


def stop(reaper: subprocess.Popen[bytes]) -> None:
    reaper.kill()
    reaper.wait()


def watch(name: str, registry: Registry) -> None:
    """Remove the cluster once its owner has ended. Return when the cluster needs no reaper any more."""
    while record := registry.find(name):
        if record.keep:
            return
        if not record.owner.alive:
            destroy(record, registry)
            return
        time.sleep(_POLL)


if __name__ == "__main__":
    watch(sys.argv[1], Registry())
