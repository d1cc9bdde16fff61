"""Processes that we start die with us, however we die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psutil
import pytest

from schedspec.schedulers import pdeathsig

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's help is Linux's")

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
            pass  # it is not yet what it shall become
        parent.send_signal(signal.SIGKILL)
    gone, _ = psutil.wait_procs([child], timeout=55)
    assert gone


def test_a_child_whose_parent_has_died_already_does_not_start() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", pdeathsig.__file__, str(os.getpid() + 1), "echo", "alive"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
