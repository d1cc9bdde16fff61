"""Promises about acts: a play keeps each promise, and one change of the play breaks it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from schedspec.lab.explore import Worlds, broken_promises, entitled, permitted, served
from schedspec.lab.explore.judge import found_by_monitors, judge
from schedspec.lab.reduce import confirm, play
from schedspec.lab.reduce.case import (
    GPU,
    Amounts,
    Case,
    CaseNode,
    CasePriorityClass,
    CaseQueue,
    ChangeStep,
    FailStep,
    JoinStep,
    SubmitStep,
    Work,
    amounts,
)
from schedspec.lab.reduce.feature import Text, write_feature
from schedspec.lab.reduce.play import Act, Happened, SettledState, Story, policy_of
from schedspec.lab.reduce.written import known_policies
from schedspec.scheduler.reasons import Refusal, VictimReason

POLICIES = known_policies()
ZERO, ONE, TWO = (amounts([("cpu", cpus * 1000)]) for cpus in range(3))
CLASSES = (CasePriorityClass("high", 100),)
OLD, YOUNG = Work("old", "lender", requests=ONE), Work("young", "lender", requests=ONE)
CLAIM = Work("claim", "owner", requests=ONE)
LENT = Case(
    POLICIES["capacity"],
    (CaseNode("n1", TWO),),
    (CaseQueue("lender", deserved=ONE), CaseQueue("owner", deserved=ONE)),
    CLASSES,
    steps=(SubmitStep((OLD,)), SubmitStep((YOUNG,)), SubmitStep((CLAIM,))),
)
PAIR = replace(LENT, steps=(LENT.steps[0], SubmitStep((replace(YOUNG, pods=2),)), LENT.steps[2]))
RIVAL = replace(CLAIM, queue="lender", priority="high")
PREEMPTED = replace(LENT, policy=POLICIES["preempt"], steps=(*LENT.steps[:2], SubmitStep((RIVAL,))))


def placed(job: str, step: int, at: float = 0.0) -> Act:
    return Act(Happened.PLACED, at or step * 30.0, step, job, f"{job}-task-0", "n1")


def evicted(job: str, action: str = "reclaim", step: int = 3, **reason: object) -> Act:
    preemptor = str(reason.pop("preemptor", "case/claim"))
    why = VictimReason(action, preemptor, f"{preemptor}-task-0", "", "", **{"tier": 1, **reason})  # type: ignore[arg-type]
    return Act(Happened.EVICTED, 90.0, step, job, f"{job}-task-0", "n1", why)


def rules(case: Case, *acts: Act) -> set[str]:
    return {breach.rule for breach in permitted.forbidden_evictions(case, Story(acts=[*acts]))}


BEFORE = placed("old", 1), placed("young", 2)
ALL = CaseQueue("lender", deserved=TWO)
"""A queue that deserves all that it holds."""


def with_queues(lender: CaseQueue, owner: CaseQueue) -> Case:
    return replace(LENT, queues=(lender, owner))


CLAIMED = replace(
    with_queues(ALL, CaseQueue("owner", deserved=ONE)),
    policy=POLICIES["capacity"].replace("reclaim", "reclaim, preempt", 1),
    steps=(*LENT.steps[:2], SubmitStep((CLAIM, replace(RIVAL, name="rival")))),
)
"""The queue deserves all that it holds; preempt evicts one of its pods for a third pod of the same queue."""
BOTH = (placed("young", 2), replace(placed("young", 2), pod="young-task-1"))
VOTED = replace(
    PAIR,
    policy=POLICIES["hierarchy-cce"],
    steps=(*PAIR.steps[:2], SubmitStep((CLAIM, replace(RIVAL, name="rival")))),
)
"""Gang has a vote in the first tier of reclaim, and none in that of preempt."""


def one_by_each(*actions: str) -> tuple[Act, ...]:
    """Return the evictions of the two pods of a pair, each by one action for a job of its own."""
    names = {"reclaim": "case/claim", "preempt": "case/rival"}
    acts = [evicted("young", action, tier=0, preemptor=names[action]) for action in actions]
    return tuple(replace(act, pod=f"young-task-{number}") for number, act in enumerate(acts))


@pytest.mark.parametrize(
    ("case", "acts", "broken"),
    [
        (LENT, (*BEFORE, evicted("young")), set()),
        (CLAIMED, (*BEFORE, evicted("young", "preempt", preemptor="case/rival"), evicted("old")), set()),
        (LENT, (*BEFORE, evicted("old")), {"order"}),
        (LENT, (*BEFORE, evicted("young", tier=0, whole_gang=True)), {"gang"}),
        (PAIR, (*BEFORE, evicted("young", tier=0)), {"gang"}),
        (PAIR, (*BEFORE, replace(placed("young", 3), pod="young-task-1"), evicted("young", tier=0)), set()),
        (VOTED, (*BOTH, *one_by_each("reclaim", "preempt")), set()),
        (VOTED, (*BOTH, *one_by_each("preempt", "reclaim")), {"gang"}),
        (LENT, (BEFORE[0], placed("young", 3, 90.0), evicted("young")), set()),
        (LENT, (BEFORE[0], placed("young", 3, 89.99), evicted("young")), {"starting"}),
        (with_queues(ALL, CaseQueue("owner", deserved=ONE)), (*BEFORE, evicted("young")), {"deserved"}),
        (with_queues(CaseQueue("lender", deserved=ONE), CaseQueue("owner")), (*BEFORE, evicted("young")), {"deserved"}),
        (replace(LENT, policy=POLICIES["without-reclaim"]), (*BEFORE, evicted("young")), {"action"}),
        (PREEMPTED, (*BEFORE, evicted("young", "preempt", tier=0)), set()),
        (PREEMPTED, (*BEFORE, evicted("old", "preempt", tier=0)), {"order"}),
        (replace(PREEMPTED, classes=()), (*BEFORE, evicted("young", "preempt", tier=0)), {"priority"}),
        (replace(PREEMPTED, steps=LENT.steps), (*BEFORE, evicted("young", "preempt", tier=0)), {"queue", "priority"}),
    ],
    ids=[
        "the youngest",
        "beside capacity that is reserved for a job of its queue",
        "an older pod",
        "a gang by the tier of gang",
        "the only pod of a job, by the tier of gang",
        "which another pod of the job replaces at the same time",
        "the last pod of a gang that has no vote in preempt, after reclaim took another",
        "the last pod of a gang that has a vote in reclaim, after preempt took another",
        "bound at the same time",
        "before it runs",
        "of a queue at its deserved amount",
        "for a queue that deserves nothing",
        "without the action",
        "by a higher priority",
        "an older pod, by priority",
        "by an equal priority",
        "in another queue",
    ],
)  # fmt: skip
def test_an_eviction_must_be_permitted_by_the_policy(case: Case, acts: Sequence[Act], broken: set[str]) -> None:
    assert rules(case, *acts) == broken


def test_the_feature_of_a_forbidden_eviction_fails_even_if_the_pod_returns(tmp_path: Path) -> None:
    """The job keeps running once it has capacity again."""
    returns = replace(LENT, steps=(*LENT.steps, JoinStep((CaseNode("n2", TWO),))))
    story = play(returns)
    assert set(story.end.placed) == {"old", "young", "claim"}
    forbidden = replace(with_queues(ALL, CaseQueue("owner", deserved=ONE)), steps=returns.steps)
    found = broken_promises(forbidden, story, Worlds(less=False, node_more=False, names=False))
    (promise,) = (promise for promise in found if promise.name == "permitted: deserved")
    feature = tmp_path / "forbidden.feature"
    feature.write_text(write_feature(returns, story, Text("An eviction", 'the policy "capacity"', promise.thens)))
    assert confirm.run([feature]).problem == "1: young (Then exactly 0 of these is evicted:)"


@pytest.mark.parametrize(("policy", "then"), [("without-backfill", '"old" stays pending')])
def test_the_feature_of_a_forbidden_placement_demands_that_the_job_waits(policy: str, then: str) -> None:
    case = replace(LENT, policy=POLICIES[policy], steps=(SubmitStep((replace(OLD, requests=()),)),))
    story = Story(acts=[placed("old", 1)], settled=[SettledState({}, {}), SettledState(HELD, {})])
    found = broken_promises(case, story, Worlds(less=False, node_more=False, names=False))
    assert [promise.thens for promise in found if promise.name == "permitted: backfill"] == [(then,)]


def test_our_scheduler_evicts_the_youngest() -> None:
    story = play(LENT)
    assert [eviction.job for eviction in story.evictions] == ["young"]
    assert list(permitted.forbidden_evictions(LENT, story)) == []


@pytest.mark.parametrize(("policy", "broken"), [("without-backfill", True), ("default", False)])
def test_only_backfill_places_work_without_requests(policy: str, *, broken: bool) -> None:
    case = replace(LENT, policy=POLICIES[policy], steps=(SubmitStep((replace(OLD, requests=()),)),))
    assert bool([*permitted.unasked_backfills(case, Story(acts=[placed("old", 1)]))]) == broken
    assert list(permitted.unasked_backfills(case, play(case))) == []


FIRST, SECOND = Work("b", "lender", requests=TWO), Work("a", "lender", requests=TWO)
LATER = replace(LENT, steps=(SubmitStep((FIRST,)), SubmitStep((SECOND,)), JoinStep((CaseNode("n2", TWO),))), nodes=())
TOGETHER = replace(LENT, steps=(SubmitStep((replace(FIRST, priority="high"), SECOND)),))
OWN_QUEUES = replace(
    LENT,
    queues=(CaseQueue("lender", priority=1), CaseQueue("owner")),
    steps=(SubmitStep((FIRST, replace(SECOND, queue="owner"))),),
)  # fmt: skip


@pytest.mark.parametrize("job", ["a", "b"])
@pytest.mark.parametrize(("case", "rule"), [(LATER, "job"), (TOGETHER, "job"), (OWN_QUEUES, "queue")])
def test_the_job_that_is_served_first_starts_first(case: Case, rule: str, job: str) -> None:
    step = len(case.steps)
    settled = [SettledState({}, {}) for _ in range(step)]
    story = Story(acts=[placed(job, step)], settled=[*settled, SettledState({job: {f"{job}-task-0": "n2"}}, {})])
    assert [(breach.rule, breach.job) for breach in served.out_of_order(case, story)] == (
        [(rule, "b")] if job == "a" else []
    )
    assert list(served.out_of_order(case, play(case))) == []


@pytest.mark.parametrize(("most", "broken"), [(ONE, ["limit"]), (TWO, []), ((), [])])
def test_a_job_whose_minimum_exceeds_the_limit_of_its_queue_is_not_admitted(most: object, broken: list[str]) -> None:
    case = replace(LENT, queues=(CaseQueue("lender", capability=most),), steps=(SubmitStep((FIRST,)),))  # type: ignore[arg-type]
    story = Story(acts=[Act(Happened.ADMITTED, 30.0, 1, "b")])
    assert [breach.rule for breach in served.admitted_above_limits(case, story)] == broken
    assert list(served.admitted_above_limits(case, play(case))) == []


@pytest.mark.parametrize(("kept", "broken"), [(ONE, ["guarantee"]), ((), [])])
def test_a_queue_does_not_use_what_is_guaranteed_to_another_queue(kept: object, broken: list[str]) -> None:
    owner = CaseQueue("owner", deserved=ONE, guarantee=kept)  # type: ignore[arg-type]
    case = replace(with_queues(LENT.queues[0], owner), steps=LENT.steps[:2])
    assert [breach.rule for breach in served.lent_guarantees(case, Story(acts=[*BEFORE]))] == broken
    assert list(served.lent_guarantees(case, play(case))) == []


HELD = {"old": {"old-task-0": "n1"}, "young": {"young-task-0": "n1"}}
BY_WEIGHT = replace(LENT, policy=POLICIES["proportion"], queues=(CaseQueue("lender"), CaseQueue("owner", weight=2)))
IDLE = Work("idle", "lender")


@pytest.mark.parametrize(
    ("case", "rule"),
    [
        (LENT, "reclaim"),
        (PREEMPTED, "preempt"),
        (BY_WEIGHT, "reclaim"),
        (replace(LENT, steps=(*LENT.steps[:2], SubmitStep((IDLE,)))), "backfill"),
        (with_queues(ALL, CaseQueue("owner", deserved=ONE)), ""),
        (with_queues(CaseQueue("lender", deserved=ONE, reclaimable=False), CaseQueue("owner", deserved=ONE)), ""),
        (replace(PREEMPTED, classes=()), ""),
        (replace(LENT, policy=POLICIES["without-reclaim"]), ""),
        (replace(LENT, policy=POLICIES["without-backfill"], steps=(*LENT.steps[:2], SubmitStep((IDLE,)))), ""),
        (replace(LENT, steps=(*LENT.steps, SubmitStep((replace(CLAIM, name="late"),)))), ""),
    ],
)
def test_a_job_does_not_keep_waiting_if_the_policy_permits_an_eviction_for_it(case: Case, rule: str) -> None:
    """The same settled states keep the promise if a rule forbids the eviction."""
    found = entitled.jobs_without_room(case, Story(settled=[SettledState(HELD, {})]))
    assert [breach.rule for breach in found] == ([rule] if rule else [])
    assert list(entitled.jobs_without_room(case, play(case))) == []


@pytest.mark.parametrize(("steps", "rule"), [((), "reclaim"), ((FailStep("pair", 1),), "")], ids=["waits", "failed"])
def test_a_pod_that_failed_takes_no_share_from_the_queue_of_a_victim(steps: tuple[FailStep, ...], rule: str) -> None:
    """By weight, the lender deserves what no other queue requests; a pod that failed requests nothing."""
    pair, large = Work("pair", "third", pods=2, requests=ONE), Work("large", "lender", requests=shape(3))
    claim = SubmitStep((replace(CLAIM, requests=TWO),))
    nodes, queues = (CaseNode("n1", TWO), CaseNode("n2", shape(4))), tuple(map(CaseQueue, ("lender", "owner", "third")))
    case = Case(POLICIES["proportion"], nodes, queues, steps=(SubmitStep((large,)), SubmitStep((pair,)), *steps, claim))
    held = {"pair": {"pair-task-0": "n1"}, "large": {"large-task-0": "n2"}}
    found = entitled.jobs_without_room(case, Story(settled=[SettledState(held, {}, {"claim": "Inqueue"})]))
    assert [breach.rule for breach in found if breach.job == "claim"] == ([rule] if rule else [])
    assert [breach for breach in entitled.jobs_without_room(case, play(case)) if breach.job == "claim"] == []


@pytest.mark.parametrize(("guarantee", "rule"), [((), "reclaim"), (ONE, "")], ids=["none", "all that is held"])
def test_a_claim_is_owed_nothing_that_a_queue_above_the_victims_is_guaranteed(guarantee: Amounts, rule: str) -> None:
    queues = (
        CaseQueue("lender", parent="team"),
        CaseQueue("team", guarantee=guarantee),
        CaseQueue("owner", deserved=TWO),
    )
    nodes, steps = (
        (CaseNode("n1", TWO), CaseNode("n2", ONE)),
        (SubmitStep((OLD,)), SubmitStep((replace(CLAIM, requests=TWO),))),
    )
    case = replace(LENT, policy=POLICIES["hierarchy"], nodes=nodes, queues=queues, steps=steps)
    found = entitled.jobs_without_room(case, Story(settled=[SettledState({"old": HELD["old"]}, {})]))
    assert [breach.rule for breach in found] == ([rule] if rule else [])


SHAPES = """
actions: "allocate, reclaim, preempt"
tiers:
- plugins: [{name: priority}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
"""


def shape(cpus: int, gibibytes: int = 0, cards: int = 0) -> Amounts:
    given = ("cpu", cpus * 1000), ("memory", gibibytes << 30), (GPU, cards * 1000)
    return amounts((name, amount) for name, amount in given if amount)


def shapes(node: Amounts, share: Amounts, held: Amounts, pods: int, claim: Work) -> tuple[Case, Story]:
    """Return a claim beside pods of queue `lender` that fill one node, settled."""
    jobs = tuple(Work(f"held-{number}", "lender", requests=held) for number in range(pods))
    queues = CaseQueue("lender", deserved=share), CaseQueue("owner", deserved=share)
    case = Case(SHAPES, (CaseNode("n1", node),), queues, CLASSES, steps=(SubmitStep(jobs), SubmitStep((claim,))))
    placed = {job.name: {f"{job.name}-task-0": "n1"} for job in jobs}
    return case, Story(settled=[SettledState(placed, {})])


def urgent(requests: Amounts) -> Work:
    return Work("claim", "lender", "high", requests=requests)


@pytest.mark.parametrize(
    ("case", "rule"),
    [
        *((shapes(shape(12, 64), shape(6, 32), shape(4, 8), 3, replace(CLAIM, requests=shape(4, memory))), "reclaim")
          for memory in (8, 7, 4, 0)),
        (shapes(shape(12, 64, 3), shape(6, 32, 1), shape(4, 8, 1), 3, replace(CLAIM, requests=shape(4, 4))), "reclaim"),
        (shapes(shape(12, 64), shape(6, 32), shape(4, 8), 3, replace(CLAIM, requests=shape(4, 33))), ""),
        (shapes(shape(12, 64), shape(6, 32), shape(12, 8), 1, replace(CLAIM, requests=shape(4, 8))), "reclaim"),
        (shapes(shape(12, 64), shape(12, 32), shape(4, 8), 3, replace(CLAIM, requests=shape(4, 8))), ""),
        *((shapes(shape(16, 0, 8), (), shape(8, 0, 4), 2, urgent(shape(16, 0, of))), "preempt") for of in (1, 3, 4)),
        (shapes(shape(16, 0, 8), (), shape(8, 0, 4), 2, urgent(shape(17, 0, 1))), ""),
        (shapes(shape(14, 7), (), shape(2, 1), 7, urgent(shape(2, 1))), ""),
    ],
    ids=[
        "the shape of a victim", "less memory", "half of the memory", "no memory", "no cards", "more than its share",
        "a large victim", "a lender at its share", "fewer cards than two victims", "three cards", "all of the cards",
        "more than a node has", "too many victims for a search",
    ],
)  # fmt: skip
def test_a_claim_within_its_share_is_owed_a_start_whatever_its_shape(case: tuple[Case, Story], rule: str) -> None:
    assert [breach.rule for breach in entitled.jobs_without_room(*case)] == ([rule] if rule else [])


@pytest.mark.parametrize("guarantee", [(), shape(0), amounts([("cpu", 0)])])
def test_a_share_of_no_cpu_lends_no_cpu_whether_or_not_a_guarantee_names_it(guarantee: Amounts) -> None:
    """A share of zero names no amount that the queue could exceed, and the lender is at its share of memory."""
    pod = replace(OLD, requests=shape(1, 1))
    lender = CaseQueue("lender", deserved=amounts([("cpu", 0), *shape(0, 1)]), guarantee=guarantee)
    owner = CaseQueue("owner", deserved=shape(1, 1))
    steps = SubmitStep((pod,)), SubmitStep((replace(CLAIM, requests=shape(1, 1)),))
    case = Case(SHAPES, (CaseNode("n1", shape(1, 1)),), (lender, owner), steps=steps)
    assert list(entitled.jobs_without_room(case, play(case))) == []


GANGS = """
actions: "allocate, preempt"
tiers:
- plugins: [{name: gang, enablePreemptable: %s}]
- plugins: [{name: priority}, {name: conformance}, {name: predicates}, {name: proportion}]
"""


@pytest.mark.parametrize(("votes", "victims"), [("true", 3), ("false", 0)])
def test_pods_of_a_gang_go_together_only_where_gang_has_a_vote(votes: str, victims: int) -> None:
    """The queue holds 1.5 cpu more than it deserves by weight: a whole gang is in proportion, three pods are not."""
    gang = Work("gang", "lender", pods=3, minimum=3, requests=ONE)
    rest, first = Work("rest", "owner", requests=shape(3)), replace(RIVAL, requests=ONE)
    queues, nodes = (CaseQueue("lender"), CaseQueue("owner")), (CaseNode("n1", shape(3)),)
    steps = (SubmitStep((gang,)), SubmitStep((rest,)), SubmitStep((first,)))
    case = replace(LENT, policy=GANGS % votes, nodes=nodes, queues=queues, steps=steps)
    held = {"gang": {f"gang-task-{index}": "n1" for index in range(3)}}
    found = entitled.jobs_without_room(case, Story(settled=[SettledState(held, {})]))
    assert [breach.rule for breach in found] == ["preempt"] * bool(victims)
    story = play(case)
    assert len(story.evictions) == victims
    assert list(entitled.jobs_without_room(case, story)) == []


@pytest.mark.parametrize(("pods", "rule"), [(1, "reclaim"), (2, "")])
def test_a_gang_is_owed_nothing_if_its_first_victim_may_leave_none_for_its_last_pod(pods: int, rule: str) -> None:
    """Either the gang of two pods goes, or the single pod: after it the lender is at its share."""
    jobs = Work("pair", "lender", pods=2, minimum=2, requests=ONE), Work("single", "lender", requests=ONE)
    claim = replace(CLAIM, pods=pods, minimum=pods)
    queues = CaseQueue("lender", deserved=TWO), CaseQueue("owner", deserved=TWO)
    steps = SubmitStep(jobs), SubmitStep((claim,))
    case = replace(LENT, nodes=(CaseNode("n1", shape(3)),), queues=queues, steps=steps)
    held = {"pair": {"pair-task-0": "n1", "pair-task-1": "n1"}, "single": {"single-task-0": "n1"}}
    found = entitled.jobs_without_room(case, Story(settled=[SettledState(held, {})]))
    assert [breach.rule for breach in found] == ([rule] if rule else [])


@pytest.mark.parametrize("on", [("n1", "n1", "n2"), ("n2", "n1", "n1")], ids=" ".join)
@pytest.mark.parametrize(
    ("claim", "rule"),
    [
        (Work("claim", "owner", requests=shape(1, 0, 1)), "reclaim"),
        (Work("claim", "owner", requests=shape(2, 0, 1)), "reclaim"),
        (Work("claim", "owner", pods=2, minimum=2, requests=shape(1, 0, 1)), ""),
    ],
    ids=["wherever the spare pod goes", "if the right spare pod goes", "if a wrong one does not go for its first pod"],
)
def test_any_pod_above_the_minimum_of_a_gang_may_be_the_one_that_goes(
    claim: Work, rule: str, on: tuple[str, ...]
) -> None:
    """Found by exploration (seed 22180): only the pod on n2 (it has idle cpu) makes room for a claim of two."""
    nodes = CaseNode("n1", shape(2, 0, 4)), CaseNode("n2", shape(2, 0, 2))
    queues = CaseQueue("lender"), CaseQueue("owner", deserved=shape(2, 0, 2))
    gang = Work("gang", "lender", pods=3, minimum=2, requests=shape(1, 0, 2))
    case = Case(POLICIES["capacity"], nodes, queues, steps=(SubmitStep((gang,)), SubmitStep((claim,))))
    held = {"gang": {f"gang-task-{index}": node for index, node in enumerate(on)}}
    story = Story(settled=[SettledState(held, {}, {"claim": "Inqueue"})])
    assert [breach.rule for breach in entitled.jobs_without_room(case, story)] == ([rule] if rule else [])
    assert list(entitled.jobs_without_room(case, play(case))) == []


def test_a_job_starts_on_idle_capacity_while_a_gang_frees_more_than_is_needed() -> None:
    """Found by exploration (seed 59748): what a decision evicts is free for a guarantee before it is written.

    The gang holds all but the guarantee; the claim takes half of what the gang frees, and the late job what is idle.
    """
    nodes = tuple(CaseNode(f"n{number}", shape(64, memory)) for number, memory in ((1, 1), (2, 2), (3, 2)))
    queues = (
        CaseQueue("lender", deserved=shape(0, 1)),
        CaseQueue("owner", deserved=shape(0, 2)),
        CaseQueue("third", guarantee=shape(0, 1)),
    )
    gang = Work("gang", "lender", pods=2, minimum=2, requests=shape(0, 2))
    jobs = replace(CLAIM, requests=shape(0, 2)), gang, Work("late", "lender", requests=shape(0, 1))
    case = Case(POLICIES["reclaim-before-allocate"], nodes, queues, steps=(SubmitStep(jobs),))
    acts = [(act.what, act.job) for act in play(case).acts]
    first = acts.index((Happened.EVICTED, "gang"))
    assert (Happened.PLACED, "late") in acts[:first]
    assert acts.index((Happened.PLACED, "claim")) > first
    assert judge(case).findings == []


ALONE = replace(LENT, queues=LENT.queues[:1], steps=(SubmitStep((FIRST,)),))
ON_NODE = {"b": {"b-task-0": "n1"}}


@pytest.mark.parametrize(
    ("placed", "phase", "broken"),
    [({}, "Running", ["told: phase"]), ({}, "Pending", []), ({}, "Inqueue", []), (ON_NODE, "Running", [])],
    ids=["no pod has a node", "it waits", "it is admitted", "its pod runs"],
)
def test_a_pod_group_is_running_only_if_a_pod_has_a_node(
    placed: dict[str, dict[str, str]], phase: str, broken: list[str]
) -> None:
    """A job that waits gives its reason, so that only its phase may be wrong."""
    waits = {} if placed else {"b": Refusal()}
    story = Story(settled=[SettledState({}, {}), SettledState(placed, waits, {"b": phase})])
    found = broken_promises(ALONE, story, Worlds(less=False, node_more=False, names=False))
    assert [breach.name for breach in found if breach.name.startswith("told")] == broken


def test_our_scheduler_sets_running_only_on_a_pod_group_with_a_bound_pod() -> None:
    """One job runs and the other one waits; both phases are the scheduler's own."""
    case = replace(ALONE, steps=(SubmitStep((FIRST,)), SubmitStep((SECOND,))))
    story = play(case)
    assert story.end.phases["b"] == "Running"
    assert story.end.phases["a"] != "Running"
    assert [breach.name for breach in broken_promises(case, story, Worlds())] == []


def test_a_pod_that_is_bound_in_the_same_moment_counts_for_the_minimum_of_its_gang() -> None:
    """Found by exploration (seed 1018892): the job gets a second pod, and loses one above its minimum."""
    pair = Work("train-1", "speech", pods=2, minimum=1, requests=TWO)
    steps = (
        SubmitStep((pair, replace(pair, name="train-2", queue="research"))),
        SubmitStep((Work("train-3", "speech", requests=ONE),)),
        ChangeStep(CaseQueue("research", priority=1, deserved=ONE)),
        FailStep("train-1", 1),
    )
    nodes = tuple(CaseNode(name, TWO) for name in ("n1", "n2", "n3"))
    queues = CaseQueue("research"), CaseQueue("speech", deserved=amounts([("cpu", 3000)]))
    case = Case(POLICIES["capacity"], nodes, queues, steps=steps)
    story = play(case)
    assert [eviction.pod for eviction in story.evictions] == ["train-2-task-0"]
    assert list(permitted.forbidden_evictions(case, story)) == []


TREE = replace(
    LENT,
    policy=POLICIES["hierarchy"],
    queues=(
        CaseQueue("above", deserved=TWO),
        CaseQueue("cousin", deserved=ZERO),
        CaseQueue("owner", "above", deserved=ONE),
        CaseQueue("sibling", "above", deserved=ZERO),
    ),
    steps=(
        SubmitStep((replace(OLD, queue="sibling"),)),
        SubmitStep((replace(YOUNG, queue="cousin"),)),
        SubmitStep((CLAIM,)),
    ),
)


@pytest.mark.parametrize(("victim", "broken"), [("old", set()), ("young", {"near"})])
def test_a_queue_of_a_tree_reclaims_from_its_nearest_relative_first(victim: str, broken: set[str]) -> None:
    assert rules(TREE, *BEFORE, evicted(victim, tier=1)) == broken
    story = play(TREE)
    assert [eviction.job for eviction in story.evictions] == ["old"]
    assert list(permitted.forbidden_evictions(TREE, story)) == []


GANG = Work("gang", "lender", pods=2, minimum=2, requests=ONE)
WAITED = replace(
    LENT,
    policy=POLICIES["sla"],
    queues=(CaseQueue("lender"), CaseQueue("owner")),
    steps=(
        SubmitStep((OLD,)),
        SubmitStep((GANG,)),
        SubmitStep((YOUNG,)),
        SubmitStep((replace(CLAIM, name="third", queue="lender"),)),
    ),
)
IN_A_RACK = replace(WAITED, steps=(WAITED.steps[0], SubmitStep((replace(GANG, rack="required"),)), *WAITED.steps[2:]))
OTHER_QUEUE = replace(WAITED, steps=(*WAITED.steps[:2], SubmitStep((replace(YOUNG, queue="owner"),))))


@pytest.mark.parametrize(
    ("case", "phase", "broken"),
    [
        (WAITED, "Inqueue", ["young"]),
        (WAITED, "Pending", []),
        (replace(WAITED, nodes=(*WAITED.nodes, CaseNode("n2", TWO))), "Inqueue", []),
        (replace(WAITED, policy=POLICIES["default"]), "Inqueue", []),
        (OTHER_QUEUE, "Inqueue", []),
        (IN_A_RACK, "Inqueue", []),
    ],
    ids=[
        "on capacity that a gang holds",
        "beside a gang that is not admitted",
        "beside capacity for the whole gang",
        "under a policy without holds",
        "of another queue",
        "beside a gang that no rack can hold",
    ],
)
def test_no_later_job_starts_on_capacity_that_a_gang_holds(case: Case, phase: str, broken: list[str]) -> None:
    ran = {"old": {"old-task-0": "n1"}}
    settled = [SettledState({}, {}), SettledState(ran, {}), SettledState(ran, {}, {"gang": phase})]
    story = Story(acts=[placed("old", 1), placed("young", 3)], settled=settled)
    assert [breach.job for breach in served.lost_holds(case, story)] == broken
    assert list(served.lost_holds(case, play(case))) == []


@pytest.mark.parametrize(("pods", "broken"), [(1, []), (2, ["young"])], ids=["within it", "beyond it"])
def test_a_later_job_may_start_on_capacity_that_is_released_for_it(pods: int, broken: list[str]) -> None:
    """The gang holds what was idle before a pod ended; a second pod of the later job starts there."""
    steps = (*WAITED.steps[:2], SubmitStep((replace(YOUNG, pods=2),)))
    case = replace(WAITED, steps=steps)
    ran = {"old": {"old-task-0": "n1"}}
    settled = [SettledState({}, {}), SettledState(ran, {}), SettledState(ran, {}, {"gang": "Inqueue"})]
    starts = (placed("young", 3), replace(placed("young", 3), pod="young-task-1"))[:pods]
    ends = Act(Happened.RELEASED, 90.0, 3, "old", "old-task-0", "n1")
    story = Story(acts=[placed("old", 1), ends, *starts], settled=settled)
    assert [breach.job for breach in served.lost_holds(case, story)] == broken


def test_the_only_pod_of_a_job_is_placed_before_a_spare_pod_of_another_job() -> None:
    """Found by exploration (seed 2002373): the spare pod claimed freed capacity, and a second gang was evicted."""
    urgent = Work("urgent", "team", "high", pods=2, minimum=1, requests=ONE)
    lenders = Work("lender-1", "team", pods=2, minimum=2, requests=ONE), Work("lender-2", "team", "", 3, 2, ONE)
    steps = SubmitStep(lenders), SubmitStep((urgent, replace(urgent, name="urgent-too", pods=1)))
    four = amounts([("cpu", 4000)])
    case = Case(POLICIES["gangs"], (CaseNode("n1", four),), (CaseQueue("team"),), CLASSES, steps=steps)
    story = play(case)
    assert [eviction.job for eviction in story.evictions] == ["lender-2", "lender-2"]
    assert [found for found in found_by_monitors(case) if found.name.startswith("needless")] == []


def test_a_smaller_request_is_not_refused() -> None:
    """A scheduler that wants an equal shape would refuse it: the claim starts in the play, and not in the variant."""
    case, _ = shapes(shape(12, 64), shape(6, 32), shape(4, 8), 3, replace(CLAIM, requests=shape(4, 8)))
    story = play(case)
    assert [eviction.job for eviction in story.evictions] == ["held-2"]
    found = list(broken_promises(case, story, Worlds(node_more=False, names=False)))
    assert [promise.name for promise in found if promise.name.startswith("less")] == []


PAIR_ABOVE = Work("claim", "owner", pods=2, minimum=1, requests=shape(2))
ABOVE_SHARE = Case(
    POLICIES["capacity"],
    (CaseNode("n1", shape(5)), CaseNode("n2", TWO)),
    (CaseQueue("lender"), CaseQueue("owner", deserved=TWO)),
    steps=(SubmitStep((Work("gang", "lender", pods=3, minimum=3, requests=TWO),)), SubmitStep((PAIR_ABOVE,))),
)
"""The gang goes as a whole, so that the claim gets both pods; half of the claim starts on idle room, without it."""


def test_a_job_that_starts_with_less_may_wait_for_its_pods_above_the_minimum() -> None:
    """Found by exploration (seed 32270): gang lets the job evict for its minimum only, which fits without evictions."""
    smaller = replace(ABOVE_SHARE, steps=(ABOVE_SHARE.steps[0], SubmitStep((replace(PAIR_ABOVE, requests=ONE),))))
    assert [len(play(case).end.placed["claim"]) for case in (ABOVE_SHARE, smaller)] == [2, 1]
    found = broken_promises(ABOVE_SHARE, play(ABOVE_SHARE), Worlds(node_more=False, names=False))
    assert [promise.name for promise in found] == []


STARVING = """
actions: "allocate, reclaim"
tiers:
- plugins: [{name: priority, enableJobStarving: %s}, {name: gang, enableJobStarving: %s}]
- plugins: [{name: capacity}]
"""


@pytest.mark.parametrize(
    ("priority", "gang", "most"),
    [("true", "true", 1), ("false", "true", 1), ("true", "false", 2), ("false", "false", 0)],
)
def test_a_job_starves_until_it_has_as_many_pods_as_it_may_evict_for(priority: str, gang: str, most: int) -> None:
    policy = policy_of(STARVING % (priority, gang))
    assert sum(entitled.starves(policy, PAIR_ABOVE, held) for held in range(3)) == most
