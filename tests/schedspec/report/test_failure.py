"""The text of a failed scenario: complete, within its limits, and unchanged by xdist and JUnit."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from schedspec.api.errors import Unmet
from schedspec.api.kinds import Kind, Ref
from schedspec.gherkin import plain_failure
from schedspec.observe.history import History
from schedspec.report import failure
from schedspec.scenario.run import ScenarioRun, SentenceRun

Run = Callable[..., pytest.RunResult]


POLICY = "# As it should be.\nactions: allocate\n"


def meta(name: str, namespace: str = "ns", **more: Any) -> dict[str, Any]:
    return {"name": name, "namespace": namespace, "uid": f"u-{name}", "resourceVersion": "1", **more}


@pytest.fixture(autouse=True)
def not_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend to run outside of CI, where texts are cut."""
    monkeypatch.delenv("CI", raising=False)


def a_history() -> History:
    """Return a history of a queue of 4 cpus whose job of one pod waits and is evicted."""
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
    config = SimpleNamespace(rootpath=Path("/repo"), invocation_params=SimpleNamespace(dir=Path("/repo")))
    run = ScenarioRun(
        cast("pytest.Item", SimpleNamespace(config=config)),
        feature="Jobs",
        path=Path("/repo/features/jobs.feature"),
        name="A job runs",
        line=3,
        folder=Path("out/run/x"),
    )
    run.world = cast("Any", SimpleNamespace(history=history, policy=POLICY, policy_name="team"))
    run.sentences = [SentenceRun("Given ", f"thing {n}", 4 + n, 1.0, 1.5, "passed") for n in range(sentences - 1)]
    run.sentences.append(SentenceRun("Then ", '"train" runs', 9, 2.0, 22.0, "failed"))
    return run


UNMET = Unmet("the pod of train runs", "0 of 1 run", (Ref(Kind.VCJOB, "train", "ns"),), "within 20 s")


def test_the_story_of_a_failure() -> None:
    lines = [line.replace(" 0.01 ", " 0.00 ") for line in failure.render(a_run(a_history()), UNMET)]
    assert lines == [
        'features/jobs.feature:9: Then "train" runs',
        "  expected: the pod of train runs (within 20 s)",
        "      seen: 0 of 1 run",
        "  scenario: A job runs (namespace ns)",
        "  policy: team (As it should be.)",
        "  what happened, by seconds since the scenario began:",
        '       0.00 > Then "train" runs (20.00 s) fails',
        "       0.00 pod train-task-0: Pending, waits: queue research is full",
        "       0.00 Pod train-task-0: FailedScheduling: no room",
        "  queues:",
        "    queue     resource  capability  deserved  guarantee  held",
        "    research  cpu       4           2         1          -",
        "  pending, with the scheduler's reason:",
        "    pod train-task-0: queue research is full",
        "everything that was seen: out/run/x",
    ]


HOSTILE = "full\x1b]0;title\x07\x1b[2J\n::error file=a::b\r\u202edne\u2028::warning::c"


@pytest.mark.parametrize("cut", [True, False])
def test_messages_of_others_control_no_terminal_and_begin_no_line(cut: bool) -> None:
    history = a_history()
    waits = [{"type": "PodScheduled", "status": "False", "message": HOSTILE}]
    pod = {"metadata": meta("train-task-0", labels={"volcano.sh/job-name": "train"}), "spec": {}}
    history.record(
        Ref(Kind.POD, "train-task-0", "ns"), "changed", {**pod, "status": {"phase": "Pending", "conditions": waits}}
    )
    about = {"kind": "Pod", "name": "train-task-0"}
    event = {"metadata": meta("e2"), "reason": "FailedScheduling", "message": HOSTILE, "involvedObject": about}
    history.record(Ref(Kind.EVENT, "e2", "ns"), "added", event)
    run = a_run(history)
    run.findings = [f"evicted again: {HOSTILE}"]
    problem = Unmet("the pod of train runs", f"waits: {HOSTILE}")
    report = plain_failure.failure_of(failure.render(run, problem, cut=cut), failure.headline(run, problem), "a", 1)
    for text in (str(report), report.reprcrash.message):
        assert "::error" in text, "the message is shown"
        assert not re.search(r"[^\n -~·…✓✗>]", text), "without characters that control a terminal"
        assert not re.search(r"^\s*::", text, re.MULTILINE), "and not as the beginning of a line"


