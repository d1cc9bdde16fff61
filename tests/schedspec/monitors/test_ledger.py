"""The ledger's sums agree with the objects, and the work of the monitors grows linearly with a history's length."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from schedspec.api.kinds import Kind
from schedspec.monitors import Ledger, Rules, amounts, judge
from schedspec.monitors.amounts import Amounts
from schedspec.monitors.reading import group_of, key_of, read
from schedspec.observe import view
from tests.schedspec.monitors.written_history import POLICY, WrittenHistory

NODES, GROUPS, QUEUES, PODS = ("n1", "n2"), ("ns/red", "ns/blue"), ("guest", "owner"), ("p0", "p1", "p2")

PARENTS = ("", "guest", "owner", "all")
TREE = Rules("tiers: [{plugins: [{name: capacity, enableHierarchy: true}]}]")
nodes, groups, queues, pods, cpus, parents = (
    st.sampled_from(names) for names in (NODES, GROUPS, QUEUES, PODS, "012", PARENTS)
)


def short(group: str) -> str:
    return group.partition("/")[2]


Change = Callable[[WrittenHistory], None]
changes: st.SearchStrategy[Change] = st.one_of(
    st.builds(lambda name, cpu: lambda history: history.node(name, cpu=cpu), nodes, cpus),
    st.builds(lambda name: lambda history: history.show(Kind.NODE, name, "gone"), nodes),
    st.builds(lambda name, queue: lambda history: history.group(short(name), queue), groups, queues),
    st.builds(lambda name, parent: lambda history: history.queue(name, parent=parent), queues, parents),
    st.builds(lambda name: lambda history: history.show(Kind.QUEUE, name, "gone", spec={}), queues),
    st.builds(
        lambda name: (
            lambda history: history.show(Kind.PODGROUP, short(name), "gone", metadata={"namespace": "ns"}, spec={})
        ),
        groups,
    ),
    st.builds(lambda name, group, cpu: lambda history: history.wait(name, short(group), cpu), pods, groups, cpus),
    st.builds(
        lambda name, group, node, cpu: lambda history: history.bind(name, short(group), node, cpu),
        pods,
        groups,
        nodes,
        cpus,
    ),
    st.builds(
        lambda name, is_gone: lambda history: history.evict(name, is_gone=is_gone) if name in history.pods else None,
        pods,
        st.booleans(),
    ),
)


def lineage(queue: str, parents: dict[str, str]) -> list[str]:
    """Return a queue and its ancestors."""
    found: list[str] = []
    while queue and queue not in found:
        found.append(queue)
        queue = parents.get(queue, "")
    return found


def total(pods: Iterable[Any]) -> Amounts:
    sums = amounts.total(map(amounts.of_pod, pods))
    return {name: amount for name, amount in sums.items() if amount}


def shown(sums: Amounts) -> Amounts:
    return {name: amount for name, amount in sums.items() if amount}


@given(st.lists(changes, min_size=1, max_size=25))
def test_the_sums_of_the_ledger_agree_with_the_objects_after_each_version(given_changes: list[Change]) -> None:
    history = WrittenHistory()
    for group, queue in zip(GROUPS, QUEUES, strict=True):
        history.queue(queue, parent="")
        history.group(short(group), queue)
    for change in given_changes:
        change(history)
    ledger = Ledger(TREE)
    alive: dict[tuple[Kind, str], dict[str, Any]] = {}
    for seen in history.versions:
        read(ledger, seen)
        alive[seen.ref.kind, key_of(seen.object)] = seen.object
        if seen.change == "gone":
            del alive[seen.ref.kind, key_of(seen.object)]
        pods = [it for (kind, _), it in alive.items() if kind == Kind.POD and it["spec"].get("nodeName")]
        queue_of = {key: it["spec"]["queue"] for (kind, key), it in alive.items() if kind == Kind.PODGROUP}
        parents = {key: it["spec"]["parent"] for (kind, key), it in alive.items() if kind == Kind.QUEUE}
        kept = [(queue_of.get(group_of(pod), ""), pod) for pod in pods if view.eviction(pod) is None]
        for queue in (*QUEUES, "all"):
            held = total(pod for own, pod in kept if queue in lineage(own, parents))
            assert shown(ledger.below(queue)) == held
        for node in NODES:
            there = [pod for pod in pods if pod["spec"]["nodeName"] == node]
            assert shown(ledger.on_node.get(node, {})) == total(there)
        for group in GROUPS:
            its = [key for (kind, key), it in alive.items() if kind == Kind.POD and group_of(it) == group]
            assert sorted(ledger.jobs[group].pods if group in ledger.jobs else ()) == sorted(its)
        has = amounts.of_world(it for (kind, _), it in alive.items() if kind == Kind.NODE)
        held = total(pod for queue, pod in kept if queue)
        assert shown(ledger.free) == shown(amounts.total((has, {name: -amount for name, amount in held.items()})))


def full_of_evictions(gangs: int, size: int = 4) -> WrittenHistory:
    """Return a history in which gangs fill one node each, and a quarter of them is evicted for other gangs."""
    history = WrittenHistory()
    history.queue("guest", deserved={"cpu": str(size)})
    history.queue("owner", deserved={"cpu": str(gangs * size)})
    for gang in range(gangs):
        history.node(f"n{gang}", cpu=str(size))
        history.group(f"g{gang}", "guest")
        for member in range(size):
            history.bind(f"g{gang}-{member}", f"g{gang}", f"n{gang}", "1")
    for gang in range(0, gangs, 4):
        history.group(f"o{gang}", "owner", size)
        for member in range(size):
            history.wait(f"o{gang}-{member}", f"o{gang}", "1")
        for member in range(size):
            history.evict(f"g{gang}-{member}", f"reclaimed for ns/o{gang} of queue owner")
        for member in range(size):
            history.bind(f"o{gang}-{member}", f"o{gang}", f"n{gang}", "1")
    return history


def test_a_history_of_double_length_needs_about_double_the_calls() -> None:
    """With a query of all pods at each act, the monitors took a minute for 640 pods."""
    calls = []
    for gangs in (16, 32):
        versions, count = full_of_evictions(gangs).versions, itertools.count()
        before = sys.getprofile()
        sys.setprofile(lambda frame, event, _, count=count: next(count) if event == "call" else None)
        try:
            assert judge(versions, Rules(POLICY)) == []
        finally:
            sys.setprofile(before)
        calls.append(next(count))
    assert calls[1] <= 2.5 * calls[0]
