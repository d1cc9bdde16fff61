"""`schedspec explore` as an engineer runs it: a planted defect, a correct scheduler, equal seeds, and wrong options."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from schedspec.cli.check import check_command
from schedspec.cli.explore import explore_command
from schedspec.lab.explore import PROMISES, Draw, found, generate, is_refused, rounds
from schedspec.lab.explore.judge import CaseFinding, judge
from schedspec.lab.explore.owed import owed_jobs
from schedspec.lab.reduce import confirm, play
from schedspec.lab.reduce.case import (
    Case,
    CaseNode,
    CasePriorityClass,
    CaseQueue,
    ChangeStep,
    CompleteStep,
    FailStep,
    SubmitStep,
    UseStep,
    Work,
    amounts,
)
from schedspec.lab.reduce.play import Happened, SettledState, Story
from schedspec.lab.reduce.reduce import Reduced
from schedspec.lab.reduce.signature import Broken
from schedspec.lab.reduce.written import known_policies
from schedspec.monitors import MONITORS, Ledger, Rules
from schedspec.monitors.reading import feed
from schedspec.report.course import ActMonitor
from schedspec.scheduler.plugins.queue.plugin import QueuePlugin
from tests.schedspec.lab.explore import planted
from tests.support.core.play_history import Recorder

"""The known finding of our scheduler: docs/explore.md."""
ONLY_MONITORS = tuple(word for name in ("guarantee", *PROMISES) for word in ("--without", name))
"""Options that turn off all promises."""


def run(*words: object) -> Result:
    return CliRunner().invoke(explore_command, [str(word) for word in words], standalone_mode=False)


@pytest.fixture
def defect(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant a defect in this process and in the confirming run."""
    monkeypatch.setattr(QueuePlugin, "allocatable", planted.allocatable)
    monkeypatch.setenv("PYTEST_PLUGINS", planted.__name__)


@pytest.mark.usefixtures("defect")
def test_a_planted_defect_becomes_a_small_feature_that_shows_it(tmp_path: Path) -> None:
    ran = run("--seeds", 3, "--first-seed", 17, "--jobs", 1, "--out", tmp_path, *ONLY_MONITORS)
    assert ran.return_value == 1, ran.output
    assert "not confirmed" not in ran.output
    text = (tmp_path / "capability-bind.feature").read_text("utf-8")
    assert len(text.splitlines()) <= 30
    assert "explore --first-seed" in text
    assert "of its capability" in text
    checked = CliRunner().invoke(check_command, [str(tmp_path)], standalone_mode=False)
    assert checked.return_value == 0, checked.output


def test_a_feature_that_passes_is_written_again_with_victims_that_take_time(tmp_path: Path) -> None:
    """In the play the more important job comes before the victim has ended; in a feature, after the first job runs."""
    cpu = amounts([("cpu", 1000)])
    steps = (
        SubmitStep((Work("borrower", "lender", requests=cpu),)),
        SubmitStep((Work("claim", "owner", requests=cpu), Work("urgent", "owner", "high", requests=cpu))),
    )
    queues, nodes = (CaseQueue("lender"), CaseQueue("owner", deserved=cpu)), (CaseNode("n1", cpu),)
    policy = "capacity-without-enqueue"
    case = Case(known_policies()[policy], nodes, queues, (CasePriorityClass("high", 100),), steps=steps)
    assert set(play(case).end.placed) - {"borrower"} == {"urgent"}
    finding = CaseFinding("owed: none", "claim waits", case, case, ('"claim" runs',))
    reduced = Reduced(case, Broken("owed: none", lambda _: set()), case.size, policy_name=policy)
    how = found.How(tmp_path, known_policies(), confirm.Site())
    path = tmp_path / "slow.feature"
    lines, unconfirmed = found.write_shown(path, reduced, finding, ["explored"], how)
    assert unconfirmed == ""
    text = path.read_text("utf-8")
    assert len(text.splitlines()) == lines
    assert re.search(r"\| borrower .* 2s ", text)