def test_a_story_has_at_most_sixty_lines() -> None:
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
    lines = failure.render(a_run(history, sentences=40), UNMET)
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 160
    assert lines[0].startswith("features/jobs.feature:9")
    assert any(re.search(r"… \d+ earlier", line) for line in lines)
    uncut = failure.render(a_run(history, sentences=40), UNMET, cut=False)
    assert len(uncut) > 400
    assert max(map(len, uncut)) > 500
    whole = failure.render(a_run(history, sentences=40), UNMET, whole=True)
    assert len(whole) > 400


def test_a_pending_pod_without_a_published_reason_is_listed_as_such() -> None:
    history = a_history()
    silent = {"metadata": meta("train-task-1"), "spec": {}, "status": {"phase": "Pending"}}
    history.record(Ref(Kind.POD, "train-task-1", "ns"), "added", silent)
    assert "    pod train-task-1: the scheduler has published no reason" in failure.render(a_run(history), UNMET)


def test_names_are_shown_without_namespace_and_uid() -> None:
    history = a_history()
    group = "ns/build-4dfb0cbe-80f3-4975-af4f-1453a0ecbf06"
    about = {"kind": "Pod", "name": "train-task-0"}
    event = {"metadata": meta("e2"), "reason": "Evict", "message": f"for {group} of actions/1", "involvedObject": about}
    history.record(Ref(Kind.EVENT, "e2", "ns"), "added", event)
    lines = "\n".join(failure.render(a_run(history), UNMET))
    assert "Evict: for build of actions/1" in lines
    assert group in "\n".join(failure.render(a_run(history), UNMET, whole=True))


def test_the_headline_begins_with_what_was_seen() -> None:
    assert failure.headline(a_run(a_history()), UNMET) == '0 of 1 run (Then "train" runs)'


def test_a_long_reason_is_wrapped_and_never_cut() -> None:
    history, reason = a_history(), " ".join(f"word-{n}" for n in range(100))
    for n in range(200):
        status = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": reason}]}
        pod = {
            "metadata": meta(f"train-task-{n}", labels={"volcano.sh/job-name": "train"}),
            "status": status,
            "spec": {},
        }
        history.record(Ref(Kind.POD, f"train-task-{n}", "ns"), "added", pod)
    lines = failure.render(a_run(history, sentences=60), UNMET)
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 160
    pending = lines[lines.index("  pending, with the scheduler's reason:") :]
    assert f"200 pods of train: {reason}" in " ".join(" ".join(pending).split())


def test_each_pod_is_counted_once_and_pods_with_a_node_are_a_row_of_their_own() -> None:
    history = a_history()
    for n in range(14):
        name = f"many-task-{n}"
        pod = {
            "metadata": meta(name, labels={"volcano.sh/job-name": "train"}),
            "spec": {},
            "status": {"phase": "Pending"},
        }
        history.record(Ref(Kind.POD, name, "ns"), "added", pod)
        if n < 8:
            bound = {**pod, "spec": {"nodeName": "gpu-1"}}
            history.record(Ref(Kind.POD, name, "ns"), "changed", bound)
            history.record(Ref(Kind.POD, name, "ns"), "changed", {**bound, "status": {"phase": "Running"}})
            history.record(Ref(Kind.POD, name, "ns"), "changed", bound)
    lines = "\n".join(failure.render(a_run(history), UNMET))
    assert "14 pods of train: Pending\n" in lines
    assert "8 pods of train: Pending, on gpu-1\n" in lines


