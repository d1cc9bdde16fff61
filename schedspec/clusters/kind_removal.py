"""Leave nothing of a Kind cluster, whatever state it is in; needs its name only.

Its own process may have been killed while it was being created, and others may be removing it at the same time.
"""

from __future__ import annotations

import contextlib
import time

import psutil

from .docker import Docker, DockerError

_REMOVE_SECONDS = 60.0
_REMOVE_ATTEMPTS = 8


def delete_cluster(name: str) -> None:
    """Remove the containers, volumes and network of a cluster; another process may be at it. Raises DockerError."""
    docker = Docker()
    docker.require()
    of_cluster = f"io.x-k8s.kind.cluster={name}"
    interrupted = _end_creation(name, of_cluster)
    for attempt in range(_REMOVE_ATTEMPTS):
        containers = docker.call("ps", "--all", "--quiet", "--filter", f"label={of_cluster}").split()
        network = docker.succeeds("network", "inspect", name)
        if not (containers or network or interrupted):
            return
        if interrupted or attempt > 1:  # what the engine does for others has to come to its end
            time.sleep(1)
        interrupted = False
        if containers:
            docker.succeeds("rm", "--force", "--volumes", *containers, deadline=_REMOVE_SECONDS)
        if network:
            docker.succeeds("network", "rm", name)
    raise DockerError(
        f"the containers and the network of {name} cannot be removed",
        f"docker ps --all --filter label={of_cluster}",
        "remove them by hand, then: python -m schedspec down",
    )


def _end_creation(name: str, of_cluster: str) -> bool:
    """Kill what still creates this cluster for an owner that was killed; whether there was such a thing."""
    found = [
        process
        for process in psutil.process_iter(["name", "cmdline"])
        if process.info["name"] in ("kind", "docker")
        and not {name, of_cluster}.isdisjoint(process.info["cmdline"] or ())
    ]
    for process in found:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    return bool(found)
