"""The live scheduler and its controllers have the immediate effects that a plan predicts.

The cluster is in virtual time: its API server is in memory, and the scheduler and the controllers on it are the live
ones. The state is what `kubectl get -o json` would print.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from schedspec.lab.plan import Plan, Request, Side, make_plan
from schedspec.virtual.cluster import VirtualCluster

QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/podgroups"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/team/jobs"
LISTS = ("/api/v1/nodes", "/api/v1/pods", QUEUES, GROUPS)
HEAD = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
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
NODES, CPUS = 12, 8
CHANGES = {"harmless": 4, "a smaller share": 10, "gang above capacity": 10}
"""Each kind of change, with the number of random states."""


class Team:
    """A cluster with five queues: jobs of some queues hold more than these deserve, and other jobs wait."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.cluster = VirtualCluster()
        self.cluster.use_policy(POLICY)
        self.evicted: Counter[str] = Counter()
        self.bound: Counter[str] = Counter()
        self.is_watching = False
        self.cluster.watch(self._watch)
        self._nodes: dict[str, str] = {}
        self.cluster.advance(1)
        self.send("POST", "/api/v1/namespaces", {"metadata": {"name": "team"}})
        has = {"cpu": str(CPUS), "memory": "64Gi", "pods": "110"}
        for at in range(NODES):
            name = f"n{at:02}"
            self.send("POST", "/api/v1/nodes", {"metadata": {"name": name}, "status": {"allocatable": has}})
        shares = [NODES * CPUS // 5 + self.rng.randint(-6, 6) for _ in range(5)]
        self.queues = {f"q{at}": share for at, share in enumerate(shares)}
        for name, share in self.queues.items():
            self.send("POST", QUEUES, self.queue(name, share))
        self.cluster.advance(2)
        for at in range(70):
            self.submit(f"j{at:02}", f"q{self.rng.choice((0, 0, 0, 1, 1, 2, 3, 4))}")
        self.cluster.advance(120)

    def _watch(self, kind: str, change: str, item: dict[str, Any]) -> None:
        if kind != "v1/pods":
            return
        meta, node = item["metadata"], item["spec"].get("nodeName", "")
        before = self._nodes.get(meta["uid"], "")
        if self.is_watching and node and not before:
            self.bound[meta["name"]] += 1
        self._nodes[meta["uid"]] = node
        if (
            self.is_watching
            and change == "MODIFIED"
            and meta.get("deletionTimestamp")
            and meta["uid"] not in self._evicted_uids
        ):
            self._evicted_uids.add(meta["uid"])
            self.evicted[meta["name"]] += 1

    def send(self, method: str, path: str, body: Any = None) -> Any:
        data = b"" if body is None else json.dumps(body).encode()
        content_type = "application/merge-patch+json" if method == "PATCH" else ""
        status, answer = self.cluster.request(method, path, data, content_type)
        assert status < 300, answer
        return json.loads(answer)

    @staticmethod
    def queue(name: str, share: int) -> dict[str, Any]:
        return {**HEAD, "metadata": {"name": name}, "spec": {"deserved": {"cpu": str(share)}}}

    def submit(self, name: str, queue: str) -> None:
        pods = self.rng.randint(1, 4)
        container = {"name": "x", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        spec = {"schedulerName": "schedspec", "restartPolicy": "Never", "containers": [container]}
        tasks = [{"name": "t", "replicas": pods, "template": {"spec": spec}}]
        least = self.rng.randint(1, pods)
        job = {"schedulerName": "schedspec", "queue": queue, "minAvailable": least, "tasks": tasks}
        self.send("POST", JOBS, {"metadata": {"name": name}, "spec": job})
        self.cluster.advance(1.5)

    def write_lists(self, folder: Path) -> Path:
        folder.mkdir()
        for at, path in enumerate(LISTS):
            (folder / f"{at}.json").write_text(json.dumps(self.send("GET", path)))
        config = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "c"}, "data": {"v.conf": POLICY}}
        (folder / "policy.json").write_text(json.dumps(config))
        return folder

    def change(self, kind: str) -> dict[str, str]:
        """Return the proposed files."""
        if kind == "harmless":
            return {"q.json": json.dumps(self.queue("q0", self.queues["q0"])), "p.yaml": f"# a word\n{POLICY}"}
        shares = {"q0": 4, **{name: share + 8 for name, share in self.queues.items() if name != "q0"}}
        files = {f"{name}.json": json.dumps(self.queue(name, share)) for name, share in shares.items()}
        return {**files, "p.yaml": GANG_FIRST} if kind == "gang above capacity" else files

    def apply(self, kind: str) -> None:
        """Apply the change to the cluster, and wait until the cluster settles."""
        self._evicted_uids: set[str] = set()
        self.is_watching = True
        for path, text in self.change(kind).items():
            if path.endswith(".json"):
                queue = json.loads(text)
                self.send("PATCH", f"{QUEUES}/{queue['metadata']['name']}", {"spec": queue["spec"]})
            else:
                self.cluster.use_policy(text)
        self.cluster.advance(300)


@pytest.fixture
def teams() -> Iterator[list[Team]]:
    made: list[Team] = []
    yield made
    for team in made:
        team.cluster.close()


def predict(team: Team, kind: str, folder: Path) -> Plan:
    state = team.write_lists(folder)
    return make_plan(Request(state, None, Side("new", team.change(kind)), resource="cpu", max_age=1e12, out=folder))


@pytest.mark.parametrize(("kind", "states"), CHANGES.items(), ids=list(CHANGES))
def test_the_predicted_evictions_and_starts_happen(kind: str, states: int, teams: list[Team], tmp_path: Path) -> None:
    equal, happened, report = 0, 0, []
    for seed in range(states):
        team = Team(seed)
        teams.append(team)
        plan = predict(team, kind, tmp_path / f"{seed}")
        team.apply(kind)
        world = plan.at_once.proposed
        predicted = Counter(it.pod.partition("/")[2] for it in world.evictions)
        starts = Counter(pod for it in world.starts for pod in [it.job.partition("/")[2][: len("j00")]] * it.pods)
        live = Counter(name[: len("j00")] for name in team.bound if name not in team.evicted)
        happened += len(team.evicted)
        if set(predicted) == set(team.evicted) and starts == live:
            equal += 1
        else:
            report.append(f"{seed}: evicted {sorted(predicted)} / {sorted(team.evicted)}; starts {starts} / {live}")
    assert equal * 10 >= states * 9, "\n".join(report)
    assert bool(happened) == (kind != "harmless")
