"""The program `python -m scheduler`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_COUNT = "import psutil, scheduler.__main__, scheduler.live.process; print(psutil.Process().num_threads())"


def test_numpy_starts_no_threads_in_the_schedulers_process() -> None:
    """On a machine with one CPU, numpy never starts threads, so the test proves nothing there."""
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    command = [sys.executable, "-c", _COUNT]
    done = subprocess.run(command, env=environment, cwd=_ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
