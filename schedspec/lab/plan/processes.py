"""Run the worlds of a plan in processes of their own, which end with the process that started them."""

from __future__ import annotations

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor


def process_pool(workers: int) -> ProcessPoolExecutor:
    """Return a pool whose processes end once this process has ended, even if it was killed.

    The processes of a pool hold both ends of the pipe from which they read their work. Without a parent they would
    therefore wait for ever.
    """
    return ProcessPoolExecutor(workers, initializer=_end_with_parent)


def _end_with_parent() -> None:
    threading.Thread(target=_wait_for_end_of_parent, daemon=True).start()


def _wait_for_end_of_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
