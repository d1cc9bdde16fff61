"""Monitors over a load: find violations of rules that must hold however long jobs wait.

| rule | what it finds |
| --- | --- |
| `guarantee` | a queue with work that waits holds less than its guarantee |
| `repeated-eviction` | pods of a job are evicted at two moments for the same preemptor |
| `disproportionate-eviction` | more is evicted for a job than its request plus one victim for each of its pods |
| `eviction-in-vain` | pods are evicted for a job that does not start |

The first three are also monitors of live scenarios; here they judge jobs instead of pods.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..simulate.bookkeeping import LOAD
from ..simulate.records import JobRecord
from .answer import Finding

_ROUNDING = 1e-6


def of_jobs(jobs: Mapping[str, JobRecord]) -> Iterator[Finding]:
    """Judge the evictions of a simulation."""
    amounts: dict[tuple[str, float], list[float]] = defaultdict(list)
    for job in jobs.values():
        moments: dict[str, set[float]] = defaultdict(set)
        for eviction in job.evictions:
            if eviction.preemptor:
                moments[eviction.preemptor].add(eviction.at)
                amounts[eviction.preemptor, eviction.at].append(eviction.cards)
        for name, times in moments.items():
            if len(times) > 1:
                text = f"evicted {len(times)} times for {name}"
                yield Finding("repeated-eviction", job.job, job.queue, text)
    in_vain = set()
    for (name, _), cards in amounts.items():
        preemptor = jobs.get(name.removeprefix(LOAD))
        if preemptor is None:
            continue
        bound = preemptor.cards + preemptor.pods * max(cards)
        if sum(cards) > bound + _ROUNDING:
            text = f"{sum(cards):g} cards are evicted at once for {preemptor.cards:g}"
            yield Finding("disproportionate-eviction", preemptor.job, preemptor.queue, text)
        if preemptor.started is None and preemptor.outcome == "waiting":
            in_vain.add(preemptor.job)
    for name in sorted(in_vain):
        yield Finding("eviction-in-vain", name, jobs[name].queue, "pods are evicted for it, and it does not start")


def of_queues(metrics: Mapping[str, Any]) -> Iterator[Finding]:
    """Judge the metrics of the queues."""
    for name, queue in sorted(metrics.get("queues", {}).items()):
        if (seconds := queue["below_guarantee_seconds"]) > 0:
            yield Finding("guarantee", name, name, f"below its guarantee for {seconds:.0f} s while its jobs wait")


def caused(now: Iterable[Finding], proposed: Iterable[Finding]) -> list[Finding]:
    """Return the findings of the proposed world only, one for each rule and subject."""
    known = {(finding.rule, finding.subject) for finding in now}
    found = {
        (finding.rule, finding.subject): finding for finding in proposed if (finding.rule, finding.subject) not in known
    }
    return [found[key] for key in sorted(found)]
