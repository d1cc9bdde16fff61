"""State of waiting jobs that one cycle hands to the next, as data: part of its decisions, and so of recordings."""

from __future__ import annotations

import msgspec

from ..reasons import Refusal
from .lines import Place


class HoldingsBound(msgspec.Struct, frozen=True, order=True):
    """A job waits for a quota until its queue holds at most `most` of a dimension.

    Attributes:
        dimension: Empty if any change of what the queue and the queues below it hold could help.
        needed: Only the part of the holdings counts that the queue's jobs need to start (as at admission).
        of_deserved: `most` is relative to what the queue deserves. That amount depends on the requests of all queues;
            only the queue plugin computes it, in each cycle anew.
    """

    queue: str
    dimension: str = ""
    most: int = 0
    needed: bool = False
    of_deserved: bool = False


class Waiting(msgspec.Struct, frozen=True):
    """State of a job that was refused. The job is skipped until a change could help it or its retry time has come.

    Times are seconds since 1970.

    Attributes:
        refusal: Why the job waits.
        topics: Changes that could help (`scheduler.model.changes`).
        least: Capacity of at least this much, freed on a node, could help; None if capacity could not.
        quotas: A change of what jobs hold, request or reserve could help if one of these bounds holds after it.
        tried: Actions that have tried the job, if a cycle was cut before all had; empty if all have.
        retry_at: When the job is tried again in any case.
        not_before: Until when the job is not tried, whatever changes, because of the cost of its last attempt.
        costly: The number of expensive attempts in a row that failed.
        late: The job exceeded the maximum steps of one job, and is tried after all others.
        places: Task → node, for a job that only waits for capacity being freed. The job keeps this capacity in the
            cycles that continue a cut one, and no longer.
        retries: How many times in a row the job was tried again because of time alone and got the same refusal.
        line: The line of equal jobs in which the job waits (`scheduler.backlog.lines`); empty if it waits alone.
        created: When the job was created.
        rank: The place of the job's priority in the order of its line, if jobs of all priorities share it.
    """

    refusal: Refusal
    topics: tuple[str, ...] = ()
    least: dict[str, int] | None = None
    quotas: tuple[HoldingsBound, ...] = ()
    tried: tuple[str, ...] = ()
    retry_at: float = 0.0
    not_before: float = 0.0
    costly: int = 0
    late: bool = False
    places: dict[str, str] = {}
    retries: int = 0
    line: str = ""
    created: float = 0.0
    rank: int = 0

    def place(self, key: str) -> Place:
        """Return the place of the job in its line."""
        return (self.rank, self.created, key)


class Memory(msgspec.Struct):
    """State that the next cycle needs: changed and removed entries of the backlog, due jobs, and turns.

    `policy` is a fingerprint: under another policy the state is ignored.
    """

    policy: str = ""
    waiting: dict[str, Waiting] = {}
    forgotten: list[str] = []
    due: list[str] = []
    turns: dict[str, dict[str, int]] = {}
    held: dict[str, str] = {}
    """Task → node, for tasks whose jobs keep capacity although they cannot start yet (as `sla` permits)."""
    lapses: dict[str, float] = {}
    """Job → when its reservation lapses, for jobs whose pods request less (`scheduler.backlog.reservations`)."""
