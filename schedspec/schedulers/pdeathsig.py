"""Runs a command that dies when its parent does, however that dies. Linux: the kernel sends SIGKILL; elsewhere the
command outlives a parent that was killed. Uses nothing but the standard library: it starts in a few milliseconds.

    python -I -S pdeathsig.py PARENT-PID COMMAND…
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Become the command. Never returns."""
    parent, command = int(arguments[0]), arguments[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before we could ask
            sys.exit(1)
    os.execvp(command[0], command)  # noqa: S606 - that is what we are for


if __name__ == "__main__":
    main(sys.argv[1:])
