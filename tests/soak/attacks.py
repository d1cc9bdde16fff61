"""Every attack of a hostile tenant, one after the other, beside the gangs of another one; prints a row of figures each.

python -m tests.soak.attacks [NAME]... [--scale N] [--nodes N] [--load N]

The rows are those of the table in docs/operating.md. A gang is late where it takes a second longer than the slowest of
the usual ones, a second of this machine as busy as it is then (`tests.support.live.busy`); the exit status tells
whether any was, or whether the process gave up. `--load N` keeps N other processes busy meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import subprocess
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import Iterator, Mapping
from pathlib import Path

from scheduler.kube import NAMESPACES, PODGROUPS, PODS, Client
from tests.soak.attacker import remove
from tests.soak.hostile import ATTACKS
from tests.support.live.api_objects import ROOT, client_of, fresh_cluster, pod_body, prepare, queue
from tests.support.live.busy import busy as busy_machine
from tests.support.live.scheduler_process import Scheduler

GOOD, BAD = "attacked", "attacker"
POLICY = """\
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: pdb}]
- plugins: [{name: predicates}, {name: capacity, enableHierarchy: true}, {name: nodeorder}]
"""
GANGS = 5
"""Gangs of the other tenant that are started beside an attack, and before it."""
MORE = 1.0
"""Seconds that a gang may take longer than the slowest of the usual ones."""
SETTLED = 0.03
"""CPU seconds of the scheduler in a second, below which the statuses of an attack are written."""
SETTLES = 20
"""Seconds after which the measurement begins where the scheduler never settles."""
GIVEN_UP = 120.0
HEADER = "| attack | usual s | beside s: median | slowest | longest cycle s <= | CPU idle beside it % | memory MB |"


class Run:
    """One attack beside the gangs of another tenant, with a scheduler of its own."""

    def __init__(self, client: Client, kubeconfig: Path, scheduler: Scheduler) -> None:
        self._client, self._kubeconfig, self._scheduler = client, kubeconfig, scheduler
        self._number = 0
        self.wrong: list[str] = []

    async def _gang(self) -> float:
        """Start a gang of three; return the seconds from the answer about its last pod until all of it has nodes."""
        self._number += 1
        name = f"good{self._number}"
        body = {"metadata": {"name": name}, "spec": {"minMember": 3, "queue": "default"}}
        await self._client.create(PODGROUPS, body, GOOD)
        for i in range(3):
            await self._client.create(PODS, pod_body(f"{name}-{i}", name, cpu="100m"), GOOD)
        began = time.monotonic()
        while not all([(await self._client.get(PODS, f"{name}-{i}", GOOD)).spec.node_name for i in range(3)]):
            if time.monotonic() > began + GIVEN_UP:
                break
            await asyncio.sleep(0.02)
        took = time.monotonic() - began
        for i in range(3):
            await remove(self._client, PODS, f"{name}-{i}", GOOD)
        await remove(self._client, PODGROUPS, name, GOOD)
        return took

    async def attack(self, name: str, number: int) -> str:
        """Attack with so many objects; return the row of the figures."""
        usual = [await self._gang() for _ in range(GANGS)]
        before = self._cycles()
        command = (sys.executable, "-m", "tests.soak.attacker", str(self._kubeconfig), BAD, name, str(number))
        attacker = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdin=PIPE, stdout=PIPE)
        assert attacker.stdout is not None
        creating = asyncio.create_task(attacker.stdout.readline())
        async with busy_machine() as times:
            beside = [await self._gang()]
            while not creating.done():
                beside.append(await self._gang())
            made, _, refused = (await creating).decode().strip().partition(" ")
            beside += [await self._gang() for _ in range(GANGS)]
        idle = await self._idle(ATTACKS[name].quiet)
        memory, longest = self._scheduler.memory_mb(), longest_cycle(before, self._cycles())
        await attacker.communicate(b"")  # closes its standard input
        if max(beside) > max(usual) + (more := MORE * statistics.median(times)):
            took = f"{max(beside):.2f} s, {max(usual):.2f} s usually, where {more:.2f} s more are well"
            self.wrong.append(f"{name}: a gang took {took}")
        if self._scheduler.process.poll() is not None:
            self.wrong.append(f"{name}: the scheduler gave up")
        if not int(made or 0):
            self.wrong.append(f"{name}: the API server refused all {refused} objects")
        return (
            f"| {ATTACKS[name].what} | {statistics.median(usual):.2f} | {statistics.median(beside):.2f} "
            f"| {max(beside):.2f} | {longest:g} | {idle:.0f} | {memory:.0f} |"
        )

    async def _idle(self, seconds: float) -> float:
        """Return the percentage of a core that the scheduler uses while nothing happens, once it has settled."""
        for _ in range(SETTLES):
            before = self._scheduler.cpu_seconds()
            await asyncio.sleep(1.0)
            if self._scheduler.cpu_seconds() - before < SETTLED:
                break
        before = self._scheduler.cpu_seconds()
        await asyncio.sleep(seconds)
        return 100 * (self._scheduler.cpu_seconds() - before) / seconds

    def _cycles(self) -> dict[float, float]:
        """Return how many cycles took at most so many milliseconds, by the histogram's bounds."""
        start = "volcano_e2e_scheduling_latency_milliseconds_bucket"
        counts: dict[float, float] = {}
        for line in self._scheduler.page("/metrics").splitlines():
            if line.startswith(start):
                bound, _, count = line.partition('le="')[2].partition('"} ')
                counts[float(bound)] = float(count)
        return counts


def longest_cycle(before: Mapping[float, float], after: Mapping[float, float]) -> float:
    """Return the bound, in seconds, that no cycle between two readings of the histogram exceeded."""
    new = {bound: count - before.get(bound, 0.0) for bound, count in after.items()}
    most = max(new.values(), default=0.0)
    return min((bound for bound, count in new.items() if most and count == most), default=0.0) / 1000


@contextlib.contextmanager
def busy(number: int) -> Iterator[None]:
    """So many other processes that want a core each."""
    command = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(command) for _ in range(number)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


async def _run(kubeconfig: Path, given: argparse.Namespace) -> list[str]:
    async with client_of(kubeconfig) as client:
        await prepare(client, given.nodes, [queue("default")])
        for space in (GOOD, BAD):
            await client.create(NAMESPACES, {"metadata": {"name": space}})
        say(HEADER)
        say("|" + " --- |" * (HEADER.count("|") - 1))
        wrong: list[str] = []
        for name in given.name or ATTACKS:
            options = ("--node-selector", "schedspec.dev/world=true")
            scheduler = Scheduler(kubeconfig, POLICY, *options, controllers="all")
            try:
                await asyncio.to_thread(scheduler.wait_ready)
                run = Run(client, kubeconfig, scheduler)
                say(await run.attack(name, max(1, round(ATTACKS[name].number * given.scale))))
                wrong += run.wrong
            finally:
                scheduler.kill()
        return wrong


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.attacks", description=__doc__)
    parser.add_argument("name", nargs="*", metavar="NAME", help=f"of {', '.join(ATTACKS)}; all without")
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of objects")
    parser.add_argument("--nodes", type=int, default=60)
    parser.add_argument("--load", type=int, default=0, help="other processes that are busy meanwhile")
    given = parser.parse_args()
    with fresh_cluster() as kubeconfig, busy(given.load):
        wrong = asyncio.run(_run(kubeconfig, given))
    for one in wrong:
        say(f"attacks: WRONG: {one}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
