"""The budget of a cycle: which jobs remain for the next cycle, in which order, and the maximum of one job."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedspec.scheduler.decide import decide
from schedspec.scheduler.framework.decisions import Decisions
from schedspec.scheduler.framework.work import Budget
from schedspec.scheduler.inputs import Assumed, Decided, apply_input
from schedspec.scheduler.reasons import TooCostly
from tests.support.core import random_clusters
from tests.support.core import random_tables as crowded
from tests.support.core.events import policy_of
from tests.support.core.invariants import check_cycle, snapshot
from tests.support.core.world import World, without_bookkeeping

HOSTNAME = "kubernetes.io/hostname"


def costly(terms: int, job: str) -> dict[str, Any]:
    """Return a pod with this number of required anti-affinity terms, for labels that no pod has."""
    found = [
        {"topologyKey": HOSTNAME, "labelSelector": {"matchExpressions": [{"key": f"{job}{n}", "operator": "Exists"}]}}
        for n in range(terms)
    ]
    return {"spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": found}}}}


def world_of(jobs: list[dict[str, Any]], queues: tuple[str, ...] = ("q",), policy: str = "plain") -> World:
    world = World(policy_of(policy))
    nodes = [{"name": f"n{i}", "has": "8 cpu", "labels": {HOSTNAME: f"n{i}"}} for i in range(4)]
    world.load({"nodes": nodes, "queues": [{"name": name} for name in queues], "jobs": jobs})
    return world


def cycle(world: World, budget: Budget, *, carries_out: bool = True) -> Decisions:
    """Decide within a budget, check the invariants of a cycle, and carry out the decisions."""
    before = snapshot(world.cluster)
    decisions = world.core.decide(world.policy, world.now, budget=budget)
    assert snapshot(world.cluster) == before, "deciding changed the state"
    check_cycle(world.cluster, world.policy, decisions)
    apply_input(world.core, Decided(0, world.now, decisions, budget))
    if carries_out:
        world.carry_out(decisions)
    return decisions


def never(name: str, queue: str = "q", **more: Any) -> dict[str, Any]:
    """Return a gang that fits nowhere."""
    return {"name": name, "queue": queue, "tasks": "20 x 4 cpu", "min": 20, "phase": "Inqueue", **more}


@given(
    st.one_of(random_clusters.tables(), crowded.tables()),
    st.integers(1, 3000),
    st.integers(0, 3000),
    st.lists(random_clusters.events(), max_size=2),
)
def test_cut_cycles_reach_a_state_in_which_nothing_is_left_to_decide(
    table: dict[str, Any], steps: int, more: int, events: list[dict[str, Any]]
) -> None:
    world = World(policy_of(table["policy"]))
    world.load(table)
    for number in range(200):
        decisions = cycle(world, Budget(steps, steps + more if more else 0))
        if number == 1:
            for event in events:
                apply_event(world, event)
        is_quiet = not (decisions.binds or decisions.evictions or decisions.nominations or decisions.phases)
        if is_quiet and not decisions.cut and not world.core.backlog.due and number > 1:
            break
        world.now += 1.0
    else:
        pytest.fail("200 cycles did not decide everything")
    if more:
        return  # a job may exceed the maximum in every cycle
    uncut = decide(world.fresh(), world.policy, world.now)
    assert not uncut.binds
    assert not uncut.evictions


def test_jobs_that_no_node_can_hold_do_not_wake_each_other_for_ever() -> None:
    """Such a job's reservation ends when the job is tried; one of the two is always in backoff, because it is dear."""
    world = World(policy_of("capacity"))
    world.load(
        {
            "nodes": [
                {"name": "n0", "has": "5 cpu, 5 gpu, 5Gi memory"},
                {"name": "n1", "has": "2 cpu, 8 gpu, 7Gi memory"},
                {"name": "n2", "has": "6 cpu, 8 gpu, 8Gi memory"},
            ],
            "queues": [{"name": "q0"}, {"name": "q1", "deserved": "2 cpu, 0 gpu, 1Gi memory"}],
            "jobs": [
                {"name": "new0", "queue": "q0", "tasks": ["2 x 3 cpu, 2 gpu, 1Gi memory"]},
                {"name": "new2", "queue": "q1", "tasks": ["2 x 3 cpu, 2Gi memory", "1 x 1 cpu, 3 gpu"]},
                {"name": "new3", "queue": "q0", "min": 2, "tasks": ["3 x 3 cpu, 1Gi memory"]},
            ],
        }
    )
    for number in range(60):
        cycle(world, Budget(1437, 1716))
        if number == 1:
            apply_event(world, {"delete": {"node": "n2"}})
        world.now += 1.0
    assert not world.core.backlog.due


