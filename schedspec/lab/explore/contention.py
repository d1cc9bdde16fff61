"""Draw a case in which jobs compete: early jobs fill the nodes, and later jobs evict pods by reclaim or by preempt.

1. Queues deserve shares of the cluster. In a hierarchy, two queues are siblings, and the other queues are cousins.
2. Early jobs of one or two queues, the lenders, fill the nodes. They may have more pods than their minimum.
3. Later jobs reclaim from other queues by their queue's share, or preempt in the same queue by their priority. In some
   cases the capability of one queue is small until all of these jobs wait.
4. The amounts of queues are consistent: a tree's parents cover their children (`within_parents`).

Each dimension of a node, a queue and a pod is drawn on its own: a queue may lack one resource and exceed another, and a
claim may lack what its victims hold. In half of the cases all pods are equal, so that only the order decides which job
is served and which pod is evicted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from ..reduce.case import (
    Amounts,
    Case,
    CaseNode,
    CasePriorityClass,
    CaseQueue,
    ChangeStep,
    Step,
    SubmitStep,
    Work,
    amounts,
)
from ..reduce.play import policy_of
from .hardware import unit_of

QUEUES = ("chat", "imaging", "research", "speech", "training")
_MAX_EARLY, _MAX_LATE = 6, 4


def contended(random: Random, policy: str, space: tuple[str, ...], classes: tuple[CasePriorityClass, ...]) -> Case:
    """Draw a case under a policy whose actions evict pods for waiting jobs.

    `space`: the dimensions that nodes have and pods request.
    """
    actions, plugin = policy_of(policy).actions, policy_of(policy).plugin("capacity")
    by_priority = "preempt" in actions and bool(classes) and ("reclaim" not in actions or random.random() < 0.5)
    draw = _ContendedDraw(random, space, tuple(one.name for one in classes), by_priority=by_priority)
    nodes = draw.nodes()
    queues = draw.queues(is_tree=plugin is not None and plugin.enabled("enableHierarchy") and random.random() < 0.8)
    early, late = draw.early(), draw.late()
    together = random.choice((1, 1, 2, 3))
    steps: list[Step] = [SubmitStep((job,)) for job in early]
    steps += [SubmitStep(tuple(late[at : at + together])) for at in range(0, len(late), together)]
    if random.random() < 0.2 and (changed := draw.small_at_first(queues)):
        queues, raised = changed
        steps.append(raised)
    return Case(policy, nodes, queues, classes, (), tuple(steps))


class _ContendedDraw:
    def __init__(self, random: Random, space: tuple[str, ...], classes: tuple[str, ...], *, by_priority: bool) -> None:
        self._random, self._space, self._classes, self._by_priority = random, space, classes, by_priority
        self._size = 1 if random.random() < 0.5 else random.choice((2, 2, 3))
        """Units that an early pod requests. If 1, all pods are equal; else later pods request up to twice as many."""
        self._slots = random.randint(2, 3) if len(space) > 1 and random.random() < 0.75 else 0
        """Early pods that a node holds if they fill it in every dimension, and later pods have other shapes; else 0."""
        shape = self._amounts(1, 4 if self._slots else 2) if len(space) > 1 else self._amounts(1, 1)
        self._shape = shape if self._slots else partly(random, shape)
        self._has_spare_pods = random.random() < (0.4 if self._size == 1 and not by_priority else 0.8)
        self._lenders: list[str] = []
        self._reclaimers: list[str] = []
        self._is_family = False
        """Whether a sibling and a cousin lend equal pods to one queue: only the order decides who loses some."""
        self._number = 0
        self._capacity: dict[str, int] = {}
        """Units that the nodes have, by dimension."""

    def nodes(self) -> tuple[CaseNode, ...]:
        count = self._random.choice((1, 1, 2, 2, 3))
        if self._slots:
            count = self._random.choice((1, 1, 2))
        nodes = tuple(CaseNode(f"n{number}", self._has()) for number in range(1, count + 1))
        self._capacity = {name: sum(dict(node.has)[name] for node in nodes) // unit_of(name) for name in self._space}
        return nodes

    def _has(self) -> Amounts:
        if self._slots:
            return amounts((name, amount * self._slots) for name, amount in self._shape)
        return self._amounts(max(self._size, 2), 6)

    def queues(self, *, is_tree: bool) -> tuple[CaseQueue, ...]:
        random = self._random
        names = sorted(random.sample(QUEUES, random.choice((3, 4, 4, 5)) if is_tree else random.choice((1, 2, 2, 3))))
        leaves = names[1:] if is_tree else names
        self._lenders = random.sample(leaves, min(random.choice((1, 1, 2)), max(len(leaves) - 1, 1)))
        if is_tree and len(leaves) > 2 and random.random() < 0.5:
            self._is_family = True
            self._lenders, self._reclaimers = [leaves[0], random.choice(leaves[2:])], [leaves[1]]
            self._size, self._slots, self._has_spare_pods = 1, 0, False
        else:
            self._reclaimers = [name for name in leaves if name not in self._lenders] or leaves
        is_even = random.random() < 0.4
        queues = [self._queue(name, len(leaves), is_even=is_even) for name in names]
        if is_tree:  # two siblings, and cousins
            queues[1:3] = [replace(queue, parent=names[0]) for queue in queues[1:3]]
        return tuple(within_parents(queues))

    def small_at_first(self, queues: tuple[CaseQueue, ...]) -> tuple[tuple[CaseQueue, ...], ChangeStep] | None:
        """Return the queues with a small capability for one reclaimer, and the change that raises it."""
        name = self._random.choice(self._reclaimers)
        queue = next(queue for queue in queues if queue.name == name)
        least = self._amounts(1, 1)
        if queue.guarantee or not queue.deserved:
            return None
        capped = replace(queue, capability=least, deserved=at_most(least, queue.deserved))
        return tuple(capped if other is queue else other for other in queues), ChangeStep(queue)

    def _share(self, name: str, capacity: int, leaves: int) -> int:
        """Return the share of a queue in units: reclaimers deserve at least an equal part, and lenders any amount.

        In half of the draws a lender deserves at least half of the capacity, so that few of its pods may be evicted.
        The lenders of a family deserve little: each of them may lose pods.
        """
        if name not in self._lenders:
            return self._random.randint(max(capacity // leaves, 1), capacity)
        if self._is_family:
            return self._random.randint(0, capacity // 4)
        return self._random.randint(capacity // 2 if self._random.random() < 0.5 else 0, capacity)

    def _queue(self, name: str, leaves: int, *, is_even: bool) -> CaseQueue:
        random = self._random
        shares = {
            dimension: max(capacity // leaves, 1) if is_even else self._share(name, capacity, leaves)
            for dimension, capacity in self._capacity.items()
        }

        def of_shares(change: Callable[[int], int]) -> Amounts:
            return amounts((dimension, change(share) * unit_of(dimension)) for dimension, share in shares.items())

        return CaseQueue(
            name,
            weight=random.choice((1, 1, 2, 3)),
            priority=random.choice((0, 0, 0, 1)),
            capability=of_shares(lambda share: share + 1) if random.random() < 0.1 else (),
            deserved=partly(random, of_shares(lambda share: share)) if random.random() < 0.9 else (),
            guarantee=of_shares(lambda share: min(share, 1)) if random.random() < 0.1 else (),
            reclaimable=random.random() < 0.95,
        )

    def early(self) -> list[Work]:
        """Draw jobs until they fill one dimension of the nodes, or nearly fill it."""
        jobs: list[Work] = []
        held = dict.fromkeys(self._space, 0)
        held[self._space[0]] = self._random.choice((0, 0, self._size))
        while len(jobs) < _MAX_EARLY and all(held[name] < self._capacity[name] for name in self._space):
            requests = self._shape if self._slots else self._requests(self._size)
            jobs.append(self._job(self._lenders, ("low", "low", "", "high"), requests))
            for name, amount in jobs[-1].requests:
                held[name] += jobs[-1].pods * amount // unit_of(name)
        return jobs

    def late(self) -> list[Work]:
        random, jobs = self._random, list[Work]()
        for _ in range(random.randint(1, _MAX_LATE)):
            is_same = random.random() < (0.8 if self._by_priority else 0.2)
            most = self._size if random.random() < 0.3 else 2 * self._size
            requests = self._claim() if self._slots else self._requests(most)
            jobs.append(self._job(self._lenders if is_same else self._reclaimers, ("high", "high", ""), requests))
        return jobs

    def _job(self, queues: list[str], classes: tuple[str, ...], requests: Amounts) -> Work:
        random = self._random
        self._number += 1
        pods = random.choice((1, 2, 3, 4)) if self._has_spare_pods else random.choice((1, 1, 1, 2))
        return Work(
            f"train-{self._number}",
            random.choice(queues),
            random.choice(classes) if self._classes else "",
            pods,
            random.choice((1, random.randint(1, pods))) if self._has_spare_pods else pods,
            requests,
        )

    def _requests(self, most: int) -> Amounts:
        """Draw requests: several dimensions on their own, and not always all of them."""
        if self._size == 1:
            return self._shape
        if len(self._space) == 1:
            return self._amounts(self._size, most)
        return partly(self._random, self._amounts(1, most))

    def _claim(self) -> Amounts:
        """Draw requests for which one or several early pods have to go, in dimensions of their own.

        In half of the draws the request is all that a node has of one dimension, and little of the others.
        """
        most = {name: amount * self._slots // unit_of(name) for name, amount in self._shape}
        random = self._random
        if random.random() < 0.5:
            whole = random.choice(list(most))
            return amounts((name, (units if name == whole else 1) * unit_of(name)) for name, units in most.items())
        units = {name: random.choice((1, random.randint(1, units), units)) for name, units in most.items()}
        return partly(random, amounts((name, number * unit_of(name)) for name, number in units.items()))

    def _amounts(self, least: int, most: int) -> Amounts:
        """Draw an amount for each dimension."""
        return amounts((name, self._random.randint(least, most) * unit_of(name)) for name in self._space)


def at_least(given: Amounts, other: Amounts) -> Amounts:
    least = dict(other)
    return amounts((name, max(amount, least.get(name, 0))) for name, amount in given)


def at_most(given: Amounts, other: Amounts) -> Amounts:
    """Return `given` with each amount lowered to at most that of `other`, if `other` has one."""
    most = dict(other)
    return amounts((name, min(amount, most.get(name, amount))) for name, amount in given)


def partly(random: Random, given: Amounts) -> Amounts:
    """Return `given` without one of its dimensions, in one of four draws that have several."""
    if len(given) == 1 or random.random() < 0.75:
        return given
    left_out = random.randrange(len(given))
    return given[:left_out] + given[left_out + 1 :]


def within_parents(queues: list[CaseQueue]) -> list[CaseQueue]:
    """Raise parents to the sums of their children's deserved and guarantee, and to each child's capability."""
    return [_covering(queue, [child for child in queues if child.parent == queue.name]) for queue in queues]


def _covering(queue: CaseQueue, children: list[CaseQueue]) -> CaseQueue:
    deserved, guarantee = (_cover(getattr(queue, field), children, field) for field in ("deserved", "guarantee"))
    if guarantee and deserved:
        deserved = at_least(deserved, guarantee)
    capability = queue.capability
    for least in (deserved, guarantee, *(child.capability for child in children)) if capability else ():
        capability = at_least(capability, least)
    return replace(queue, deserved=deserved, guarantee=guarantee, capability=capability)


def _cover(own: Amounts, children: list[CaseQueue], field: str) -> Amounts:
    promised: dict[str, int] = {}
    for name, amount in (pair for child in children for pair in getattr(child, field)):
        promised[name] = promised.get(name, 0) + amount
    return at_least(own or amounts((name, 0) for name in promised), amounts(promised.items()))
