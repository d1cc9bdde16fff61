"""What a queue is owed does not depend on the shape of its pods, nor on that of the pods that hold its share.

The promises come from `docs/policies.md`; the checks do not use the scheduler's own computations. In every cluster, one
job waits, and nothing else changes. `--hypothesis-profile=nightly` selects the long run.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from hypothesis import given, note
from hypothesis import strategies as st

from schedspec.scheduler.decide import decide
from schedspec.scheduler.policy.loader import load_policy
from schedspec.scheduler.reasons import render_refusal
from tests.support.core.random_tables import Amounts, Draw, fits, random_shape, text
from tests.support.core.world import World

POLICY = """
actions: "allocate, {action}"
tiers:
- plugins: [{{name: priority}}, {{name: conformance}}]
- plugins: [{{name: predicates}}, {{name: capacity{tree}}}]
"""
TREES = {
    "": 0,
    ", enableHierarchy: true": 0,
    ", enableHierarchy: true, arguments: {ancestorReclaimLevel: 1}": 1,
    ", enableHierarchy: true, arguments: {ancestorReclaimLevel: 2}": 2,
}
"""Arguments of capacity → how many ancestors' shares count beside that of the queue."""
SEEDS = st.integers(0, 2**32 - 1)
"""Seeds, because most clusters that are drawn have no such claim; failures are not shrunk."""


class Pod(NamedTuple):
    """A running pod, a job of its own."""

    name: str
    queue: str
    node: str
    shape: Amounts


class Scene(NamedTuple):
    """A cluster in which one job waits."""

    tree: str
    nodes: dict[str, Amounts]
    queues: dict[str, Amounts]
    """Queue → what it deserves."""
    parents: dict[str, str]
    pods: list[Pod]
    queue: str
    """The queue of the waiting job."""
    claim: list[Amounts]
    """The shapes of the waiting job's pods, which start together."""

    def lineage(self, queue: str) -> list[str]:
        parent = self.parents.get(queue)
        return [queue, *self.lineage(parent)] if parent else [queue]

    def held(self, queue: str) -> Counter[str]:
        """Return what the pods below a queue hold."""
        return total(pod.shape for pod in self.pods if queue in self.lineage(pod.queue))

    def starts(self, claim: list[Amounts], action: str) -> bool:
        """Whether the waiting job starts, or is nominated, if its pods request these amounts."""
        running = [
            {
                "name": pod.name,
                "queue": pod.queue,
                "priority": 0,
                "tasks": f"1 x {text(pod.shape)} running on {pod.node}",
            }
            for pod in self.pods
        ]
        lines = [f"1 x {text(shape)}" for shape in claim]
        waiting = {"queue": self.queue, "min": len(claim), "tasks": lines, "requests": "none", "phase": "Inqueue"}
        table = {
            "nodes": [{"name": name, "has": text(has)} for name, has in self.nodes.items()],
            "queues": [
                {"name": name, "deserved": text(deserved), "parent": self.parents.get(name, "")}
                for name, deserved in self.queues.items()
            ],
            "jobs": [*running, {"name": "claim", "priority": 9, **waiting}],
        }
        world = World(load_policy(POLICY.format(action=action, tree=self.tree), "policy"))
        world.load(table)
        decisions = decide(world.cluster, world.policy, world.now)
        note(str(table))
        note("; ".join(f"{key}: {render_refusal(refusal)}" for key, refusal in decisions.refusals.items()))
        placed = {*decisions.pipelined, *(bind.task for bind in decisions.binds)}
        return all(f"t/claim-{i}" in placed for i in range(len(claim)))


def total(shapes: Iterable[Amounts]) -> Counter[str]:
    found = Counter[str]()
    for shape in shapes:
        found.update(shape)
    return found


def scene(rng: random.Random, pods: int = 3) -> Scene:
    """Draw a cluster full of single pods, and one job of up to `pods` equal pods that waits."""
    draw = Draw(rng)
    tree = draw.one_of(sorted(TREES))
    nodes = {f"n{i}": draw.amounts(2, 8) for i in range(draw.number(1, 2))}
    parents = {f"q{i}{j}": f"q{i}" for i in range(2) for j in range(draw.number(0, 2))} if tree else {}
    names = sorted({*parents, *parents.values(), "q0", "q1"}) if tree else ["q0", "q1", "q2"]
    leaves = [name for name in names if name not in parents.values()]
    running = list[Pod]()
    for node, has in nodes.items():
        idle = dict(has)
        for shape in (random_shape(draw) for _ in range(draw.number(1, 5))):
            if fits(shape, idle):
                idle = {name: amount - shape.get(name, 0) for name, amount in idle.items()}
                running.append(Pod(f"{node}-{len(running)}", draw.one_of(leaves), node, shape))
    queues = {name: draw.amounts(0, 8, percent=85) for name in names}
    claim = [random_shape(draw)] * draw.number(1, pods)
    return Scene(tree, nodes, queues, parents, running, draw.one_of(leaves), claim)


