"""Measure what each mechanism of the backlog is worth: the cost of cycles without it, times the cost with all.

`python -m benchmarks.backlog [--philly CSV] [--priorities CSV] [MECHANISM …]` prints a table. A cost is the CPU time of
all cycles of a load in virtual time, each in a process of its own; the steps of these cycles are exact on any machine.
A load that costs `PATIENCE` times as much is not played to its end.
"""

from __future__ import annotations

import argparse
import csv
import math
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from schedspec.scheduler.backlog import cycle_end
from schedspec.scheduler.backlog.backlog import Backlog
from schedspec.scheduler.backlog.hints import ANY
from schedspec.scheduler.backlog.lines import LineRule
from schedspec.scheduler.backlog.view import BacklogView
from schedspec.scheduler.core import Core, LastCycle
from schedspec.scheduler.framework.plugin import OpenedPlugins
from schedspec.scheduler.framework.work import Budget
from schedspec.scheduler.model import objects
from schedspec.scheduler.policy.loader import DEFAULT_TEXT, load_policy
from schedspec.virtual import Arrival, Simulation, Workload, node

CARD = "nvidia.com/gpu"
PATIENCE = 3
EVICTING = "enqueue, allocate, reclaim, preempt, backfill"
WITHOUT_EVICTIONS = "enqueue, allocate, backfill"
WITH_CAPACITY = """
actions: "{actions}"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: conformance}}, {{name: pdb}}]
- plugins: [{{name: predicates}}, {{name: capacity}}, {{name: nodeorder}}]
"""
Requests = Callable[[int], dict[str, str]]
Load = tuple[str, int, dict[str, int], float, Iterable[Arrival]]
"""The policy, nodes of eight cards, queue → deserved cards, seconds of a retry (0: none), and the jobs."""


def _small(count: int) -> Iterator[Arrival]:
    return (Arrival(60.0 + 40.0 * at, Workload(f"small-{at:03}", 95.0, {CARD: "1"}, queue="c")) for at in range(count))


def _full() -> Iterator[Arrival]:
    return (Arrival(0.0, Workload(f"full-{at}", math.inf, {CARD: "8"}, queue="a")) for at in range(30))


def hopeless() -> Load:
    """2,000 gangs: half fit on no node, half need more cards than are free; small jobs come and go."""
    return _full_cluster(1_000, lambda at: {CARD: str(9 + at % 8)}, lambda _: {CARD: "8"})


def distinct() -> Load:
    """800 such gangs, whose requests all differ, so that no two share a line."""
    return _full_cluster(400, lambda at: {CARD: str(9 + at)}, lambda at: {CARD: "8", "memory": f"{at + 1}Ki"})


def _full_cluster(count: int, wide_requests: Requests, gang_requests: Requests) -> Load:
    wide = (Workload(f"wide-{at:04}", 9.0, wide_requests(at), queue="a") for at in range(count))
    gangs = (Workload(f"gang-{at:04}", 9.0, gang_requests(at), pods=20, queue="b") for at in range(count))
    hopeless = (Arrival(1.0 + at / 4, job) for both in (wide, gangs) for at, job in enumerate(both))
    queues = {"a": 320, "b": 320, "c": 320}
    return WITH_CAPACITY.format(actions=WITHOUT_EVICTIONS), 40, queues, 60.0, (*_full(), *hopeless, *_small(40))


def entitled_to_nothing() -> Load:
    """500 gangs of a queue that deserves nothing, beside a queue within its share; small jobs come and go."""
    gangs = (
        Arrival(1.0 + at / 2, Workload(f"gang-{at:04}", 9.0, {CARD: "8"}, pods=11 + at % 8, queue="b"))
        for at in range(500)
    )
    return (
        WITH_CAPACITY.format(actions=EVICTING),
        40,
        {"a": 240, "b": 0, "c": 80},
        60.0,
        (*_full(), *gangs, *_small(40)),
    )


def philly(path: str) -> Load:
    """The jobs of a part of the Philly trace on 8 nodes, with reclaim."""
    rows = sorted(csv.DictReader(Path(path).read_text("utf-8").splitlines()), key=lambda row: row["timestamp"])
    queues = {row["cluster"]: 8 for row in rows}
    jobs = (
        Workload(f"j{at:05}", float(row["duration"]), {CARD: "1"}, pods=int(row["num_gpus"]), queue=row["cluster"])
        for at, row in enumerate(rows)
    )
    return WITH_CAPACITY.format(actions=EVICTING), 8, queues, 0.0, list(_arriving(rows, "timestamp", jobs))


def priorities(path: str) -> Load:
    """Jobs of distinct priorities behind a deep backlog."""
    rows = [row for row in csv.DictReader(Path(path).read_text("utf-8").splitlines()) if float(row["ElapsedRaw"]) > 0]
    jobs = (
        Workload(
            *(f"j{at:05}", float(row["ElapsedRaw"]), {CARD: row["per_node"]}, int(row["NNodes"])),
            queue=row["Account"],
            priority=int(row["Priority"]),
        )
        for at, row in enumerate(rows)
    )
    queues = {row["Account"]: 0 for row in rows}
    return DEFAULT_TEXT, 20, queues, 0.0, list(_arriving(rows, "Submit", jobs))


