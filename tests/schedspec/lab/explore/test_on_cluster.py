"""Exploration with another scheduler: the cases that it gets, and the findings in the records of its scenarios."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from schedspec.api.kinds import Kind
from schedspec.cli.explore import explore_command
from schedspec.conformance.levels import Level
from schedspec.lab.explore import on_cluster, profiles
from schedspec.lab.explore.on_cluster import OnCluster, judge_record
from schedspec.lab.explore.rounds import case_of
from schedspec.lab.reduce import confirm
from schedspec.lab.reduce.case import (
    Case,
    CaseNode,
    CaseQueue,
    ChangeStep,
    FailStep,
    SubmitStep,
    UseStep,
    Work,
    amounts,
)
from schedspec.lab.reduce.confirm import FeatureRun, Site
from schedspec.lab.reduce.written import known_policies
from schedspec.report.record import ActMoment, Judgement, Moment, ScenarioRecord, Sentence, Software, Story
from schedspec.results import Result
from schedspec.schedulers import find

CPU = amounts([("cpu", 1000)])
CASE = Case(
    known_policies()["capacity"],
    (CaseNode("n1", amounts([("cpu", 2000)])),),
    (CaseQueue("research", deserved=CPU),),
    steps=(SubmitStep((Work("train-1", requests=CPU), Work("train-2", "research", requests=CPU))),),
)


def pod(job: str, node: str = "") -> Story:
    state = {"workload": job, **({"node": node, "phase": "Running"} if node else {"phase": "Pending"})}
    return Story(Kind.POD, f"{job}-x7k2p", [Moment(1.0, "added", "u", state)])


def record(
    failed: str = "",
    findings: Sequence[Judgement] = (),
    objects: Sequence[Story] = (),
    acts: Sequence[ActMoment] = (),
    name: str = "f",
) -> ScenarioRecord:
    return ScenarioRecord(
        feature="f",
        feature_file=f"{name}.feature",
        scenario="s",
        node_id="f",
        line=1,
        cluster=Software("embedded"),
        scheduler=Software("kueue", "v0.19.2"),
        policy="",
        policy_sha256="",
        began=0.0,
        seconds=1.0,
        verdict="failed" if failed or findings else "passed",
        sentences=[Sentence("Then", failed, 3, verdict="failed")] if failed else [],
        findings=[*findings],
        objects=[*objects],
        acts=[*acts],
    )


def test_a_finding_has_its_action_in_the_signature_and_its_job_as_the_subject() -> None:
    found = Judgement(4.0, "protection", "train-2-x7k2p", "evicted although …")
    acts = [
        ActMoment(1.0, "bind", "train-2-x7k2p", "u", "n1"),
        ActMoment(4.0, "evict", "train-2-x7k2p", "u", "n1", action="reclaim"),
    ]
    [finding] = judge_record(CASE, record(findings=[found], objects=[pod("train-2", "n1")], acts=acts))
    assert finding.name == "protection: reclaim"
    assert finding.drawn.subject == "train-2"
    assert finding.thens == ('"train-2" keeps running',)


def test_work_that_is_neither_placed_nor_refused_is_a_finding() -> None:
    [finding] = judge_record(CASE, record('"train-1" runs or is refused'))
    assert (finding.name, finding.thens) == ("told", ('"train-1" runs or is refused',))


@pytest.mark.parametrize(
    ("objects", "found"),
    [
        ([pod("train-1", "n1"), pod("train-2")], ["owed"]),
        ([pod("train-1"), pod("train-2")], []),  # the other job that waits may reserve the capacity
        ([pod("train-1", "n1"), pod("train-2", "n1")], []),
    ],
    ids=["waits beside idle capacity", "two wait", "runs after all"],
)
def test_the_only_job_that_waits_is_owed_idle_capacity_within_its_share(objects: list[Story], found: list[str]) -> None:
    assert [finding.name for finding in judge_record(CASE, record('"train-2" runs', objects=objects))] == found


def test_a_round_is_one_run_and_reports_the_scenarios_that_were_not_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor = Judgement(1.0, "node", "train-1-x", "…")

    def run(features: Sequence[Path], site: Site) -> FeatureRun:
        names = [path.stem for path in features]
        assert site.scheduler == "kueue"
        assert all("runs or is refused" in path.read_text("utf-8") for path in features)
        records = [
            record(name=names[0]),
            record(name=names[1], findings=[monitor]),
            record('node "n1" leaves with its pods', name=names[2]),
        ]
        lacks = Result(feature=f"{names[3]}.feature", verdict="lacks", why="kueue lacks cards (one flavor)")
        return FeatureRun("", records, [lacks])

    monkeypatch.setattr(on_cluster, "run", run)
    adapter = find("kueue")
    may, policies = profiles.vocabulary(adapter, Level.CORE), profiles.policies(adapter, Level.CORE)
    player = OnCluster(Site("embedded", "kueue"), policies, may, tmp_path)
    judged = [judgement for _, judgement in player.play([(seed, None) for seed in (1, 2, 3, 4)])]
    assert [[finding.name for finding in judgement.findings] for judgement in judged] == [[], ["node: bind"], [], []]
    assert [judgement.unjudged for judgement in judged] == [
        "", "", "a step failed: node … leaves with its pods", "kueue lacks cards (one flavor)",
    ]  # fmt: skip


def cases(scheduler: str, level: Level | None) -> list[Case]:
    adapter = find(scheduler)
    may, policies = profiles.vocabulary(adapter, level), profiles.policies(adapter, level)
    return [case_of((seed, None), policies, may) for seed in range(200)]


def queues_of(case: Case) -> list[CaseQueue]:
    return [*case.queues, *(step.queue for step in case.steps if isinstance(step, ChangeStep))]


@pytest.mark.parametrize("scheduler", ["schedspec", "kueue", "volcano", "kube-scheduler"])
def test_cases_of_the_core_use_only_ceilings_priority_and_whole_gangs(scheduler: str) -> None:
    for case in cases(scheduler, Level.CORE):
        assert all(job.minimum == job.pods and job.preemptable for job in case.jobs)
        assert not any(isinstance(step, UseStep | FailStep) for step in case.steps)
        for queue in queues_of(case):
            assert queue == CaseQueue(queue.name, capability=queue.capability)


def test_cases_use_only_what_the_scheduler_supports() -> None:
    kueue = cases("kueue", None)
    assert any(queue.parent for case in kueue for queue in case.queues)
    assert not any(queue.priority or not queue.reclaimable for case in kueue for queue in queues_of(case))
    assert {case.policy for case in kueue} <= {*known_policies().values()}
    bare = cases("kube-scheduler", None)
    assert not any(case.queues for case in bare)
    assert {job.queue for case in bare for job in case.jobs} == {"default"}


def explore(*words: object) -> Any:
    return CliRunner().invoke(explore_command, [str(word) for word in words], standalone_mode=False)


@pytest.mark.parametrize(
    ("again", "word"), [(True, "candidate"), (False, "it was seen once, but not in 1 of 1 further")]
)
def test_a_finding_is_written_once_and_reports_whether_it_shows_again(
    *, again: bool, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor = Judgement(1.0, "node", "train-1-x", "…")
    rounds: list[int] = []

    def run(features: Sequence[Path], site: Site) -> FeatureRun:
        assert site.cluster == "embedded"
        rounds.append(len(features))
        breaks = len(features) > 1 or again
        return FeatureRun("", [record(name=path.stem, findings=[monitor] if breaks else []) for path in features])

    for room in (on_cluster, confirm, on_cluster.Live.__module__):
        monkeypatch.setattr(f"{room}.run" if isinstance(room, str) else f"{room.__name__}.run", run)
    ran = explore("--scheduler", "kueue", "--seeds", 3, "--out", tmp_path, "--shown", "1/1")
    assert ran.return_value == 1, ran.output
    assert "node: bind: 3 of the scenarios, first seed 1" in ran.output
    assert word in ran.output
    [feature] = tmp_path.glob("*.feature")
    text = feature.read_text("utf-8")
    assert "explore --scheduler kueue --first-seed 1 --seeds 1, schedspec" in text
    assert "It breaks with kueue v0.19.2: train-1-x: …" in text
    assert rounds[0] == 3