def apply_event(world: World, event: dict[str, Any]) -> None:
    from tests.support.core.events import happen  # noqa: PLC0415

    happen(world, event)


def test_phase_unknown_remains_if_a_cycle_is_cut_before_the_jobs_turn() -> None:
    """One pod of the gang runs and two cannot: the phase is Unknown, whether or not the cycle reaches backfill."""
    world = world_of([{"name": "job", "queue": "q", "tasks": ["1 x nothing running on n0", "2 x nothing"], "min": 2}])
    for key in world.pods_of("job"):
        world.change("Pod", key, {"spec": {"nodeSelector": {HOSTNAME: "n9"}}})
    world.change("PodGroup", "t/job", {"status": {"phase": "Inqueue"}})
    seen = [cycle(world, Budget(41)) for _ in range(8)]
    assert any(decisions.cut for decisions in seen)
    assert [phase for decisions in seen for phase in decisions.phases.values()] == ["Unknown"]


def test_phase_unknown_remains_if_the_job_has_no_waiting_pod() -> None:
    """A pod of a running gang is deleted, and no controller replaces it."""
    world = world_of([{"name": "job", "queue": "q", "tasks": "2 x 1 cpu running on n0", "min": 2, "phase": "Running"}])
    world.remove("Pod", "t/job-0")
    seen = [cycle(world, Budget()).phases.get("t/job") for _ in range(8)]
    assert seen[-1] is None
    assert world.objects["PodGroup", "t/job"]["status"]["phase"] == "Unknown"


def test_a_job_that_waits_for_room_being_freed_keeps_it_and_uses_no_more_budget() -> None:
    """A pod terminates slowly: the first job waits for its room, and later cycles still try the second job."""
    jobs = [{"name": name, "tasks": "1 x 8 cpu", "queue": "q", "phase": "Inqueue"} for name in ("first", "second")]
    world = world_of([{"name": "old", "queue": "q", "min": 1, "tasks": "4 x 8 cpu", "phase": "Running"}, *jobs])
    for number, key in enumerate(world.pods_of("old")):
        world.change("Pod", key, {"spec": {"nodeName": f"n{number}"}, "status": {"phase": "Running"}})
    apply_event(world, {"leave": "old-0"})
    seen: list[Decisions] = []
    while not seen or seen[-1].cut:
        seen.append(cycle(world, Budget(2)))
        assert len(seen) < 10, "every cycle was cut"
    assert [list(decisions.pipelined) for decisions in seen[1:]] == [["t/first-0"]] * (len(seen) - 1)
    assert "t/second" in seen[-1].refusals
    world.end("t/old-0", again=False)
    binds = [bind.task for _ in range(4) for bind in cycle(world, Budget(2)).binds]
    assert binds == ["t/first-0"]


def test_without_a_budget_a_cycle_is_never_cut() -> None:
    world = world_of([never(f"bad{n}") for n in range(50)])
    assert cycle(world, Budget()).cut == []


