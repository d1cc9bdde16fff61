"""Build the tree of queues: parents, inherited limits, and the distance between queues.

A misplaced queue becomes a child of the root and gets a `problem`; other queues are scheduled as usual. (In Volcano one
such queue stops all scheduling.) A queue is misplaced if its parent is missing, if it is its own ancestor, or if it is
nested deeper than `DEEPEST`: depth is limited because every pod counts in all ancestors of its queue.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...model import objects, resources
from ...model.queue import ROOT, Queue
from ...model.resources import UNLIMITED, Resource
from .attributes import QueueAttributes, QueueAttributesTable, without_pods

DEEPEST = 32
"""The maximum number of queues on the path from a queue to the root, the queue included."""


def link(queue_attributes: QueueAttributesTable) -> None:
    """Link every queue to its parent, children and ancestors; create the root if it does not exist."""
    by_name = queue_attributes.by_name
    if ROOT not in by_name:
        by_name[ROOT] = QueueAttributes(Queue(objects.Queue(objects.ObjectMeta(name=ROOT))))
    root = by_name[ROOT]
    below = [attributes for attributes in by_name.values() if attributes is not root]
    for attributes in below:
        attributes.parent = by_name.get(attributes.queue.parent or ROOT, root)
        if (attributes.queue.parent or ROOT) not in by_name:
            attributes.problem = f"its parent {attributes.queue.parent} does not exist"
    for name, problem in _misplaced(below, root).items():
        by_name[name].problem = problem
    for attributes in below:
        if attributes.problem or attributes.parent is None:
            attributes.parent = root
        attributes.parent.children.append(attributes)
    for attributes in by_name.values():
        attributes.ancestors = tuple(_upwards(attributes))
    _set_derived_problems(list(by_name.values()))


def _set_derived_problems(queue_attributes: list[QueueAttributes]) -> None:
    """Record the problem of a queue below a misplaced queue, and of a queue with children, which admits no new jobs."""
    for attributes in queue_attributes:
        broken = next((one for one in reversed(attributes.ancestors[1:]) if one.problem), None)
        if broken is not None and not attributes.problem:
            attributes.problem = f"its ancestor {broken.name} is out of place: {broken.problem}"
    for attributes in queue_attributes:
        if attributes.children and not attributes.problem:
            attributes.problem = "it has child queues; submit to one of those"
            attributes.drains_since = min(child.queue.creation for child in attributes.children)


def _misplaced(below: list[QueueAttributes], root: QueueAttributes) -> dict[str, str]:
    """Return the queues in a cycle of parents and the queues that are nested too deeply, by name, with the problem.

    Each queue is visited once. For the queues below it, a queue with a problem counts as a child of the root.
    """
    depths: dict[str, int] = {root.name: 0}
    problems: dict[str, str] = {}
    for attributes in below:
        path: dict[str, QueueAttributes] = {}
        at = attributes
        while at.name not in depths and at.name not in path:
            path[at.name] = at
            at = root if at.problem or at.parent is None else at.parent
        if at.name in path:
            names = list(path)
            for name in names[names.index(at.name) :]:
                problems[name] = "it is its own ancestor"
                depths[name] = 1
        for name in reversed([name for name in path if name not in depths]):
            parent = root if path[name].problem else path[name].parent or root
            depths[name] = depths[parent.name] + 1
            if depths[name] > DEEPEST:
                problems[name] = f"it is nested deeper than {DEEPEST} queues; name a parent that is nearer to {ROOT}"
                depths[name] = 1
    return problems


def _upwards(attributes: QueueAttributes) -> list[QueueAttributes]:
    path, at = [attributes], attributes.parent
    while at is not None:
        path.append(at)
        at = at.parent
    return path


def set_tree_limits(root: QueueAttributes, total: Resource) -> None:
    """Set the limits from the root down.

    The root may hold the whole cluster; a child may hold what its parent may hold, less its siblings' guarantees.
    """
    own = _nonzero(without_pods(root.queue.capability))
    room = resources.smallest(without_pods(total), own, missing_is_unlimited=True)
    root.limit = {**dict.fromkeys(room, UNLIMITED), **own}  # the nodes themselves limit the cluster
    _gather_guarantees(root)
    waiting = [(root, room, {**room, **own})]
    while waiting:
        parent, room, ceiling = waiting.pop()
        if parent.parent is None and resources.is_empty(parent.deserved):
            parent.deserved = resources.total_of(child.deserved for child in parent.children)
        guaranteed = resources.total_of(child.guarantee for child in parent.children)
        free = resources.exceeded_part(room, guaranteed)
        for child in parent.children:
            child.deserved = raised_to(child.deserved, child.guarantee)
            capability = {**ceiling, **_nonzero(without_pods(child.queue.capability))}
            own_room = resources.plus(free, child.guarantee)
            own_room = resources.smallest(own_room, capability, missing_is_unlimited=True)
            child.limit = {**own_room}
            child.guaranteed_to_others = resources.exceeded_part(guaranteed, child.guarantee)
            waiting.append((child, own_room, capability))


def _gather_guarantees(attributes: QueueAttributes) -> Resource:
    """Raise a parent's guarantee to the sum of its children's guarantees; return the guarantee."""
    below = resources.total_of(_gather_guarantees(child) for child in attributes.children)
    attributes.guarantee = raised_to(attributes.guarantee, below)
    return attributes.guarantee


def raised_to(deserved: Resource, guarantee: Resource) -> Resource:
    """Return the deserved share, at least the guarantee."""
    return resources.largest(deserved, guarantee) if guarantee else deserved


def set_flat_limits(queue_attributes: Iterable[QueueAttributes], total: Resource, guarantees: Resource) -> None:
    """Set the limits of queues without parents: the capability, at most the cluster less guarantees of other queues."""
    free = resources.exceeded_part(without_pods(total), guarantees)
    for attributes in queue_attributes:
        attributes.guaranteed_to_others = resources.exceeded_part(guarantees, attributes.guarantee)
        room = resources.plus(free, attributes.guarantee)
        capability = _nonzero(without_pods(attributes.queue.capability))
        attributes.limit = {**resources.smallest(room, capability, missing_is_unlimited=True)}


def common_ancestors(a: QueueAttributes, b: QueueAttributes) -> int:
    """Return how many ancestors two queues share, root included: the more, the nearer the queues are."""
    return sum(1 for x, y in zip(reversed(a.ancestors[1:]), reversed(b.ancestors[1:]), strict=False) if x is y)


def _nonzero(capability: Resource) -> Resource:
    """Return the capability without zero cpu or zero memory: zero means that it is not set."""
    return {n: v for n, v in capability.items() if v > 0 or n not in (resources.CPU, resources.MEMORY)}
