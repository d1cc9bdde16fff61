"""Measure how each attack of a hostile tenant affects the gangs of another tenant; print a row of figures for each.

python -m tests.soak.attacks [NAME]... [--scale N] [--nodes N] [--load N]

The rows are those of the table in docs/operating.md:

1. Objects that a tenant creates (`tests.support.hostile`).
2. Other disturbances: other writers, silent watches, bad policy files (`tests.soak.interference`).
3. Attacks on programs that run without a scheduler, and on the manifests. Only their tests run.

While each gang beside an attack starts, three pods are bound by hand (without a scheduler); their time is the API
server's part. A gang is late if it takes a second longer than both the slowest gang before the attack and the slowest
pods bound by hand. That second is scaled by how busy the machine is at that time (`tests.support.live.busy`). The exit
status is 1 if a gang is late, if the scheduler exits, or if an attack changes an object that is not its own. `--load N`
keeps N other processes busy during the attacks.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

from schedspec.scheduler.kube import NAMESPACES, PODGROUPS, PODS, Client
from schedspec.scheduler.kube.reflector import SILENCE
from schedspec.scheduler.model.objects import Pod
from tests.soak.attacker import remove
from tests.soak.interference import BAD_FILES, bad_file, changing
from tests.soak.victim import Victim
from tests.support.hostile import ATTACKS
from tests.support.live.api_objects import ROOT, client_of, fresh_cluster, pod_body, prepare, queue
from tests.support.live.busy import busy as busy_machine
from tests.support.live.proxy import between
from tests.support.live.scheduler_process import Scheduler

GOOD, BAD, FIRST = "attacked", "attacker", "an-attacker"
"""The namespaces of the gangs and of the attacker, and one of the attacker that sorts before that of the gangs."""
POLICY = """\
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: pdb}, {name: resourcequota}]
- plugins: [{name: predicates}, {name: capacity, enableHierarchy: true}, {name: nodeorder}]
"""
GANGS = 5
"""Number of gangs of the other tenant that start before an attack, and again while its objects exist."""
MORE = 1.0
"""Seconds by which a gang may exceed both the slowest gang before the attack and the slowest pods bound by hand."""
SETTLED = 0.03
"""CPU seconds per second. Below this, the scheduler has written all statuses of an attack."""
READS_EVERY, SETTLES = 0.5, 180
"""Seconds between two readings of the CPU time; seconds after which idle CPU is measured even if not settled."""
QUIET = 3.0
"""Seconds over which the CPU time of an idle scheduler is measured."""
TIMEOUT = 120.0
HEADER = (
    "| attack | gang before it: median | gang beside it: median | gang beside it: slowest | by hand: slowest "
    "| longest cycle, at most | CPU once settled, % of a core | memory, MB |"
)


Disturbance = Callable[[str], AbstractAsyncContextManager[None]]
"""Returns a context that disturbs the start of the gang of this name."""


def nothing(_: str) -> AbstractAsyncContextManager[None]:
    return contextlib.nullcontext()


class Run:
    """One attack beside the gangs of another tenant, with a scheduler of its own."""

    def __init__(
        self, client: Client, kubeconfig: Path, scheduler: Scheduler, queue_name: str = "default", cpu: str = "100m"
    ) -> None:
        self._client, self._kubeconfig, self._scheduler = client, kubeconfig, scheduler
        self._queue, self._cpu = queue_name, cpu
        self._number = 0
        self.wrong: list[str] = []

    async def _gang(self, disturbance: Disturbance = nothing) -> float:
        """Start a gang of three; return the seconds from the creation of its last pod until all pods have nodes."""
        self._number += 1
        name = f"good{self._number}"
        body = {"metadata": {"name": name}, "spec": {"minMember": 3, "queue": self._queue}}
        await self._client.create(PODGROUPS, body, GOOD)
        async with disturbance(name):
            for i in range(3):
                await self._client.create(PODS, pod_body(f"{name}-{i}", name, self._cpu), GOOD)
            took = await self._until_bound(name)
        await remove(self._client, PODGROUPS, name, GOOD)
        return took

    async def _by_hand(self) -> float:
        """Bind three pods without the scheduler; return the seconds since the last was created, as for gangs."""
        pods = []
        for i in range(3):
            body = pod_body(f"by-hand-{i}", "", self._cpu)
            body["spec"]["schedulerName"] = "nobody"
            pods.append(await self._client.create(PODS, body, GOOD))
        return await self._until_bound("by-hand", pods)

    async def _until_bound(self, name: str, by_hand: Sequence[Pod] = ()) -> float:
        """Bind the pods `by_hand`, wait until all three have nodes, and remove them; return the seconds of the wait."""
        began = time.monotonic()
        for pod in by_hand:
            await self._client.bind(GOOD, pod.metadata.name, pod.metadata.uid, "node-0000")
        while not all([(await self._client.get(PODS, f"{name}-{i}", GOOD)).spec.node_name for i in range(3)]):
            if time.monotonic() > began + TIMEOUT:
                break
            await asyncio.sleep(0.02)
        took = time.monotonic() - began
        for i in range(3):
            await remove(self._client, PODS, f"{name}-{i}", GOOD)
        return took

    async def attack(self, name: str, number: int, victim: Victim) -> str:
        """Run an attack with `number` objects; return its row of figures."""
        attack = ATTACKS[name]
        usual = [await self._gang() for _ in range(GANGS)]
        before = self._cycles()
        command = (sys.executable, "-m", "tests.soak.attacker", str(self._kubeconfig))
        command = (*command, FIRST if attack.is_first else BAD, name, str(number))
        attacker = await asyncio.create_subprocess_exec(*command, victim.uid, cwd=ROOT, stdin=PIPE, stdout=PIPE)
        assert attacker.stdout is not None
        creating = asyncio.create_task(attacker.stdout.readline())
        async with busy_machine() as times:
            pairs = [await self._pair()]
            while not creating.done():
                pairs.append(await self._pair())
            made, _, refused = (await creating).decode().strip().partition(" ")
            pairs += [await self._pair() for _ in range(GANGS)]
        beside, by_hand = zip(*pairs, strict=True)
        row = await self._row(name, attack.what, usual, beside, by_hand, before, attack.quiet, attack.more, times)
        changed, _ = await attacker.communicate(b"")  # closes its standard input
        found = [*changed.decode().splitlines(), await victim.problem()]
        self.wrong += [f"{name}: {problem}" for problem in found if problem]
        if not int(made or 0):
            self.wrong.append(f"{name}: the API server refused all {refused} objects")
        return row

    async def _pair(self, disturbance: Disturbance = nothing) -> tuple[float, float]:
        """Start a gang and bind pods by hand at the same time; return the seconds of each."""
        return await asyncio.gather(self._gang(disturbance), self._by_hand())

    async def disturb(self, name: str, what: str, disturbances: Sequence[Disturbance], more: float) -> str:
        """Start a gang during each disturbance; return their row of figures."""
        usual = [await self._gang() for _ in range(GANGS)]
        before = self._cycles()
        async with busy_machine() as times:
            pairs = [await self._pair(disturbance) for disturbance in disturbances]
        beside, by_hand = zip(*pairs, strict=True)
        return await self._row(name, what, usual, beside, by_hand, before, QUIET, more, times)

    async def _row(
        self,
        name: str,
        what: str,
        usual: Sequence[float],
        beside: Sequence[float],
        by_hand: Sequence[float],
        before: Mapping[float, float],
        quiet: float,
        more: float,
        times: list[float],
    ) -> str:
        idle = await self._idle(quiet)
        memory, longest = self._scheduler.memory_mb(), longest_cycle(before, self._cycles())
        if max(beside) > max(*usual, *by_hand) + (more := more + MORE * statistics.median(times)):
            took = (
                f"{max(beside):.2f} s; allowed are {more:.2f} s more than {max(usual):.2f} s (before the attack) "
                f"and {max(by_hand):.2f} s (by hand)"
            )
            self.wrong.append(f"{name}: a gang took {took}")
        if self._scheduler.process.poll() is not None:
            self.wrong.append(f"{name}: the scheduler exited")
        return (
            f"| {what} | {statistics.median(usual):.2f} | {statistics.median(beside):.2f} "
            f"| {max(beside):.2f} | {max(by_hand):.2f} | {longest:g} | {idle:.0f} | {memory:.0f} |"
        )

    async def _idle(self, seconds: float) -> float:
        """Wait until the scheduler has settled; return the percentage of a core that it uses while nothing happens."""
        for _ in range(round(SETTLES / READS_EVERY)):
            before = self._scheduler.cpu_seconds()
            await asyncio.sleep(READS_EVERY)
            if self._scheduler.cpu_seconds() - before < SETTLED * READS_EVERY:
                break
        before = self._scheduler.cpu_seconds()
        await asyncio.sleep(seconds)
        return 100 * (self._scheduler.cpu_seconds() - before) / seconds

    def _cycles(self) -> dict[float, float]:
        """Return the buckets of the histogram of cycles: upper bound in milliseconds → cumulative number of cycles."""
        start = "volcano_e2e_scheduling_latency_milliseconds_bucket"
        counts: dict[float, float] = {}
        for line in self._scheduler.page("/metrics").splitlines():
            if line.startswith(start):
                bound, _, count = line.partition('le="')[2].partition('"} ')
                counts[float(bound)] = float(count)
        return counts


def longest_cycle(before: Mapping[float, float], after: Mapping[float, float]) -> float:
    """Return an upper bound, in seconds, of the cycles between two readings of the histogram."""
    new = {bound: count - before.get(bound, 0.0) for bound, count in after.items()}
    most = max(new.values(), default=0.0)
    return min((bound for bound, count in new.items() if most and count == most), default=0.0) / 1000


@contextlib.contextmanager
def busy(number: int) -> Iterator[None]:
    """Run `number` other processes that each use a whole core."""
    command = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(command) for _ in range(number)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


@contextlib.contextmanager
def attacked(kubeconfig: Path, *options: str) -> Iterator[Scheduler]:
    """Start a new scheduler with all controllers; kill it at the end."""
    scheduler = Scheduler(
        kubeconfig, POLICY, "--node-selector", "schedspec.dev/world=true", *options, controllers="all"
    )
    try:
        yield scheduler
    finally:
        scheduler.kill()


async def _conflicts(client: Client, kubeconfig: Path) -> tuple[str, list[str]]:
    with attacked(kubeconfig) as scheduler:
        await asyncio.to_thread(scheduler.wait_ready)
        run = Run(client, kubeconfig, scheduler)
        writers: list[Disturbance] = [partial(changing, client, namespace=GOOD)] * GANGS
        what = "another writer changes a PodGroup 200 times a second"
        return await run.disturb("conflicts", what, writers, 0.0), run.wrong


async def _policy_files(client: Client, kubeconfig: Path) -> tuple[str, list[str]]:
    with attacked(kubeconfig) as scheduler:
        await asyncio.to_thread(scheduler.wait_ready)
        run = Run(client, kubeconfig, scheduler)

        def bad(what: str) -> Disturbance:
            @contextlib.asynccontextmanager
            async def replaced(_: str) -> AsyncIterator[None]:
                refused = refusals(scheduler)
                with bad_file(scheduler.policy_file, what):
                    yield
                    while refusals(scheduler) == refused:
                        await asyncio.sleep(0.05)

            return replaced

        what = f"{len(BAD_FILES)} bad policy files: {', '.join(BAD_FILES)}"
        return await run.disturb("policy-files", what, [bad(each) for each in BAD_FILES], 0.0), run.wrong


def refusals(scheduler: Scheduler) -> int:
    """Return the number of policy files that the scheduler has refused."""
    name = 'schedspec_policy_loads_total{result="refused"}'
    lines = scheduler.page("/metrics?name[]=schedspec_policy_loads_total").splitlines()
    return sum(int(float(line.split()[-1])) for line in lines if line.startswith(name))


async def _silent_watches(client: Client, kubeconfig: Path) -> tuple[str, list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        async with between(kubeconfig, Path(folder)) as (proxy, through):
            with attacked(through) as scheduler:
                await asyncio.to_thread(scheduler.wait_ready)
                run = Run(client, kubeconfig, scheduler)

                @contextlib.asynccontextmanager
                async def muted(_: str) -> AsyncIterator[None]:
                    proxy.mute_watches()
                    yield

                what = "all watches fall silent"
                return await run.disturb("silent-watches", what, [muted, nothing], SILENCE + 3), run.wrong


OTHERS = {"conflicts": _conflicts, "policy-files": _policy_files, "silent-watches": _silent_watches}
"""Attacks that create no objects."""
TESTS = {
    "results": ("results of a malicious shard", "tests/schedspec/ci/test_untrusted.py"),
    "file-modes": ("files of a run on a cluster of others", "tests/schedspec/plugin/test_file_modes.py"),
    "manifests": ("packages, build backend, permissions, egress", "tests/deploy"),
}
"""Attacks that need no scheduler: what is attacked, and its tests."""


async def _run(kubeconfig: Path, given: argparse.Namespace) -> list[str]:
    wrong: list[str] = []
    async with client_of(kubeconfig) as client:
        lent = queue("lent", deserved={"cpu": "1"}, reclaimable=True)
        await prepare(client, given.nodes, [queue("default"), lent, queue("entitled", deserved={"cpu": "64"})])
        for space in (GOOD, BAD, FIRST):
            await client.create(NAMESPACES, {"metadata": {"name": space}})
        victim = Victim(client, GOOD)
        with attacked(kubeconfig) as scheduler:
            await asyncio.to_thread(scheduler.wait_ready)
            await victim.start()
        say(HEADER)
        say("|" + " --- |" * (HEADER.count("|") - 1))
        for name in given.name or (*ATTACKS, *OTHERS):
            if name in OTHERS:
                row, found = await OTHERS[name](client, kubeconfig)
                wrong += found
                say(row)
            if name not in ATTACKS:
                continue
            attack = ATTACKS[name]
            with attacked(kubeconfig, *attack.options) as scheduler:
                await asyncio.to_thread(scheduler.wait_ready)
                run = Run(client, kubeconfig, scheduler, attack.queue, attack.cpu)
                say(await run.attack(name, max(1, round(attack.number * given.scale)), victim))
                wrong += run.wrong
    return wrong


def run_tests(name: str) -> list[str]:
    """Run the tests of an attack that needs no scheduler; return the failure, if there is one."""
    what, place = TESTS[name]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "not embedded and not kind", "-p", "no:cacheprovider", place],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    last = (done.stdout.strip().splitlines() or [done.stderr.strip()])[-1]
    say(f"attacks: {what}: {last}")
    return [f"{name}: {last}"] if done.returncode else []


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.attacks", description=__doc__)
    names = [*ATTACKS, *OTHERS, *TESTS]
    parser.add_argument("name", nargs="*", metavar="NAME", help=f"{', '.join(names)} (default: all)")
    parser.add_argument("--scale", type=float, default=1.0, help="factor of the number of objects")
    parser.add_argument("--nodes", type=int, default=60)
    parser.add_argument("--load", type=int, default=0, help="number of other busy processes")
    given = parser.parse_args()
    if unknown := set(given.name) - set(names):
        parser.error(f"unknown attacks: {', '.join(sorted(unknown))}; known: {', '.join(names)}")
    wrong, began = list[str](), time.monotonic()
    if not given.name or set(given.name) - set(TESTS):
        with fresh_cluster() as kubeconfig, busy(given.load):
            wrong += asyncio.run(_run(kubeconfig, given))
    for name in TESTS:
        if not given.name or name in given.name:
            wrong += run_tests(name)
    say(f"attacks: {time.monotonic() - began:.0f} s, load at the end {os.getloadavg()[0]:.0f}")
    for problem in wrong:
        say(f"attacks: WRONG: {problem}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
