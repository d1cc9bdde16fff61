"""Exact references for queues of jobs in time, and closed forms of queueing theory.

The references share no code with the scheduler: they are an event loop over jobs and free cards, with the rules of each
discipline.
"""

from __future__ import annotations

import bisect
import heapq
import math
import random
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple


class Job(NamedTuple):
    """A gang of `cards` one-card pods."""

    name: str
    submitted: float
    duration: float
    cards: int = 1
    queue: str = "default"


class Discipline(StrEnum):
    """The rule that selects the next waiting job."""

    SKIPPING = "skipping"
    """The first job that fits, in the order of arrival."""
    SHORTEST = "shortest"
    """The shortest job that fits."""
    STRICT = "strict"
    """The first job; later jobs wait even if they fit."""


class _Waiting(NamedTuple):
    key: tuple[float, float, str]
    job: Job


def starts(jobs: Sequence[Job], discipline: Discipline, quotas: Mapping[str, int]) -> dict[str, float]:
    """Return when each job starts if each queue has its own cards (`quotas`).

    Events of the same instant are processed in this order: ends, arrivals, starts.
    """
    free = dict(quotas)
    waiting: dict[str, list[_Waiting]] = {queue: [] for queue in quotas}
    running: list[tuple[float, str, int]] = []
    started: dict[str, float] = {}
    arrivals = sorted(jobs, key=lambda job: (job.submitted, job.name))
    at = 0
    while at < len(arrivals) or running:
        now = min(arrivals[at].submitted if at < len(arrivals) else math.inf, running[0][0] if running else math.inf)
        touched = set()
        while running and running[0][0] == now:
            _, queue, cards = heapq.heappop(running)
            free[queue] += cards
            touched.add(queue)
        while at < len(arrivals) and arrivals[at].submitted == now:
            job = arrivals[at]
            key = (job.duration if discipline is Discipline.SHORTEST else 0.0, job.submitted, job.name)
            bisect.insort(waiting[job.queue], _Waiting(key, job))
            touched.add(job.queue)
            at += 1
        for queue in touched:
            left = []
            for place, entry in enumerate(waiting[queue]):
                job = entry.job
                if not free[queue] or (left and discipline is Discipline.STRICT):
                    left += waiting[queue][place:]
                    break
                if job.cards > free[queue]:
                    left.append(entry)
                    continue
                free[queue] -= job.cards
                started[job.name] = now
                heapq.heappush(running, (now + job.duration, queue, job.cards))
            waiting[queue] = left
    return started


def draws(servers: int, load: float, service: float, number: int, *, seed: int, fixed: bool = False) -> list[Job]:
    """Return Poisson arrivals from 2017 on, at `load` of the servers, with exponential or `fixed` service times."""
    rng = random.Random(seed)
    rate, now, jobs = load * servers / service, 1_500_000_000.0, []
    for index in range(number):
        now += rng.expovariate(rate)
        jobs.append(Job(f"j{index:07}", now, service if fixed else rng.expovariate(1 / service)))
    return jobs


def probability_of_waiting(servers: int, load: float) -> float:
    """Return the probability of waiting by Erlang's C formula."""
    offered = servers * load
    blocking = 1.0
    for number in range(1, servers + 1):  # Erlang's B, by recursion
        blocking = offered * blocking / (number + offered * blocking)
    return blocking / (1 - load + load * blocking)


def mean_wait(servers: int, load: float, service: float, *, fixed: bool = False) -> float:
    """Return the mean wait of M/M/c, or of M/D/1 (Pollaczek and Khinchine)."""
    if fixed:
        assert servers == 1
        return load * service / (2 * (1 - load))
    return probability_of_waiting(servers, load) * service / (servers * (1 - load))
