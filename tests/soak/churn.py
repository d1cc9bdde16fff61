"""Run work that comes and goes for an hour with hostile objects: memory stays flat, and every gang starts.

In the end, once everything hostile is gone and nothing changes any more, the state that the scheduler writes (SIGUSR2)
must equal the API server's.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import signal
import statistics
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from schedspec.clusters import Settings
from schedspec.clusters.embedded import EmbeddedCluster
from scheduler.controllers.runtime.objects import COMMANDS, JOBS
from scheduler.kube import NAMESPACES, NODES, PODGROUPS, PODS, QUEUES, ApiError, Client, Conflict, NotFound, Patch
from scheduler.kube.resource import Resource
from scheduler.recording.events import Decided, ObjectSeen
from scheduler.recording.segments import read_segment, segments
from tests.soak.hostile import ATTACKS
from tests.support.live.api_objects import ROOT, apply_crds, client_of, pod_body, queue, settled_node
from tests.support.live.scheduler_process import Scheduler

GOOD, BAD = "soak-good", "soak-bad"
POLICY = """\
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
"""
NASTY = ("", "-1", "1e400", "NaN", "null", "{}", "[", '{"a": ', "9" * 40, "🂡", "../..", "true")
KEYS = ("volcano.sh/task-priority", "volcano.sh/preemptable", "volcano.sh/card.request", "sla-waiting-time")
ATTACKS_AMONG_OBJECTS, PART = 0.05, 40
"""How often a whole attack comes instead of an object, and by what its size is divided."""
LASTS, MOST_BAD = 10.0, 60
"""Seconds for which a gang lives; hostile objects at a time."""
PATIENCE = 300.0
"""Seconds until a gang is given up, and the run with it; one that is late by seconds is found in the end."""
FLAT = 1.0
"""Megabytes an hour that memory may grow after the first ten minutes of an hour."""


class Churn:
    """Good gangs in one namespace, hostile objects in another."""

    def __init__(self, client: Client, seed: int) -> None:
        self._client, self._random = client, random.Random(seed)
        self._alive: deque[tuple[float, str]] = deque()
        self._bad: deque[tuple[Resource[Any], str]] = deque()
        self._number = 0
        self.starts: list[float] = []
        self.refused = 0

    async def good(self) -> None:
        """One gang of three comes and is waited for; those that are old enough go."""
        self._number += 1
        name, began = f"g{self._number}", time.monotonic()
        body = {"metadata": {"name": name}, "spec": {"minMember": 3, "queue": "default"}}
        await self._client.create(PODGROUPS, body, GOOD)
        for i in range(3):
            await self._client.create(PODS, pod_body(f"{name}-{i}", name, cpu="100m"), GOOD)
        while not all([(await self._client.get(PODS, f"{name}-{i}", GOOD)).spec.node_name for i in range(3)]):
            if time.monotonic() > began + PATIENCE:
                group = await self._client.get(PODGROUPS, name, GOOD)
                why = [f"{c.type}={c.status}: {c.message}" for c in group.status.conditions or ()]
                raise AssertionError(f"{name} has not started within {PATIENCE:g} s: {group.status.phase}, {why}")
            await asyncio.sleep(0.02)
        self.starts.append(time.monotonic() - began)
        self._alive.append((began, name))
        while self._alive and self._alive[0][0] < time.monotonic() - LASTS:
            await self._end(self._alive.popleft()[1])

    async def _end(self, name: str) -> None:
        for i in range(3):
            await self._remove(PODS, f"{name}-{i}", GOOD)
        await self._remove(PODGROUPS, name, GOOD)

    async def bad(self) -> None:
        """One more hostile object, or a small attack; the oldest go where there are many."""
        self._number += 1
        name = f"b{self._number}"
        if self._random.random() < ATTACKS_AMONG_OBJECTS:
            attack = self._random.choice(list(ATTACKS.values()))
            objects = list(attack.make(name, max(1, attack.number // PART)))
        else:
            objects = [self._hostile(name)]
        for resource, body in objects:
            try:
                await self._client.create(resource, body, BAD if resource.namespaced else "")
                self._bad.append((resource, body["metadata"]["name"]))
            except ApiError:
                self.refused += 1  # the definitions do their part
        while len(self._bad) > MOST_BAD:
            await self._end_bad()

    async def _end_bad(self) -> None:
        resource, name = self._bad.popleft()
        await self._remove(resource, name, BAD if resource.namespaced else "")

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

    async def settle(self) -> None:
        """Everything goes but the nodes."""
        while self._bad:
            await self._end_bad()
        for found in (await self._client.list(JOBS, BAD)).items:
            await self._remove(JOBS, found.metadata.name, BAD)
        for _ in range(600):
            left = [one for space in (GOOD, BAD) for one in (await self._client.list(PODS, space)).items]
            if not [one for one in left if one.metadata.namespace == BAD]:
                return
            for one in left:
                if one.metadata.namespace == BAD:
                    await self._remove(PODS, one.metadata.name, BAD)
            await asyncio.sleep(0.1)
        raise AssertionError("the hostile pods do not go")

    async def _remove(self, resource: Resource[Any], name: str, namespace: str) -> None:
        with contextlib.suppress(NotFound, Conflict):
            await self._client.delete(resource, name, namespace, grace=0 if resource is PODS else None)
            if resource is COMMANDS:
                patch = {"metadata": {"finalizers": None}}
                await self._client.patch(resource.bare, name, patch, namespace, kind=Patch.MERGE)


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


def slope(samples: list[tuple[float, float]]) -> float:
    """How much memory grows, in MB an hour, over the samples (seconds, MB)."""
    if len(samples) < 2:
        return 0.0
    at, size = zip(*samples, strict=True)
    return statistics.linear_regression(at, size).slope * 3600


async def _soak(minutes: float, seed: int, say: Any) -> list[str]:
    """What was wrong in the end."""
    cluster = EmbeddedCluster(Settings(kind="embedded"))
    cluster.up(lambda _: None)
    wrong: list[str] = []
    try:
        async with client_of(cluster.kubeconfig) as client:
            await apply_crds(client)
            for space in (GOOD, BAD):
                await client.create(NAMESPACES, {"metadata": {"name": space}})
            await client.create(QUEUES, queue("default"))
            for i in range(4):
                await settled_node(client, f"soak-{i}", "8")
            options = ("--node-selector", "schedspec.dev/world=true")
            scheduler = Scheduler(cluster.kubeconfig, POLICY, *options, controllers="all")
            try:
                await asyncio.to_thread(scheduler.wait_ready)
                wrong += await _churned(Churn(client, seed), scheduler, minutes, say)
                await asyncio.sleep(3)
                wrong += await _differences(client, scheduler)
            except AssertionError as error:
                wrong += [f"{error}; the scheduler said last:\n{scheduler.log.read_text()[-3000:]}"]
            finally:
                scheduler.kill()
    finally:
        cluster.down()
    return wrong


async def _churned(churn: Churn, scheduler: Scheduler, minutes: float, say: Any) -> list[str]:
    began, samples, next_sample = time.monotonic(), [], 0.0
    while (now := time.monotonic() - began) < minutes * 60:
        await churn.bad()
        await churn.bad()
        await churn.good()
        if now >= next_sample:
            samples.append((now, scheduler.memory_mb()))
            next_sample = now + 10
            if len(samples) % 30 == 1:
                say(f"soak: {now / 60:.0f} min: {samples[-1][1]:.1f} MB, {len(churn.starts)} gangs")
    await churn.settle()
    late = [one for one in samples if one[0] >= minutes * 10]  # the first sixth is warming up
    grows = slope(late)
    slowest = max(churn.starts)
    say(
        f"soak: {len(churn.starts)} gangs, median {statistics.median(churn.starts):.2f} s, slowest {slowest:.2f} s; "
        f"{churn.refused} hostile objects refused; memory {late[-1][1]:.1f} MB, {grows:+.2f} MB an hour"
    )
    wrong = [f"a gang took {slowest:.2f} s to start"] if slowest > statistics.median(churn.starts) + 1 else []
    if minutes >= 60 and grows >= FLAT:
        wrong.append(f"memory grows by {grows:.2f} MB an hour")
    return wrong


async def _differences(client: Client, scheduler: Scheduler) -> list[str]:
    """In what the scheduler's state is not the API server's."""
    before = set(ROOT.glob("cycle-*"))
    scheduler.process.send_signal(signal.SIGUSR2)
    for _ in range(100):
        await asyncio.sleep(0.1)
        if written := [path for path in set(ROOT.glob("cycle-*")) - before if segments(path)]:
            break
    else:
        return ["the scheduler has not written its state"]
    await asyncio.sleep(1)
    state = set(_state(written[0]))
    shutil.rmtree(written[0])
    there = {
        (resource.kind, found.metadata.uid)
        for resource in (PODS, PODGROUPS, NODES, QUEUES)
        for found in (await client.list(resource)).items
    }
    wrong = [f"{kind} {uid} is in the state and not in the API" for kind, uid in sorted(state - there)]
    return wrong + [f"{kind} {uid} is in the API and not in the state" for kind, uid in sorted(there - state)]


def _state(record: Path) -> Iterator[tuple[str, str]]:
    for given in (one for path in segments(record) for one in read_segment(path)):
        if isinstance(given, Decided):
            return
        if isinstance(given, ObjectSeen) and given.kind in ("Pod", "PodGroup", "Node", "Queue"):
            yield given.kind, given.object.metadata.uid


def soak(minutes: float, seed: int) -> bool:
    """Whether all was well."""

    def say(text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    wrong = asyncio.run(_soak(minutes, seed, say))
    for one in wrong:
        say(f"soak: WRONG: {one}")
    return not wrong
