"""Create and delete gangs and hostile objects for an hour; check that memory stays flat and every gang starts.

1. Each attack runs once in the beginning, so that the memory peaks of attacks come before the first pause.
2. Then hostile objects and attacks are drawn at random. Now and then the policy file cannot be read, or another client
   keeps changing the PodGroup of a gang that starts.
3. After each sixth of the time there is a pause: all gangs and hostile objects are deleted, and the scheduler becomes
   idle. The same objects exist at each pause, so any growth from pause to pause is memory that the process keeps.
4. At the end the state that the scheduler writes (SIGUSR2) must equal the API server's.

Two amounts must not grow from pause to pause: the blocks in use in Python's allocator and, from the third pause on, the
bytes in use in the heap of the C library, which holds larger objects and buffers. Resident memory must stay below its
peak before the first pause. It includes free memory of both allocators: an arena of 1 MB is returned only when no block
of it is in use, and after a peak most arenas contain a block that is still in use.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import shutil
import signal
import statistics
import sys
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from schedspec.clusters import Settings
from schedspec.clusters.embedded import EmbeddedCluster
from schedspec.scheduler.controllers.runtime.objects import (
    COMMANDS,
    CONFIG_MAPS,
    JOBS,
    NETWORK_POLICIES,
    PYTORCH_JOBS,
    SERVICES,
)
from schedspec.scheduler.inputs import Decided, ObjectSeen
from schedspec.scheduler.kube import BUDGETS, NAMESPACES, NODES, PODGROUPS, PODS, QUEUES, ApiError, Client
from schedspec.scheduler.kube.resource import Resource
from schedspec.scheduler.model.objects import ObjectMeta
from schedspec.scheduler.recording.segments import read_segment, segments
from tests.soak.attacker import Made, change_of, make, remove
from tests.soak.figures import Pause, Start, growth
from tests.soak.interference import BAD_FILES, bad_file, changing
from tests.soak.victim import Victim
from tests.support.hostile import ATTACKS
from tests.support.live.api_objects import ROOT, apply_crds, client_of, pod_body, queue, settled_node
from tests.support.live.scheduler_process import Scheduler, until_quiescent
from tests.support.live.status_queries import eventually

GOOD, BAD = "soak-good", "soak-bad"
OWN_QUEUES = ("root", "default", "lent", "entitled")
HOSTILE = (JOBS, PYTORCH_JOBS, COMMANDS, PODGROUPS, PODS, QUEUES, BUDGETS, CONFIG_MAPS, SERVICES, NETWORK_POLICIES)
"""Kinds of hostile objects, and of objects that controllers create for them; owners first."""
POLICY = """\
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
"""
NASTY = ("", "-1", "1e400", "NaN", "null", "{}", "[", '{"a": ', "9" * 40, "🂡", "../..", "true")
ROOT_CERTIFICATES = "kube-root-ca.crt"
"""A ConfigMap that Kubernetes keeps in every namespace."""
KEYS = ("volcano.sh/task-priority", "volcano.sh/preemptable", "volcano.sh/card.request", "sla-waiting-time")
ATTACKS_AMONG_OBJECTS, PART = 0.05, 40
"""Probability that an attack is created instead of one object, and the divisor of the attack's size."""
LASTS, MAX_BAD = 10.0, 60
"""Lifetime of a gang in seconds; maximum number of hostile objects at a time."""
MISTAKES, WRITERS = 0.02, 0.05
"""Probability that, while a gang starts, the policy file is bad, and that another client changes its PodGroup."""
WRITTEN = "cycle record written: "
START_TIMEOUT = 300.0
"""Seconds after which a gang that has not started ends the run. Smaller delays are reported at the end."""
FLAT, KEPT = 1.0, 4.0
"""Limits of the growth per hour: megabytes in use in the heap, and thousands of blocks in use (1 % of them).

Single pauses scatter by 0.3 MB and 3 thousand blocks, so only certain growth above a limit fails (`Growth.certain`).
"""
SETTLES = 2
"""Number of pauses before the heap has settled: the table of a dictionary never shrinks below its largest content."""
PAUSES, SETTLED = 6, 160.0
"""Number of pauses (the last is at the end), and the duration of a pause in seconds.

Within 90 s the API server closes idle connections, each of which takes 0.3 MB in the scheduler; within 60 s the
scheduler returns free memory to the system.
"""


