"""The tree of queues: who is whose parent, what children inherit, how near two queues are.

The one rule: a queue whose place makes no sense (its parent is missing, or it is its own ancestor) is put under the
root and gets a ``problem``; the others go on. (In Volcano one such queue stops all scheduling.)
"""

from __future__ import annotations

from ...model import objects, resources
from ...model.queue import ROOT, Queue
from ...model.resources import UNLIMITED, Limits, Resource
from .attributes import Accounts, QueueAttributes, without_pods


def link(queue_attributes: Accounts) -> None:
    """Give every account its parent, children and ancestors; a root that does not exist is made."""
    by_name = queue_attributes.by_name
    if ROOT not in by_name:
        by_name[ROOT] = QueueAttributes(Queue(objects.Queue(objects.ObjectMeta(name=ROOT))))
    root = by_name[ROOT]
    below = [attributes for attributes in by_name.values() if attributes is not root]
    for attributes in below:
        attributes.parent = by_name.get(attributes.queue.parent or ROOT, root)
        if (attributes.queue.parent or ROOT) not in by_name:
            attributes.problem = f"its parent {attributes.queue.parent} does not exist"
    for attributes in [attributes for attributes in below if _is_its_own_ancestor(attributes)]:
        attributes.problem = "it is its own ancestor"
    for attributes in below:
        if attributes.problem or attributes.parent is None:
            attributes.parent = root
        attributes.parent.children.append(attributes)
    for attributes in by_name.values():
        attributes.ancestors = tuple(_upwards(attributes))
    _warn_of_places(list(by_name.values()))


def _warn_of_places(queue_attributes: list[QueueAttributes]) -> None:
    """Note what is wrong above a queue, and that queues with children take no new jobs."""
    for attributes in queue_attributes:
        broken = next((one for one in reversed(attributes.ancestors[1:]) if one.problem), None)
        if broken is not None and not attributes.problem:
            attributes.problem = f"its ancestor {broken.name} is out of place: {broken.problem}"
    for attributes in queue_attributes:
        if attributes.children and not attributes.problem:
            attributes.problem = "it has child queues; submit to one of those"
            attributes.drains_since = min(child.queue.creation for child in attributes.children)


def _is_its_own_ancestor(attributes: QueueAttributes) -> bool:
    seen, at = set(), attributes.parent
    while at is not None and at.name not in seen:
        if at is attributes:
            return True
        seen.add(at.name)
        at = at.parent
    return False


def _upwards(attributes: QueueAttributes) -> list[QueueAttributes]:
    path, at = [attributes], attributes.parent
    while at is not None:
        path.append(at)
        at = at.parent
    return path


def hand_down(root: QueueAttributes, total: Resource) -> None:
    """Give the root what the cluster has, and every child what its parent may hold less what its siblings are
    guaranteed.
    """
    own = _set(without_pods(root.queue.capability))
    room = resources.smallest(without_pods(total), own, missing_is_unlimited=True)
    root.limit = {**dict.fromkeys(room, UNLIMITED), **own}  # the nodes themselves say when the cluster is full
    _gather_guarantees(root)
    waiting = [(root, room, {**room, **own})]
    while waiting:
        parent, room, ceiling = waiting.pop()
        if parent.parent is None and resources.is_empty(parent.deserved):
            parent.deserved = resources.total_of(child.deserved for child in parent.children)
        kept = resources.total_of(child.guarantee for child in parent.children)
        free = resources.exceeded_part(room, kept)
        for child in parent.children:
            child.deserved = raised_to(child.deserved, child.guarantee)
            capability = {**ceiling, **_set(without_pods(child.queue.capability))}
            own_room = resources.plus(free, child.guarantee)
            own_room = resources.smallest(own_room, capability, missing_is_unlimited=True)
            child.limit = {**own_room}
            waiting.append((child, own_room, capability))


def _gather_guarantees(attributes: QueueAttributes) -> Resource:
    """What is guaranteed to children is kept free by their parent too, whether its own spec says so or not."""
    below = resources.total_of(_gather_guarantees(child) for child in attributes.children)
    attributes.guarantee = raised_to(attributes.guarantee, below)
    return attributes.guarantee


def raised_to(deserved: Resource, guarantee: Resource) -> Resource:
    """What a queue deserves is at least what it is guaranteed."""
    return resources.largest(deserved, guarantee) if guarantee else deserved


def flat_limit(attributes: QueueAttributes, total: Resource, guarantees: Resource) -> Limits:
    """What a queue without parents may hold: the cluster less what others are guaranteed, at most its capability."""
    room = resources.plus(resources.exceeded_part(without_pods(total), guarantees), attributes.guarantee)
    return {**resources.smallest(room, _set(without_pods(attributes.queue.capability)), missing_is_unlimited=True)}


def common_ancestors(a: QueueAttributes, b: QueueAttributes) -> int:
    """How many ancestors two queues share, the root included: the more, the nearer they are."""
    return sum(1 for x, y in zip(reversed(a.ancestors[1:]), reversed(b.ancestors[1:]), strict=False) if x is y)


def _set(capability: Resource) -> Resource:
    """A cpu or memory of nothing means that it is not set."""
    return {n: v for n, v in capability.items() if v > 0 or n not in (resources.CPU, resources.MEMORY)}