@pytest.mark.usefixtures("defect")
def test_equal_seeds_write_equal_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirm, "problem_of", lambda _: "monitor capability")
    outputs = []
    for name in ("one", "two"):
        ran = run("--seeds", 3, "--first-seed", 17, "--jobs", 1, "--out", tmp_path / name, *ONLY_MONITORS)
        files = {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        outputs.append((ran.stdout.replace(str(tmp_path / name), "."), files))
    assert outputs[0] == outputs[1]
    assert outputs[0][1]


def test_a_correct_scheduler_has_no_findings() -> None:
    ran = run("--seeds", 60, "--jobs", 1)
    assert ran.return_value == 0, ran.output
    assert "60 scenarios from seed 1, no findings" in ran.output
    assert "action: 5 of 5" in ran.output


def test_the_result_does_not_depend_on_the_number_of_processes() -> None:
    found = [
        rounds.explore(7, rounds.Processes(known_policies(), jobs), lambda done: 24 - done.seeds, frozenset())
        for jobs in (1, 2)
    ]
    assert found[0] == found[1]
    assert found[0].reached


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--seeds", 5, "--minutes", 1), "contradict"),
        (("--seeds", 5, "--without", "gangs"), "no monitor and no promise"),
    ],
    ids=["seeds-and-minutes", "unknown-name"],
)
def test_wrong_options_are_one_clear_error(words: tuple[object, ...], message: str) -> None:
    ran = run(*words)
    assert ran.return_value == 2
    assert message in ran.output
    assert "do next" in ran.output


def test_the_docs_have_a_row_for_each_promise() -> None:
    page = (Path(__file__).parents[4] / "docs" / "explore.md").read_text("utf-8")
    page = page.partition("## What judges")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE) == list(PROMISES)


def test_the_help_names_each_monitor_and_each_promise() -> None:
    words = run("--help").output.partition("Monitors:")[2].replace("Promises:", ",").replace("\n", " ").split(",")
    assert [word.strip() for word in words] == [*MONITORS, *PROMISES]


def test_a_play_is_a_history_that_monitors_can_judge() -> None:
    """An eviction has its mark and its preemptor; a necessary eviction is no finding."""
    policies = known_policies()
    first = Work("first", "speech", requests=amounts([("cpu", 1000)]))
    urgent = Work("urgent", "speech", "high", requests=amounts([("cpu", 1000)]))
    queue = CaseQueue("speech")
    case = Case(
        policies["preempt"],
        (CaseNode("n1", amounts([("cpu", 1000)])),),
        (queue,),
        (CasePriorityClass("high", 100),),
        steps=(SubmitStep((first,)), SubmitStep((urgent,))),
    )
    recorder, ledger = Recorder(), Ledger(Rules(case.policy))
    play(case, listener=recorder.record)
    done = ActMonitor(ledger, ledger.rules)
    ledger.attach(done)
    feed(ledger, recorder.versions)
    seen = [(act.pod["metadata"]["name"], act.eviction.action if act.eviction else "bind") for act in done.acts]
    assert seen == [("first-task-0", "bind"), ("first-task-0", "preempt"), ("urgent-task-0", "bind")]
    assert [[*act.eviction.preemptors] for act in done.acts if act.eviction] == [["case/urgent"]]
    assert judge(case).findings == []


def test_a_queue_at_its_share_by_weight_may_preempt_beside_idle_capacity() -> None:
    """Found by exploration (seed 30232): the monitor of needless evictions does not see a share by weight."""

    def work(name: str, queue: str, cards: int, pods: int = 1, minimum: int = 1, priority: str = "") -> Work:
        return Work(name, queue, priority, pods, minimum, amounts([("nvidia.com/gpu", cards * 1000)]))

    nodes = tuple(
        CaseNode(f"n{number}", amounts([("nvidia.com/gpu", cards * 1000)])) for number, cards in enumerate((2, 3, 2, 5))
    )
    steps = (
        SubmitStep((work("train-1", "research", 1), work("train-4", "speech", 2, 3, 3))),
        SubmitStep((work("train-5", "speech", 1), work("train-2", "research", 3, 2))),
        SubmitStep((work("train-3", "speech", 1, priority="high"),)),
    )
    queues = CaseQueue("research", weight=2), CaseQueue("speech", weight=3, priority=1)
    case = Case(known_policies()["gangs"], nodes, queues, (CasePriorityClass("high", 100),), steps=steps)
    assert [eviction.job for eviction in play(case).evictions] == ["train-5"]
    assert judge(case).findings == []


