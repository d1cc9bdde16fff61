"""Measure the part `at_once` of `schedspec plan`: a state of 5,000 nodes and 50,000 pods, and three changes.

`python -m benchmarks.plan` prints a table and writes `benchmarks/out/plan.json`.

The state has nodes of 8 cards, eight queues, and gangs of 1 to 16 pods of one card each, with requests, names and
priorities of their own; 40,000 pods run and 10,000 wait, half of them in gangs without pods. The state is stable: each
queue with running pods holds its deserved share, q0 a quarter of the cluster; q7 runs nothing and deserves 2 %.

Each plan is a command of its own, from the state's file to the page. Its time is wall-clock time, because each world is
a process.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figure import Figure, report
from schedspec.scheduler.inputs import PolicyLoaded
from schedspec.scheduler.model import objects
from schedspec.virtual.state import State
from schedspec.virtual.state.dump import write_state

CARDS = "nvidia.com/gpu"
NODES, WAITING, PER_NODE = 5_000, 10_000, 8
CREATED = "2026-09-01T00:00:00Z"
GOAL = 60.0
POLICY = """
actions: "enqueue, allocate, backfill, reclaim"
tiers:
- plugins: [{name: priority}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity}, {name: gang}, {name: nodeorder}]
"""
GANG_FIRST = POLICY.replace("{name: capacity}, {name: gang}", "{name: capacity}").replace(
    "{name: conformance}", "{name: gang}, {name: conformance}"
)
PRIORITIES, PODLESS = 1_000, 0.5
"""The number of priority classes, and the part of the waiting gangs that have no pods yet."""
WORDS = ("train", "eval", "sweep", "bert", "resnet", "llama", "ablation", "nightly", "alice", "bob", "vision", "nlp")
RUNNING = ("q0", "q0", "q1", "q2", "q3", "q4", "q5", "q6")
OWNER = objects.OwnerReference("batch.volcano.sh/v1alpha1", "Job", "job", controller=True)


def queue(name: str, cards: int) -> dict[str, object]:
    head = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}}
    return {**head, "spec": {"deserved": {CARDS: str(cards)}}}


CHANGES = {
    "a harmless change": {"policy.yaml": f"# a word\n{POLICY}"},
    "a queue deserves half": {"q0.json": json.dumps(queue("q0", NODES * PER_NODE // 8))},
    "gang above capacity": {"policy.yaml": GANG_FIRST},
}


def gangs(state: State, rng: random.Random, name: str, pods: int, nodes: Iterator[str], deserved: Counter[str]) -> None:
    """Add gangs with `pods` pods in all, which run on `nodes`, or wait. Add what runs to `deserved`, by queue.

    Each gang has its own requests, name and priority, as in a cluster whose users write their own manifests. Half of
    the gangs that wait have no pods yet: they wait for admission.
    """
    made = 0
    while made < pods:
        size = min(rng.choice((1, 1, 2, 4, 8, 16)), pods - made)
        key = f"{rng.choice(WORDS)}-{rng.choice(WORDS)}-{name}-{made:05}"
        at = rng.choice(RUNNING) if name == "run" else "q7" if made < pods // 12 else rng.choice(RUNNING)
        if name == "run":
            deserved[at] += size
        priority = f"priority-{rng.randrange(PRIORITIES)}"
        requests = {"cpu": f"{rng.randint(500, 7_500)}m", "memory": f"{rng.randint(1_000, 60_000)}Mi", CARDS: "1"}
        is_podless = name == "wait" and rng.random() < PODLESS
        least = rng.randint(1, size)
        minimum: objects.meta.Quantities = {CARDS: str(least), "cpu": f"{least * 500}m"}
        meta = objects.ObjectMeta(name=key, namespace="team", uid=key, creation_timestamp=CREATED)
        spec = objects.PodGroupSpec(
            min_member=least, queue=at, priority_class_name=priority, min_resources=minimum if is_podless else None
        )
        phase = "Running" if name == "run" else "Pending"
        state.put("PodGroup", objects.PodGroup(meta, spec, objects.PodGroupStatus(phase)))
        for number in range(0 if is_podless else size):
            state.put("Pod", pod(key, number, next(nodes, ""), requests, priority))
        made += size


def pod(group: str, number: int, node: str, requests: objects.meta.Quantities, priority: str) -> objects.Pod:
    name = f"{group}-{number}"
    meta = objects.ObjectMeta(
        name=name, namespace="team", uid=name, creation_timestamp=CREATED, owner_references=[OWNER],
        annotations={"scheduling.k8s.io/group-name": group},
    )  # fmt: skip
    spec = objects.PodSpec(
        [objects.Container(name="c", resources=objects.Resources(requests=requests))],
        node_name=node, scheduler_name="schedspec", priority_class_name=priority,
    )  # fmt: skip
    return objects.Pod(meta, spec, objects.PodStatus("Running" if node else "Pending"))


def write(path: Path) -> None:
    state, rng = State("benchmark", time.time(), scheduler_names=["schedspec"]), random.Random(1)
    state.policy = PolicyLoaded("benchmark", POLICY)
    has: objects.meta.Quantities = {"cpu": "64", "memory": "512Gi", "pods": "110", CARDS: str(PER_NODE)}
    for at in range(PRIORITIES):
        state.put("PriorityClass", objects.PriorityClass(objects.ObjectMeta(name=f"priority-{at}"), at))
    names = [f"node-{at:05}" for at in range(NODES)]
    for name in names:
        status = objects.NodeStatus(allocatable=has, conditions=[objects.Condition("Ready", "True")])
        state.put("Node", objects.Node(objects.ObjectMeta(name=name), status=status))
    deserved = Counter(q7=NODES * PER_NODE // 50)
    gangs(state, rng, "run", NODES * PER_NODE, iter(names * PER_NODE), deserved)
    gangs(state, rng, "wait", WAITING, iter(()), deserved)
    for name, cards in sorted(deserved.items()):
        spec = objects.QueueSpec(deserved={CARDS: str(cards)})
        state.put("Queue", objects.Queue(objects.ObjectMeta(name=name), spec, objects.QueueStatus("Open")))
    write_state(state, path)


def measure(name: str, files: dict[str, str], state: Path, folder: Path) -> list[Figure]:
    """Plan one change; return seconds, evictions and starts."""
    proposed = folder / name.replace(" ", "-")
    proposed.mkdir()
    for file, text in files.items():
        (proposed / file).write_text(text)
    command = [sys.executable, "-m", "schedspec", "plan", "--state", state, "--proposed", proposed, "-o", "json"]
    began, cpu = time.monotonic(), _cpu()
    done = subprocess.run([*command, "--out", proposed / "out"], capture_output=True, text=True, check=True)
    took = time.monotonic() - began
    world = json.loads(done.stdout)["at_once"]["proposed"]
    if world["problem"]:
        sys.exit(f"{name}: {world['problem']}")
    return [
        Figure(f"{name}: planned at once in", round(took, 1), "s", GOAL),
        Figure(f"{name}: CPU of both worlds", round(_cpu() - cpu, 1), "s"),
        Figure(f"{name}: evictions", len(world["evictions"]), "pods"),
        Figure(f"{name}: starts", len(world["starts"]), "jobs"),
        Figure(f"{name}: cycles", world["cycles"], ""),
    ]


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state.jsonl.gz"
        write(state)
        for name, files in CHANGES.items():
            if any(word in name for word in sys.argv[1:] or [name]):
                yield from measure(name, files, state, Path(folder))
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    yield Figure("memory of the largest process", round(memory, 1), "MiB", 4096.0)


if __name__ == "__main__":
    sys.exit(report(figures(), "plan"))