class Churn:
    """Good gangs in one namespace, and hostile objects in another."""

    def __init__(self, client: Client, scheduler: Scheduler, seed: int) -> None:
        self._client, self._scheduler, self._random = client, scheduler, random.Random(seed)
        self._victim = Victim(client, GOOD)
        self._alive: deque[tuple[float, str]] = deque()
        self._bad: deque[Made] = deque()
        self._number = 0
        self._first = self._random.sample(list(ATTACKS), len(ATTACKS))
        """Attacks that have not run yet."""
        self.starts: list[Start] = []
        self.refused = 0
        self.wrong: list[str] = []

    async def start(self) -> None:
        """Start the Job that attacks name as their target or owner."""
        await self._victim.start()

    async def good(self) -> None:
        """Start a gang of three and wait until it has nodes; delete the gangs that are older than `LASTS`."""
        self._number += 1
        name, began = f"g{self._number}", time.monotonic()
        body = {"metadata": {"name": name}, "spec": {"minMember": 3, "queue": "default"}}
        await self._client.create(PODGROUPS, body, GOOD)
        async with self._interference(name):
            for i in range(3):
                await self._client.create(PODS, pod_body(f"{name}-{i}", name, cpu="100m"), GOOD)
            created = time.monotonic()
            while not all([(await self._client.get(PODS, f"{name}-{i}", GOOD)).spec.node_name for i in range(3)]):
                if time.monotonic() > began + START_TIMEOUT:
                    group = await self._client.get(PODGROUPS, name, GOOD)
                    why = [f"{c.type}={c.status}: {c.message}" for c in group.status.conditions or ()]
                    raise AssertionError(
                        f"{name} has not started within {START_TIMEOUT:g} s: {group.status.phase}, {why}"
                    )
                await asyncio.sleep(0.02)
        kinds = Counter(made.resource.kind for made in self._bad)
        beside = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()) or "nothing"
        self.starts.append(Start(name, created - began, time.monotonic() - began, beside))
        self._alive.append((began, name))
        while self._alive and self._alive[0][0] < time.monotonic() - LASTS:
            await self._end(self._alive.popleft()[1])

    @contextlib.asynccontextmanager
    async def _interference(self, group: str) -> AsyncIterator[None]:
        """Now and then, replace the policy file by a bad one, or start another writer of the PodGroup."""
        what = self._random.choice(sorted(BAD_FILES))
        with bad_file(self._scheduler.policy_file, what) if self._happens(MISTAKES) else nullcontext():
            async with changing(self._client, group, GOOD) if self._happens(WRITERS) else nullcontext():
                yield

    def _happens(self, share: float) -> bool:
        return self._random.random() < share

    async def _end(self, name: str) -> None:
        for i in range(3):
            await remove(self._client, PODS, f"{name}-{i}", GOOD)
        await remove(self._client, PODGROUPS, name, GOOD)

    async def bad(self) -> None:
        """Create a hostile object or a small attack; delete the oldest objects while there are more than `MAX_BAD`."""
        self._number += 1
        name = f"b{self._number}"
        is_attack = self._happens(ATTACKS_AMONG_OBJECTS)
        if self._first or is_attack:
            attack = ATTACKS[self._first.pop() if self._first else self._random.choice(list(ATTACKS))]
            objects = list(attack.make(name, max(1, attack.number // PART)))
        else:
            objects = [self._hostile(name)]
        for resource, body in objects:
            try:
                self._bad.append(await make(self._client, resource, body, BAD, self._victim.uid))
            except ApiError:
                self.refused += 1  # by the schema of the kind
        while len(self._bad) > MAX_BAD:
            await self._end_bad()

    async def _end_bad(self) -> None:
        made = self._bad.popleft()
        if made.is_bystander and (found := await change_of(self._client, made)):
            self.wrong.append(found)
        await remove(self._client, made.resource, made.metadata.name, made.metadata.namespace)

    def _hostile(self, name: str) -> tuple[Resource[Any], dict[str, Any]]:
        rng = self._random
        nasty = {rng.choice(KEYS): rng.choice(NASTY) for _ in range(3)}
        pod = pod_body(name, rng.choice(NASTY), cpu="100m")
        pod["metadata"]["annotations"] |= nasty
        kinds: list[tuple[Resource[Any], dict[str, Any]]] = [
            (PODS, pod),
            (PODS, {**pod, "spec": {**pod["spec"], "schedulerName": "other", "containers": [_huge()]}}),
            (PODS, {**pod, "spec": {**pod["spec"], "affinity": _affinity(100)}}),
            (PODGROUPS, _named(name, {"minMember": rng.choice([1, 150_000]), "queue": rng.choice(NASTY)}, nasty)),
            (PODGROUPS, _named(name, {"minMember": 1, "networkTopology": _nested(500)}, nasty)),
            (JOBS, _named(name, _job(rng.choice([1, 2, 150_000])), nasty)),
            (QUEUES, _named(name, {"parent": rng.choice(["default", "nowhere", name]), "weight": 1}, nasty)),
            (COMMANDS, {"metadata": {"name": name}, "action": "CloseQueue", "target": _target()}),
        ]
        return rng.choice(kinds)

    async def pause(self) -> dict[str, int]:
        """Delete all but nodes, queues and the attacked Job; return the number of remaining objects by kind."""
        while self._alive:
            await self._end(self._alive.popleft()[1])
        while self._bad:
            await self._end_bad()

        async def are_deleted() -> bool:
            left = [(kind, meta) for kind in HOSTILE for meta in await self._hostile_of(kind)]
            for kind, meta in left:
                await remove(self._client, kind, meta.name, meta.namespace)
            return not left

        await eventually("the hostile objects are deleted", are_deleted)
        if problem := await self._victim.problem():
            self.wrong.append(problem)
        counts = {kind.kind: len((await self._client.list(kind.bare)).items) for kind in (NODES, *HOSTILE)}
        return {kind: count for kind, count in counts.items() if count}

    async def _hostile_of(self, kind: Resource[Any]) -> list[ObjectMeta]:
        found = [it.metadata for it in (await self._client.list(kind.bare, BAD if kind.namespaced else "")).items]
        return [meta for meta in found if meta.name not in (*OWN_QUEUES, ROOT_CERTIFICATES)]


def _named(name: str, spec: dict[str, Any], annotations: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": name, "annotations": annotations}, "spec": spec}


def _huge() -> dict[str, Any]:
    return {"name": "x", "image": "i", "resources": {"requests": {"cpu": "9223372036854775807"}}}


def _affinity(terms: int) -> dict[str, Any]:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term] * terms}}


def _nested(depth: int) -> Any:
    found: Any = "x"
    for _ in range(depth):
        found = {"a": found}
    return found


def _job(replicas: int) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "x", "image": "i", "resources": {"requests": {"cpu": "50"}}}]}}
    return {"schedulerName": "schedspec", "minAvailable": 1, "tasks": [{"replicas": replicas, "template": template}]}


