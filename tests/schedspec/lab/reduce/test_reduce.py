"""The reduction finds planted incidents among unrelated work."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from schedspec.lab.reduce import ReductionInput, reduce_case, shrink
from schedspec.lab.reduce.case import (
    NAMESPACE,
    Amounts,
    Case,
    CaseNode,
    CasePriorityClass,
    CaseQueue,
    ChangeStep,
    FailStep,
    SubmitStep,
    UseStep,
    Work,
    amounts,
    ancestors,
)
from schedspec.lab.reduce.feature import quotable, thens_of, title_of
from schedspec.lab.reduce.play import play
from schedspec.lab.reduce.reduce import reduce_part
from schedspec.lab.reduce.shrink import variants
from schedspec.lab.reduce.signature import EvictedFate, WaitingFate, of_eviction, of_wait, preemptor_of, shows

POLICIES = {
    it.stem: it.read_text("utf-8")
    for it in sorted((Path(__file__).parents[4] / "templates" / "policies").glob("*.yaml"))
    if it.stem in ("capacity", "gangs", "preempt", "default")
}
KNOWN = ReductionInput(POLICIES, lambda: False)
GPU = "nvidia.com/gpu"


def gpus(number: int) -> Amounts:
    return amounts([(GPU, number * 1000), ("cpu", number * 4000)])


def noise(case: Case, seed: int) -> Case:
    """Add full nodes with their work, and a queue at its share."""
    draw = random.Random(seed)
    nodes, work = [], []
    for number in range(4):
        name = f"full-{number}"
        nodes.append(CaseNode(name, gpus(8)))
        left = 8
        while left:
            size = min(draw.choice((1, 2, 4)), left)
            left -= size
            made = Work(
                f"busy-{number}-{left}", "quiet", requests=gpus(size), nodes=(name,), created=draw.randrange(99)
            )
            work.append(replace(made, preemptable=draw.random() < 0.5, priority=draw.choice(("", "top"))))
    return replace(
        case,
        nodes=(*case.nodes, *nodes),
        queues=(*case.queues, CaseQueue("quiet", deserved=gpus(32), reclaimable=False)),
        classes=(*case.classes, CasePriorityClass("top", 900)),
        work=(*case.work, *work),
    )


def reclaimed() -> Case:
    queues = CaseQueue("a", deserved=gpus(3)), CaseQueue("b", deserved=gpus(5))
    lent = Work("lent", "b", requests=gpus(1), nodes=("n",))
    owed = Work("owed", "a", requests=gpus(1), created=100)
    kept = tuple(Work(f"kept-{it}", "b", requests=gpus(1), nodes=("n",), created=it) for it in range(7))
    return Case(POLICIES["capacity"], (CaseNode("n", gpus(8)),), queues, (), (lent, *kept, owed), subject="kept-6")


def preempted() -> Case:
    low = Work("low", pods=4, minimum=4, requests=gpus(2), nodes=("n",) * 4, priority="small")
    high = Work("high", pods=2, minimum=2, requests=gpus(2), priority="large", created=9)
    classes = CasePriorityClass("small", 10), CasePriorityClass("large", 700)
    return Case(POLICIES["gangs"], (CaseNode("n", gpus(8)),), (), classes, (low, high), subject="low")


def above_its_capability() -> Case:
    queue = CaseQueue("a", capability=gpus(2), deserved=gpus(1))
    first = Work("first", "a", requests=gpus(2), nodes=("n",))
    more = Work("more", "a", requests=gpus(1), created=7)
    return Case(POLICIES["capacity"], (CaseNode("n", gpus(8)),), (queue,), (), (first, more), subject="more")


def too_large() -> Case:
    wide = Work("wide", pods=3, minimum=1, requests=gpus(16))
    return Case(POLICIES["default"], (CaseNode("n", gpus(8)),), (), (), (wide,), subject="wide")


def short_gang() -> Case:
    holder = Work("holder", requests=gpus(6), nodes=("n",))
    gang = Work("gang", pods=9, minimum=6, requests=gpus(2), created=5)
    return Case(POLICIES["preempt"], (CaseNode("n", gpus(12)),), (), (), (holder, gang), subject="gang")


MINIMA = {reclaimed: 5, preempted: 4, above_its_capability: 3, too_large: 2, short_gang: 3}
"""Objects of the smallest case."""


def signature_of(case: Case) -> EvictedFate | WaitingFate:
    story = play(case)
    found = next((of_eviction(it) for it in story.evictions if it.job == case.subject), None)
    wanted = found or of_wait(story, case, case.subject)
    assert wanted is not None, story
    return wanted


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("planted", MINIMA, ids=lambda it: it.__name__)
def test_a_planted_incident_is_reduced_to_its_minimum(planted, seed: int) -> None:
    case = noise(planted(), seed)
    wanted = signature_of(case)
    found = reduce_case(case, wanted, KNOWN)
    assert found.case.size <= MINIMA[planted] + 1, found.case
    assert not found.case.work, "sentences submit all work"
    assert shows(found.case, wanted)


def test_a_wait_for_a_capability_keeps_the_capability_and_a_node() -> None:
    queue = CaseQueue("a", capability=gpus(6))
    runs = tuple(Work(f"runs-{it}", "a", requests=gpus(2), nodes=("n",), created=it) for it in range(3))
    more = Work("more", "a", requests=gpus(2), created=7)
    case = Case(POLICIES["capacity"], (CaseNode("n", gpus(32)),), (queue,), (), (*runs, more), subject="more")
    found = reduce_case(case, signature_of(case), KNOWN).case
    (left,), (node,) = found.queues, found.all_nodes
    assert 0 < dict(left.capability)[GPU] < dict(node.has)[GPU]


def test_equal_cases_are_reduced_to_equal_cases() -> None:
    case = noise(above_its_capability(), 7)
    wanted = signature_of(case)
    assert reduce_case(case, wanted, KNOWN).case == reduce_case(case, wanted, KNOWN).case


def test_renamed_jobs_keep_the_order_of_their_names() -> None:
    case = noise(reclaimed(), 1)
    found = reduce_case(case, signature_of(case), KNOWN).case
    names = [it.name for it in sorted(found.jobs, key=lambda it: it.name)]
    assert names == [f"train-{number}" for number in range(1, len(names) + 1)]


def test_a_policy_that_no_sentence_can_name_is_cut_down() -> None:
    case = replace(too_large(), policy=POLICIES["gangs"])
    found = reduce_case(case, signature_of(case), ReductionInput({}, lambda: False))
    assert found.policy_name == ""
    assert "conformance" not in found.case.policy
    assert "allocate" in found.case.policy


def test_a_budget_that_is_used_up_leaves_a_case_that_shows_the_incident() -> None:
    case = too_large()
    wanted = signature_of(case)
    allowed = iter([False] * 12)
    found = reduce_case(case, wanted, ReductionInput(POLICIES, lambda: next(allowed, True))) if wanted else None
    assert found is not None
    assert shows(found.case, wanted)


def test_a_bound_pod_holds_its_own_requests_and_not_those_of_another_pod() -> None:
    """Found by exploration (seed 4): a node took 9 of 8 cpus, because the id of a spec was reused for another spec."""
    nodes = tuple(CaseNode(f"n{it}", gpus(cards)) for it, cards in enumerate((8, 3, 2, 2)))
    sizes = (3, 4, 3, 2, 2, 2, 1, 1, 4)
    steps = tuple(SubmitStep((Work(f"j{it}", requests=gpus(size)),)) for it, size in enumerate(sizes))
    placed = play(Case(POLICIES["default"], nodes, steps=steps)).end.placed
    for node in nodes:
        held = sum(sizes[int(job[1:])] for job, pods in placed.items() for on in pods.values() if on == node.name)
        assert gpus(held) <= node.has, placed


def test_work_admitted_after_all_other_actions_starts_in_the_next_cycle() -> None:
    """Found by exploration (seed 3346): the simulation waited for a change from outside."""
    policy = POLICIES["capacity"].replace('"enqueue, allocate, backfill, reclaim"', '"allocate, backfill, enqueue"')
    case = Case(policy, (CaseNode("n1", gpus(1)),), steps=(SubmitStep((Work("a", requests=gpus(1)),)),))
    assert play(case).end.placed == {"a": {"a-task-0": "n1"}}


def test_work_admitted_by_allocate_after_reclaim_reclaims_in_the_next_cycle() -> None:
    """Found by exploration (seed 1000270): in a policy without enqueue, allocate admits work."""
    policy = POLICIES["capacity"].replace('"enqueue, allocate, backfill, reclaim"', '"reclaim, allocate, backfill"')
    queues = CaseQueue("borrows"), CaseQueue("owed", deserved=gpus(1))
    lent, late = (
        SubmitStep((Work(name, of, requests=gpus(1)),)) for name, of in (("lent", "borrows"), ("late", "owed"))
    )
    case = Case(policy, (CaseNode("n1", gpus(1)),), queues, steps=(lent, late))
    assert play(case).end.placed == {"late": {"late-task-0": "n1"}}


def test_a_failed_pod_frees_its_capacity_and_is_not_created_again() -> None:
    gang, waits = Work("gang", pods=2, minimum=2, requests=gpus(1)), Work("waits", requests=gpus(1))
    steps = (SubmitStep((gang,)), SubmitStep((waits,)), FailStep("gang", 1))
    placed = play(Case(POLICIES["capacity"], (CaseNode("n1", gpus(2)),), steps=steps)).end.placed
    assert placed == {"gang": {"gang-task-0": "n1"}, "waits": {"waits-task-0": "n1"}}


def test_another_policy_is_in_force_from_its_step_on() -> None:
    high, low = Work("high", priority="high", requests=gpus(1)), Work("low", requests=gpus(1))
    case = Case(
        POLICIES["default"],
        (CaseNode("n1", gpus(1)),),
        classes=(CasePriorityClass("high", 100),),
        steps=(SubmitStep((low,)), SubmitStep((high,)), UseStep("preempt", POLICIES["preempt"])),
    )
    story = play(case)
    assert [(it.job, it.step) for it in story.evictions] == [("low", 3)]
    assert story.end.placed == {"high": {"high-task-0": "n1"}}


def test_one_of_several_equal_steps_is_removed() -> None:
    """Found by exploration (seed 1000393): equal changes of a queue were removed together or not at all."""
    first, other = (ChangeStep(CaseQueue("a", weight=weight)) for weight in (2, 3))
    steps = (SubmitStep((Work("job", "a"),)), first, other, first, other, first)
    case = Case(POLICIES["capacity"], (CaseNode("n", gpus(1)),), (CaseQueue("a"),), steps=steps, subject="job")

    def changes_back(candidate: Case) -> bool:
        return (other, first, other) in zip(candidate.steps, candidate.steps[1:], candidate.steps[2:], strict=False)

    tester = shrink.Tester(changes_back, case, lambda: False)
    shrink.remove_objects(tester)
    assert tester.best.steps == (other, first, other)


@pytest.mark.parametrize("case", [reclaimed(), preempted(), replace(preempted(), subject="")])
def test_the_variants_that_submit_running_work_are_different_cases(case: Case) -> None:
    found = list(variants(case))
    assert found
    assert len(found) == len(set(found))


def test_no_case_for_another_scheduler_begins_with_running_work() -> None:
    """On a cluster no work runs before it is submitted."""
    case = noise(reclaimed(), 3)
    judged: list[Case] = []

    def has_both(candidate: Case, _: object) -> bool:
        judged.append(candidate)
        return len({work.queue for work in candidate.jobs}) > 1

    found = reduce_case(case, WaitingFate(frozenset()), replace(KNOWN, shows=has_both))
    assert not any(candidate.work for candidate in judged)
    assert len(found.case.jobs) == 2
    assert {work.name for work in found.case.jobs} == {"train-1", "train-2"}


def test_what_a_load_does_not_repeat_is_tried_with_the_jobs_of_one_resource() -> None:
    """A cluster seldom repeats what a hundred jobs did. Those that compete for a resource are tried first."""
    case = noise(reclaimed(), 20)
    two = tuple(replace(case.jobs[0], name=f"of-device-{number}", requests=(("device", 1000),)) for number in range(2))
    case = replace(case, work=(*case.work, *two), subject="")

    def is_repeated(candidate: Case, _: object) -> bool:
        names = [name for job in candidate.jobs for name, _ in job.requests]
        return names.count("device") == 2 and len(names) < 4

    found = reduce_part(case, WaitingFate(frozenset()), replace(KNOWN, shows=is_repeated))
    assert [[name for name, _ in job.requests] for job in found.case.jobs] == [["device"]] * 2
    assert found.before == case.size


def test_a_policy_that_a_sentence_can_name_is_kept_on_a_cluster() -> None:
    """Each run takes seconds, and another policy would not make the feature shorter."""
    case = replace(noise(reclaimed(), 3), policy=[*POLICIES.values()][-1])
    judged: set[str] = set()

    def keeps_jobs(candidate: Case, _: object) -> bool:
        judged.add(candidate.policy)
        return len(candidate.jobs) > 1

    found = reduce_case(case, WaitingFate(frozenset()), replace(KNOWN, shows=keeps_jobs))
    assert judged == {case.policy}
    assert found.policy_name == [*POLICIES][-1]


def test_no_name_of_the_state_remains_if_the_budget_is_used_up() -> None:
    case = replace(noise(reclaimed(), 3), subject="kept-6")
    allowed = iter([False] * 2)
    known = replace(KNOWN, is_over=lambda: next(allowed, True), shows=lambda *_: True)
    found = reduce_case(case, WaitingFate(frozenset()), known)
    assert found.notes == ["the budget was used up: this may not be the smallest case"]
    assert all(work.name.startswith("train-") for work in found.case.jobs)
    assert not {queue.name for queue in found.case.queues} & {queue.name for queue in case.queues}


@pytest.mark.parametrize("allowed", range(0, 36, 3))
@pytest.mark.parametrize("planted", [reclaimed, above_its_capability], ids=lambda it: it.__name__)
def test_whenever_the_budget_ends_the_smallest_case_so_far_is_returned(planted, allowed: int) -> None:
    case = noise(planted(), 2)
    wanted = signature_of(case)
    budget = iter([False] * allowed)
    found = reduce_case(case, wanted, replace(KNOWN, is_over=lambda: next(budget, True)))
    assert shows(found.case, wanted)
    assert not found.case.work, "sentences submit all work"
    assert "the budget was used up: this may not be the smallest case" in found.notes


def test_a_wait_keeps_the_queue_the_resource_and_who_reserves_it() -> None:
    """The queue above is full: a smaller case whose own queue is full is another incident."""
    queues = CaseQueue("top", capability=gpus(4)), CaseQueue("a", "top"), CaseQueue("b", "top")
    runs = Work("runs", "b", requests=gpus(4), nodes=("n",))
    more = Work("more", "a", requests=gpus(1), created=7)
    policy = POLICIES["capacity"].replace("name: capacity", "name: capacity\n    enableHierarchy: true")
    case = Case(policy, (CaseNode("n", gpus(8)),), queues, (), (runs, more), subject="more")
    wanted = signature_of(case)
    assert isinstance(wanted, WaitingFate)
    assert any(", a queue above" in reason for reason in wanted.reasons), wanted
    found = reduce_case(case, wanted, KNOWN).case
    (subject,) = (job for job in found.jobs if job.name == found.subject)
    assert len(ancestors(found, subject.queue)) > 1


def test_an_eviction_keeps_its_preemptor() -> None:
    """Two jobs each could reclaim from the subject; the one that did is in the smallest case."""
    case = reclaimed()
    other = Work("other", "a", requests=gpus(2), created=50)
    case = replace(
        case, work=(*case.work, other), preemptor="owed", nodes=(CaseNode("n", gpus(8)), CaseNode("m", gpus(2)))
    )
    story = play(case)
    assert {preemptor_of(eviction) for eviction in story.evictions if eviction.job == case.subject} == {"owed"}
    wanted = signature_of(case)
    assert shows(case, wanted)
    assert not shows(replace(case, preemptor="kept-0"), wanted)
    found = reduce_case(case, wanted, KNOWN).case
    assert found.preemptor in {job.name for job in found.jobs}
    assert {preemptor_of(it) for it in play(found).evictions if it.job == found.subject} >= {found.preemptor}


@pytest.mark.parametrize("dimension", ["cpu", "memory"])
def test_a_wait_keeps_the_resource_by_which_victims_are_protected(dimension: str) -> None:
    """The other queue is at its deserved amount of one resource: a case with another resource is another incident."""
    held = amounts([(GPU, 2000), (dimension, 4000 if dimension == "cpu" else 4 << 30)])
    queues = CaseQueue("a", deserved=amounts([(GPU, 2000)])), CaseQueue("b", deserved=held)
    runs = Work("runs", "b", requests=held, nodes=("n",))
    more = Work("more", "a", requests=amounts([(GPU, 1000)]), created=7)
    node = CaseNode("n", amounts([(GPU, 2000), ("cpu", 64_000), ("memory", 512 << 30)]))
    case = Case(POLICIES["capacity"], (node,), queues, (), (runs, more), subject="more")
    wanted = signature_of(case)
    assert isinstance(wanted, WaitingFate)
    assert any(f"another queue of {dimension}" in reason for reason in wanted.reasons), wanted
    found = reduce_case(case, wanted, KNOWN).case
    assert any(dimension in dict(queue.deserved) for queue in found.queues), found


def test_the_sentences_of_a_wait_name_all_of_its_reasons_and_who_reserves() -> None:
    queues = CaseQueue("a", capability=gpus(6), deserved=gpus(2)), CaseQueue("b", deserved=gpus(6))
    runs = Work("runs", "a", requests=gpus(2), nodes=("n",)), Work("other", "b", requests=gpus(5), nodes=("n",))
    gang = Work("gang", "a", pods=4, minimum=4, requests=gpus(1), created=5)
    more = Work("more", "a", requests=gpus(1), created=7)
    case = Case(POLICIES["capacity"], (CaseNode("n", gpus(8)),), queues, (), (*runs, gang, more), subject="more")
    said = thens_of(case, signature_of(case), play(case))
    assert said[0] == '"more" stays pending'
    assert any("reserved by admitted jobs" in sentence for sentence in said), said
    assert len(said) == 1 + len(play(case).end.waits["more"].items)
    assert not any(f"{NAMESPACE}/" in sentence or len(sentence) > 140 for sentence in said), said


@pytest.mark.parametrize("reasons", [{"not-entitled, its queue, cpu"}, {"not-entitled", "no-node resource"}])
def test_a_title_names_the_types_of_reasons_in_words(reasons: set[str]) -> None:
    title = title_of(WaitingFate(frozenset(reasons)))
    assert "its queue may not reclaim" in title
    assert "not-entitled" not in title


@pytest.mark.parametrize(
    ("reason", "quoted"),
    [
        (
            f"queue a: 4 reserved by admitted jobs ({NAMESPACE}/train), 1 requested",
            "queue a: 4 reserved by admitted jobs",
        ),
        (f"pod {NAMESPACE}/train-0 is there", "pod"),
        ("short", "short"),
        (f"{'x' * 60}, {'y' * 30}; {'z' * 30}", f"{'x' * 60}, {'y' * 30}"),
        ("x" * 150, ""),
        ('says "no"', "says"),
    ],
)
def test_a_sentence_quotes_a_reason_as_far_as_it_can(reason: str, quoted: str) -> None:
    assert quotable(reason) == quoted
