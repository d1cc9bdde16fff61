"""Mistakes in feature files are reported at collection, each at its line.

The sentences are ours; no cluster is needed. `test_right_features` has features without mistakes.
"""

from __future__ import annotations

import re

import pytest

from schedspec.gherkin.tables import ANY_RESOURCE
from schedspec.steps import columns, jobs
from tests.schedspec.gherkin.conftest import JOB, MistakesOf, scenario, table

JOBS = ", ".join(jobs.TEMPLATES["jobs"][1].columns)
NODES = ", ".join(columns.NODES.columns)
AMOUNTS = "cpu, memory, pods, ephemeral-storage, nvidia.com/gpu"
MEANT = " (is 'nvidia.com/gpu' meant?)"
SINGLE: dict[str, tuple[str, list[str]]] = {
    # tables and text blocks
    "a table that the sentence does not take": (
        scenario(JOB + table('Then "build" runs', "pod", "build-task-0")),
        ['7: this sentence takes no table, and would ignore it: Then "build" runs'],
    ),
    "a text block that the sentence does not take": (
        scenario(JOB + '    Then "build" runs\n      """\n      soon\n      """\n'),
        ['7: this sentence takes no text block, and would ignore it: Then "build" runs'],
    ),
    "a missing table": (
        scenario("    Given these nodes:\n"),
        [f"3: this sentence needs a table below it: Given these nodes:; its columns: {NODES}"],
    ),
    "a text block where a table belongs": (
        scenario('    Given these nodes:\n      """\n      n1\n      """\n'),
        [
            f"3: this sentence needs a table below it: Given these nodes:; its columns: {NODES}",
            "4: this sentence takes no text block, and would ignore it: Given these nodes:",
        ],
    ),
    "a table with a header only": (
        scenario(table("Given these queues:", "queue | weight")),
        ["4: the table has a header and no row: Given these queues:"],
    ),
    "the same row twice": (
        scenario(table("Given these queues:", "queue | weight", "a | 1", "b | 1", "a | 1")),
        ["7: line 5 has the same row"],
    ),
    # descriptions that were meant as steps
    "a scenario without steps": (
        "Feature: f\n  Background:\n    Given a second has passed\n  Scenario: s\n",
        ["4: the scenario 's' has no steps: it would pass whatever happens"],
    ),
    "a misspelt Scenario": (
        'Feature: f\n  Scenaro: lost\n    Then nothing is evicted\n\n  Scenario: s\n    Then queue "default" is Open\n',
        [
            "2: this line is a description, and is not run: Scenaro: lost\n    is Scenario: meant?",
            (
                "3: this line is a description, and is not run: Then nothing is evicted\n"
                "    no step is allowed here: is the line Scenario: above it missing, or misspelt?"
            ),
        ],
    ),
    "a misspelt outline": (
        'Feature: f\n  Scenario outlin: lost\n  Scenario: s\n    Then queue "default" is Open\n',
        ["2: this line is a description, and is not run: Scenario outlin: lost\n    is Scenario Outline: meant?"],
    ),
    "a keyword in small letters": (
        'Feature: f\n  background:\n  Scenario: s\n    Then queue "default" is Open\n',
        ["2: this line is a description, and is not run: background:\n    is Background: meant?"],
    ),
    "a keyword with a blank before its colon": (
        'Feature: f\n  Rule : r\n  Scenario: s\n    Then queue "default" is Open\n',
        ["2: this line is a description, and is not run: Rule : r\n    remove the blank before the colon, as in Rule:"],
    ),
    "a misspelt Rule in the description of a Rule": (
        'Feature: f\n  Rule: r\n    Some prose.\n\n  Rle: two\n    Scenario: s\n      Then queue "default" is Open\n',
        ["5: this line is a description, and is not run: Rle: two\n    is Rule: meant?"],
    ),
    "a Chinese keyword in an English file": (
        'Feature: f\n  场景: lost\n  Scenario: s\n    Then queue "default" is Open\n',
        [
            (
                "2: this line is a description, and is not run: 场景: lost\n"
                "    场景: is a keyword of zh-CN: begin the file with '# language: zh-CN', or write Scenario:"
            )
        ],
    ),
    "a misspelt Given": (
        scenario('    Givne these queues:\n      | queue |\n      | a |\n    Then queue "default" is Open\n'),
        ["3: this line is a description, and is not run: Givne these queues:\n    is the keyword Given meant?"],
    ),
    # kinds of steps
    "a first step that begins with And": (
        scenario('    And a second has passed\n    Then queue "default" is Open\n'),
        ["3: begin the first step with its kind: Given, When or Then, not And"],
    ),
    "a first step with an asterisk": (
        'Feature: f\n  Background:\n    * a second has passed\n  Scenario: s\n    Then queue "default" is Open\n',
        ["3: begin the first step with its kind: Given, When or Then, not *"],
    ),
    "a Then sentence under Given": (
        scenario('    Given queue "default" is Open\n'),
        ['3: this is a Then sentence, under Given: Given queue "default" is Open'],
    ),
    "a Given and When sentence under Then": (
        scenario(table("Then these jobs are submitted:", "job | cpu", "a | 1")),
        ["3: this is a Given and a When sentence, under Then: Then these jobs are submitted:"],
    ),
    # columns and cells
    "every unknown column": (
        scenario(table("Given these nodes:", "node | cpus | memory | colour", "n1 | 4 | 8Gi | red")),
        [
            f"4: unknown columns 'cpus' (is 'cpu' meant?), 'colour'; this table takes: {NODES}; {ANY_RESOURCE}",
            "4: the column 'cpu' is missing; there are: node, cpus, memory, colour",
        ],
    ),
    "the columns of the kind of work": (
        scenario(table("When these services are submitted:", "service | workers", "chat | 2")),
        [
            (
                "4: unknown column 'workers'; this table takes: service, queue, priority, cpu, memory, gpus, cards, "
                "card, gpu memory, whole gpus, vgpus, vgpu memory, vgpu cores, node selector, tolerates, preemptable, "
                f"start after, stop after, replicas; {ANY_RESOURCE}"
            )
        ],
    ),
    "invalid numbers and amounts": (
        scenario(
            table("Given these nodes:", "node | cpu | memory", "n1 | four | 8Gi", "n2 | 4 | -8Gi")
            + table("And these queues:", "queue | weight | deserved", "a | 1.5 | 4")
        ),
        [
            "5: cpu 'four': write a quantity, for instance: 4, 500m or 8Gi",
            "6: memory '-8Gi': write a quantity, for instance: 4, 500m or 8Gi",
            "9: weight '1.5': write a whole number, for instance: 3",
            "9: deserved '4': write a list of resources, for instance: cpu 4, memory 8Gi",
        ],
    ),
    "an amount of a resource that no node has": (
        scenario(table("Given these nodes:", "node | cpu | memory | gpus", "n1 | 4 | 8Gi | 8") + JOB + "    Then ")
        + 'queue "default" holds at most 8 gpuss\n'
        + '    And queue "default" never holds less than 8 amd.com/gpu\n'
        + '    And queue "default" holds at most 8 gpus\n',
        [
            f"9: no earlier sentence creates a node with the resource 'gpuss'; there are: {AMOUNTS}",
            f"10: no earlier sentence creates a node with the resource 'amd.com/gpu'{MEANT}; there are: {AMOUNTS}",
        ],
    ),
    "actions and priority classes that do not exist": (
        scenario(
            table("Given these priority classes:", "class | value", "system-a | 5", "top | 1000000001")
            + table("When these jobs are submitted:", "job | cpu | on PodEvicted", "build | 1 | RestartJobb")
        ),
        [
            "5: class 'system-a': Kubernetes keeps names with system- for itself: write another name",
            "6: value '1000000001': write at most 1000000000: Kubernetes keeps higher values for itself",
            (
                "9: on PodEvicted 'RestartJobb': is no action of a Job (is 'RestartJob' meant?); there are: AbortJob, "
                "RestartJob, RestartTask, RestartPod, RestartPartition, TerminateJob, CompleteJob, ResumeJob, SyncJob"
            ),
        ],
    ),
    "an unknown command": (
        scenario(JOB + '    When job "build" is abortd\n'),
        [
            (
                '6: no step matches: When job "build" is abortd\n'
                '    the nearest is: when job "{name}" is {done:Done} ({done}: aborted, resumed)'
            )
        ],
    ),
    "an unknown phase": (
        scenario(JOB + '    Then the PodGroup of "build" is Inqeue\n'),
        [
            (
                '6: no step matches: Then the PodGroup of "build" is Inqeue\n'
                '    the nearest is: then the PodGroup of "{name}" is {phase:Phase} '
                "({phase}: Pending, Inqueue, Running, Unknown, Completed)"
            )
        ],
    ),
    # cards
    "work with cards without a model": (
        scenario(table("When these jobs are submitted:", "job | cards", "a | 2", "b | 0")),
        ['5: 2 cards without a model: name the model, or begin the scenario with: a cluster with N cards "MODEL"'],
    ),
    "a node with cards without a model": (
        scenario(table("Given these nodes:", "node | cpu | memory | cards", "n1 | 4 | 8Gi | 4")),
        ["5: 4 cards without a model: fill in column `card`"],
    ),
    "a quota without a model": (
        scenario(table("Given these queues:", "queue | card quota", "a | 8")),
        [
            (
                "5: a quota of 8 cards without a model: name the model, "
                'or begin the scenario with: a cluster with N cards "MODEL"'
            )
        ],
    ),
    # policies
    "an unknown policy": (
        scenario('    Given the policy "capacty"\n'),
        ["3: there is no policy 'capacty' (is 'capacity' meant?); there are: broken, capacity"],
    ),
    "a policy that the scheduler refuses": (
        scenario('    Given the policy "broken"\n'),
        ["3: the scheduler rejects the policy 'broken':\n    broken.yaml:1: actions: no"],
    ),
    # names
    "work that nothing submits": (
        scenario(JOB + '    Then "biuld" runs\n'),
        ["6: no earlier sentence creates a workload 'biuld' (is 'build' meant?); there are: build"],
    ),
    "work that is submitted afterwards": (
        scenario('    Then "build" stays pending\n' + JOB),
        ["3: no earlier sentence creates a workload 'build'; there are: none"],
    ),
    "an unknown name among several": (
        scenario(JOB + '    Then each of "build, tset" has run\n'),
        ["6: no earlier sentence creates a workload 'tset'; there are: build"],
    ),
    "two names where one is meant": (
        scenario(table("When these jobs are submitted:", "job", "a", "b") + '    Then "a, b" runs\n'),
        ["7: no earlier sentence creates a workload 'a, b'; there are: a, b"],
    ),
    "an empty name": (
        scenario(JOB + '    Then "" runs\n'),
        ["6: no earlier sentence creates a workload ''; there are: build"],
    ),
    "a table whose column of names is misspelt": (
        scenario(table("When these jobs are submitted:", "jobb", "a") + '    Then "a" runs\n'),
        [
            f"4: unknown column 'jobb' (is 'job' meant?); this table takes: {JOBS}; {ANY_RESOURCE}",
            "4: the column 'job' is missing; there are: jobb",
        ],
    ),
    "a pod beyond the replicas": (
        scenario(JOB + '    Then pod "build-task-1" stays pending\n'),
        ["6: no earlier sentence creates a pod 'build-task-1' (is 'build-task-0' meant?); there are: build-task-0"],
    ),
    "an unknown name in a table": (
        scenario(JOB + table("Then exactly these pods are evicted, once each:", "pod", "build-0")),
        ["8: no earlier sentence creates a pod 'build-0' (is 'build-task-0' meant?); there are: build-task-0"],
    ),
    "a pod's name where a workload is meant": (
        scenario(JOB + '    Then "build-task-0" runs\n'),
        ["6: no earlier sentence creates a workload 'build-task-0'; there are: build"],
    ),
    "an unknown queue": (
        scenario(table("Given these queues:", "queue", "team") + '    Then queue "taem" is Open\n'),
        ["6: no earlier sentence creates a queue 'taem' (is 'team' meant?); there are: root, default, team"],
    ),
    "an unknown priority class of work": (
        scenario(
            table("Given these priority classes:", "class | value", "high | 1000")
            + table("When these jobs are submitted:", "job | priority", "a | hgih", "b | system-node-critical")
        ),
        [
            (
                "8: no earlier sentence creates a priority class 'hgih' (is 'high' meant?); there are: "
                "system-cluster-critical, system-node-critical, high"
            )
        ],
    ),
    "an unknown queue that changes": (
        scenario(table("When these queues change:", "queue | weight", "team | 2")),
        ["5: no earlier sentence creates a queue 'team'; there are: root, default"],
    ),
    "an unknown node": (
        scenario(
            table("Given these nodes:", "node | cpu | memory", "n1 | 1 | 1Gi")
            + '    When node "n2" leaves with its pods\n'
        ),
        ["6: no earlier sentence creates a node 'n2'; there are: n1"],
    ),
    "an unknown name from an example": (
        scenario(JOB + '    Then "<job>" runs\n    Examples:\n      | job   |\n      | build |\n      | test  |\n'),
        ["6: no earlier sentence creates a workload 'test'; there are: build (with job=test, of line 10)"],
    ),
    "an invalid cell from an example": (
        scenario(
            table("Given these queues:", "queue | weight", "a | <weight>")
            + '    Then queue "default" is Open\n    Examples:\n      | weight |\n      | 1 |\n      | many |\n'
        ),
        ["5: weight 'many': write a whole number, for instance: 3 (with weight=many, of line 10)"],
    ),
    # in Chinese
    "a Chinese keyword with a wide colon": (
        '# language: zh-CN\n功能: f\n  场景：丢了\n  场景: s\n    那么queue "default" is Open\n',
        ["3: this line is a description, and is not run: 场景：丢了\n    write an ASCII colon, as in 场景:"],
    ),
    "an English keyword in a Chinese file": (
        '# language: zh-CN\n功能: f\n  Scenario: lost\n  场景: s\n    那么queue "default" is Open\n',
        [
            (
                "3: this line is a description, and is not run: Scenario: lost\n"
                "    Scenario: is a keyword of en: begin the file with '# language: en', or write 场景:"
            )
        ],
    ),
    "a misspelt Chinese outline": (
        '# language: zh-CN\n功能: f\n  场景大刚: lost\n  场景: s\n    那么queue "default" is Open\n',
        ["3: this line is a description, and is not run: 场景大刚: lost\n    is 场景大纲: meant?"],
    ),
    "a misspelt Chinese heading above a sentence": (
        '# language: zh-CN\n功能: f\n  场境: 丢\n    那么没有 Pod 被驱逐\n  场景: s\n    那么queue "default" is Open\n',
        [
            (
                "4: this line is a description, and is not run: 那么没有 Pod 被驱逐\n"
                "    no step is allowed here: is the line 场景: above it missing, or misspelt?"
            )
        ],
    ),
    "an unknown Chinese column": (
        (
            "# language: zh-CN\n功能: f\n  场景: s\n    假如有以下队列：\n"
            '      | 队列 | 权种 |\n      | a | 1 |\n    那么queue "default" is Open\n'
        ),
        [
            (
                "5: unknown column '权种'; this table takes: "
                "队列, 上级队列, 权重, 优先级, 上限, 应得, 保障, 可回收, 卡配额, 可用节点组, 优先节点组, 避开节点组"
            )
        ],
    ),
    "an unknown name in a Chinese feature": (
        (
            "# language: zh-CN\n功能: f\n  场景: s\n    当提交以下作业：\n      | 作业 |\n      | build |\n"
            '    那么"biuld" 运行起来\n    而且恰好以下 Pod 被驱逐，各一次：\n      | Pod |\n      | x-task-0 |\n'
        ),
        [
            "7: no earlier sentence creates a workload 'biuld' (is 'build' meant?); there are: build",
            "10: no earlier sentence creates a pod 'x-task-0' (is 'build-task-0' meant?); there are: build-task-0",
        ],
    ),
}


@pytest.mark.parametrize(("feature", "mistakes"), SINGLE.values(), ids=SINGLE)
def test_a_mistake_is_reported_at_its_line(mistakes_of: MistakesOf, feature: str, mistakes: list[str]) -> None:
    assert mistakes_of(feature) == mistakes


_LINES = re.compile(r"line \d+")


def test_all_mistakes_in_a_file_are_reported_at_once(mistakes_of: MistakesOf) -> None:
    """No mistake hides another one, in the same scenario or in a later one."""
    features = [text.partition("\n")[2] for text, _ in SINGLE.values() if text.startswith("Feature: f\n  Scenario: s")]
    numbered = [re.sub("Scenario: s", f"Scenario: {n}", text) for n, text in enumerate(features)]
    alone = sorted(
        _LINES.sub("line N", mistake.partition(": ")[2])
        for text in features
        for mistake in mistakes_of(f"Feature: f\n{text}")
    )
    together = mistakes_of("Feature: f\n" + "\n".join(numbered))
    assert len(alone) > 30
    assert sorted(_LINES.sub("line N", mistake.partition(": ")[2]) for mistake in together) == alone
