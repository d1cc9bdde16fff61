"""What changed from outside: changes that no eviction explains. Numbers are those of the acts in the ledger."""

from __future__ import annotations

import bisect

_ENDS, _JOBS = 64, 8
"""How many of the last ends of pods, and of the last changes of jobs, are kept."""


class Changes:
    """The last changes of a cluster."""

    def __init__(self) -> None:
        self.of_cluster = 0
        """Number of the last change of a node or a queue."""
        self._of_jobs: dict[str, int] = {}
        """Number of the last creation or deletion of a job, for the last few of them."""
        self._ends: list[tuple[int, int]] = []
        """Pods that ended by themselves: the number of the last eviction of their job, and of their end.

        Both grow: an end that a later one of a job evicted earlier makes superfluous is not kept.
        """

    def of_job(self, key: str, number: int) -> None:
        """Note that a job was created or deleted."""
        self._of_jobs.pop(key, None)
        self._of_jobs[key] = number
        if len(self._of_jobs) > _JOBS:
            del self._of_jobs[next(iter(self._of_jobs))]

    def of_pod(self, evicted: int, number: int) -> None:
        """Note that a pod ended by itself; `evicted` is the number of the last eviction of its job."""
        while self._ends and self._ends[-1][0] >= evicted:
            self._ends.pop()
        self._ends.append((evicted, number))
        del self._ends[:-_ENDS]

    def since(self, number: int, own: set[str]) -> bool:
        """Whether something changed after an act: a node, a queue, a job not in `own`, or a pod ended by itself.

        Pods of a job that was evicted since may end as a consequence.
        """
        if self.of_cluster > number or any(at > number for key, at in self._of_jobs.items() if key not in own):
            return True
        index = bisect.bisect_right(self._ends, number, key=lambda end: end[0]) - 1
        return index >= 0 and self._ends[index][1] > number