def test_memory_is_shown_in_binary_units() -> None:
    history = a_history()
    queue = {"metadata": meta("big", ""), "spec": {"deserved": {"memory": "8589934592"}}}
    history.record(Ref(Kind.QUEUE, "big"), "added", queue)
    lines = "\n".join(failure.render(a_run(history), UNMET))
    assert re.search(r"big +memory +- +8Gi", lines)


def test_equal_changes_of_a_workloads_pods_are_one_row_in_order_of_time() -> None:
    history = History("ns")
    for n in range(3):
        labels = {"volcano.sh/job-name": "batch"}
        pod = {"metadata": meta(f"batch-{n}", labels=labels), "spec": {}, "status": {"phase": "Pending"}}
        history.record(Ref(Kind.POD, f"batch-{n}", "ns"), "added", pod)
        bound = {**pod, "spec": {"nodeName": f"n{n}"}, "status": {"phase": "Running"}}
        history.record(Ref(Kind.POD, f"batch-{n}", "ns"), "changed", bound)
    unmet = Unmet("the pods of batch end", "3 run", (Ref(Kind.VCJOB, "batch", "ns"),))
    lines = [re.sub(r"^ +[\d.]+ ", "", line) for line in failure.render(a_run(history), unmet)]
    assert lines[lines.index('> Then "train" runs (20.00 s) fails') + 1 :][:2] == [
        "3 pods of batch: Pending",
        "3 pods of batch: Running, on n0, n1, n2",
    ]


def test_held_amounts_are_summed_from_pods_because_the_status_of_a_queue_lags() -> None:
    history = a_history()
    group = {"metadata": meta("g"), "spec": {"queue": "research"}}
    history.record(Ref(Kind.PODGROUP, "g", "ns"), "added", group)
    spec = {"nodeName": "n", "containers": [{"resources": {"requests": {"cpu": "1500m"}}}]}
    note = {"scheduling.k8s.io/group-name": "g"}
    pod = {"metadata": meta("p", annotations=note), "spec": spec, "status": {"phase": "Running"}}
    history.record(Ref(Kind.POD, "p", "ns"), "added", pod)
    run = a_run(history)
    run.world.policy = "tiers: [{plugins: [{name: capacity}]}]"  # type: ignore[union-attr]
    assert "    research  cpu       4           2         1          1.5" in failure.render(run, UNMET)


@pytest.mark.parametrize(
    ("row", "markup"),
    [
        ("      seen: 0 of 1 run", {"red": True, "bold": True}),
        ("  expected: the pod runs", {"green": True}),
        ('       0.00 > Then "train" runs (20.00 s) fails', {"red": True, "bold": True}),
        ("       0.61 pod a: Running, evicted: reclaimed for b", {"yellow": True}),
        ("       0.61 pod a: Running", {}),
        ("  queues:", {"cyan": True}),
    ],
)
def test_a_terminal_shows_important_rows_in_colours(row: str, markup: dict[str, bool]) -> None:
    assert failure.colour(row) == markup


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
def test_the_text_of_a_failure_contains_no_python(specs: Run, workers: list[str]) -> None:
    result = specs("-ra", *workers, f=FEATURE, steps=STEPS)
    result.stdout.fnmatch_lines(
        [
            "f.feature:4: Then it is unmet",
            "  expected: all pods run (within 20 s)",
            "      seen: 1 of 2 run",
            "  scenario: s*",
            "* > When nothing happens (* s)",
            "* > Then it is unmet (* s) fails",
            "everything that was seen: *",
            "FAILED f.feature::s - 1 of 2 run (Then it is unmet)",
        ]
    )
    result.stdout.no_fnmatch_line("*.py*")


