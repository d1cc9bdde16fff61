"""Each monitor finds its violation in a stream of outcomes, and reports nothing in a stream without a violation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from schedspec.scheduler.model import objects
from tests.schedspec.lab.simulate.written_outcomes import Story


def with_two_on_a_node() -> Story:
    """Return outcomes of a job of two cpus and one of one cpu on n0; a third job waits."""
    it = Story()
    it.job("victim", cpu=2)
    it.job("other", cpu=1)
    it.cycle()
    it.bind("victim", "n0")
    it.bind("other", "n0")
    return it


def needless() -> Story:
    it = with_two_on_a_node()
    it.job("small", "blue", cpu=1)
    it.evict_and_bind("small")
    return it


def needed() -> Story:
    it = with_two_on_a_node()
    it.job("large", "blue", cpu=3)
    it.evict_and_bind("large")
    it.release("other")
    return it


def needed_by_a_later_pod() -> Story:
    it = with_two_on_a_node()
    it.job("gang", "blue", pods=3, cpu=1)
    it.evict_and_bind("gang")
    it.release("other")  # another pod of the gang needs its capacity
    it.cycle()
    it.bind("gang", "n0", "n0", first=1)
    return it


def needed_by_the_queue() -> Story:
    it = Story(tight=objects.QueueSpec(capability={"cpu": "2"}))
    it.job("victim", "tight", cpu=2)
    it.cycle()
    it.bind("victim", "n0")
    it.job("urgent", "tight", cpu=1)
    it.evict_and_bind("urgent", action="preempt")
    return it


def gang_evicted_wholly_for_one_node() -> Story:
    it = Story()
    it.job("gang", pods=2, minimum=2, cpu=2)
    it.cycle()
    it.bind("gang", "n0", "n1")
    it.job("large", "blue", cpu=4)
    it.cycle()
    it.evict("gang", "large", pods=2)
    it.release("gang", pods=2)
    it.cycle()
    it.bind("large", "n0")
    return it


def gang_evicted_although_both_fit() -> Story:
    it = Story()
    it.job("gang", pods=2, minimum=2, cpu=1)
    it.cycle()
    it.bind("gang", "n0", "n1")
    it.job("two", "blue", pods=2, cpu=3)
    it.cycle()
    it.evict("gang", "two", pods=2)
    it.release("gang", pods=2)
    it.cycle()
    it.bind("two", "n0", "n1")
    return it


def disproportionate() -> Story:
    it = Story()
    it.job("late", "blue", cpu=1)
    names = [f"old{index}" for index in range(4)]
    for index, name in enumerate(names):
        it.job(name, cpu=2)
        it.cycle()
        it.bind(name, f"n{index % 2}")
    it.cycle()
    for name in names:
        it.evict(name, "late")
    for name in names:
        it.release(name)
    it.cycle()
    it.bind("late", "n0")
    it.end("late")
    return it


def proportionate() -> Story:
    it = Story()
    it.job("many", pods=4, cpu=2)
    it.job("wide", "blue", pods=2, cpu=4)
    it.cycle()
    it.bind("many", "n0", "n0", "n1", "n1")
    it.cycle()
    it.evict("many", "wide", pods=4)
    it.release("many", pods=4)
    it.cycle()
    it.bind("wide", "n0", "n1")
    it.end("wide")
    return it


def evicted_again(*, second: str = "", is_new: bool = True, keeps: bool = False) -> Story:
    """Return outcomes of a job that is evicted twice for the job `first`.

    In between, the job `second` evicts `first`. `is_new`: `second` is submitted only then. `keeps`: `second` is bound
    on n0, and the victim is evicted from n1 afterwards.
    """
    it = Story()
    for name in ("victim", "first", *(() if is_new or not second else (second,))):
        it.job(name, "red" if name == "victim" else "blue", cpu=4)
    it.cycle()
    it.bind("victim", "n0")
    it.evict_and_bind("first")
    if second:
        if is_new and second != "victim":
            it.job(second, "blue", cpu=4)
        it.cycle()
        it.evict("first", second)
        it.release("first")
    if keeps:
        it.cycle()
        it.bind(second, "n0")
    it.cycle()
    it.bind("victim", "n1" if keeps else "n0")
    it.cycle()
    it.evict("victim", "first")
    it.release("victim")
    return it


def evicted_again_after_a_third_job_was_submitted() -> Story:
    return evicted_again(second="third")


def evicted_again_without_a_new_job() -> Story:
    return evicted_again(second="third", is_new=False)


def evicted_again_after_a_third_job_was_bound_instead() -> Story:
    return evicted_again(second="third", is_new=False, keeps=True)


def evicted_again_after_it_evicted_the_preemptor() -> Story:
    return evicted_again(second="victim")


def needed_by_the_guarantee_of_another_queue() -> Story:
    """Regression (seed 2000417): the monitor of scenarios accepted this, the monitor of loads did not."""
    it = Story(safe=GUARANTEED)
    it.job("victim", cpu=3)
    it.job("other", cpu=3)
    it.cycle()
    it.bind("victim", "n0")
    it.bind("other", "n1")
    it.job("urgent", cpu=1)
    it.evict_and_bind("urgent", action="preempt")
    return it


def needed_by_the_queue_for_a_pod_on_another_node() -> Story:
    """Regression (seed 3002972): the monitor of scenarios accepted this, the monitor of loads did not."""
    it = Story(tight=objects.QueueSpec(capability={"cpu": "4"}))
    it.job("victim", "tight", cpu=2)
    it.job("other", "tight", cpu=1)
    it.cycle()
    it.bind("victim", "n0")
    it.bind("other", "n1")
    it.job("urgent", "tight", pods=2, cpu=1)
    it.evict_and_bind("urgent", "n0", "n1", action="preempt")
    it.cycle()
    it.release("other")
    return it


GUARANTEED = objects.QueueSpec(guarantee=objects.queueing.Guarantee({"cpu": "2"}), parent="root")


def guarantee_violated() -> Story:
    it = Story(safe=GUARANTEED)
    it.job("greedy", pods=8)
    it.cycle()
    it.bind("greedy", *["n0"] * 4, *["n1"] * 4)
    return it


def guarantee_respected() -> Story:
    it = Story(safe=GUARANTEED)
    it.job("modest", pods=6)
    it.job("own", "safe", pods=2)
    it.cycle()
    it.bind("modest", *["n0"] * 4, *["n1"] * 2)
    it.bind("own", "n1", "n1")
    return it


def guarantee_cut() -> Story:
    it = Story(safe=GUARANTEED)
    it.job("own", "safe", pods=2, cpu=1)
    it.job("large", "blue", cpu=4)
    it.cycle()
    it.bind("own", "n0", "n0")
    it.cycle()
    it.evict("own", "large")
    it.release("own")
    it.cycle()
    it.bind("large", "n0")
    return it


def guarantee_used_by_a_waiting_job() -> Story:
    it = Story(safe=GUARANTEED)
    it.job("own", "safe", pods=3, cpu=1)
    it.job("urgent", "safe", cpu=2)
    it.job("large", "blue", cpu=4)
    it.cycle()
    it.bind("own", "n0", "n0", "n0")
    it.cycle()
    it.evict("own", "urgent", pods=2, action="preempt")
    it.evict("own", "large", first=2)
    it.release("own", pods=3)
    it.cycle()
    it.bind("urgent", "n0")
    it.bind("large", "n1")
    return it


def ancestor_above_its_capability() -> Story:
    it = Story(team=objects.QueueSpec(capability={"cpu": "2"}), a=objects.QueueSpec(parent="team"),
               b=objects.QueueSpec(parent="team"))  # fmt: skip
    it.job("one", "a", pods=2)
    it.job("two", "b")
    it.cycle()
    it.bind("one", "n0", "n0")
    it.bind("two", "n0")
    return it


def closed_to_reclaim() -> Story:
    it = Story(closed=objects.QueueSpec(reclaimable=False))
    it.job("own", "closed", cpu=3)
    it.job("large", "blue", cpu=4)
    it.cycle()
    it.bind("own", "n0")
    it.cycle()
    it.evict("own", "large")
    it.release("own")
    it.cycle()
    it.bind("large", "n0")
    return it


def not_preemptable() -> Story:
    it = Story()
    it.job("own", cpu=3, protected=True)
    it.job("large", "blue", cpu=4)
    it.cycle()
    it.bind("own", "n0")
    it.cycle()
    it.evict("own", "large", action="preempt")
    it.release("own")
    it.cycle()
    it.bind("large", "n0")
    return it


ROOM = "evicted although n0 had capacity for it and for all pods bound since"


def idle_capacity_and_two_victims() -> Story:
    """Return outcomes of a cycle that evicts for two jobs; the first then starts on idle capacity (seed 78954)."""
    it = Story()
    it.job("filler", cpu=1)
    it.job("low", pods=2, cpu=1)
    it.job("urgent", cpu=1)
    it.job("wide", "blue", pods=2, cpu=1)
    it.cycle()
    it.bind("filler", "n0")
    it.bind("low", "n0", "n0")
    it.cycle()
    it.evict("low", "urgent", action="preempt", first=1)
    it.evict("low", "wide")
    it.cycle()
    it.bind("urgent", "n0")
    it.release("low")
    it.release("low", first=1)
    it.cycle()
    it.bind("wide", "n0", "n0")
    return it


AGAIN = "repeated-eviction: victim evicted again for the same job"
TOO_MUCH = "disproportionate-eviction: old3 reclaim for late: more evicted than is proportionate (8 of 3 cpu)"


@pytest.mark.parametrize(
    ("story", "finding"),
    [
        (needless, f"needless-eviction: victim {ROOM}"),
        (needed, ""),
        (needed_by_a_later_pod, ""),
        (needed_by_the_queue, ""),
        (gang_evicted_wholly_for_one_node, ""),
        (gang_evicted_although_both_fit, f"needless-eviction: gang {ROOM.replace('n0', 'n1')}"),
        (needed_by_the_guarantee_of_another_queue, ""),
        (needed_by_the_queue_for_a_pod_on_another_node, ""),
        (evicted_again, AGAIN),
        (evicted_again_after_a_third_job_was_submitted, ""),
        (evicted_again_without_a_new_job, AGAIN),
        (evicted_again_after_a_third_job_was_bound_instead, ""),
        (evicted_again_after_it_evicted_the_preemptor, AGAIN),
        (idle_capacity_and_two_victims, ""),
        (disproportionate, TOO_MUCH),
        (proportionate, ""),
        (guarantee_violated, "guarantee: greedy uses cpu that is guaranteed to queue safe"),
        (guarantee_respected, ""),
        (guarantee_cut, "guarantee: own its eviction cuts queue safe below its guarantee: cpu"),
        (guarantee_used_by_a_waiting_job, ""),
        (ancestor_above_its_capability, "capability: two lifts queue team to 3 of 2 cpu of its capability"),
        (closed_to_reclaim, "protection: own evicted although queue closed is not reclaimable"),
        (not_preemptable, "protection: own evicted although it is marked volcano.sh/preemptable: false"),
    ],
)  # fmt: skip
def test_monitors_of_the_stream_report_the_violation(story: Callable[[], Story], finding: str) -> None:
    found = story().found()
    assert (finding in found) if finding else (found == [])
