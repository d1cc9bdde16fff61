"""End what a record stands for: its processes, its containers, its files. Needs nothing but the record.

Safe to repeat and to run twice at once: the owner, its guardian and somebody at a prompt may all come to it.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import psutil

from harness.clusters.registry import Record, Registry

_PROGRAMS = frozenset({"etcd", "kube-apiserver", "kube-controller-manager", "kwok", "kwok-controller", "kwokctl"})


def destroy(record: Record, registry: Registry | None = None) -> None:
    """Leave nothing of the cluster."""
    if record.kind == "kind":
        from harness.clusters.kind import delete_cluster  # noqa: PLC0415 - only where there is such a cluster

        delete_cluster(record.name)
    end_programs(record.home)
    (registry or Registry()).remove(record)


def sweep(registry: Registry | None = None) -> list[Record]:
    """Destroy what was abandoned: its owner is gone, and so was its guardian."""
    registry = registry or Registry()
    abandoned = [record for record in registry.records() if record.abandoned]
    for record in abandoned:
        destroy(record, registry)
    return abandoned


def end_programs(home: Path) -> None:
    """Kill the cluster's programs that were started with this directory in their arguments; nothing in them is worth
    a graceful end."""
    found = programs_of(home)
    for process in found:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(found, timeout=5)


def programs_of(home: Path) -> list[psutil.Process]:
    """The cluster's running programs, told by name and arguments: a process id on disk could be somebody else's."""
    sign = f"{home}/"
    return [
        process
        for process in psutil.process_iter(["name", "cmdline"])
        if Path((process.info["cmdline"] or [""])[0]).name in _PROGRAMS
        and any(sign in word for word in process.info["cmdline"])
    ]
