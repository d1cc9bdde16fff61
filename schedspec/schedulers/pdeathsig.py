"""Run a command, or a process of a pool, that dies with its parent, even if the parent is killed.

    python -I -S pdeathsig.py PARENT-PID COMMAND…

Linux only: the kernel sends SIGKILL. Elsewhere the command outlives a killed parent. Only the standard library is used,
so that the script starts within milliseconds.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Replace this process by the command. Never returns."""
    parent, command = int(arguments[0]), arguments[1:]
    if sys.platform == "linux":
        end_with_parent()
        if os.getppid() != parent:  # the parent died before the request
            sys.exit(1)
    os.execvp(command[0], command)  # noqa: S606 - the purpose of this script


def dying_with_us(*command: object) -> list[str]:
    """Return a command line whose process the kernel ends as soon as this process has died."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *map(str, command)]


def end_with_parent(number: int = signal.SIGKILL) -> None:
    """Let the kernel send this process a signal as soon as its parent has died, which a process of a pool knows."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
    pools = sys.modules.get("multiprocessing.process")
    parent = None if pools is None else pools.parent_process()
    if parent is not None and os.getppid() != parent.pid:  # the parent died before the request
        os.kill(os.getpid(), number)


if __name__ == "__main__":
    main(sys.argv[1:])
