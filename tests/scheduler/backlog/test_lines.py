"""Of a line of equal waiting jobs only the first is tried again, and decisions are as if all were tried."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schedspec.scheduler.backlog.backlog import Backlog
from schedspec.scheduler.backlog.lines import LineRule
from schedspec.scheduler.framework.plugin import OpenedPlugins, Plugin
from schedspec.scheduler.model.job import Job
from schedspec.scheduler.plugins import PLUGINS
from schedspec.scheduler.policy.hooks import JobOrder, JobValid
from schedspec.scheduler.policy.model import PluginOption, Policy
from tests.support.core.events import happen, policy_of
from tests.support.core.random_stories import random_policy
from tests.support.core.stories import run_story, settle, tried
from tests.support.core.world import World
from tests.support.registrable import Registrable

POLICY = """
actions: "enqueue, allocate"
tiers: [{plugins: [{name: gang}, {name: predicates}, {name: capacity}]}]
"""
WITHOUT_QUEUES = POLICY.replace(", {name: capacity}", "")


def one_node(*, jobs: int, cards: int = 4, policy: str = POLICY, **more: Any) -> World:
    """Return a node, and equal jobs of one card each."""
    world = World(policy_of(policy))
    queue = {"name": "q", **more}
    world.load({"nodes": [{"name": "n", "has": f"16 cpu, {cards} gpu"}], "queues": [queue]})
    world.load({"jobs": [{"name": f"j{at:02}", "queue": "q", "tasks": "1 x 1 gpu"} for at in range(jobs)]})
    return world


def waiting(backlog: Backlog) -> list[str]:
    return sorted(key.removeprefix("t/") for key in backlog.entries)


def lose_a_claim(world: World) -> None:
    """Report that a job has lost the capacity that was kept for it."""
    backlog = world.core.backlog
    backlog.claims = {"t/other-0": "n"}
    backlog.report("claims")
    backlog.claims.clear()


def test_after_a_change_that_helps_no_job_only_the_first_of_a_line_is_tried() -> None:
    world = one_node(jobs=9, policy=WITHOUT_QUEUES)
    settle(world)
    assert waiting(world.core.backlog) == [f"j{at:02}" for at in range(4, 9)]
    lose_a_claim(world)
    assert tried(world) == ["j04"]
    assert tried(world) == []


def test_after_each_job_that_starts_the_next_in_line_is_tried() -> None:
    world = one_node(jobs=9, capability="4 gpu")
    settle(world)
    for job in ("j00", "j01"):
        happen(world, {"delete": {"job": job}})
    assert tried(world) == ["j04", "j05", "j06"]
    settle(world)
    assert waiting(world.core.backlog) == ["j06", "j07", "j08"]


def test_a_job_that_becomes_the_first_of_its_line_is_tried() -> None:
    world = one_node(jobs=9, capability="4 gpu")
    settle(world)
    happen(world, {"delete": {"job": "j04"}})
    assert tried(world)[0] == "j05"
    assert tried(world) == []


def test_a_job_that_its_retry_time_has_woken_is_tried_only_once() -> None:
    world = one_node(jobs=9, capability="4 gpu")
    settle(world)
    for job in ("j00", "j01"):
        happen(world, {"delete": {"job": job}})
    world.now += 600.0
    assert world.core.decide(world.policy, world.now).memory.forgotten == ["t/j04", "t/j05"]


def test_jobs_behind_a_changed_job_are_still_tried() -> None:
    world = one_node(jobs=9, capability="4 gpu")
    settle(world)
    for job in ("j00", "j01"):
        happen(world, {"delete": {"job": job}})
    happen(world, {"finish": "j05"})
    assert [bind.job for bind in world.cycle().binds] == ["t/j04", "t/j06"]


def test_jobs_that_differ_do_not_share_a_line() -> None:
    world = one_node(jobs=6, policy=WITHOUT_QUEUES)
    world.load({"jobs": [{"name": "large", "queue": "q", "tasks": "2 x 1 gpu"}]})
    settle(world)
    lose_a_claim(world)
    assert tried(world) == ["j04", "large"]


BY_PRIORITY = """
actions: "{actions}"
tiers: [{{plugins: [{{name: priority}}, {{name: gang}}, {{name: predicates}}, {{name: capacity}}{more}]}}]
"""


def ranked(actions: str, more: str = "") -> World:
    """Return a queue with a used-up quota of two cards, and equal waiting jobs of ascending priority."""
    world = World(policy_of(BY_PRIORITY.format(actions=actions, more=more)))
    running = {"queue": "q", "min": 1, "phase": "Running", "priority": 99, "tasks": "1 x 1 gpu running on n"}
    waits = {"queue": "q", "tasks": "1 x 1 gpu", "phase": "" if "enqueue" in actions else "Inqueue"}
    world.load(
        {
            "nodes": [{"name": "n", "has": "16 cpu, 8 gpu"}],
            "queues": [{"name": "q", "capability": "2 gpu"}],
            "jobs": [
                *({"name": name, **running} for name in ("a", "b")),
                *({"name": f"j{at}", "priority": at, **waits} for at in range(5)),
            ],
        }
    )
    settle(world)
    return world


@pytest.mark.parametrize(
    "actions",
    ["enqueue, allocate", "enqueue, allocate, reclaim", "reclaim, enqueue, allocate", "enqueue, allocate, preempt"],
)
def test_jobs_of_all_priorities_share_a_line_where_the_highest_is_refused_first(actions: str) -> None:
    world = ranked(actions)
    happen(world, {"change": {"Queue q": {"spec": {"weight": 2}}}})
    settle(world)
    world.core.backlog.due = {"t/j4"}
    assert tried(world) == ["j4"]
    happen(world, {"finish": "a"})
    settle(world)
    assert waiting(world.core.backlog) == ["j0", "j1", "j2", "j3"]
    happen(world, {"delete": {"job": "j3"}})
    assert tried(world)[0] == "j2", "j2 is the first of its line now"


def test_jobs_of_different_priority_share_no_line_where_a_plugin_judges_by_age() -> None:
    entries = ranked("enqueue, allocate", ", {name: sla, arguments: {sla-waiting-time: 9h}}").core.backlog.entries
    assert len({entry.line for entry in entries.values()}) == len(entries)


@pytest.mark.parametrize(
    ("actions", "rule"), [("allocate", LineRule.BY_PRIORITY), ("allocate, reclaim", LineRule.ONE_PRIORITY)]
)
def test_a_plugin_that_reclaims_by_priority_keeps_priorities_apart(actions: str, rule: LineRule) -> None:
    text = BY_PRIORITY.format(actions=actions, more="").replace("name: capacity", "name: capacity-card")
    assert OpenedPlugins(policy_of(text), PLUGINS).lines is rule


def test_a_job_whose_priority_changes_moves_in_its_line() -> None:
    world = ranked("enqueue, allocate")
    world.load({"jobs": [{"name": "other", "queue": "q", "priority": 9, "tasks": "2 x 1 gpu"}]})
    happen(world, {"change": {"PodGroup j0": {"spec": {"priorityClassName": "p9"}}}})
    settle(world)
    happen(world, {"finish": "a"})
    assert [bind.job for bind in world.cycle().binds] == ["t/j0"]


@given(seed=st.integers(0, 2**32 - 1), victims=st.sampled_from(("leave", "stay", "return", "return after 2")))
def test_a_line_of_all_priorities_changes_no_decision(seed: int, victims: str) -> None:
    """`World.cycle` decides each cycle a second time, on a state without lines."""
    rng = random.Random(seed)
    table = crowd(rng)
    for job in table["jobs"]:
        job["priority"] = rng.randrange(6)
    actions = [*rng.sample(["backfill", "reclaim", "preempt"], rng.randrange(4)), "allocate"]
    rng.shuffle(actions)
    order, queues = rng.choice(("true", "false")), rng.choice(("capacity", "proportion"))
    more = rng.choice(("", ", {name: nodeorder}", ", {name: drf}, {name: overcommit}, {name: nodeorder}"))
    table["policy"] = (
        BY_PRIORITY.format(actions=", ".join([*rng.choice((["enqueue"], [])), *actions]), more=more)
        .replace("name: priority", f"name: priority, enableJobOrder: {order}")
        .replace("name: capacity", f"name: {queues}")
    )
    run_story(rng, table, event_of_ranked, victims=victims, cycles=10)


def event_of_ranked(rng: random.Random, table: dict[str, Any], number: int) -> dict[str, Any]:
    job = rng.choice(table["jobs"])
    match rng.randrange(6):
        case 0:
            return {"change": {f"PodGroup {job['name']}": {"spec": {"priorityClassName": f"p{rng.randrange(6)}"}}}}
        case 1:
            child = {"name": f"c{number}", "parent": rng.choice(table["queues"])["name"], "weight": 1}
            return {"add": {"queues": [child]}}
        case 2:
            new = {**job, "name": f"k{number}{rng.randrange(10**6)}", "priority": rng.randrange(6)}
            return {"add": {"jobs": [new]}}
    return event_of(rng, table, number)


@example(seed=223313, victims="leave")  # the retry time wakes a job that would be tried after the job before it anyway
@example(seed=16630371, victims="return after 2")  # a job that kept free room without starting (sla) is deleted
@given(seed=st.integers(0, 2**32 - 1), victims=st.sampled_from(("leave", "stay", "return", "return after 2")))
def test_lines_change_no_decision(seed: int, victims: str) -> None:
    """`World.cycle` decides each cycle a second time, on a state without lines."""
    rng = random.Random(seed)
    run_story(rng, crowd(rng), event_of, victims=victims, cycles=10)


def crowd(rng: random.Random) -> dict[str, Any]:
    """Return a small cluster with many jobs of few kinds."""
    queues = [{"name": f"q{at}", **shares(rng)} for at in range(rng.randint(1, 3))]
    kinds = [job_of(rng, queues) for _ in range(rng.randint(1, 4))]
    nodes = [{"name": f"n{at}", "has": f"32 cpu, {rng.choice((2, 4, 8))} gpu"} for at in range(rng.randint(1, 3))]
    jobs = [{"name": f"j{at:02}", **rng.choice(kinds)} for at in range(rng.randint(4, 16))]
    policy = random_policy(rng, tree=False)
    return {"policy": policy, "queues": queues, "nodes": nodes, "jobs": jobs, "kinds": kinds}


def shares(rng: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {"weight": rng.randint(1, 3)}
    for field in ("deserved", "capability", "guarantee"):
        if rng.random() < (0.2 if field == "guarantee" else 0.5):
            found[field] = f"{rng.randint(1, 2) if field == 'guarantee' else rng.randint(2, 8)} gpu"
    return found


def job_of(rng: random.Random, queues: list[dict[str, Any]]) -> dict[str, Any]:
    pods = rng.choice((1, 1, 2, 3))
    return {
        "queue": rng.choice(queues)["name"],
        "tasks": f"{pods} x {rng.choice((1, 1, 2))} gpu",
        "min": rng.randint(1, pods),
        "phase": rng.choice(("", "Inqueue")),
        "priority": rng.choice((0, 0, 5)),
    }


def event_of(rng: random.Random, table: dict[str, Any], number: int) -> dict[str, Any]:
    if rng.random() < 0.3:
        return {"add": {"jobs": [{"name": f"k{number}{rng.randrange(10**6)}", **rng.choice(table["kinds"])}]}}
    job = rng.choice(table["jobs"])["name"]
    return {"finish": job} if rng.random() < 0.5 else {"delete": {"job": job}}


RULES = {
    "priority, gang, nodeorder, binpack, capacity": ("allocate", LineRule.BY_PRIORITY),
    "gang, capacity": ("allocate", LineRule.BY_CREATION),
    "nodeorder, binpack": ("allocate", LineRule.BY_CREATION),
    "priority, gang, conformance, pdb": ("allocate, preempt", LineRule.BY_PRIORITY),
    "gang, conformance, pdb": ("allocate, preempt", LineRule.ONE_PRIORITY),
    "priority, sla": ("allocate", LineRule.ONE_PRIORITY),
    "priority, deviceshare": ("allocate", LineRule.NONE),
    "priority, cdp": ("allocate", LineRule.NONE),
}


@pytest.mark.parametrize("plugins", RULES)
def test_which_jobs_share_a_line_follows_from_the_plugins_and_the_actions(plugins: str) -> None:
    actions, rule = RULES[plugins]
    options = tuple(PluginOption(name) for name in plugins.split(", "))
    opened = OpenedPlugins(Policy(tuple(actions.split(", ")), (options,)), PLUGINS)
    assert opened.lines is rule


def test_a_plugin_that_can_refuse_jobs_makes_each_wait_alone_without_a_promise(
    registrable: Registrable,
) -> None:
    registrable("ranks")
    registrable("refuses")

    class Ranks(Plugin, JobOrder):
        name = "ranks"

        def job_order(self, job: Job) -> int:
            return 0

    class Refuses(Plugin, JobValid):
        name = "refuses"

        def job_valid(self, job: Job) -> None:
            return None

    rules = {
        name: OpenedPlugins(Policy(("allocate",), ((PluginOption(name),),)), PLUGINS).lines
        for name in ("ranks", "refuses")
    }
    assert rules == {"ranks": LineRule.BY_CREATION, "refuses": LineRule.NONE}
