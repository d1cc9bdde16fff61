"""What a failed scenario says: the whole text, its limits, and that it survives xdist and JUnit."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from schedspec.api.errors import Unmet
from schedspec.api.kinds import Kind, Ref
from schedspec.observe.history import History
from schedspec.report import failure as story
from schedspec.scenario.run import ScenarioRun, SentenceRun

Run = Callable[..., pytest.RunResult]


def meta(name: str, namespace: str = "ns", **more: Any) -> dict[str, Any]:
    return {"name": name, "namespace": namespace, "uid": f"u-{name}", "resourceVersion": "1", **more}


def a_history() -> History:
    """A queue of 4 cpus; a job of one pod that waits, and is evicted."""
    history = History("ns")
    history.began = time.monotonic()
    queue = {
        "metadata": meta("research", ""),
        "spec": {"capability": {"cpu": "4"}, "deserved": {"cpu": "2"}, "guarantee": {"resource": {"cpu": "1"}}},
        "status": {"allocated": {"cpu": "3", "pods": "3"}},
    }
    history.record(Ref(Kind.QUEUE, "research"), "added", queue)
    pod = {
        "metadata": meta("train-task-0", labels={"volcano.sh/job-name": "train"}),
        "spec": {},
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "message": "queue research is full"}],
        },
    }
    history.record(Ref(Kind.POD, "train-task-0", "ns"), "added", pod)
    history.record(Ref(Kind.POD, "train-task-0", "ns"), "changed", pod)
    other = {"metadata": meta("other-task-0"), "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}
    history.record(Ref(Kind.POD, "other-task-0", "ns"), "added", other)
    event = {
        "metadata": meta("e1"),
        "reason": "FailedScheduling",
        "message": "no room",
        "involvedObject": {"kind": "Pod", "name": "train-task-0"},
    }
    history.record(Ref(Kind.EVENT, "e1", "ns"), "added", event)
    return history


def a_run(history: History, sentences: int = 1) -> ScenarioRun:
    config = SimpleNamespace(rootpath=Path("/repo"))
    run = ScenarioRun(
        cast("pytest.Item", SimpleNamespace(config=config)),
        feature="Jobs",
        path=Path("/repo/features/jobs.feature"),
        name="A job runs",
        line=3,
        folder=Path("out/run/x"),
    )
    run.world = cast("Any", SimpleNamespace(history=history, policy="# As it should be.\nactions: allocate\n"))
    run.sentences = [SentenceRun("Given ", f"thing {n}", 4 + n, 1.0, 1.5, "passed") for n in range(sentences - 1)]
    run.sentences.append(SentenceRun("Then ", '"train" runs', 9, 2.0, 22.0, "failed"))
    return run


UNMET = Unmet("the pod of train runs", "0 of 1 run", (Ref(Kind.VCJOB, "train", "ns"),), "within 20 s")


def test_the_story_of_a_failure() -> None:
    told = [line.replace(" 0.01 ", " 0.00 ") for line in story.tell(a_run(a_history()), UNMET)]
    assert told == [
        'features/jobs.feature:9: Then "train" runs',
        "  expected: the pod of train runs (within 20 s)",
        "      seen: 0 of 1 run",
        "  scenario: A job runs (namespace ns)",
        "  policy: As it should be.",
        "  sentences, with their seconds:",
        '     20.00 fails  Then "train" runs',
        "  history, seconds since the scenario began:",
        "       0.00 pod train-task-0: Pending, waits: queue research is full",
        "  events:",
        "       0.00 Pod train-task-0: FailedScheduling: no room",
        "  queues:",
        "    queue     resource  capability  deserved  guarantee  allocated",
        "    research  cpu       4           2         1          3",
        "  pending, and why the scheduler says so:",
        "    pod train-task-0: queue research is full",
        "everything that was seen: out/run/x",
    ]


def test_a_story_is_no_longer_than_sixty_lines_whatever_happened() -> None:
    history = a_history()
    for n in range(200):
        pod = {
            "metadata": meta(f"train-task-{n}", labels={"volcano.sh/job-name": "train"}),
            "spec": {},
            "status": {"phase": "Pending"},
        }
        history.record(Ref(Kind.POD, f"train-task-{n}", "ns"), "added", pod)
        history.record(Ref(Kind.QUEUE, f"q{n}"), "added", {"metadata": meta(f"q{n}", ""), "spec": {}})
        event = {"metadata": meta(f"e{n}"), "reason": "r", "message": "m" * 500, "involvedObject": {}}
        history.record(Ref(Kind.EVENT, f"e{n}", "ns"), "added", event)
    told = story.tell(a_run(history, sentences=40), UNMET)
    assert len(told) <= 60
    assert max(map(len, told)) <= 160
    assert told[0].startswith("features/jobs.feature:9")
    assert any("… 31 earlier" in line for line in told)
    whole = story.tell(a_run(history, sentences=40), UNMET, whole=True)
    assert len(whole) > 600


def test_a_pod_of_which_the_scheduler_says_nothing_is_told_so() -> None:
    history = a_history()
    silent = {"metadata": meta("train-task-1"), "spec": {}, "status": {"phase": "Pending"}}
    history.record(Ref(Kind.POD, "train-task-1", "ns"), "added", silent)
    assert "    pod train-task-1: the scheduler has not said anything" in story.tell(a_run(history), UNMET)


def test_names_are_told_as_people_say_them() -> None:
    history = a_history()
    group = "ns/build-4dfb0cbe-80f3-4975-af4f-1453a0ecbf06"
    about = {"kind": "Pod", "name": "train-task-0"}
    event = {"metadata": meta("e2"), "reason": "Evict", "message": f"for {group} of actions/1", "involvedObject": about}
    history.record(Ref(Kind.EVENT, "e2", "ns"), "added", event)
    told = "\n".join(story.tell(a_run(history), UNMET))
    assert "Evict: for build of actions/1" in told
    assert group in "\n".join(story.tell(a_run(history), UNMET, whole=True))


def test_the_headline_says_the_sentence_and_what_was_seen() -> None:
    assert story.headline(a_run(a_history()), UNMET) == 'Then "train" runs: 0 of 1 run'


STEPS = '''
from schedspec.api.errors import Unmet, HarnessError

@then("it is unmet")
def unmet():
    """Never."""
    raise Unmet("all pods run", "1 of 2 run", (), "within 20 s")

@then("it is impossible")
def impossible():
    """Never."""
    raise HarnessError("the node is missing\\n  do next: add it")
'''
FEATURE = "Feature: f\n  Scenario: s\n    When nothing happens\n    Then it is unmet\n"


@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["alone", "under xdist"])
def test_a_failure_is_told_without_python(specs: Run, workers: list[str]) -> None:
    result = specs("-ra", *workers, f=FEATURE, steps=STEPS)
    result.stdout.fnmatch_lines(
        [
            "f.feature:4: Then it is unmet",
            "  expected: all pods run (within 20 s)",
            "      seen: 1 of 2 run",
            "  scenario: s*",
            "*passes When nothing happens",
            "*fails  Then it is unmet",
            "everything that was seen: *",
            "FAILED f.feature::s - Then it is unmet: 1 of 2 run",
        ]
    )
    result.stdout.no_fnmatch_line("*.py*")


def test_an_error_of_ours_is_told_without_python(specs: Run) -> None:
    result = specs(f=FEATURE.replace("unmet", "impossible"), steps=STEPS)
    result.stdout.fnmatch_lines(["f.feature:4: Then it is impossible", "  the node is missing", "    do next: add it"])
    result.stdout.no_fnmatch_line("*.py*")


def test_junit_has_the_headline_and_the_story(specs: Run, pytester: pytest.Pytester) -> None:
    specs("--junitxml", "junit.xml", f=FEATURE, steps=STEPS)
    text = (pytester.path / "junit.xml").read_text()
    assert 'message="Then it is unmet: 1 of 2 run"' in text
    assert "expected: all pods run (within 20 s)" in text
    assert 'name="schedspec-files"' in text


def test_the_whole_story_is_a_file_beside_the_junit_report(specs: Run, pytester: pytest.Pytester) -> None:
    specs("--junitxml", "reports/features.xml", f=FEATURE, steps=STEPS)
    (found,) = (pytester.path / "reports/features/scenarios").iterdir()
    assert (found / "failure.txt").read_text().startswith("f.feature:4: Then it is unmet\n")


def test_what_a_judge_finds_fails_a_scenario_that_has_passed(specs: Run) -> None:
    steps = (
        STEPS
        + '''
import pytest
from types import SimpleNamespace
from schedspec.scenario.run import SCENARIO_RUN

@then("a world is used")
def used(request):
    """It is there."""
    from schedspec.observe.history import History
    request.node.stash[SCENARIO_RUN].world = SimpleNamespace(history=History("ns"), policy="")

def pytest_schedspec_judge(running):
    return ["monitor nodes: n1 is overcommitted"]
'''
    )
    feature = "Feature: f\n  Scenario: s\n    Then a world is used\n"
    result = specs(f=feature, steps=steps)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["f.feature:3: after the last sentence", "  monitor nodes: n1 is overcommitted"])
    both = specs(f=feature + "    Then it is unmet\n", steps=steps)
    both.stdout.fnmatch_lines(["f.feature:4: Then it is unmet", "also found: monitor nodes: n1 is overcommitted"])
