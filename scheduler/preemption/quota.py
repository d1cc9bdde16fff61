"""Whose holdings count against a preemptor's queue.

The one rule: a limit is shared by the queues below it; evicting in any other queue frees no quota.
"""

from __future__ import annotations

from ..framework.session import Session
from ..model.queue import ROOT, Queue


def related_queues(session: Session, queue: Queue) -> set[str]:
    """Queues that share a limit with this one: itself, and those below a common ancestor other than the root."""
    queues = session.queues

    def lineage(name: str) -> set[str]:
        line: list[str] = []
        while name and name != ROOT and name in queues and name not in line:
            line.append(name)
            name = queues[name].parent
        return set(line)

    own = lineage(queue.name)
    return {name for name in queues if lineage(name) & own and (name == queue.name or name not in own)}