def test_capacity_of_a_victim_is_not_free_while_another_job_waits_for_it() -> None:
    """Found by exploration (seed 1012852): the limit of the queue needs both evictions, each for another job."""

    def work(name: str, priority: str, pods: int, minimum: int) -> Work:
        return Work(name, "research", priority, pods, minimum, amounts([("cpu", 1000)]))

    nodes = tuple(CaseNode(f"n{number}", amounts([("cpu", cpus * 1000)])) for number, cpus in enumerate((1, 3), 1))
    queue = CaseQueue("research", capability=amounts([("cpu", 3000)]), deserved=amounts([("cpu", 1000)]))
    steps = (
        SubmitStep((work("train-1", "", 2, 2),)),
        SubmitStep((work("train-2", "high", 2, 1), work("train-3", "high", 1, 1))),
    )
    case = Case(known_policies()["hierarchy-cce"], nodes, (queue,), (CasePriorityClass("high", 10),), steps=steps)
    assert sorted(eviction.pod for eviction in play(case).evictions) == ["train-1-task-0", "train-1-task-1"]
    assert judge(case).findings == []


def test_evictions_by_reclaim_under_proportion_are_not_judged_by_need() -> None:
    """Found by exploration (seed 1033816): the queue of the victims deserves less until they are created again."""

    def work(name: str, queue: str, cards: int, pods: int = 1, **more: Any) -> Work:
        requests = amounts([("nvidia.com/gpu", cards * 1000)])
        return Work(name, queue, pods=pods, requests=requests, **{"minimum": pods, **more})

    nodes = tuple(
        CaseNode(f"n{number}", amounts([("nvidia.com/gpu", cards * 1000)]))
        for number, cards in enumerate((4, 2, 5, 1), 1)
    )
    queue = CaseQueue("research", weight=2)
    steps = (
        SubmitStep((work("train-2", "research", 2, 4, priority="high"),)),
        SubmitStep((work("train-3", "research", 1), work("train-4", "research", 3), work("train-5", "research", 3))),
    )
    runs = work("train-1", "default", 2, 4, minimum=1, nodes=("n1", "n1", "n2", "n3"))
    classes = (CasePriorityClass("high", 10),)
    policy = known_policies()["proportion-without-enqueue"]
    case = Case(policy, nodes, (CaseQueue("default"), queue), classes, (runs,), steps)
    assert len(play(case).evictions) == 3
    assert judge(case).findings == []


DUE_FIRST = """
actions: "%s"
tiers:
- plugins: [{name: sla, arguments: {sla-waiting-time: 1ms}}, {name: priority}]
- plugins: [{name: gang}]
"""


@pytest.mark.parametrize("actions", ["preempt, allocate", "allocate, preempt"])
def test_a_later_job_evicts_beside_capacity_that_an_older_job_holds(actions: str) -> None:
    """Found by exploration (seed 49027): the oldest job, a victim, comes back on the capacity that the gang held."""
    gibibytes = [amounts([("memory", size << 30)]) for size in range(4)]
    nodes = CaseNode("n1", gibibytes[1]), CaseNode("n2", gibibytes[3])
    old = Work("old", "research", pods=2, requests=gibibytes[1], nodes=("n1", "n2"))
    work = old, Work("older", "research", requests=gibibytes[1], nodes=("n2",))
    steps = (
        SubmitStep((Work("gang", "research", pods=2, minimum=2, requests=gibibytes[1]),)),
        SubmitStep((Work("late", "research", "high", requests=gibibytes[2]),)),
    )
    classes, queues = (CasePriorityClass("high", 100),), (CaseQueue("research"),)
    case = Case(DUE_FIRST % actions, nodes, queues, classes, work, steps)
    story = play(case)
    assert sorted(eviction.job for eviction in story.evictions) == ["old", "older"]
    assert set(story.end.placed) == {"late", "old", "older"}
    assert judge(case).findings == []


