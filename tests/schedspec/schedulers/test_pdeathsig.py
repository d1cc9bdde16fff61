"""A process that we start dies with us, even if we are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from schedspec.schedulers import pdeathsig

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs the Linux kernel's PDEATHSIG")

ROOT = Path(__file__).parents[3]
PARENT = f"""
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-I", "-S", {pdeathsig.__file__!r}, str(os.getpid()), "sleep", "600"])
print(child.pid, flush=True)
time.sleep(600)
"""


def test_a_child_dies_with_a_parent_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        while child.name() != "sleep":
            pass  # pdeathsig.py has not executed the command yet
        parent.send_signal(signal.SIGKILL)
    ended, _ = psutil.wait_procs([child], timeout=55)
    assert ended


def test_a_child_whose_parent_has_died_already_does_not_start() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", pdeathsig.__file__, str(os.getpid() + 1), "echo", "alive"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")


def test_the_processes_of_an_exploration_die_with_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "schedspec", "explore", "--seeds", "100000", "--jobs", "2", "--out", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as parent:
        workers: list[psutil.Process] = []
        while len(workers) < 2:
            workers = [child for child in psutil.Process(parent.pid).children() if ignores_interrupts(child)]
        parent.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(workers, timeout=55)
    assert alive == []


def ignores_interrupts(process: psutil.Process) -> bool:
    """Whether a process of the pool is ready: ignoring interrupts is the last thing that it prepares."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text("ascii")
    except OSError:
        return False
    ignored = int(next(line for line in status.splitlines() if line.startswith("SigIgn:")).split()[1], 16)
    return bool(ignored >> (signal.SIGINT - 1) & 1) and "spawn_main" in " ".join(process.cmdline())