def _target() -> dict[str, str]:
    return {"apiVersion": QUEUES.api_version, "kind": "Queue", "name": "default", "uid": ""}


async def _measure_pause(churn: Churn, scheduler: Scheduler, began: float) -> Pause:
    alive = await churn.pause()
    await until_quiescent(scheduler)
    await asyncio.sleep(SETTLED)
    await until_quiescent(scheduler)
    memory, heap, blocks = scheduler.memory_mb(), scheduler.heap_mb(), scheduler.memory_blocks() / 1000
    return Pause(time.monotonic() - began, memory, heap, blocks, scheduler.connections(), alive)


async def _soak(minutes: float, seed: int, say: Any) -> list[str]:
    """Run the churn on a new cluster; return the problems."""
    cluster = EmbeddedCluster(Settings(kind="embedded"))
    cluster.up(lambda _: None)
    wrong: list[str] = []
    try:
        async with client_of(cluster.kubeconfig) as client:
            await apply_crds(client)
            for space in (GOOD, BAD):
                await client.create(NAMESPACES, {"metadata": {"name": space}})
            for name in ("default", "lent", "entitled"):
                await client.create(QUEUES, queue(name))
            for i in range(4):
                await settled_node(client, f"soak-{i}", "32")
            options = ("--node-selector", "schedspec.dev/world=true")
            scheduler = Scheduler(cluster.kubeconfig, POLICY, *options, controllers="all")
            try:
                await asyncio.to_thread(scheduler.wait_ready)
                wrong += await _churned(Churn(client, scheduler, seed), scheduler, minutes, say)
                await until_quiescent(scheduler)
                wrong += await _differences(client, scheduler)
                wrong += _defects(scheduler)
            except AssertionError as error:
                wrong += [f"{error}; the scheduler's log ends with:\n{scheduler.log.read_text()[-3000:]}"]
            finally:
                scheduler.kill()
    finally:
        cluster.down()
    return wrong


