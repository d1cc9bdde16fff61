"""Find and end a cluster's programs by name and arguments.

No process id is stored on disk, because it could belong to another process by now.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import psutil

_PROGRAMS = frozenset({"etcd", "kube-apiserver", "kube-controller-manager", "kwok", "kwok-controller", "kwokctl"})

_END_SECONDS = 5.0


def end_programs(home: Path) -> None:
    """Kill the cluster's programs that were started with this directory in their arguments.

    They need no graceful end.
    """
    found = programs_of(home)
    for process in found:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    end = time.monotonic() + _END_SECONDS
    while any(runs(process.pid) for process in found) and time.monotonic() < end:
        time.sleep(0.01)


def runs(pid: int) -> bool:
    """Whether the process runs.

    A zombie whose last thread has ended holds no port, memory or file and does not count.
    """
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1
    except psutil.NoSuchProcess:  # includes psutil.ZombieProcess
        return False


def programs_of(home: Path) -> list[psutil.Process]:
    """Return the running programs that have this directory in their arguments."""
    path_prefix = f"{home}/"
    return [
        process
        for process in psutil.process_iter(["name", "cmdline"])
        if Path((process.info["cmdline"] or [""])[0]).name in _PROGRAMS
        and any(path_prefix in word for word in process.info["cmdline"])
    ]
