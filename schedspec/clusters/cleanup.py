"""Remove a cluster that is known by its record only: its processes, its containers and its files.

Removal is idempotent and safe to run concurrently. The owner, its reaper and a user at a prompt may all start it.
"""

from __future__ import annotations

import contextlib
import time

import psutil

from .docker import Docker, DockerError
from .protocol import ClusterError
from .registry import ClusterRecord, Registry
from .subprocess_run import end_programs

_REMOVE_SECONDS = 60.0
_REMOVE_ATTEMPTS = 8


def delete_cluster(name: str) -> None:
    """Remove the containers, volumes and network of a Kind cluster, whatever state it is in.

    The process that created it may have been killed halfway, and other processes may remove it at the same time.

    Raises:
        DockerError: the engine could not remove them.
    """
    docker = Docker()
    docker.require()
    cluster_label = f"io.x-k8s.kind.cluster={name}"
    interrupted = _end_creation(name, cluster_label)
    for attempt in range(_REMOVE_ATTEMPTS):
        containers = docker.call("ps", "--all", "--quiet", "--filter", f"label={cluster_label}").split()
        network = docker.succeeds("network", "inspect", name)
        if not (containers or network or interrupted):
            return
        if interrupted or attempt > 1:  # the engine finishes requests of other processes first
            time.sleep(1)
        interrupted = False
        if containers:
            docker.succeeds("rm", "--force", "--volumes", *containers, deadline=_REMOVE_SECONDS)
        if network:
            docker.succeeds("network", "rm", name)
    raise DockerError(
        f"the containers and the network of {name} cannot be removed",
        f"docker ps --all --filter label={cluster_label}",
        "remove them by hand, then: python -m schedspec down",
    )


def _end_creation(name: str, cluster_label: str) -> bool:
    """Kill the processes that create this cluster for a dead owner. Return whether there were any."""
    found = [
        process
        for process in psutil.process_iter(["name", "cmdline"])
        if process.info["name"] in ("kind", "docker")
        and not {name, cluster_label}.isdisjoint(process.info["cmdline"] or ())
    ]
    for process in found:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    return bool(found)


def destroy(record: ClusterRecord, registry: Registry | None = None) -> None:
    """Remove everything that belongs to the cluster."""
    if record.kind == "kind":
        delete_cluster(record.name)
    end_programs(record.home)
    (registry or Registry()).remove(record)


def sweep(registry: Registry | None = None) -> list[ClusterRecord]:
    """Remove the abandoned clusters, whose owner and reaper are both dead.

    A cluster that cannot be removed now, for instance because its Docker engine does not answer, keeps its record. The
    next sweep tries again.
    """
    registry = registry or Registry()
    removed = []
    for record in registry.records():
        if record.abandoned:
            with contextlib.suppress(ClusterError):
                destroy(record, registry)
                removed.append(record)
    return removed