def test_a_reduction_uses_only_policies_that_lint_accepts() -> None:
    """Found by exploration (seed 1076233): without a queue plugin queues evict from each other for ever."""
    refused = "actions: allocate, reclaim\ntiers:\n- plugins:\n  - name: gang\n- plugins:\n  - name: conformance\n"
    assert is_refused(refused)
    assert not any(map(is_refused, known_policies().values()))
    one, other = (Work(name, name, requests=amounts([("cpu", 1000)])) for name in ("research", "speech"))
    queues = CaseQueue("research"), CaseQueue("speech")
    case = Case(refused, (CaseNode("n1", amounts([("cpu", 1000)])),), queues, steps=(SubmitStep((one, other)),))
    finding = next(finding for finding in judge(case).findings if finding.name == "rest: reclaim")
    drawn = replace(case, policy=known_policies()["capacity"])
    assert found.broken_by(replace(finding, drawn=drawn), case) == set()
    assert "rest: reclaim" in found.broken_by(finding, case)


def test_an_eviction_frees_the_quota_of_a_bind_of_the_same_decision() -> None:
    """Found by exploration: preempt comes before allocate, and the bind is written before the eviction."""
    policy = (
        "actions: preempt, allocate\ntiers:\n- plugins:\n  - name: priority\n- plugins:\n  - name: predicates\n"
        "  - name: capacity\n"
    )
    low, high = (
        Work(name, "chat", name, requests=amounts([("cpu", cpu)])) for name, cpu in (("low", 2000), ("high", 1000))
    )
    queue = CaseQueue("chat", capability=amounts([("cpu", 2000)]))
    classes = CasePriorityClass("low", 10), CasePriorityClass("high", 100)
    nodes = (CaseNode("n1", amounts([("cpu", 6000)])),)
    beside = replace(high, name="beside", priority="low")
    case = Case(policy, nodes, (queue,), classes, steps=(SubmitStep((low,)), SubmitStep((high, beside))))
    acts = play(case).acts
    [evicted] = (act for act in acts if act.what is Happened.EVICTED)
    assert [act.at for act in acts if act.what is Happened.PLACED and act.job == "beside"] == [evicted.at]
    assert judge(case).findings == []


def test_an_ancestor_keeps_its_guarantee_while_its_queues_reclaim_from_each_other() -> None:
    """Found by exploration: the capacity goes to another queue below the queue with the guarantee."""

    def queue(name: str, cpus: int, parent: str = "chat", **more: Any) -> CaseQueue:
        return CaseQueue(name, parent, deserved=amounts([("cpu", cpus * 1000)]), **more)

    two = amounts([("cpu", 2000)])
    queues = queue("chat", 2, "", guarantee=two), queue("imaging", 2), queue("research", 0)
    old, new = (Work(name, of, requests=two) for name, of in (("old", "research"), ("new", "imaging")))
    case = Case(
        known_policies()["hierarchy"], (CaseNode("n1", two),), queues, steps=(SubmitStep((old,)), SubmitStep((new,)))
    )
    assert [eviction.pod for eviction in play(case).evictions] == ["old-task-0"]
    assert judge(case).findings == []


def test_no_job_of_a_cycle_uses_what_is_guaranteed_instead_of_its_victim() -> None:
    """Found by exploration (seed 1252): the job was placed beside its victim, on idle memory that is guaranteed."""
    one = amounts([("memory", 2**30)])

    def work(name: str, queue: str, created: int, *nodes: str, pods: int = 1) -> Work:
        return Work(name, queue, requests=one, created=created, nodes=nodes, pods=pods, minimum=pods)

    nodes = tuple(CaseNode(name, amounts([("cpu", 64_000), ("memory", 3 * 2**30)])) for name in ("n1", "n2"))
    queues = CaseQueue("research"), CaseQueue("speech"), CaseQueue("training", guarantee=one), CaseQueue("video")
    given = (
        work("train-1", "video", 0, "n1", "n2", pods=2),
        work("train-2", "video", 0, "n1"),
        work("train-3", "research", 1, "n2"),
        work("train-4", "video", 1, "n1"),
        work("train-5", "speech", 2),
        work("train-6", "speech", 2),
    )
    claims = ChangeStep(CaseQueue("speech", priority=1, deserved=amounts([("memory", 2 * 2**30)])))
    case = Case(known_policies()["capacity"], nodes, queues, work=given, steps=(claims,))
    assert [eviction.pod for eviction in play(case).evictions] == ["train-4-task-0", "train-2-task-0"]
    assert judge(case).findings == []


