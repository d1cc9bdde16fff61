"""Workloads in a simulation start, run, finish, are evicted and recreated."""

from __future__ import annotations

import math
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedspec.scheduler.decide import decide
from schedspec.scheduler.model import objects
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.recording.events import (
    Decided,
    Input,
    ObjectSeen,
    PolicyLoaded,
    apply_input,
    read_line,
    write_line,
)
from schedspec.scheduler.recording.replay import difference, is_equal
from schedspec.scheduler.recording.segments import checkpoint_of
from schedspec.virtual import Arrival, DrainNode, EndWork, FailNode, OnEviction, RecoverNode, RemoveNode, Workload
from schedspec.virtual.outcomes import (
    Admitted,
    Cycle,
    Disrupted,
    Ended,
    Evicted,
    Placed,
    Released,
    Started,
    Stopped,
    Submitted,
    Waits,
)
from tests.support.core.virtual import CARDS, START, Run, policy, queue

EIGHT = {"n": {CARDS: "8", "pods": "100"}}
PREEMPT = policy("allocate, preempt")


def gang(name: str, seconds: float, pods: int = 8, **more: Any) -> Workload:
    return Workload(name, seconds, {CARDS: "1"}, pods, **more)


def urgent(name: str, seconds: float, pods: int = 8) -> Workload:
    return gang(name, seconds, pods, priority=100)


def test_a_workload_is_placed_starts_and_ends() -> None:
    run = Run(policy("enqueue, allocate"), EIGHT, start_delay=3).play((5, gang("job", 60, 2)))
    kinds = [type(it) for it in run.outcomes if type(it) is not Cycle]
    assert kinds == [Submitted, Placed, Placed, Admitted, Started, Released, Released, Ended]
    assert (run.times(Placed), run.times(Started), run.times(Ended)) == ([5, 5], [8], [68])
    assert not len(run.simulation.gangs)
    assert not run.simulation.cycles.cluster.tasks
    assert not run.simulation.cycles.cluster.jobs


def test_a_victim_holds_its_capacity_for_its_grace_period() -> None:
    run = Run(PREEMPT, EIGHT, grace=30).play((0, gang("low", 100)), (10, urgent("high", 50)))
    assert run.times(Evicted, "low") == [10] * 8
    assert run.times(Released, "low")[:8] == [40] * 8
    assert run.times(Started, "high") == [40]
    assert run.of(Evicted)[0].reason.preemptor_task == "load/high-0"


def test_a_restarted_gang_has_lost_all_of_its_work() -> None:
    run = Run(PREEMPT, EIGHT).play((0, gang("low", 100)), (60, urgent("high", 50)))
    assert [(it.ran, it.lost) for it in run.of(Stopped, "low")] == [(60, 60)]
    assert run.times(Started, "low") == [0, 110]
    assert (run.times(Ended, "low"), run.of(Ended, "low")[0].attempts) == ([210], 2)


def test_a_gang_with_checkpoints_loses_the_work_since_the_last_checkpoint() -> None:
    low = gang("low", 100, on_eviction=OnEviction.CHECKPOINT, checkpoint_every=25)
    run = Run(PREEMPT, EIGHT).play((0, low), (60, urgent("high", 50)))
    assert [(it.ran, it.lost) for it in run.of(Stopped, "low")] == [(60, 10)]
    assert run.times(Ended, "low") == [110 + 50]


def test_a_gang_whose_owner_gives_up_is_aborted() -> None:
    run = Run(PREEMPT, EIGHT).play((0, gang("low", 100, on_eviction=OnEviction.ABORT)), (60, urgent("high", 50)))
    assert [(it.outcome, it.at - START) for it in run.of(Ended)] == [("aborted", 60), ("completed", 110)]


ENDED_EARLY: dict[str, tuple[dict[str, float], list[tuple[float, Any]], float]] = {
    "the owner of an evicted gang gives up": (
        {},
        [(0, gang("low", 1000, on_eviction=OnEviction.ABORT)), (250, urgent("high", 100))],
        350,
    ),
    "a job completes before its time": ({}, [(0, gang("job", 1000)), (250, EndWork("load/job"))], 250),
    "a job completes while its pods start": (
        {"start_delay": 100},
        [(0, gang("job", 1000)), (50, EndWork("load/job"))],
        50,
    ),
    "a job completes while one of its pods terminates": (
        {"grace": 100},
        [(0, gang("job", 70, 8, min_member=4)), (60, urgent("high", 5, 4))],
        75,
    ),
    "a failed node recovers": (
        {},
        [(0, gang("job", 100)), (30, FailNode("n")), (50, RecoverNode("n")), (90, EndWork("load/job"))],
        90,
    ),
    "the pod of a failed node fails": (
        {},
        [(0, gang("job", 100, 1)), (30, FailNode("n")), (40, RemoveNode("n")), (50, EndWork("load/job"))],
        50,
    ),
}
"""Delays of the cluster, inputs with their times, and the end of the run."""


