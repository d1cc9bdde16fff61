"""A small process that outlives a cluster's owner by a moment: it cleans up what a killed run could not.

    python -m schedspec.clusters.reaper NAME

It only waits: for the owner to end, or for the record to disappear because the owner cleaned up by itself.
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
    """Guard a cluster of this process. `stop` it after the cluster is gone."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", __name__, record.name],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={**distribution.environment(), "SCHEDSPEC_STATE": str(state_root())},
        start_new_session=True,  # Ctrl-C at the terminal is for the owner
    )


def stop(reaper: subprocess.Popen[bytes]) -> None:
    reaper.kill()
    reaper.wait()


def watch(name: str, registry: Registry) -> None:
    """Return when nothing is left to guard."""
    while record := registry.find(name):
        if record.keep:
            return
        if not record.owner.alive:
            destroy(record, registry)
            return
        time.sleep(_POLL)


if __name__ == "__main__":
    watch(sys.argv[1], Registry())
