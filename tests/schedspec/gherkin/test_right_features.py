"""Features without mistakes are accepted: prose, names that a sentence creates, and our own features."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedspec import distribution
from schedspec.gherkin.things import PRIORITY_CLASS, RunFacts
from schedspec.plugin.run_facts import Files
from schedspec.schedulers import Own
from tests.schedspec.gherkin.conftest import JOB, MistakesOf, policy, scenario, table

RIGHT = {
    "prose with colons": """Feature: f
  The background: what queues are for, and the rule: nobody waits.
  Note: a feature may say so. In this scenario: too. Rules: several.
  the rule
  scenario: which is the middle of a sentence
  Examples: many. Role: none. Sample: one.
  Given that all is well, nothing is evicted: so it is.
  Scenario: s
    Why: because.
    Then queue \"default\" is Open
""",
    "prose with colons in Chinese": """# language: zh-CN
功能: f
  说明：这里的规则是先来先得。例如：甲。注意: 乙。
  例子：丙。新功能：丁。规则一：戊。
  场景: s
    那么queue \"default\" is Open
""",
    "an asterisk or And after the first step": scenario(
        "    Given a second has passed\n    * a second has passed\n    And a second has passed\n"
        '    Then queue "default" is Open\n'
    ),
    "the built-in queues": scenario('    Then queue "default" is Open\n    And queue "root" is Open\n'),
    "a queue that the API server is expected to refuse": scenario(
        table("When this queue is submitted:", "queue | deserved", "a | cpu four")
        + '    Then it is refused because of "deserved"\n'
    ),
    "a policy that the scheduler is expected to refuse": scenario(
        '    When the policy "broken" is given\n    Then the policy is refused because of "no"\n'
    ),
    "cards whose model the scenario names": scenario(
        '    Given a cluster with 8 cards "X"\n'
        + table("And these queues:", "queue | card quota", "a | 8")
        + table("When these jobs are submitted:", "job | cards", "a | 2")
    ),
    "a node of the cluster's own": scenario(
        '    Given the real nodes of the cluster\n    When node "kind-worker" leaves with its pods\n'
    ),
    "pods with generated names": scenario(
        table("When these services are submitted:", "service", "chat")
        + table("Then exactly these pods are evicted, once each:", "pod", "chat-5d9f-x2")
    ),
    "pods of a task": scenario(
        table("Given this job with tasks runs:", "job | task | replicas", "j | ps | 1", "j | worker | 2")
        + '    Then pod "j-worker-1" stays pending\n'
    ),
    "pods of a job that grows": scenario(
        JOB + '    When "build" grows to 3 pods\n    Then pod "build-task-2" stays pending\n'
    ),
    "names from examples": scenario(
        table("When these jobs are submitted:", "job", "<job>")
        + '    Then "<job>" runs\n    Examples:\n      | job   |\n      | build |\n'
    ),
    "names from the background": (
        "Feature: f\n  Background:\n"
        + JOB
        + '  Rule: r\n    Background:\n      Given a second has passed\n    Scenario: s\n      Then "build" runs\n'
    ),
}


@pytest.mark.parametrize("feature", RIGHT.values(), ids=RIGHT)
def test_a_correct_feature_is_accepted(mistakes_of: MistakesOf, feature: str) -> None:
    assert mistakes_of(feature) == []


@pytest.mark.parametrize(
    "path",
    sorted(distribution.folder("features").rglob("*.feature")),
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_our_own_features_have_no_mistakes(mistakes_of: MistakesOf, path: Path) -> None:
    facts = RunFacts(contents=Files(path.parent, Own()).contents, folder=path.parent)
    found = mistakes_of(path.read_text("utf-8"), facts)
    assert [mistake for mistake in found if "unknown tag" not in mistake] == []


AGAIN = {
    "the jobs of a file": ('When the jobs of "jobs.yaml" are submitted', "a workload 'train' exists already"),
    "the queues of a file": ('Given the queues of "queues.yaml"', "a queue 'research' exists already"),
    "the nodes of a file": ('Given the nodes of "nodes.yaml"', "a node 'gpu-1' exists already"),
    "Kueue's queues of a file": ('Given the Kueue queues of "clusterqueues.yaml"', "a queue 'serving' exists already"),
}


@pytest.mark.parametrize("what", AGAIN)
def test_what_a_file_creates_is_not_created_twice(mistakes_of: MistakesOf, what: str) -> None:
    sentence, mistake = AGAIN[what]
    folder = distribution.folder("features") / "manifests"
    facts = RunFacts(contents=Files(folder, Own()).contents, folder=folder)
    once = mistakes_of(scenario(f"    {sentence}\n"), facts)
    more = set(mistakes_of(scenario(f"    {sentence}\n    And {sentence.partition(' ')[2]}\n"), facts)) - set(once)
    assert [one for one in more if mistake in one] != []


def test_own_templates_may_create_any_object_whose_name_begins_with_a_workloads(mistakes_of: MistakesOf) -> None:
    feature = scenario(
        JOB + '    Then pod "build-web-0" stays pending\n    And "build-extra" runs\n    And "tset" runs\n'
    )
    mistakes = mistakes_of(feature, RunFacts(policy, own_templates=True))
    assert [line.partition(";")[0] for line in mistakes] == ["8: no earlier sentence creates a workload 'tset'"]


def test_work_may_have_a_priority_class_that_exists_on_a_shared_cluster(mistakes_of: MistakesOf) -> None:
    """Which priority classes a shared cluster has is known only when the run begins."""
    feature = scenario(table("When these jobs are submitted:", "job | priority", "a | foreign") + '    Then "b" runs\n')
    mistakes = mistakes_of(feature, RunFacts(policy, preexisting=frozenset({PRIORITY_CLASS})))
    assert mistakes == ["6: no earlier sentence creates a workload 'b'; there are: a"]


def test_a_run_can_turn_off_the_check_of_names(mistakes_of: MistakesOf) -> None:
    assert mistakes_of(scenario('    Then "build" runs\n'), RunFacts(checks_names=False)) == []