@pytest.mark.parametrize("name", ENDED_EARLY)
def test_a_run_ends_when_nothing_more_can_happen(name: str) -> None:
    delays, inputs, end = ENDED_EARLY[name]
    run = Run(PREEMPT, EIGHT, **delays).play(*inputs)
    assert run.simulation.now - START == end
    assert not len(run.simulation.gangs)


@given(rng=st.randoms(use_true_random=False))
def test_something_happens_in_each_instant_of_a_run(rng: random.Random) -> None:
    """An instant without an outcome, a cycle or an input is the rest of an event that was cancelled."""
    nodes = {name: {CARDS: "8", "pods": "100"} for name in ("a", "b")}
    run = Run(PREEMPT, nodes, start_delay=rng.choice((0, 3)), grace=rng.choice((0, 7)), node_eviction=29)
    inputs = sorted(((rng.randrange(60), _input(rng, index)) for index in range(12)), key=lambda given: given[0])
    times = list(run.simulation.instants(Arrival(START + at, item) for at, item in inputs))
    busy = {START + at for at, _ in inputs} | {outcome.at for outcome in run.outcomes}
    assert [now - START for now in times if now not in busy] == []


def _input(rng: random.Random, index: int) -> Any:
    kind = rng.choice((DrainNode, FailNode, RecoverNode, EndWork, Workload, Workload, Workload))
    if kind is EndWork:
        return EndWork(f"load/j{rng.randrange(12)}")
    if kind is not Workload:
        return kind(rng.choice("ab"))
    pods = rng.randint(1, 8)
    return gang(
        f"j{index}",
        rng.randint(1, 90),
        pods,
        min_member=rng.randint(1, pods),
        priority=rng.choice((0, 100)),
        on_eviction=rng.choice(tuple(OnEviction)),
        checkpoint_every=5,
    )


def test_a_failed_node_that_fails_again_evicts_its_pods_after_the_whole_toleration() -> None:
    changes = ((30, FailNode("n")), (50, RecoverNode("n")), (320, FailNode("n")))
    run = Run(policy(), EIGHT).play((0, gang("job", 1000)), *changes)
    assert run.times(Disrupted) == [620]


def test_a_drain_does_not_make_a_failed_node_ready() -> None:
    run = Run(policy(), EIGHT).play((0, FailNode("n")), (10, DrainNode("n")))
    assert not run.simulation.cycles.cluster.nodes.by_name["n"].is_ready


def test_the_eviction_of_spare_pods_does_not_stop_the_clock_of_a_gang() -> None:
    run = Run(PREEMPT, EIGHT).play((0, gang("low", 100, 8, min_member=4)), (60, urgent("high", 50, 4)))
    assert len(run.of(Evicted, "low")) == 4
    assert run.of(Stopped) == []
    assert run.times(Ended, "low") == [100]


def test_only_the_evicted_spare_pods_are_created_again() -> None:
    run = Run(PREEMPT, EIGHT).play((0, gang("low", 200, 8, min_member=4)), (60, urgent("high", 50, 4)))
    assert run.times(Placed, "low") == [0] * 8 + [110] * 4


def test_a_run_ends_although_jobs_never_fit_or_never_end() -> None:
    run = Run(policy(), EIGHT).play((0, gang("large", 10, 9)), (1, gang("endless", math.inf, 2)), (2, gang("small", 5)))
    assert [it.work.name for it in run.simulation.gangs] == ["large", "endless", "small"]
    assert run.times(Started) == [1]
    assert {it.job for it in run.of(Waits)} == {"load/large", "load/small"}


def test_a_job_of_a_missing_queue_waits_with_a_reason_that_names_the_queue() -> None:
    run = Run(policy(), EIGHT).play((0, gang("lost", 10, queue="nowhere")), (1, gang("job", 10)))
    (why,) = run.of(Waits, "lost")
    assert why.refusal is not None
    assert "nowhere" in repr(why.refusal)
    assert run.times(Ended) == [11]


def test_an_empty_load_ends_at_once() -> None:
    run = Run(policy(), EIGHT).play()
    assert not run.of(Submitted)


def test_a_run_stops_at_until_and_can_be_continued() -> None:
    run = Run(policy(), EIGHT).play((0, gang("a", 10)), until=5)
    assert run.times(Ended) == []
    run.simulation.run(until=START + 20)
    assert run.times(Ended) == [10]


def test_pods_of_a_drained_node_are_created_again_on_another_node() -> None:
    nodes = {name: {CARDS: "8", "pods": "100"} for name in ("a", "b")}
    run = Run(policy(), nodes, grace=5).play((0, gang("job", 100)), (30, DrainNode("a")), (40, RecoverNode("a")))
    assert {(it.cause, it.node) for it in run.of(Disrupted)} == {("drained", "a")}
    assert [it.node for it in run.of(Placed)] == ["a"] * 8 + ["b"] * 8
    assert (run.times(Started), run.times(Ended)) == ([0, 35], [135])