def _arriving(rows: list[dict[str, str]], column: str, jobs: Iterable[Workload]) -> Iterator[Arrival]:
    times = [datetime.fromisoformat(row[column]).timestamp() for row in rows]
    return (Arrival(at - times[0], job) for at, job in zip(times, jobs, strict=True))


def _instead(*replaced: tuple[Any, str, Any]) -> Callable[[], None]:
    return lambda: [setattr(owner, name, made) for owner, name, made in replaced] and None


def _one_priority(rule: OpenedPlugins, original: Any = OpenedPlugins._line_rule) -> LineRule:
    found = original(rule)
    return LineRule.ONE_PRIORITY if found.joins_priorities else found


def _decide_among_all(self: BacklogView, undecided: Any) -> Any:
    return {key for key in undecided if key not in self.entries or key in self.awake}


def _collect_refusals(self: BacklogView, undecided: Any) -> Any:
    left = self.awake | (self.due - undecided)
    return {key: entry.refusal for key, entry in self.entries.items() if entry.refusal.items and key not in left}


def _first_of_all(self: Backlog, without: Iterable[str] = ()) -> float:
    without = set(without)
    times = (entry.retry_at for key, entry in self.entries.items() if key not in self.backoff | without)
    return min(times, default=math.inf)


WITHOUT: dict[str, Callable[[], None]] = {
    "the backlog as a whole": _instead((Backlog, "apply", lambda *_: None)),
    "topics": _instead((cycle_end, "hints_of", lambda *_: set(ANY))),
    "amounts of free capacity": _instead((cycle_end, "least_of", lambda _: {})),
    "bounds of quotas": _instead((OpenedPlugins, "quota_bounds", lambda *_: ())),
    "lines": _instead((OpenedPlugins, "_line_rule", lambda _: LineRule.NONE)),
    "lines across priorities": _instead((OpenedPlugins, "_line_rule", _one_priority)),
    "jobs that fit nowhere": _instead((cycle_end, "fits_nowhere", lambda *_: False)),
    "doubling of the retry interval": _instead((cycle_end, "MAX_DOUBLINGS", 0)),
    "common retry times": _instead((cycle_end, "_retry_at", lambda now, interval: now + interval)),
    "retry times by number of jobs": _instead((Backlog, "first_retry", _first_of_all)),
    "jobs without an entry, as a set": _instead((BacklogView, "to_decide", _decide_among_all)),
    "refusals, as a table": _instead((BacklogView, "passed_over", _collect_refusals)),
    "the last cycle again": _instead((LastCycle, "covers", lambda *_: False)),
}


class _TooLongError(Exception):
    pass


def cost(given: tuple[str, str, float]) -> tuple[float, int]:
    """Play a load without a mechanism; return the CPU seconds and the steps of its cycles. At most `limit` seconds."""
    load, without, limit = given
    spent = [0.0, 0]
    decide = Core.decide

    def timed(*args: Any, **more: Any) -> Any:
        start = time.process_time()
        decisions = decide(*args, **more)
        spent[0] += time.process_time() - start
        spent[1] += decisions.steps
        if spent[0] > limit:
            raise _TooLongError
        return decisions

    if without:
        WITHOUT[without]()
    apply = Backlog.apply

    def timed_apply(*args: Any) -> None:
        start = time.process_time()
        apply(*args)
        spent[0] += time.process_time() - start

    Core.decide, Backlog.apply = timed, timed_apply  # type: ignore[method-assign]
    name, _, path = load.partition("=")
    policy, nodes, queues, retry_after, jobs = globals()[name](*([path] if path else []))
    simulation = Simulation(load_policy(policy, "benchmark"))
    if retry_after:
        simulation.cycles.budget = Budget(retry_after=retry_after)
    for number in range(nodes):
        simulation.put("Node", node(f"n{number:03}", {CARD: "8", "memory": "99Gi", "pods": "110"}))
    for queue, deserved in queues.items():
        spec = objects.QueueSpec(weight=1, deserved={CARD: str(deserved)})
        simulation.put("Queue", objects.Queue(objects.ObjectMeta(name=queue), spec, objects.QueueStatus("Open")))
    try:
        simulation.run(sorted(jobs, key=lambda job: job.at), until=3_600.0 if retry_after else math.inf)
    except _TooLongError:
        return math.inf, 0
    return spent[0], int(spent[1])


def main(arguments: list[str]) -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--philly", metavar="CSV")
    parser.add_argument("--priorities", metavar="CSV")
    parser.add_argument("mechanism", nargs="*", choices=[*WITHOUT, []], metavar="MECHANISM")
    given = parser.parse_args(arguments)
    loads = ["hopeless", "distinct", "entitled_to_nothing"]
    loads += [f"philly={given.philly}"] if given.philly else []
    loads += [f"priorities={given.priorities}"] if given.priorities else []
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for load in loads:
            [(all_seconds, all_steps)] = pool.map(cost, [(load, "", math.inf)])
            asked = [(load, name, PATIENCE * all_seconds) for name in ("", *(given.mechanism or WITHOUT), "")]
            for (_, name, _), (seconds, steps) in zip(asked, pool.imap(cost, asked), strict=True):
                ratios = f"{seconds / all_seconds:7.2f} x CPU {steps / all_steps:8.2f} x steps"
                sys.stdout.write(f"{load.partition('=')[0]:20} {name or '(all)':35} {ratios}\n")
                sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
