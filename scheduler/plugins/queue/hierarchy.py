"""The tree of queues: who is whose parent, what children inherit, how near two queues are.

The one rule: a queue whose place makes no sense (its parent is missing, or it is its own ancestor) is put under the
root and gets a ``problem``; the others go on. (In Volcano one such queue stops all scheduling.)
"""

from __future__ import annotations

import math

from ...model import objects, resources
from ...model.queue import ROOT, Queue
from ...model.resources import Resource
from .attributes import Account, Accounts, without_pods


def link(accounts: Accounts) -> None:
    """Give every account its parent, children and ancestors; a root that does not exist is made."""
    by_name = accounts.by_name
    if ROOT not in by_name:
        by_name[ROOT] = Account(Queue(objects.Queue(objects.ObjectMeta(name=ROOT))))
    root = by_name[ROOT]
    below = [account for account in by_name.values() if account is not root]
    for account in below:
        account.parent = by_name.get(account.queue.parent or ROOT, root)
        if (account.queue.parent or ROOT) not in by_name:
            account.problem = f"its parent {account.queue.parent} does not exist"
    for account in [account for account in below if _is_its_own_ancestor(account)]:
        account.problem = "it is its own ancestor"
    for account in below:
        if account.problem or account.parent is None:
            account.parent = root
        account.parent.children.append(account)
    for account in by_name.values():
        account.ancestors = tuple(_upwards(account))
    _warn_of_places(list(by_name.values()))


def _warn_of_places(accounts: list[Account]) -> None:
    """Note what is wrong above a queue, and that queues with children take no jobs."""
    for account in accounts:
        broken = next((one for one in reversed(account.ancestors[1:]) if one.problem), None)
        if broken is not None and not account.problem:
            account.problem = f"its ancestor {broken.name} is out of place: {broken.problem}"
    for account in accounts:
        if account.children and not account.problem:
            account.problem = "it has child queues; submit to one of those"


def _is_its_own_ancestor(account: Account) -> bool:
    seen, at = set(), account.parent
    while at is not None and at.name not in seen:
        if at is account:
            return True
        seen.add(at.name)
        at = at.parent
    return False


def _upwards(account: Account) -> list[Account]:
    path, at = [account], account.parent
    while at is not None:
        path.append(at)
        at = at.parent
    return path


def hand_down(root: Account, total: Resource) -> None:
    """Give the root what the cluster has, and every child what its parent may hold less what its siblings are
    guaranteed.
    """
    own = _set(without_pods(root.queue.capability))
    root.limit = resources.smallest(without_pods(total), own, missing_is_unlimited=True)
    _gather_guarantees(root)
    waiting = [(root, {**root.limit, **own})]
    while waiting:
        parent, ceiling = waiting.pop()
        if parent.parent is None and resources.is_empty(parent.deserved):
            parent.deserved = resources.total_of(child.deserved for child in parent.children)
        kept = resources.total_of(child.guarantee for child in parent.children)
        free = {name: max(amount - kept.get(name, 0.0), 0.0) for name, amount in parent.limit.items()}
        for child in parent.children:
            child.deserved = raised_to(child.deserved, child.guarantee)
            capability = {**ceiling, **_set(without_pods(child.queue.capability))}
            room = resources.plus(free, child.guarantee)
            child.limit = resources.smallest(room, capability, missing_is_unlimited=True)
            waiting.append((child, capability))
    root.limit = {**dict.fromkeys(root.limit, math.inf), **own}  # the nodes themselves say when the cluster is full


def _gather_guarantees(account: Account) -> Resource:
    """What is guaranteed to children is kept free by their parent too, whether its own spec says so or not."""
    below = resources.total_of(_gather_guarantees(child) for child in account.children)
    account.guarantee = raised_to(account.guarantee, below)
    return account.guarantee


def raised_to(deserved: Resource, guarantee: Resource) -> Resource:
    """What a queue deserves is at least what it is guaranteed."""
    return resources.largest(deserved, guarantee) if guarantee else deserved


def flat_limit(account: Account, total: Resource, guarantees: Resource) -> Resource:
    """What a queue without parents may hold: the cluster less what others are guaranteed, at most its capability."""
    free = {name: max(amount - guarantees.get(name, 0.0), 0.0) for name, amount in without_pods(total).items()}
    ceiling = _unlimited_where_unset(without_pods(account.queue.capability))
    return resources.smallest(resources.plus(free, account.guarantee), ceiling, missing_is_unlimited=True)


def common_ancestors(a: Account, b: Account) -> int:
    """How many ancestors two queues share, the root included: the more, the nearer they are."""
    return sum(1 for x, y in zip(reversed(a.ancestors[1:]), reversed(b.ancestors[1:]), strict=False) if x is y)


def _set(capability: Resource) -> Resource:
    """A cpu or memory of nothing means that it is not set."""
    return {n: v for n, v in capability.items() if v > 0 or n not in (resources.CPU, resources.MEMORY)}


def _unlimited_where_unset(capability: Resource) -> Resource:
    return {resources.CPU: math.inf, resources.MEMORY: math.inf, **_set(capability)}