def test_work_on_a_failed_node_stops_at_once_and_restarts_after_the_toleration() -> None:
    nodes = {name: {CARDS: "8", "pods": "100"} for name in ("a", "b")}
    run = Run(policy(), nodes).play((0, gang("job", 1000)), (30, FailNode("a")))
    assert run.times(Stopped) == [30]
    assert run.times(Started) == [0, 330]
    assert [it.cause for it in run.of(Disrupted)] == ["failed"]


def test_work_on_a_node_that_recovers_in_time_continues_there() -> None:
    run = Run(policy(), EIGHT).play((0, gang("job", 100)), (30, FailNode("n")), (50, RecoverNode("n")))
    assert (run.times(Started), run.times(Ended), run.of(Disrupted)) == ([0, 50], [150], [])


def test_the_pods_of_a_removed_node_are_removed_with_it() -> None:
    run = Run(policy(), EIGHT).play((0, gang("job", 100)), (30, RemoveNode("n")))
    assert run.times(Released) == [30] * 8
    assert len(run.simulation.gangs) == 1


def test_a_change_of_a_queue_takes_effect_at_once() -> None:
    wider = ObjectSeen("Queue", queue("default"))
    run = Run(policy(), EIGHT, [queue("default", capability={CARDS: "4"})]).play((0, gang("job", 10)), (30, wider))
    assert run.times(Started) == [30]


def test_a_priority_class_of_the_cluster_orders_the_jobs_that_name_it() -> None:
    run = Run(policy(), EIGHT)
    run.simulation.put("PriorityClass", objects.PriorityClass(objects.ObjectMeta(name="high"), 10))
    run.play((0, gang("first", 10)), (1, gang("low", 10)), (2, gang("high", 10, priority_class="high")))
    assert run.times(Started, "high") == [10]
    assert run.times(Started, "low") == [20]


def loaded(on_input: Any = None) -> list[Any]:
    """Return the outcomes of a run with evictions."""
    run = Run(PREEMPT, EIGHT, on_input=on_input)
    return run.play(*((at, gang(f"j{at:02}", 30, 1 + at % 8, priority=at % 3)) for at in range(40))).outcomes


def test_the_same_input_gives_the_same_bytes() -> None:
    encode = msgspec.json.Encoder().encode
    first, second = loaded(), loaded()
    assert any(type(it) is Evicted for it in first)
    assert [encode(it) for it in first] == [encode(it) for it in second]


@given(rng=st.randoms(use_true_random=False))
def test_a_state_read_from_a_recording_decides_alike_and_gives_the_same_reasons(rng: random.Random) -> None:
    """From the beginning, or from a checkpoint after any cycle; also for jobs that a cycle does not consider."""
    inputs: list[Input] = []
    shares = {name: {CARDS: str(rng.randint(0, 8)), "memory": f"{rng.randint(0, 8)}Gi"} for name in ("red", "blue")}
    by = policy(rng.choice(("enqueue, allocate", "enqueue, allocate, preempt", "enqueue, allocate, reclaim")))
    queues = [queue(name, deserved=share) for name, share in shares.items()]
    run = Run(by, {"n": {CARDS: "8", "memory": "8Gi", "pods": "99"}}, queues, on_input=inputs.append)
    times = sorted(rng.randrange(60) for _ in range(10))
    run.play(*((at, _one_of_few(rng, index)) for index, at in enumerate(times)))
    begins = rng.randint(1, sum(isinstance(seen, Decided) for seen in inputs))
    clusters = [Cluster()]
    for seen in map(read_line, map(write_line, inputs)):
        for cluster in clusters:
            if isinstance(seen, Decided):
                would_be = decide(cluster, by, seen.now, budget=seen.budget)
                assert difference(seen.decisions, would_be) == []
                assert is_equal(seen.decisions, would_be)
            apply_input(cluster, seen)
        if isinstance(seen, Decided) and (begins := begins - 1) == 0:
            clusters.append(Cluster())
            for line in map(write_line, checkpoint_of(clusters[0], PolicyLoaded("", ""))):
                apply_input(clusters[1], read_line(line))


def _one_of_few(rng: random.Random, index: int) -> Workload:
    """Return one of few kinds of jobs, so that equal jobs wait in one line."""
    requests = {CARDS: rng.choice("01"), "memory": rng.choice(("1Gi", "3Gi"))}
    pods = rng.choice((1, 4))
    return Workload(
        f"j{index:02}", 30, requests, pods, queue=rng.choice(("red", "blue")), priority=rng.choice((0, 0, 9))
    )
