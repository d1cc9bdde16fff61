"""How the votes of plugins decide on victims, and how a victim's reason reports the votes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from schedspec.scheduler.framework.plugin import Plugin
from schedspec.scheduler.model.task import Task
from schedspec.scheduler.policy.hooks import Preemptable, Vote
from schedspec.scheduler.policy.model import PluginOption, Policy
from schedspec.scheduler.reasons import render_refusal
from tests.support.core.events import policy_of
from tests.support.core.world import World
from tests.support.registrable import Registrable

FULL: dict[str, Any] = {
    "nodes": [{"name": "n1", "has": "4 cpu"}],
    "queues": [{"name": "a", "deserved": "4 cpu"}, {"name": "b"}],
}
NEW = {"name": "new", "queue": "a", "priority": 5, "tasks": "1 x 1 cpu"}


@pytest.fixture
def _undecided(registrable: Registrable) -> None:
    """Register a plugin that implements `preemptable` and always abstains."""
    registrable("undecided")

    class Undecided(Plugin, Preemptable):
        name = "undecided"

        def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:
            return [], Vote.ABSTAIN


@pytest.mark.parametrize("minimum", [0, 2], ids=["spare tasks", "a whole gang"])
@pytest.mark.usefixtures("_undecided")
def test_a_plugin_that_abstains_leaves_the_decision_to_the_other_plugins(minimum: int) -> None:
    tiers = (("undecided",), ("priority", "undecided"), ("gang",), ("predicates",))
    world = World(Policy(("preempt",), tuple(tuple(PluginOption(name) for name in tier) for tier in tiers)))
    low = {"name": "low", "queue": "a", "priority": 1, "min": minimum, "tasks": "2 x 2 cpu running on n1"}
    world.load({**FULL, "jobs": [low, {**NEW, "phase": "Inqueue"}]})

    reason = world.cycle().evictions[0].reason

    assert (reason.tier, reason.votes) == (1, (("priority", True),))


@pytest.mark.usefixtures("_undecided")
def test_no_candidate_is_permitted_if_all_plugins_abstain() -> None:
    gang = PluginOption("gang", switches={"enablePreemptable": False})
    world = World(Policy(("preempt",), ((gang, PluginOption("undecided")), (PluginOption("predicates"),))))
    low = {"name": "low", "queue": "a", "min": 0, "tasks": "2 x 2 cpu running on n1"}
    world.load({**FULL, "jobs": [low, {**NEW, "phase": "Inqueue"}]})

    decisions = world.cycle()

    assert decisions.evictions == []
    assert "2 candidates" in render_refusal(decisions.refusals["t/new"])


SPARE = {"name": "old", "queue": "b", "min": 1, "tasks": "4 x 1 cpu running on n1"}
WHOLE = {"name": "old", "queue": "b", "tasks": "4 x 1 cpu running on n1"}


@pytest.mark.parametrize(
    ("old", "tier", "gang"), [(SPARE, 0, True), (WHOLE, 1, False)], ids=["a spare task", "a whole gang"]
)
def test_a_reason_names_the_votes_and_the_deciding_tier(old: dict[str, Any], tier: int, gang: bool) -> None:
    world = World(policy_of("capacity"))
    world.load({**FULL, "jobs": [old, {**NEW, "phase": "Inqueue"}]})

    reason = world.cycle().evictions[0].reason

    assert (reason.action, reason.preemptor_task, reason.queue, reason.tier) == ("reclaim", "t/new-0", "b", tier)
    assert reason.votes == (("gang", gang), ("conformance", True), ("capacity", True))


def test_the_reason_of_a_spare_task_names_its_whole_gang_if_all_of_it_is_evicted() -> None:
    world = World(policy_of("capacity"))
    new = {"name": "new", "queue": "a", "tasks": ["1 x 1 cpu", "1 x 3 cpu"], "phase": "Inqueue", "requests": "none"}
    world.load({**FULL, "jobs": [{**SPARE, "min": 3}, new]})

    reasons = {evict.task: evict.reason for evict in world.cycle().evictions}

    assert sorted(reasons) == [f"t/old-{number}" for number in range(4)]
    assert all(reason.whole_gang for reason in reasons.values())
