"""The ledger's indexes agree with the objects, and the number of queries grows linearly with a history's length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedspec.api.kinds import Kind
from schedspec.monitors import Ledger, Rules, amounts, judge
from schedspec.monitors.amounts import Amounts
from schedspec.monitors.holdings import Holdings
from schedspec.monitors.ledger import occupied
from schedspec.monitors.object_state import group_of, is_leaving
from schedspec.monitors.queues import usage
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


def held_by_queue(ledger: Ledger, position: int) -> dict[str, Amounts]:
    """Sum up what queues hold, pod by pod."""
    found: dict[str, list[Any]] = {}
    for pod in ledger.holding(position):
        if not is_leaving(pod) and (queue := ledger.queue_of(position, pod)):
            found.setdefault(queue, []).append(pod)
    return {queue: {name: v for name, v in occupied(its).items() if v} for queue, its in found.items()}


@given(st.lists(changes, min_size=1, max_size=25))
def test_a_queue_of_a_tree_holds_what_its_descendants_hold_after_each_version(given_changes: list[Change]) -> None:
    history = WrittenHistory()
    for change in given_changes:
        change(history)
    ledger, sums, known = Ledger(history.versions), Holdings(is_tree=True), dict[str, Amounts]()
    for position, seen in enumerate(ledger.versions):
        changed = set(sums.apply(seen))
        for queue in (*QUEUES, "all"):
            held = {name: v for name, v in usage.held_below(ledger, position, queue, TREE).items() if v}
            assert sums.below.get(queue, {}) == held
            assert queue in changed or known.get(queue, {}) == held
            known[queue] = held


@given(st.lists(changes, min_size=1, max_size=25))
def test_the_indexes_of_a_ledger_agree_with_its_objects(given_changes: list[Change]) -> None:
    history = WrittenHistory()
    for change in given_changes:
        change(history)
    ledger = Ledger(history.versions)
    for position in range(len(ledger.versions)):
        holding = ledger.holding(position)
        assert ledger.held(position) == held_by_queue(ledger, position)
        assert ledger.capacity(position) == amounts.of_nodes(ledger.all_at(position, Kind.NODE))
        for node in NODES:
            there = [pod for pod in holding if pod["spec"]["nodeName"] == node]
            assert sorted(map(key, ledger.on_node(position, node))) == sorted(map(key, there))
        for group in GROUPS:
            its = [pod for pod in ledger.all_at(position, Kind.POD) if group_of(pod) == group]
            assert sorted(map(key, ledger.members(position, group))) == sorted(map(key, its))


def key(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["name"])


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


def test_a_history_of_double_length_needs_about_double_the_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a query of all pods at each act, the monitors took a minute for 640 pods."""
    count, at = 0, Ledger.at

    def counted(*arguments: Any) -> Any:
        nonlocal count
        count += 1
        return at(*arguments)

    monkeypatch.setattr(Ledger, "at", counted)
    queries = []
    for gangs in (16, 32):
        count = 0
        assert judge(full_of_evictions(gangs).versions, Rules(POLICY)) == []
        queries.append(count)
    assert queries[1] <= 2.5 * queries[0]