def test_a_new_policy_is_a_new_cause_of_an_eviction() -> None:
    """Found by exploration (seed 1086623): the new policy lets the second pod of the job claim capacity too."""

    def work(name: str, **more: Any) -> Work:
        return Work(name, "research", requests=amounts([("cpu", 1000)]), **more)

    runs = (work("train-1", nodes=("n1",)), work("train-2", nodes=("n1",), preemptable=False))
    steps = (
        SubmitStep((work("train-3", priority="high", pods=2),)),
        FailStep("train-2"),
        UseStep("hierarchy-cce", known_policies()["hierarchy-cce"]),
    )
    nodes, classes = (CaseNode("n1", amounts([("cpu", 2000)])),), (CasePriorityClass("high", 100),)
    case = Case(known_policies()["gangs"], nodes, (CaseQueue("research"),), classes, runs, steps)
    assert [eviction.pod for eviction in play(case).evictions] == ["train-1-task-0", "train-1-task-0"]
    assert judge(case).findings == []


def test_the_promise_on_names_does_not_judge_equal_jobs_one_of_which_fails() -> None:
    """Found by exploration (seed 3001445): the pod that fails runs under one name, and waits under the other."""
    jobs = tuple(
        Work(f"train-{number}", "research", pods=2, minimum=2, requests=amounts([("cpu", 1000)])) for number in (1, 2)
    )
    steps = (SubmitStep(jobs), FailStep("train-1"))
    case = Case(
        known_policies()["capacity"], (CaseNode("n1", amounts([("cpu", 2000)])),), (CaseQueue("research"),), steps=steps
    )
    assert judge(case).findings == []


def test_an_exception_of_the_scheduler_is_a_finding_and_does_not_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def allocatable(*_: object) -> bool:
        raise KeyError("planted")

    monkeypatch.setattr(QueuePlugin, "allocatable", allocatable)
    found = rounds.explore(1, rounds.Processes(known_policies(), 1), lambda done: 20 - done.seeds, frozenset())
    assert found.seeds == 20
    assert found.broken["error: KeyError"].finding.text == "the scheduler raised KeyError('planted')"


def test_a_job_is_owed_nothing_beside_a_waiting_job_whose_pod_should_have_failed() -> None:
    """Found by exploration (seed 1002506): an admitted job reserves its part of the capability while it waits."""
    small, large = (Work(name, "speech", requests=amounts([("cpu", cpu)])) for name, cpu in (("b", 2000), ("a", 4000)))
    nodes = tuple(CaseNode(name, amounts([("cpu", 2000)])) for name in ("n1", "n2"))
    queue = CaseQueue("speech", deserved=amounts([("cpu", 4000)]))
    case = Case(known_policies()["capacity"], nodes, (queue,), steps=(SubmitStep((large, small)), FailStep("a")))
    assert set(play(case).end.waits) == {"a", "b"}
    assert judge(case).findings == []
    alone = replace(case, steps=(SubmitStep((small,)),))
    assert list(owed_jobs(alone, Story(settled=[SettledState({}, {})]))) == [small]


def test_work_that_requests_nothing_is_owed_nothing() -> None:
    """A reduction leaves out requests."""
    case = Case(known_policies()["default"], (CaseNode("n1", ()),), steps=(SubmitStep((Work("idle"),)),))
    assert list(owed_jobs(case, Story(settled=[SettledState({}, {})]))) == []


def test_a_job_completes_once() -> None:
    policies = known_policies()
    case = generate(Draw(1, policies))
    for seed in range(2, 400):
        case = generate(Draw(seed, policies, case))
        ends = [step.job for step in case.steps if isinstance(step, CompleteStep)]
        assert len(ends) == len(set(ends)), seed
