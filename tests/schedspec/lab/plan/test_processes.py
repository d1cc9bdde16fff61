"""The processes of a plan end with the process that started them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[4]
PARENT = """
import signal
from concurrent.futures import ProcessPoolExecutor
from schedspec.schedulers.pdeathsig import end_with_parent

with ProcessPoolExecutor(2, initializer=end_with_parent) as pool:
    pool.map(signal.sigwait, [[signal.SIGUSR1]] * 2)
    print("both were started", flush=True)
"""


def test_the_processes_of_a_plan_end_when_their_parent_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True, cwd=ROOT) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        workers = psutil.Process(parent.pid).children()
        parent.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(workers, timeout=55)
    assert len(workers) == 2
    assert alive == []
