"""Hardware that policies treat specially: quotas of cards with services, shared cards, and racks."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from schedspec.cli.check import check_command
from schedspec.lab.explore import Draw, Vocabulary, generate, owed_jobs, permitted, served
from schedspec.lab.explore.hardware import PLAIN, QUOTAS, RACKS, SHARED, kind_of
from schedspec.lab.explore.judge import judge
from schedspec.lab.reduce import ReductionInput, play, reduce_case
from schedspec.lab.reduce.case import (
    CARD_MEMORY,
    CARDS,
    GPU,
    PREFERRED,
    REQUIRED,
    Amounts,
    Case,
    CaseNode,
    CasePriorityClass,
    CaseQueue,
    ChangeStep,
    CompleteStep,
    FailStep,
    JoinStep,
    SubmitStep,
    UseStep,
    Work,
    amounts,
)
from schedspec.lab.reduce.feature import Text, write_feature
from schedspec.lab.reduce.play import Act, Happened, SettledState, Story
from schedspec.lab.reduce.signature import Broken
from schedspec.lab.reduce.written import given_policy, known_policies
from schedspec.scheduler.reasons import VictimReason

POLICIES = known_policies()
A100 = "NVIDIA-A100"


def cards(number: int) -> Amounts:
    return amounts([(GPU, number * 1000)])


def cpus(number: int) -> Amounts:
    return amounts([("cpu", number * 1000)])


def shared(number: int, mebibytes: int) -> Amounts:
    return amounts([(CARDS, number * 1000), (CARD_MEMORY, number * mebibytes * 1000)])


def part(mebibytes: int) -> Amounts:
    return amounts([(CARD_MEMORY, mebibytes * 1000)])


# ------------------------------------------------------------------------------------------------- what is drawn


def drawn(number: int) -> list[Case]:
    return [generate(Draw(seed, POLICIES)) for seed in range(number)]


def test_each_kind_of_hardware_is_drawn_in_at_most_one_of_eight_cases() -> None:
    kinds = Counter(map(kind_of, drawn(400)))
    assert set(kinds) == {PLAIN, QUOTAS, SHARED, RACKS}
    assert all(10 <= kinds[kind] <= 50 for kind in (QUOTAS, SHARED, RACKS))


def test_a_vocabulary_without_hardware_draws_none() -> None:
    may = Vocabulary(has_card_quotas=False, has_shared_cards=False, has_racks=False)
    assert {kind_of(generate(Draw(seed, POLICIES, may=may))) for seed in range(400)} == {PLAIN}


def test_a_mutated_case_keeps_its_hardware() -> None:
    for parent in (case for case in drawn(200) if kind_of(case) != PLAIN):
        for seed in range(5):
            changed = generate(Draw(seed, POLICIES, parent))
            assert kind_of(changed) in (kind_of(parent), kind_of(generate(Draw(seed, POLICIES))))


def test_a_service_needs_one_pod_and_no_pod_of_it_fails() -> None:
    case = generate(Draw(1, POLICIES))
    for seed in range(2, 1500):
        case = generate(Draw(seed, POLICIES, case if kind_of(case) == QUOTAS else None))
        services = {job.name for job in case.jobs if job.is_service}
        assert all(job.minimum == 1 for job in case.jobs if job.is_service), seed
        assert not any(isinstance(step, FailStep) and step.job in services for step in case.steps), seed


def test_check_accepts_the_features_of_all_kinds(tmp_path: Path) -> None:
    names = {text: name for name, text in POLICIES.items()}
    cases = [case for case in drawn(250) if kind_of(case) != PLAIN]
    for number, case in enumerate(cases):
        feature = tmp_path / f"case-{number}.feature"
        policy = given_policy(feature, case.policy, names, "schedspec")
        thens = [f'"{work.name}" runs or is refused' for work in case.jobs[-1:]]
        feature.write_text(write_feature(case, play(case), Text("A case", policy, thens)), "utf-8")
    checked = CliRunner().invoke(check_command, [str(tmp_path)], standalone_mode=False)
    assert checked.return_value == 0, checked.output
    assert {kind_of(case) for case in cases} == {QUOTAS, SHARED, RACKS}


def test_a_feature_names_models_quotas_services_shared_cards_and_racks() -> None:
    service = Work("chat", requests=cards(1), is_service=True, card=A100)
    job = Work("train", requests=cards(2), card=A100)
    queue = CaseQueue("speech", cards=amounts([(A100, 3000)]))
    nodes = CaseNode("n1", cards(4), A100), CaseNode("n2", shared(2, 8192)), CaseNode("n3", cpus(1), rack="rack-a")
    steps = (
        SubmitStep((service, job)),
        SubmitStep((Work("part", requests=part(4096)), Work("gang", requests=cpus(1), rack=REQUIRED))),
        CompleteStep("chat"),
    )
    case = Case(POLICIES["cross-queue-reclaim"], nodes, (queue,), steps=steps)
    lines = [" ".join(line.split()) for line in write_feature(case, play(case), Text("t", "p", ())).splitlines()]
    for line in (
        "| n1 | 64 | 256Gi | 4 | NVIDIA-A100 | | | |",
        "| n2 | 64 | 256Gi | | | 2 | 8192Mi | |",
        "| n3 | 1 | 256Gi | | | | | rack-a |",
        "| speech | NVIDIA-A100 3 |",
        "| chat | 1 | NVIDIA-A100 |",
        "| train | 2 | NVIDIA-A100 |",
        "| part | 4096Mi | | |",
        "| gang | | 1 | rack |",
        'When "chat" is deleted',
    ):
        assert line in lines, line


# ------------------------------------------------------------------------------------------------------- promises

OFFLINE = Work("train", "training", "low", requests=cards(2), card=A100)
ONLINE = replace(OFFLINE, name="chat", queue="inference", priority="high", is_service=True)
QUOTA = amounts([(A100, 2000)])
RECLAIMED = Case(
    POLICIES["cross-queue-reclaim"],
    (CaseNode("n1", cards(2), A100),),
    (CaseQueue("inference", cards=QUOTA), CaseQueue("training", cards=QUOTA)),
    (CasePriorityClass("low", 10), CasePriorityClass("high", 100)),
    steps=(SubmitStep((OFFLINE,)), SubmitStep((ONLINE,))),
)


def between(victim: Work, preemptor: Work) -> Case:
    return replace(RECLAIMED, steps=(SubmitStep((victim,)), SubmitStep((preemptor,))))


@pytest.mark.parametrize(
    ("case", "broken"),
    [
        (RECLAIMED, set()),
        (between(OFFLINE, replace(ONLINE, is_service=False)), {"service"}),
        (between(replace(OFFLINE, is_service=True), ONLINE), {"service"}),
        (between(OFFLINE, replace(ONLINE, priority="low")), {"priority"}),
        (between(replace(OFFLINE, priority="high"), replace(ONLINE, priority="low")), {"priority"}),
    ],
    ids=["a service of higher priority", "a job", "from a service", "an equal priority", "a lower priority"],
)
def test_only_services_reclaim_cards_and_only_from_jobs_of_lower_priority(case: Case, broken: set[str]) -> None:
    pod = "train-task-0"
    why = VictimReason("reclaim", "case/chat", "case/chat-task-0", "", "", tier=1)
    acts = [
        Act(Happened.PLACED, 30.0, 1, "train", pod, "n1"),
        Act(Happened.EVICTED, 60.0, 2, "train", pod, "n1", why),
    ]
    assert {breach.rule for breach in permitted.forbidden_evictions(case, Story(acts=acts))} == broken
    story = play(case)
    assert [eviction.job for eviction in story.evictions] == ([] if broken else ["train"])
    assert judge(case).findings == []


GANG = Work("gang", pods=2, minimum=2, requests=cpus(1), rack=PREFERRED)
RACKED = Case(
    POLICIES["gangs"],
    tuple(CaseNode(name, cpus(1), rack=rack) for name, rack in (("n1", "a"), ("n2", "b"), ("n3", "b"))),
    steps=(SubmitStep((GANG,)),),
)
BUSY = Work("busy", requests=cpus(1))


def together(*nodes: str) -> list[Act]:
    return [Act(Happened.PLACED, 30.0, 1, "gang", f"gang-task-{number}", node) for number, node in enumerate(nodes)]


BLOCKED = replace(RACKED, steps=(SubmitStep((BUSY, GANG)),))
ELSEWHERE = Act(Happened.PLACED, 30.0, 1, "busy", "busy-task-0", "n3")


@pytest.mark.parametrize(
    ("case", "acts", "broken"),
    [
        (RACKED, together("n2", "n3"), []),
        (RACKED, together("n1", "n2"), ["rack"]),
        (BLOCKED, [*together("n1", "n2"), ELSEWHERE], []),
        (replace(RACKED, steps=(SubmitStep((replace(GANG, rack=""),)),)), together("n1", "n2"), []),
        (replace(RACKED, policy=POLICIES["preempt"]), together("n1", "n2"), []),
    ],
    ids=["in one rack", "spread", "no rack has room", "without a preference", "without the plugin"],
)
def test_a_gang_that_prefers_a_rack_is_in_one_that_has_room(case: Case, acts: list[Act], broken: list[str]) -> None:
    assert [breach.rule for breach in served.spread_gangs(case, Story(acts=acts))] == broken
    assert list(served.spread_gangs(case, play(case))) == []


def test_our_scheduler_keeps_a_gang_in_the_rack_that_it_prefers() -> None:
    assert set(play(RACKED).end.placed["gang"].values()) == {"n2", "n3"}
    assert judge(RACKED).findings == []


@pytest.mark.parametrize(
    ("node", "work"),
    [
        (CaseNode("n1", shared(2, 4096)), Work("wide", pods=1, requests=part(6144))),
        (CaseNode("n1", cpus(1), rack="a"), Work("close", requests=cpus(1), rack=REQUIRED)),
    ],
    ids=["on one card", "in one rack"],
)
def test_work_that_needs_one_card_or_rack_is_owed_nothing_by_sums_over_nodes(node: CaseNode, work: Work) -> None:
    case = Case(POLICIES["default"], (node,), steps=(SubmitStep((work,)),))
    assert list(owed_jobs(case, Story(settled=[SettledState({}, {})]))) == []
    plain = replace(case, steps=(SubmitStep((replace(work, rack="", requests=node.has),)),))
    assert bool(list(owed_jobs(plain, Story(settled=[SettledState({}, {})])))) == bool(work.rack)


def test_a_pod_that_returns_to_a_node_with_shared_cards_may_be_on_another_card() -> None:
    """Found by exploration: the gang needs a card whose pods fit on the other two cards."""
    keep, old = Work("keep", "q", "high", requests=part(8192)), Work("old", "q", "low", 3, 3, part(4096))
    new = Work("new", "q", "high", 3, 3, part(16384))
    case = Case(
        POLICIES["shared-cards"],
        (CaseNode("n1", shared(3, 24576)),),
        (CaseQueue("q"),),
        (CasePriorityClass("low", 10), CasePriorityClass("high", 100)),
        steps=(SubmitStep((keep,)), SubmitStep((old,)), SubmitStep((new,))),
    )
    story = play(case)
    assert {eviction.job for eviction in story.evictions} == {"old"}
    assert len(story.end.placed["new"]) == len(story.end.placed["old"]) == 3
    assert judge(case).findings == []


L40 = "NVIDIA-L40"
OLD, NEW = Work("old", "q", pods=2, minimum=2, requests=cards(1), card=L40), Work("new", "q", requests=cards(1))
MODELS = Case(
    POLICIES["cross-queue-reclaim"],
    (CaseNode("n1", cards(2), L40), CaseNode("n2", cards(1), A100)),
    (CaseQueue("q", cards=amounts([(A100, 1000), (L40, 2000)])),),
    steps=(
        SubmitStep((OLD,)),
        ChangeStep(CaseQueue("q", cards=amounts([(A100, 1000), (L40, 1000)]))),
        SubmitStep((replace(NEW, card=A100),)),
    ),
)
BEFORE_QUOTAS = replace(
    MODELS,
    policy=POLICIES["capacity"],
    nodes=MODELS.nodes[:1],
    steps=(
        SubmitStep((replace(OLD, card=A100),)),
        UseStep("cross-queue-reclaim", POLICIES["cross-queue-reclaim"]),
        JoinStep(MODELS.nodes[1:]),
        MODELS.steps[2],
    ),
)


@pytest.mark.parametrize("case", [MODELS, BEFORE_QUOTAS], ids=["lowered quota", "placed before there were quotas"])
def test_a_quota_of_one_model_does_not_judge_cards_of_another(case: Case) -> None:
    """Found by exploration: a pod counts as the model of its node, and a bind only for its own model."""
    assert {job: len(pods) for job, pods in play(case).end.placed.items()} == {"old": 2, "new": 1}
    assert judge(case).findings == []


def test_no_pod_is_evicted_for_a_job_whose_policy_does_not_know_its_rack() -> None:
    """Found by exploration: preempt evicted forever for a job that waits because its policy has no plugin for racks."""
    low = Work("low", "q", requests=cpus(1))
    high = replace(low, name="high", priority="high", rack=REQUIRED)
    nodes, classes = (CaseNode("n1", cpus(1), rack="a"),), (CasePriorityClass("high", 100),)
    case = Case(POLICIES["preempt"], nodes, (CaseQueue("q"),), classes, steps=(SubmitStep((low,)), SubmitStep((high,))))
    assert play(case).evictions == []
    assert judge(case).findings == []
    assert [eviction.job for eviction in play(replace(case, policy=POLICIES["gangs"])).evictions] == ["low"]


# ------------------------------------------------------------------------------------------------------ reductions

IDLE = Work("idle", "training", requests=cards(1), card=A100)
PARTS = Case(
    POLICIES["shared-cards"],
    (CaseNode("n1", shared(2, 8192)), CaseNode("n2", shared(1, 8192))),
    steps=(SubmitStep((Work("one", pods=2, minimum=2, requests=part(4096)),)),),
)


@pytest.mark.parametrize(
    ("case", "is_shown"),
    [
        (replace(RECLAIMED, steps=(*RECLAIMED.steps, SubmitStep((IDLE,)))), lambda story: bool(story.evictions)),
        (BLOCKED, lambda story: "gang" in story.end.placed or "train-2" in story.end.placed),
        (PARTS, lambda story: bool(story.end.placed)),
    ],
    ids=[QUOTAS, RACKS, SHARED],
)
def test_a_case_with_hardware_is_reduced_to_a_feature_that_check_accepts(
    case: Case, is_shown: object, tmp_path: Path
) -> None:
    def broken(candidate: Case) -> set[str]:
        return {"rule"} if is_shown(play(candidate)) else set()  # type: ignore[operator]

    reduced = reduce_case(case, Broken("rule", broken), ReductionInput(POLICIES, lambda: False)).case
    assert reduced.size < case.size
    feature = tmp_path / "reduced.feature"
    names = {text: name for name, text in POLICIES.items()}
    policy = given_policy(feature, reduced.policy, names, "schedspec")
    feature.write_text(
        write_feature(reduced, play(reduced), Text("t", policy, (f'"{reduced.jobs[-1].name}" runs',))), "utf-8"
    )
    checked = CliRunner().invoke(check_command, [str(tmp_path)], standalone_mode=False)
    assert checked.return_value == 0, checked.output