def mixed_scene(rng: random.Random) -> Scene:
    """Draw a cluster of one node with at most one pod of another queue, and a gang of different pods that waits."""
    drawn = scene(rng)
    only = [pod if pod is drawn.pods[-1] else pod._replace(queue=drawn.queue) for pod in drawn.pods if pod.node == "n0"]
    claim, share = [random_shape(Draw(rng)) for _ in drawn.claim], Draw(rng).amounts(4, 20)
    queues = {**drawn.queues, drawn.queue: share}
    return drawn._replace(nodes={"n0": drawn.nodes["n0"]}, queues=queues, pods=only, claim=claim)


def room(scene: Scene, gone: Pod | None) -> bool:
    """Whether the nodes have room for the claim once a pod is gone."""
    held = {
        node: total(pod.shape for pod in scene.pods if pod.node == node and pod is not gone) for node in scene.nodes
    }
    idle = [{name: has[name] - held[node][name] for name in has} for node, has in scene.nodes.items()]
    return any(
        all(
            fits(total(shape for shape, place in zip(scene.claim, places, strict=True) if place == number), left)
            for number, left in enumerate(idle)
        )
        for places in itertools.product(range(len(idle)), repeat=len(scene.claim))
    )


def owed(scene: Scene) -> Iterator[Pod]:
    """Yield each pod whose room is enough, and that is owed to a claim within its queue's share in all that it takes.

    The pod's queue and its near ancestors hold more than they deserve of one resource that both the pod and the claim
    hold. Volcano reads a deserved amount of 0 cpu or memory as none.
    """
    claim, own = total(scene.claim), scene.lineage(scene.queue)
    held, deserved = scene.held(scene.queue), scene.queues[scene.queue]
    if any(held[name] + amount > deserved.get(name, 0) for name, amount in claim.items()) or room(scene, None):
        return
    for pod in scene.pods:
        giving = [name for name in scene.lineage(pod.queue)[: TREES[scene.tree] + 1] if name not in own]
        if scene.queue != pod.queue and room(scene, pod):
            for name in claim.keys() & pod.shape.keys():
                shares = [(scene.held(queue)[name], scene.queues[queue].get(name)) for queue in giving]
                if all(share is not None and has > share and (share or name == "gpu") for has, share in shares):
                    yield pod
                    break


def less(claim: list[Amounts]) -> Iterator[list[Amounts]]:
    """Yield the claims that take less, but not nothing, of what a claim takes."""
    for amounts in itertools.product(*[range(1, amount + 1) for amount in claim[0].values()]):
        shape = dict(zip(claim[0], amounts, strict=True))
        if shape != claim[0]:
            yield [shape] * len(claim)


@given(seed=SEEDS)
def test_a_pod_within_its_queues_share_reclaims_whatever_the_shapes(seed: int) -> None:
    rng = random.Random(seed)
    drawn = scene(rng, pods=1)
    while not (found := list(owed(drawn))):
        drawn = scene(rng, pods=1)
    assert drawn.starts(drawn.claim, "reclaim"), f"{drawn.claim} is owed the room of one of {found}"


@given(seed=SEEDS)
def test_a_gang_of_different_pods_reclaims_for_their_sum(seed: int) -> None:
    """On one node, with one pod of another queue, neither the places nor the victims are a choice."""
    rng = random.Random(seed)
    drawn = mixed_scene(rng)
    while not (found := list(owed(drawn))):
        drawn = mixed_scene(rng)
    assert drawn.starts(drawn.claim, "reclaim"), f"{drawn.claim} is owed the room of {found}"


@given(seed=SEEDS, action=st.sampled_from(("reclaim", "preempt")))
def test_a_job_that_makes_room_also_does_if_it_requests_less_of_a_resource(seed: int, action: str) -> None:
    rng = random.Random(seed)
    drawn = scene(rng)
    if action == "preempt":
        drawn = drawn._replace(pods=[pod._replace(queue=drawn.queue) for pod in drawn.pods])
    if drawn.starts(drawn.claim, action):
        for claim in less(drawn.claim):
            assert drawn.starts(claim, action), f"{drawn.claim} starts, {claim} does not"
