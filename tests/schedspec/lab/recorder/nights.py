"""Nights of a production: a scheduler evicts under a load, incidents are planted or not, and all of it is recorded.

    python -m tests.schedspec.lab.recorder.nights [--scheduler volcano] [--minutes 20] [--out FOLDER]

For each scheduler one night has plants, and one has none. Each night is a line of `nights.jsonl`, which an interrupted
run continues, and its recording is the folder `SCHEDULER-planted` or `SCHEDULER-quiet`. `test_nights` runs short ones.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from schedspec.lab.recorder.evictions import Eviction, EvictionReader
from schedspec.lab.recorder.judge import Finding, Judge
from schedspec.lab.recorder.versions import VersionReader
from schedspec.virtual.state.over_time import inputs_over_time
from tests.schedspec.lab.recorder.plants import DEVICE, PLANTS, QUEUE, Planted
from tests.schedspec.lab.recorder.production import Object, Production, production
from tests.support.teams import CARDS_OF_NODE, GPU, REQUESTED, SPACE, Job, KueueTeam, VolcanoTeam, named

OUT = Path(__file__).parents[4] / "benchmarks" / "out" / "nights"
NODES = 6
_PAUSE = 2.0
"""Seconds between two changes of the load."""
RECLAIM = """\
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang, enableReclaimable: false}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: capacity}, {name: nodeorder}]
"""
KUBE = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
profiles:
- schedulerName: schedspec
"""


def pod_of(name: str, cards: int) -> Object:
    """Return a pod that requests cards."""
    amounts = {GPU: str(cards)}
    box = {"name": "work", "image": "work", "resources": {"requests": amounts, "limits": amounts}}
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 2, "schedulerName": "schedspec"}
    return named("v1", "Pod", name, SPACE, spec={**spec, "containers": [box]})


class KubeTeam:
    """Jobs of three priorities, for which kube-scheduler preempts."""

    scheduler: ClassVar[str] = "kube-scheduler"
    _PRIORITIES: ClassVar = {"low": 1, "middle": 5, "high": 9}

    def __init__(self, rng: random.Random) -> None:
        del rng
        self.policy, self.nodes = KUBE, NODES

    def setup(self) -> Iterator[Object]:
        """Yield the priority classes."""
        for name, value in self._PRIORITIES.items():
            yield named("scheduling.k8s.io/v1", "PriorityClass", name, value=value)

    def job(self, rng: random.Random, name: str, most: str) -> Job:
        """Return a Job."""
        del most
        pods, cards = rng.randint(1, 6), rng.choice((1, 1, 2, 3))
        spec = pod_of("", cards)["spec"] | {"priorityClassName": rng.choice(tuple(self._PRIORITIES))}
        whole = {"parallelism": pods, "completions": pods, "backoffLimit": 100, "template": {"spec": spec}}
        return Job(named("batch/v1", "Job", name, SPACE, spec=whole), pods, pods * cards)


