"""Compare a plan with a live cluster: build a random state of five queues, apply a change, and compare the effects.

One separate process runs the scheduler and the controllers; KWOK plays the nodes. Every victim takes `GRACE` seconds to
terminate.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from schedspec import distribution
from schedspec.scheduler.controllers.runtime.objects import JOBS
from schedspec.scheduler.kube import NAMESPACES, QUEUES, Client, Patch
from schedspec.scheduler.model.objects import Pod
from tests.support.live.api_objects import client_of, each, fresh_cluster, pod_body, prepare, queue
from tests.support.live.history import History, watching
from tests.support.live.later_gang import report_on_a_later_gang
from tests.support.live.scheduler_process import Scheduler, scheduling
from tests.support.live.status_queries import eventually

TEAM, PROBE = "team", "probe"
NODE_COUNT, CPUS = 24, 20
GRACE = 3
"""Seconds that a victim takes to terminate."""
PODS_OF_STATE = 500
POLICY = """actions: "enqueue, allocate, backfill, reclaim"
tiers:
- plugins: [{name: priority}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity}, {name: gang}, {name: nodeorder}]
"""
GANG_FIRST = """actions: "enqueue, allocate, backfill, reclaim"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
"""
HARMLESS, SMALLER_SHARE, GANG_ABOVE_CAPACITY = "harmless", "a smaller share", "gang above capacity"


@dataclass
class Difference:
    """The differences between the plan and the cluster: victims, and started pods by job."""

    foretold: int = 0
    evicted: list[str] = field(default_factory=list)
    spared: list[str] = field(default_factory=list)
    starts: dict[str, tuple[int, int]] = field(default_factory=dict)
    problem: str = ""

    @property
    def is_none(self) -> bool:
        return not (self.evicted or self.spared or self.starts or self.problem)


@asynccontextmanager
async def team(seed: int) -> AsyncIterator[Team]:
    """Yield a new cluster with a scheduler and controllers, after the state of the team has settled."""
    with fresh_cluster() as kubeconfig:
        async with client_of(kubeconfig) as client:
            await prepare(client, NODE_COUNT, [queue("default"), queue(PROBE)], cpu=str(CPUS))
            for name in (TEAM, PROBE):
                await client.create(NAMESPACES, {"metadata": {"name": name}})
            with scheduling(kubeconfig, POLICY, controllers="all") as scheduler:
                await asyncio.to_thread(scheduler.wait_ready)
                async with watching(client, TEAM) as history:
                    made = Team(seed, kubeconfig, client, history, scheduler)
                    await made.build()
                    yield made


class Team:
    """Five queues that deserve about 1.2 times the cluster, and more jobs of one to eight pods than fit."""

    def __init__(self, seed: int, kubeconfig: Path, client: Client, history: History, scheduler: Scheduler) -> None:
        self._rng = random.Random(seed)
        self._kubeconfig, self._client, self._history, self._scheduler = kubeconfig, client, history, scheduler
        self._pods = 0
        self._probes = 0
        total = NODE_COUNT * CPUS
        parts = [0.45, *(self._rng.uniform(0.12, 0.25) for _ in range(4))]
        self.shares = {f"q{at}": round(total * part) for at, part in enumerate(parts)}

    async def build(self) -> None:
        """Create queues and jobs, and wait until the cluster has settled."""
        for name, share in self.shares.items():
            await self._client.create(QUEUES, queue(name, deserved={"cpu": str(share)}))
        bodies = list(self._jobs())
        await each(bodies, lambda body: self._client.create(JOBS, body, TEAM), 8)
        await self.settled()

    def _jobs(self) -> Any:
        left, number = PODS_OF_STATE, 0
        while left > 0:
            pods, cpu = self._rng.randint(1, 8), self._rng.choice(("1", "1", "1", "2"))
            name = f"j{number:03}"
            body = pod_body("t", name, cpu)
            meta = {"annotations": {"schedspec.dev/stop-after": f"{GRACE}s"}}
            template = {"metadata": meta, "spec": {**body["spec"], "restartPolicy": "Never"}}
            spec = {
                "schedulerName": "schedspec",
                "queue": f"q{self._rng.choice((0, 0, 0, 1, 1, 2, 3, 4))}",
                "minAvailable": self._rng.randint(1, pods),
                "tasks": [{"name": "t", "replicas": pods, "template": template}],
            }
            self._pods += pods
            left, number = left - pods, number + 1
            yield {"metadata": {"name": name}, "spec": spec}

    # --------------------------------------------------------------------------------------------------------- settled

    async def settled(self) -> None:
        """Wait until all pods exist, none starts or terminates, and no pod gets a node until two reports later."""
        while True:
            await eventually("every job has its pods, and none of them starts or ends", self._is_quiet)
            before = self._places()
            for _ in range(2):
                await self._probe()
            if await self._is_quiet() and self._places() == before:
                return

    async def _is_quiet(self) -> bool:
        pods = self._history.pods.values()
        busy = any(
            it.metadata.deletion_timestamp or (it.spec.node_name and it.status.phase != "Running") for it in pods
        )
        return len(self._history.pods) == self._pods and not busy

    def _places(self) -> dict[str, str]:
        return {it.metadata.uid: it.spec.node_name for it in self._history.pods.values()}

    async def _probe(self) -> None:
        self._probes += 1
        await report_on_a_later_gang(self._client, f"probe-{self._probes}", PROBE, PROBE)

    # ---------------------------------------------------------------------------------------------------------- change

    def proposed(self, kind: str) -> dict[str, str]:
        """Return the files of a change: name → content."""
        if kind == HARMLESS:
            return {"q.json": self._manifest("q0", self.shares["q0"]), "p.yaml": f"# a word\n{POLICY}"}
        if kind == SMALLER_SHARE:
            return {"q.json": self._manifest("q0", self.shares["q0"] // 3)}
        return {"p.yaml": GANG_FIRST}

    @staticmethod
    def _manifest(name: str, share: int) -> str:
        head = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
        return json.dumps({**head, **queue(name, deserved={"cpu": str(share)})})

    async def compare(self, kind: str, folder: Path) -> Difference:
        """Dump, plan, make the change, wait until the cluster has settled, and compare."""
        world = (await asyncio.to_thread(self._plan, kind, folder))["at_once"]["proposed"]
        began = len(self._history.changes)
        await self._make(kind)
        await self.settled()
        evicted, starts = self._happened(began)
        foretold = {it["pod"].partition("/")[2] for it in world["evictions"]}
        jobs = Counter({_job_of(it["job"]): it["pods"] for it in world["starts"]})
        return Difference(
            len(foretold),
            sorted(evicted - foretold),
            sorted(foretold - evicted),
            {job: (jobs[job], starts[job]) for job in sorted({*jobs, *starts}) if jobs[job] != starts[job]},
            world["problem"],
        )

    def _plan(self, kind: str, folder: Path) -> Any:
        (folder / "proposed").mkdir(parents=True)
        for name, text in self.proposed(kind).items():
            (folder / "proposed" / name).write_text(text)
        policy, state = str(self._scheduler.policy_file), str(folder / "state.jsonl.gz")
        _run("dump", "--kubeconfig", str(self._kubeconfig), "--policy", policy, "--out", state)
        words = ["--state", state, "--proposed", str(folder / "proposed"), "--grace", str(GRACE)]
        return json.loads(_run("plan", *words, "--out", str(folder / "out"), "-o", "json"))

    async def _make(self, kind: str) -> None:
        for name, text in self.proposed(kind).items():
            if name.endswith(".json"):
                item = json.loads(text)
                await self._client.patch(QUEUES, item["metadata"]["name"], {"spec": item["spec"]}, kind=Patch.MERGE)
            else:
                self._scheduler.change_policy(text)
                await eventually("the policy is in force", partial(self._is_in_force, text))

    async def _is_in_force(self, text: str) -> bool:
        page = await asyncio.to_thread(self._scheduler.page, "/policy")
        return bool(json.loads(page)["sha256"] == hashlib.sha256(text.encode()).hexdigest())

    def _happened(self, began: int) -> tuple[set[str], Counter[str]]:
        """Return the names of the victims, and how many other pods of each job got a node."""
        bound: dict[str, Pod] = {}
        had = {pod.metadata.uid for _, pod in self._history.changes[:began] if pod is not None and pod.spec.node_name}
        evicted: set[str] = set()
        for _, pod in self._history.changes[began:]:
            if pod is None:
                continue
            if pod.spec.node_name and pod.metadata.uid not in had:
                bound[pod.metadata.name] = pod
            if pod.metadata.uid in self._history.evicting:
                evicted.add(pod.metadata.name)
        return evicted, Counter(_job_of(name) for name in bound if name not in evicted)


def _job_of(key: str) -> str:
    """Return the name of the job that a PodGroup or a pod belongs to."""
    return key.rpartition("/")[2].partition("-")[0]


def _run(*words: str) -> str:
    command = [sys.executable, "-P", "-m", "schedspec", *words]
    done = subprocess.run(command, env=distribution.environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
