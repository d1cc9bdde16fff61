"""Bounds on what queues hold are checked in every state, so that even a short violation is found."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from schedspec.api.kinds import GPU
from schedspec.checks import holdings
from schedspec.monitors import Rules
from schedspec.observe.history import History, Replay, View
from tests.support.scene import Scene

TREE = Rules("tiers: [{plugins: [{name: capacity, enableHierarchy: true}]}]")
FLAT = Rules("tiers: [{plugins: [{name: capacity}]}]")


def at_end(history: History) -> View:
    """Return the last state of a scene."""
    replay = Replay(history, from_start=True)
    for _ in replay.states():
        pass
    return replay.view


def bound(*names: str, queue: str = "research") -> Scene:
    """Return a scene with a queue below `lab` whose pods, of four cards each, have a node."""
    it = Scene()
    it.queue("lab")
    it.queue(queue, parent="lab")
    for number, name in enumerate(names):
        it.now = 0.1 * number
        it.gang(name, queue)
        it.pod(name, name, cards=4)
        it.bind(name, "n1")
    return it


def evicted(it: Scene) -> None:
    it.now = 1.0
    it.evict("b")


def replaced(it: Scene) -> None:
    """Let the queue hold less for a moment, which its last state does not show."""
    evicted(it)
    it.gang("c", "research")
    it.pod("c", "c", cards=4)
    it.bind("c", "n1")


@pytest.mark.parametrize(
    ("act", "ok", "seen"),
    [
        (lambda it: None, True, "it has held 8 gpus at most so far"),
        (evicted, False, "it held 4 gpus at 1.00 s, when pod b changed"),
        (replaced, False, "it held 4 gpus at 1.00 s, when pod b changed"),
    ],
    ids=["kept", "evicted", "evicted and replaced"],
)
def test_a_queue_that_holds_less_for_a_moment_is_found(act: Callable[[Scene], None], ok: bool, seen: str) -> None:
    it = bound("a", "b")
    act(it)
    outcome = holdings.never_below("research", GPU, Decimal(8), FLAT)(at_end(it.history))
    assert (outcome.ok, outcome.seen) == (ok, seen)
    assert outcome.hopeless == (None if ok else 0.0)


def test_a_smaller_amount_before_the_bound_is_first_reached_is_no_violation() -> None:
    check = holdings.never_below("research", GPU, Decimal(8), FLAT)
    assert not check(at_end(bound("a").history)).ok
    assert check(at_end(bound("a").history)).hopeless is None
    assert check(at_end(bound("a", "b").history)).ok


@pytest.mark.parametrize(("most", "ok"), [(8, True), (7, False)])
def test_a_queue_that_holds_more_in_any_state_is_found(most: int, ok: bool) -> None:
    it = bound("a", "b")
    evicted(it)
    outcome = holdings.never_above("research", GPU, Decimal(most), FLAT)(at_end(it.history))
    assert outcome.ok is ok
    assert outcome.expected == f"queue research holds at most {most} gpus"
    assert ok or outcome.seen == "it held 8 gpus at 0.10 s, when pod b changed"


@pytest.mark.parametrize(("rules", "held"), [(TREE, 8), (FLAT, 0)])
def test_a_parent_holds_what_its_children_hold_where_queues_form_a_tree(rules: Rules, held: int) -> None:
    it = bound("a", "b")
    assert holdings.never_above("lab", GPU, Decimal(0), rules)(at_end(it.history)).ok is (held == 0)


def test_a_missing_queue_meets_no_bound() -> None:
    outcome = holdings.never_above("reserch", GPU, Decimal(8), FLAT)(at_end(bound("a").history))
    assert not outcome.ok
    assert outcome.seen.startswith("there is no queue reserch (is 'research' meant?)")


@pytest.mark.parametrize(("cards", "ok"), [(8, False), (9, True)])
def test_a_limit_that_the_nodes_cannot_exceed_says_nothing(cards: int, ok: bool) -> None:
    it = bound("a", "b")
    it.node("n1", cards=cards)
    none, eight = Decimal(0), Decimal(8)
    for check in (
        holdings.never_above("research", GPU, eight, FLAT),
        holdings.is_between("research", GPU, none, eight, FLAT),
    ):
        outcome = check(at_end(it.history))
        assert outcome.ok is ok
        assert ok or outcome.seen == "all nodes have 8 gpus, so that this says nothing; name a smaller amount"