def test_the_text_of_a_harness_error_contains_no_python(specs: Run) -> None:
    result = specs(f=FEATURE.replace("unmet", "impossible"), steps=STEPS)
    result.stdout.fnmatch_lines(["f.feature:4: Then it is impossible", "  the node is missing", "    do next: add it"])
    result.stdout.no_fnmatch_line("*.py*")


@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["alone", "under xdist"])
def test_colours_are_for_the_terminal_only(specs: Run, pytester: pytest.Pytester, workers: list[str]) -> None:
    result = specs("--color=yes", "--junitxml", "junit.xml", *workers, f=FEATURE, steps=STEPS)
    assert "\x1b[31m\x1b[1m      seen: 1 of 2 run" in result.stdout.str()
    assert "\x1b" not in (pytester.path / "junit.xml").read_text()
    assert "#x1B" not in (pytester.path / "junit.xml").read_text()


@pytest.mark.parametrize("how", ["-vv", "CI"])
def test_a_failure_is_uncut_with_vv_and_in_ci(specs: Run, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    long = FEATURE.replace("When nothing happens\n", "When nothing happens\n" + "    And nothing happens\n" * 60)
    cut = specs(f=long, steps=STEPS).stdout.str()
    assert "earlier" in cut
    if how == "CI":
        monkeypatch.setenv("CI", "true")
    uncut = specs(*([how] if how != "CI" else []), f=long, steps=STEPS).stdout.str()
    assert "earlier" not in uncut
    assert uncut.count("> And nothing happens") == 60


def test_junit_has_the_headline_and_the_story(specs: Run, pytester: pytest.Pytester) -> None:
    specs("--junitxml", "junit.xml", f=FEATURE, steps=STEPS)
    text = (pytester.path / "junit.xml").read_text()
    assert 'message="1 of 2 run (Then it is unmet)"' in text
    assert "expected: all pods run (within 20 s)" in text
    assert 'name="schedspec-files"' in text


def test_the_whole_story_is_a_file_beside_the_junit_report(specs: Run, pytester: pytest.Pytester) -> None:
    specs("--junitxml", "reports/features.xml", f=FEATURE, steps=STEPS)
    (found,) = (pytester.path / "reports/features/scenarios").iterdir()
    assert (found / "failure.txt").read_text().startswith("f.feature:4: Then it is unmet\n")


def test_an_assertion_that_fails_in_a_thread_fails_its_scenario(specs: Run) -> None:
    steps = """
from threading import Thread
from pytest_bdd import then

def fail():
    assert not "all is well"

@then("another thread looks")
def looks():
    thread = Thread(target=fail)
    thread.start()
    thread.join()
"""
    usual = "default::pytest.PytestUnhandledThreadExceptionWarning"  # our own tests fail at warnings
    result = specs("-W", usual, f="Feature: f\n  Scenario: s\n    Then another thread looks\n", steps=steps)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*all is well*"])


def test_a_finding_fails_a_scenario_whose_sentences_all_passed(specs: Run) -> None:
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
    request.node.stash[SCENARIO_RUN].world = SimpleNamespace(
        history=History("ns"), policy="", policies=(), policy_name=""
    )

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


@pytest.mark.parametrize("found", ["'one finding'", "[1]", "True", "['fine', None]"])
def test_a_judge_that_returns_no_list_of_texts_is_named(specs: Run, found: str) -> None:
    steps = (
        STEPS
        + f"""
from types import SimpleNamespace
from schedspec.scenario.run import SCENARIO_RUN

@then("a world is used")
def used(request):
    \"\"\"It is there.\"\"\"
    from schedspec.observe.history import History
    request.node.stash[SCENARIO_RUN].world = SimpleNamespace(
        history=History("ns"), policy="", policies=(), policy_name=""
    )

def pytest_schedspec_judge(running):
    return {found}
"""
    )
    result = specs(f="Feature: f\n  Scenario: s\n    Then a world is used\n", steps=steps)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*a hook pytest_schedspec_judge returned *", "*return a list of texts*"])