async def _churned(churn: Churn, scheduler: Scheduler, minutes: float, say: Any) -> list[str]:
    await churn.start()
    began, pauses, peak = time.monotonic(), list[Pause](), 0.0
    for _ in range(PAUSES):
        until = time.monotonic() + minutes * 60 / PAUSES
        while time.monotonic() < until:
            await churn.bad()
            await churn.bad()
            await churn.good()
        busy = f"{scheduler.memory_mb():.1f} MB, {scheduler.memory_blocks() / 1000:.1f} thousand blocks"
        peak = peak or scheduler.peak_mb()
        pauses.append(await _measure_pause(churn, scheduler, began))
        say(
            f"soak: {pauses[-1].seconds / 60:.0f} min: {busy}; in the pause {pauses[-1]}; "
            f"{len(churn.starts)} gangs, load {os.getloadavg()[0]:.0f}"
        )
    grows = growth([(one.seconds, one.heap) for one in pauses[SETTLES:]])
    blocks = growth([(one.seconds, one.blocks) for one in pauses])
    usual = statistics.median(start.waited for start in churn.starts)
    slowest = max(churn.starts, key=lambda start: start.waited)
    say(
        f"soak: {len(churn.starts)} gangs, their pods got nodes after {usual:.2f} s (median), at most {slowest}; "
        f"{churn.refused} hostile objects refused; between {PAUSES} pauses in use: {blocks} thousand blocks an hour "
        f"and, from pause {SETTLES + 1} on, {grows} MB of the heap; {peak:.1f} MB at the peak before the first pause"
    )
    wrong = [f"the pods of a gang got nodes after {start}" for start in churn.starts if start.waited > usual + 1]
    if any(one.alive != pauses[0].alive for one in pauses):
        wrong.append("different objects exist at the pauses: their memory cannot be compared")
    if minutes >= 60 and (grows.certain >= FLAT or blocks.certain >= KEPT):
        wrong.append(f"memory in use grows: the heap by {grows} MB an hour, blocks by {blocks} thousand")
    if any(one.memory > peak for one in pauses):
        wrong.append(f"resident memory at a pause exceeds the {peak:.1f} MB at the peak before the first pause")
    return wrong + churn.wrong


async def _differences(client: Client, scheduler: Scheduler) -> list[str]:
    """Return the objects in which the scheduler's state and the API server's differ."""
    scheduler.process.send_signal(signal.SIGUSR2)
    written: list[str] = []

    async def is_written() -> bool:
        written[:] = [line for line in scheduler.log.read_text().splitlines() if WRITTEN in line]
        return bool(written)

    await eventually("the scheduler writes its state", is_written)
    record = ROOT / json.loads(written[0])["message"].removeprefix(WRITTEN)
    state = set(_state(record))
    shutil.rmtree(record)
    in_api = {
        (resource.kind, found.metadata.uid)
        for resource in (PODS, PODGROUPS, NODES, QUEUES)
        for found in (await client.list(resource)).items
    }
    wrong = [f"{kind} {uid} is in the state and not in the API" for kind, uid in sorted(state - in_api)]
    return wrong + [f"{kind} {uid} is in the API and not in the state" for kind, uid in sorted(in_api - state)]


def _defects(scheduler: Scheduler) -> list[str]:
    """Return the exceptions that the scheduler logged."""
    found = [line for line in scheduler.log.read_text().splitlines() if '"exception":' in line]
    return [f"{len(found)} errors, the first: {found[0][:2000]}"] if found else []


def _state(record: Path) -> Iterator[tuple[str, str]]:
    for given in (one for path in segments(record) for one in read_segment(path)):
        if isinstance(given, Decided):
            return
        if isinstance(given, ObjectSeen) and given.kind in ("Pod", "PodGroup", "Node", "Queue"):
            yield given.kind, given.object.metadata.uid


def soak(minutes: float, seed: int) -> bool:
    """Run the churn and print the problems; return True if there are none."""

    def say(text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    wrong = asyncio.run(_soak(minutes, seed, say))
    for problem in wrong:
        say(f"soak: WRONG: {problem}")
    return not wrong