def test_a_cut_cycle_is_continued_where_it_ended_and_its_decisions_are_not_final() -> None:
    world = world_of([never(f"bad{n}", pod=costly(n + 1, f"k{n}-")) for n in range(30)])
    tried: list[str] = []
    for _ in range(60):
        decisions = world.core.decide(world.policy, world.now, budget=Budget(2_000))
        tried += decisions.memory.waiting
        if not decisions.cut:
            break
        assert world.core.decide(world.policy, world.now, budget=Budget(2_000)) is not decisions
        apply_input(world.core, Decided(0, world.now, decisions))
    else:
        pytest.fail("every cycle was cut")
    whole = decide(world.fresh(), world.policy, world.now)
    assert sorted(set(tried)) == sorted(whole.refusals)
    assert decisions.refusals.keys() == whole.refusals.keys()


@pytest.mark.parametrize(("queue", "namespace"), [("r", "t"), ("q", "other")])
def test_a_queue_or_namespace_on_which_no_steps_were_spent_is_next_after_a_cut(queue: str, namespace: str) -> None:
    """Sixty costly jobs fit nowhere, and all of them are older and of higher priority than the job that fits."""
    world = world_of([never(f"bad{n:02}", pod=costly(50, f"k{n}-"), priority=1) for n in range(60)], ("q", "r"))
    put_into(world, namespace, [{"name": "good", "tasks": "1 x 1 cpu", "phase": "Inqueue", "queue": queue}])
    whole = decide(world.fresh(), world.policy, world.now).steps
    budget = Budget(whole // 5)
    first, second = cycle(world, budget), cycle(world, budget)
    assert first.cut
    assert [bind.job.rpartition("/")[2] for bind in (*first.binds, *second.binds)] == ["good"]
    assert max(first.steps, second.steps) < whole // 3


def put_into(world: World, namespace: str, jobs: list[dict[str, Any]]) -> None:
    for kind, item in world.notation.objects({"jobs": jobs}):
        if "namespace" in item["metadata"]:
            item["metadata"]["namespace"] = namespace
        world.put(kind, item)


@given(
    st.lists(st.sampled_from(["a", "f", "m", "z"]), min_size=2, max_size=4, unique=True),
    st.permutations(["q", "r"]),
    st.booleans(),
    st.sampled_from([20, 60, 120]),
    st.booleans(),
    st.integers(0, 4),
    st.integers(1, 3),
)
def test_each_costly_namespace_delays_a_healthy_one_by_at_most_one_cycle(
    names: list[str], queues: list[str], same_queue: bool, terms: int, is_bound: bool, arrives: int, in_each: int
) -> None:
    """In other namespaces new costly jobs arrive in every cycle, each of which uses up the budget, bound or not."""
    world, (healthy, *bad) = world_of([], ("q", "r")), names
    number = 0
    for now in range(arrives + len(bad) + 2):
        for namespace in bad:
            for _ in range(in_each):
                number += 1
                tasks = {"tasks": "1 x 0.01 cpu"} if is_bound else {"tasks": "20 x 4 cpu", "min": 20}
                pod = costly(terms, f"k{number}-")
                dear = {"name": f"dear{number}", "queue": queues[0], "priority": 9, "phase": "Inqueue", "pod": pod}
                put_into(world, namespace, [{**dear, **tasks}])
        if now == arrives:
            gang = {"name": "gang", "tasks": "2 x 1 cpu", "min": 2, "phase": "Inqueue"}
            put_into(world, healthy, [{**gang, "queue": queues[0] if same_queue else queues[1]}])
        decisions = cycle(world, Budget(1_000))
        if any(bind.job == f"{healthy}/gang" for bind in decisions.binds):
            break
        world.now += 1.0
    else:
        pytest.fail("the gang was not served")
    assert now <= arrives + len(bad)


@pytest.mark.parametrize("busy", [2, 8, 16])
def test_steps_that_were_spent_long_ago_delay_no_namespace(busy: int) -> None:
    """A namespace with costly jobs for many cycles, most of which were bound, then has a gang beside another one's."""
    world = world_of([])
    for now in range(busy + 3):
        namespace = "a" if now < busy else "b"
        dear = {"tasks": "1 x 0.01 cpu", "queue": "q", "priority": 9, "phase": "Inqueue"}
        jobs = [{"name": f"dear{now}-{i}", **dear, "pod": costly(60, f"k{now}-{i}-")} for i in range(2)]
        put_into(world, namespace, jobs)
        if now == busy:
            gang = {"name": "gang", "tasks": "2 x 1 cpu", "min": 2, "phase": "Inqueue", "priority": 10, "queue": "q"}
            put_into(world, "a", [gang])
        decisions = cycle(world, Budget(1_000))
        if any(bind.job == "a/gang" for bind in decisions.binds):
            return
        world.now += 1.0
    pytest.fail("the gang was not served")


def test_of_namespaces_with_equal_steps_none_is_always_the_last() -> None:
    """In each round two new namespaces have a costly job each, beside one whose jobs keep the cycles from ending."""
    world, bound = world_of([]), list[str]()
    dear = {"tasks": "1 x 0.01 cpu", "queue": "q", "priority": 9, "phase": "Inqueue"}
    for number in range(12):
        for namespace in ("keeps", "keeps", f"a{number}", f"z{number}"):
            name = f"dear{number}-{len(world.objects)}"
            put_into(world, namespace, [{"name": name, **dear, "pod": costly(60, f"{name}-")}])
        for _ in range(2):
            bound += [bind.job.partition("/")[0] for bind in cycle(world, Budget(1_000)).binds]
            world.now += 1.0
    earlier = {bound.index(f"a{n}") < bound.index(f"z{n}") for n in range(12) if {f"a{n}", f"z{n}"} <= {*bound}}
    assert earlier == {True, False}


def test_many_admissions_in_one_namespace_do_not_delay_another_namespace() -> None:
    """Enqueue admits many jobs of a namespace whose name sorts first."""
    world = world_of([])
    bad = [never(f"bad{n:03}", phase="Pending", priority=1) for n in range(300)]
    good = {"name": "good", "tasks": "1 x 1 cpu", "queue": "q"}
    put_into(world, "a", bad)
    put_into(world, "b", [good])
    seen = [cycle(world, Budget(3_000)) for _ in range(3)]
    assert seen[0].cut
    assert [bind.job for decisions in seen for bind in decisions.binds] == ["b/good"]


def test_a_costly_action_leaves_budget_for_the_actions_after_it() -> None:
    policy = 'actions: "allocate, reclaim"\ntiers: [{plugins: [{name: gang}, {name: predicates}, {name: capacity}]}]'
    bad = [never(f"bad{n:02}", "q", pod=costly(50, f"k{n}-")) for n in range(40)]
    world = World(policy_of(policy))
    world.load(
        {
            "nodes": [{"name": "n1", "has": "8 cpu", "labels": {HOSTNAME: "n1"}}],
            "queues": [{"name": "q"}, {"name": "a", "deserved": "4 cpu"}, {"name": "b", "deserved": "4 cpu"}],
            "jobs": [
                {"name": "old", "queue": "b", "min": 1, "tasks": "8 x 1 cpu running on n1", "phase": "Running"},
                {"name": "claims", "queue": "a", "tasks": "2 x 1 cpu", "phase": "Inqueue"},
                *bad,
            ],
        }
    )
    evictions = [evict for _ in range(4) for evict in cycle(world, Budget(6_000)).evictions]
    assert len(evictions) == 2


def test_a_job_that_exceeds_the_maximum_of_one_job_is_undone_and_tried_last() -> None:
    greedy = {"name": "greedy", "queue": "q", "tasks": "8 x 1 cpu", "pod": costly(60, "k"), "phase": "Inqueue"}
    world = world_of([{**greedy, "priority": 5}, {"name": "good", "queue": "q", "tasks": "1 x 1 cpu"}])
    alone = decide(world_of([greedy]).cluster, world.policy, world.now).steps
    budget = Budget(1_000_000, alone // 2)
    decisions = cycle(world, budget)
    assert [bind.job for bind in decisions.binds] == ["t/good"]
    assert decisions.refusals["t/greedy"].items == (TooCostly("allocate", "spec.affinity"),)
    entry = world.core.backlog.entries["t/greedy"]
    assert entry.late
    world.load({"jobs": [{"name": f"later{n}", "queue": "q", "tasks": "1 x 1 cpu"} for n in range(3)]})
    assert cycle(world, budget).steps < alone // 2, "the job is in backoff"
    world.now = entry.not_before + 1
    world.load({"jobs": [{"name": "more", "queue": "q", "tasks": "1 x 1 cpu"}]})
    decisions = cycle(world, Budget(1_000_000))
    assert next(bind.job for bind in decisions.binds) == "t/more"
    assert {bind.job for bind in decisions.binds} == {"t/more", "t/greedy"}


def test_decisions_contain_no_binds_of_a_job_that_exceeded_the_maximum() -> None:
    jobs = [{"name": "greedy", "queue": "q", "tasks": "8 x 1 cpu", "pod": costly(60, "k"), "phase": "Inqueue"}]
    good = [{"name": f"good{n}", "queue": "q", "tasks": "2 x 1 cpu", "phase": "Inqueue"} for n in range(4)]
    alone = cycle(world_of(good), Budget(), carries_out=False)
    for cap in range(alone.steps, 6_000, 250):
        beside = cycle(world_of([*jobs, *good]), Budget(0, cap), carries_out=False)
        if "t/greedy" in beside.refusals:
            assert [bind for bind in beside.binds if bind.job != "t/greedy"] == beside.binds
            assert sorted(bind.task for bind in beside.binds) == sorted(bind.task for bind in alone.binds)


def test_steps_do_not_depend_on_data_kept_between_cycles() -> None:
    world = world_of([never(f"bad{n}", pod=costly(5, f"k{n}-")) for n in range(5)])
    first = world.core.decide(world.policy, world.now)
    world.core.forget_last_cycle()
    again = world.core.decide(world.policy, world.now)
    assert (first.steps, without_bookkeeping(first)) == (again.steps, without_bookkeeping(again))
    assert decide(world.fresh(), world.policy, world.now).steps == first.steps


def test_a_bind_in_flight_wakes_no_other_job() -> None:
    world = world_of([never(f"bad{n}") for n in range(10)])
    cycle(world, Budget())
    world.load({"jobs": [{"name": "good", "queue": "q", "tasks": "1 x 1 cpu"}]})
    decisions = cycle(world, Budget(), carries_out=False)
    [bind] = decisions.binds
    apply_input(world.core, Assumed(bind.task, bind.uid, bind.node))
    assert world.core.backlog.due == set()
    assert decisions.memory.waiting == {}
    assert decisions.refusals.keys() == {f"t/bad{n}" for n in range(10)}


def test_a_job_that_the_process_found_too_costly_is_tried_last_after_a_restart() -> None:
    """After a restart, only the condition of the PodGroup shows that the job was too costly."""
    first = {"name": "a-first", "queue": "q", "tasks": "1 x 1 cpu", "phase": "Inqueue", "priority": 9}
    second = {"name": "b-second", "queue": "q", "tasks": "1 x 1 cpu", "phase": "Inqueue"}
    world = world_of([first, second])
    condition = {"type": "Unschedulable", "status": "True", "reason": "TooCostly", "message": "…"}
    world.change("PodGroup", "t/a-first", {"status": {"phase": "Inqueue", "conditions": [condition]}})
    order = [bind.job for bind in decide(world.fresh(), world.policy, world.now).binds]
    assert order == ["t/b-second", "t/a-first"]
