"""Steps that act: an act that would change nothing fails, so that no scenario passes without its `When`."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BACKGROUND = """
Feature: Acts

  Background:
    Given these nodes:
      | node | cpu | memory |
      | n1   | 8   | 8Gi    |
    And these queues:
      | queue | weight |
      | team  | 1      |
    And these queues:
      | queue | capability |
      | cap   | cpu 4      |
    And these jobs run:
      | job | replicas | cpu |
      | j   | 2        | 1   |
    And these services run:
      | service | replicas | cpu |
      | s       | 1        | 1   |
    And these Kubernetes jobs run:
      | job | replicas | cpu |
      | k   | 2        | 1   |
    And these PyTorchJobs run:
      | job   | workers | cpu  |
      | fixed | 1       | 100m |
    And these PyTorchJobs run:
      | job     | workers | min workers | max workers | cpu  |
      | elastic | 2       | 1           | 3           | 100m |
    And these jobs are submitted:
      | job  | replicas | cpu |
      | wait | 1        | 9   |
      | more | 1        | 9   |
"""
IN_VAIN = {
    '"wait" completes': "expected: a pod of wait runs, and can finish",
    '"j" grows to 2 pods': "expected: j grows to 2 pods",
    '"s" grows to 1 pods': "expected: s grows to 1 pod",
    '"j" grows to 2 pods, of which 2 are needed': "expected: j grows to 2 pods",
    '"s" grows to 3 pods, of which 2 are needed': "expected: s is a Volcano Job, whose minimum can change",
    'the pods of "s" now request 1 cpu': "expected: the template of s changes",
    'the pods of "elastic" now request 2 cpu': "expected: elastic is a service, a StatefulSet or a job",
    'these pods are refused because of "cpu":\n      | pod | cpu |\n      | p | 1 |': "seen: it was accepted",
    'every binding of "s" is refused': "expected: s has a pod without a node",
    'the bindings of "wait" are accepted again': "expected: the bindings of wait are refused",
    '"j" shrinks to 3 pods': "expected: j shrinks to 3 pods",
    '"k" shrinks to 1 pod': "expected: k is a job or a service: no other work shrinks",
    '"fixed" grows to 3 pods': "expected: fixed is elastic: another PyTorchJob keeps its workers",
    '"elastic" grows to 5 pods': "expected: elastic has 1 to 3 workers",
    '"elastic" shrinks to 1 pod': "expected: elastic has 1 to 3 workers",
    '"elastic" grows to 3 pods': "expected: elastic grows to 3 pods",
    '"k" is resumed': "expected: k is suspended: else this changes nothing",
    '"s" is suspended': "expected: s is a job that can be suspended",
    '3 pods of "j" fail with exit code 3': "expected: exactly 3 pods of j run, and can end",
    'pod "wait-task-0" completes': "expected: pod wait-task-0 runs, and can finish",
    'pod "wait-task-0" fails with exit code 3': "expected: pod wait-task-0 runs, and can finish",
    '"j" is deleted': "expected: j exists, and can be deleted",
    'job "j" is aborted': "expected: vcjob j exists, and can be commanded",
    'job "j" is resumed': "expected: j is Aborting or Aborted",
    'queue "default" is opened': "expected: default is Closing or Closed",
    'queue "team" is closed': "expected: team is not Closing or Closed",
    'whichever of "wait, more" runs completes': "expected: one of wait, more runs, and can finish",
    'node "n1" leaves with its pods': "expected: node n1 exists, and can leave",
}
VALUES = "these queues change:\n      | queue | weight |\n      | team | 1 |"
IN_VAIN[VALUES] = "expected: queue team changes"
IN_VAIN["these queues change:\n      | queue | capability |\n      | cap | cpu 4000m |"] = "expected: queue cap changes"
BEFORE = {'"j" is deleted': '"j" is deleted', 'job "j" is aborted': '"j" is deleted'}
BEFORE['queue "team" is closed'] = 'queue "team" is closed\n    Then queue "team" is Closed'
BEFORE['node "n1" leaves with its pods'] = 'node "n1" leaves with its pods'
ONCE = (
    *('"j" completes', 'whichever of "wait, k" runs completes', 'pod "j-task-0" completes', '"k" is suspended'),
    *(
        '"elastic" grows to 4 pods',
        '"j" grows to 3 pods',
        '"j" grows to 3 pods, of which 3 are needed',
        'the pods of "s" now request 2 cpu',
        '"s" grows to 2 pods',
        '"j" shrinks to 1 pod',
        '"j" is suspended',
        'job "j" is aborted',
    ),
    *('pod "j-task-0" fails with exit code 3', '2 pods of "j" fail with exit code 3', 'queue "team" is closed'),
    VALUES.replace("| 1 |", "| 2 |"),
)
"""Acts that change nothing the second time."""
EFFECTIVE = {
    'whichever of "wait, j" runs completes': 'job "j" is Completed',
    '"wait" completes if it runs': 'exactly 2 pods of "j" run',
    '"j" grows to 3 pods, of which 3 are needed': 'the PodGroup of "j" has minMember 3',
    'the pods of "s" now request 2 cpu': 'the rollout of "s" completes',
    'the pods of "s" get a new version': 'the rollout of "s" completes',
    '"j" grows to 3 pods': 'exactly 3 pods of "j" run',
    '"s" grows to 2 pods': 'exactly 2 pods of "s" run',
    '"elastic" grows to 4 pods': 'exactly 4 pods of "elastic" run',
    '"elastic" shrinks to 2 pods': 'exactly 2 pods of "elastic" run',
    '"j" shrinks to 1 pod': 'exactly 1 pod of "j" runs',
    '"k" is suspended': '"k" has no pods',
    '"j" is suspended': 'job "j" is Aborted',
    'pod "j-task-0" fails with exit code 3': 'exactly 1 pod of "j" runs',
    '"s" is deleted': 'exactly 2 pods of "j" run',
}


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeini("[pytest]\naddopts = -p schedspec.plugin -p no:cacheprovider")
    return pytester


def run(suite: pytest.Pytester, scenarios: dict[str, tuple[str, str, str]]) -> pytest.RunResult:
    text = "".join(
        f"\n  Scenario: {name}\n{before}    When {act}\n    Then {then}\n"
        for name, (before, act, then) in scenarios.items()
    )
    suite.makefile(".feature", acts=BACKGROUND + text)
    return suite.runpytest_subprocess("acts.feature", "--cluster", "simulated", "--out", "out")


def test_an_act_that_would_change_nothing_fails(suite: pytest.Pytester) -> None:
    befores = {act: f"    When {BEFORE[act]}\n" if act in BEFORE else "" for act in IN_VAIN}
    result = run(suite, {f"Act {n}": (befores[act], act, "nothing is evicted") for n, act in enumerate(IN_VAIN)})
    result.assert_outcomes(failed=len(IN_VAIN))
    text = result.stdout.str()
    assert [expected for expected in IN_VAIN.values() if expected not in text] == []
    assert "Traceback" not in text
    assert "fixture_result" not in text


def test_an_act_that_is_repeated_at_once_fails(suite: pytest.Pytester) -> None:
    result = run(suite, {f"Act {n}": ("", f"{act}\n    And {act}", "nothing is evicted") for n, act in enumerate(ONCE)})
    result.assert_outcomes(failed=len(ONCE))
    text = result.stdout.str()
    assert [act for act in ONCE if f": And {act.partition(chr(10))[0]}\n  expected: " not in text] == []


def test_an_act_with_an_effect_passes(suite: pytest.Pytester) -> None:
    run(suite, {f"Act {n}": ("", act, then) for n, (act, then) in enumerate(EFFECTIVE.items())}).assert_outcomes(
        passed=len(EFFECTIVE)
    )


def test_a_rollout_of_work_without_one_fails_at_once(suite: pytest.Pytester) -> None:
    result = run(suite, {"Job": ("", 'pod "j-task-0" completes', 'the rollout of "j" completes')})
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*seen: j is no service and no StatefulSet: no other work has a rollout*"])


def test_a_rollout_without_a_new_template_does_not_complete(suite: pytest.Pytester) -> None:
    result = run(suite, {"Same": ("", '"s" grows to 2 pods', 'the rollout of "s" completes')})
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*seen: the template of s has not changed*"])


@pytest.mark.parametrize("text", ["refused", "nothing was", "e"])
def test_a_refusal_that_did_not_happen_has_no_text(suite: pytest.Pytester, text: str) -> None:
    submitted = "this queue is submitted:\n      | queue | weight |\n      | fine  | 1      |"
    result = run(suite, {"Queue": ("", submitted, f'it is refused because of "{text}"')})
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*seen: nothing was refused"])


def test_a_refused_change_that_no_sentence_expects_fails_the_scenario(suite: pytest.Pytester) -> None:
    result = run(suite, {"Job": ("", 'the pods of "k" get a new version', '"k" keeps running')})
    result.stdout.fnmatch_lines(['*seen: Job.batch "k" is invalid: spec.template: field is immutable*'])
    assert result.ret


def test_one_pod_can_run_only_as_a_whole(suite: pytest.Pytester) -> None:
    result = run(suite, {"One": ("", 'pod "j-task-0" completes', '"s" runs as a whole or not at all')})
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*seen: it has one pod: this sentence always holds"])