class PodTeam(VolcanoTeam):
    """Queues of Volcano that deserve the whole cluster, and gangs of equal pods that nobody creates again.

    Other loads meet faults of Volcano itself, which are rightly found: a VolcanoJob creates a victim again, which gets
    the room that it was to free (docs/surprises/volcano-freed-room.md), and pods of different sizes are evicted one too
    many beside an idle card.
    """

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.policy = RECLAIM
        self._shares = dict.fromkeys(self._shares, self.nodes * CARDS_OF_NODE // len(self._shares))

    def job(self, rng: random.Random, name: str, most: str) -> Job:
        """Return a PodGroup with its pods."""
        pods, cards = rng.randint(1, 6), 2
        spec = {"queue": rng.choice((*self._shares, most)), "minMember": rng.choice((1, pods))}
        group = named("scheduling.volcano.sh/v1beta1", "PodGroup", name, SPACE, spec=spec)
        meta = {"annotations": {"scheduling.k8s.io/group-name": name}}
        members = [pod_of(f"{name}-{number}", cards) for number in range(pods)]
        for pod in members:
            pod["metadata"] |= meta
        return Job({"items": [group, *members]}, pods, pods * cards)


SCHEDULERS: Mapping[str, Callable[[random.Random], Any]] = {
    team.scheduler: team for team in (PodTeam, KueueTeam, KubeTeam)
}


class Load:
    """Jobs that come and end, and request about half as much again as the cluster has."""

    def __init__(self, cluster: Production, team: Any, rng: random.Random) -> None:
        self._cluster, self._team, self._rng = cluster, team, rng
        self._jobs: list[Job] = []
        self.number = 0

    def step(self) -> None:
        """Submit a job, or end one if enough is requested."""
        if sum(job.cards for job in self._jobs) < REQUESTED * self._team.nodes * CARDS_OF_NODE:
            self.number += 1
            most = self._rng.choice(("q0", "q1", "q2", "q3"))
            job = self._team.job(self._rng, f"job-{self.number:04}", most)
            self._cluster.apply(*_objects(job))
            self._jobs.append(job)
            return
        for body in _objects(self._jobs.pop(self._rng.randrange(len(self._jobs)))):
            resource = self._cluster.api.resource(body["apiVersion"], body["kind"])
            self._cluster.api.delete(resource.path(body["metadata"]["name"], SPACE))


def _objects(job: Job) -> Sequence[Object]:
    found: Sequence[Object] = job.body.get("items") or [job.body]
    return found


def night(scheduler: str, minutes: float, folder: Path, *, is_planted: bool, seed: int = 1) -> list[Planted]:
    """Record a production for some minutes in `folder/recording`; return what was planted."""
    rng = random.Random(f"{scheduler} {seed}")
    team = SCHEDULERS[scheduler](rng)
    policy = folder / "policy.yaml"
    policy.write_text(team.policy)
    plants, planted = [*PLANTS[scheduler]] if is_planted else [], list[Planted]()
    with production(folder, scheduler, team.policy) as cluster:
        for number in range(team.nodes):
            cluster.node(f"n{number:02}", 64, **{GPU: str(CARDS_OF_NODE)})
        for number in range(1, 4):
            cluster.node(f"p{number}", 8, **({DEVICE: "8"} if number == 1 else {}))
        cluster.apply(*team.setup(), *_queues_of_plants(scheduler))
        cluster.record(*(["--policy", str(policy)] if scheduler == "volcano" else []), "--judge")
        load, began = Load(cluster, team, rng), time.monotonic()
        while (passed := time.monotonic() - began) < minutes * 60:
            load.step()
            # the first plant is a wait, which is found after minutes; after the last one comes time to be found, too
            if plants and passed >= len(planted) * minutes * 60 / (len(PLANTS[scheduler]) + 1):
                planted.append(plants.pop(0)(cluster))
            time.sleep(_PAUSE)
        assert not plants
        cluster.stop()
    return planted


def _queues_of_plants(scheduler: str) -> Iterator[Object]:
    if scheduler == "volcano":
        for name in ("online", "batch"):
            spec = {"weight": 1, "deserved": {"cpu": "4", DEVICE: "4"}, "reclaimable": True}
            yield named("scheduling.volcano.sh/v1beta1", "Queue", name, spec=spec)
    if scheduler == "kueue":
        flavors = [{"name": "gpu", "resources": [{"name": "cpu", "nominalQuota": "24"}]}]
        spec = {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}]}
        yield named("kueue.x-k8s.io/v1beta2", "ClusterQueue", QUEUE, spec=spec)
        yield named("kueue.x-k8s.io/v1beta2", "LocalQueue", QUEUE, SPACE, spec={"clusterQueue": QUEUE})


# ---------------------------------------------------------------------------------------------------------- afterwards


def judged(recording: Path, *, off: Sequence[str] = ()) -> list[Finding]:
    """Return all findings in a recording."""
    found: list[Finding] = []
    judge = Judge(found.append, off)
    VersionReader(judge).read_all(inputs_over_time(recording))
    judge.end(float("inf"))
    return found


def evictions(recording: Path) -> list[Eviction]:
    """Return all evictions in a recording."""
    found: list[Eviction] = []
    reader = EvictionReader(found.append)
    VersionReader(reader).read_all(inputs_over_time(recording))
    reader.end()
    return found


def own_of(found: Sequence[Finding], planted: Sequence[Planted]) -> list[Finding]:
    """Return the findings that are about nothing planted."""
    jobs = {job for plant in planted for job in (plant.job, plant.preemptor) if job}
    abouts = tuple(plant.about for plant in planted)
    return [one for one in found if one.job not in jobs and not one.about.startswith((*abouts, *jobs))]


def row_of(scheduler: str, minutes: float, recording: Path, planted: Sequence[Planted]) -> dict[str, Any]:
    """Return the figures of a night."""
    found, lost = judged(recording), evictions(recording)
    named_by = Counter("inferred" if one.is_inferred else "named" for one in lost if one.preemptor)
    return {
        "scheduler": scheduler,
        "minutes": minutes,
        "planted": [plant.monitor for plant in planted],
        "missed": [plant.monitor for plant in planted if not any(map(plant.is_found_by, found))],
        "evictions": len(lost),
        **named_by,
        "others": [one.line for one in own_of(found, planted)],
        "bytes": sum(path.stat().st_size for path in recording.glob("*.gz")),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scheduler", action="append", choices=SCHEDULERS, help="default: all")
    parser.add_argument("--minutes", type=float, default=20.0, help="minutes of each night (%(default)g)")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    lines = given.out / "nights.jsonl"
    rows = [json.loads(line) for line in lines.read_text("utf-8").splitlines()] if lines.exists() else []
    done = {(row["scheduler"], bool(row["planted"])) for row in rows}
    for scheduler in given.scheduler or SCHEDULERS:
        for is_planted in (False, True):
            if (scheduler, is_planted) in done:
                continue
            folder = given.out / f"{scheduler}-{'planted' if is_planted else 'quiet'}"
            shutil.rmtree(folder, ignore_errors=True)  # of a night that was interrupted
            folder.mkdir()
            planted = night(scheduler, given.minutes, folder, is_planted=is_planted)
            row = row_of(scheduler, given.minutes, folder / "recording", planted)
            with lines.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            sys.stderr.write(json.dumps(row, indent=1) + "\n")


if __name__ == "__main__":
    main()
