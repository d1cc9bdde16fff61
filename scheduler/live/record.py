"""What happened, kept so that it can be decided again: ``--record DIR`` and SIGUSR2.

The one rule: each file stands for itself. It begins with a checkpoint of the state, then has every later input in the
order in which the state took it in, one JSON object a line (:mod:`scheduler.inputs`), compressed.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from scheduler.inputs import Assumed, Input, PolicyLoaded, Seen, Started, write_line
from scheduler.live.policy_file import InForce
from scheduler.model.cluster import Cluster

log = logging.getLogger(__name__)

VERSION = 1
_FLUSH_EVERY = 0.5
_MOST_BYTES = 64 << 20
"""Of a file before compression; then comes the next."""
_KEPT = 8
"""Files of a directory that are kept."""


def checkpoint(cluster: Cluster, policy: InForce) -> Iterator[Input]:
    """Inputs that lead from an empty state to this one."""
    yield Started(VERSION, sorted(cluster.scheduler_names), cluster.node_selector)
    yield PolicyLoaded(policy.path, policy.text)
    kinds: dict[str, Iterator[Any]] = {
        "PriorityClass": iter(cluster.priority_classes.values()),
        "Namespace": iter(cluster.namespaces.values()),
        "Queue": (queue.object for queue in cluster.queues.values()),
        "PodGroup": (job.group for job in cluster.jobs.values() if job.group is not None),
        "Node": (node.object for node in cluster.nodes.by_name.values()),
        "PersistentVolume": iter(cluster.volumes.values()),
        "PersistentVolumeClaim": iter(cluster.claims.values()),
        "PodDisruptionBudget": iter(cluster.budgets.values()),
        "Pod": (task.pod for task in cluster.tasks.values()),
    }
    for kind, objects in kinds.items():
        for item in objects:
            yield Seen(kind, item)
    for task in cluster.tasks.values():
        if task.assumed:
            bound_by_us = task.node and not task.pod.spec.node_name
            yield Assumed(task.key, task.uid, task.node if bound_by_us else "")


def write_once(path: Path, lines: Iterable[Input]) -> None:
    """A whole record in one file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wb", compresslevel=1) as file:
        for line in lines:
            file.write(write_line(line) + b"\n")


class Record:
    """The running record of a process, in a directory: files ``schedspec-<started>-<number>.jsonl.gz``, the oldest
    ones deleted.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._name = f"schedspec-{time.strftime('%Y%m%dT%H%M%S')}"
        self._number = 0
        self._size = 0
        self._lines: list[bytes] = []
        self._file: gzip.GzipFile | None = None
        directory.mkdir(parents=True, exist_ok=True)

    @property
    def is_full(self) -> bool:
        """Whether it is time for a new file (and a new checkpoint)."""
        return self._size >= _MOST_BYTES or self._number == 0

    def begin(self, cluster: Cluster, policy: InForce) -> None:
        """Begin a new file with a checkpoint; between two cycles only."""
        self._write_out()
        if self._file is not None:
            self._file.close()
        self._number += 1
        self._size = 0
        path = self._directory / f"{self._name}-{self._number:05}.jsonl.gz"
        self._file = gzip.GzipFile(path, "wb", compresslevel=1)
        for given in checkpoint(cluster, policy):
            self.add(given)
        for old in sorted(self._directory.glob("schedspec-*.jsonl.gz"))[:-_KEPT]:
            old.unlink(missing_ok=True)

    def add(self, given: Input) -> None:
        """Note an input that the state has just taken in. Nothing is noted before the first ``begin``."""
        if self._file is None:
            return
        line = write_line(given)
        self._size += len(line) + 1
        self._lines.append(line)

    async def run(self) -> None:
        """Write to disk until cancelled."""
        while True:
            await asyncio.sleep(_FLUSH_EVERY)
            self._write_out()

    def close(self) -> None:
        self._write_out()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write_out(self) -> None:
        if self._file is None or not self._lines:
            return
        lines, self._lines = self._lines, []
        try:
            self._file.write(b"\n".join(lines) + b"\n")
            self._file.flush()
        except OSError as error:  # a full disk must not stop the scheduling
            log.error("the record ends here: %s", error)
            self._file = None
