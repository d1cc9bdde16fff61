"""Texts of failures: one run on a live cluster in which most scenarios fail, each for another reason."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.embedded

ROOT = Path(__file__).parents[2]

STEPS = '''
import os, signal
from schedspec.api import timeouts
from schedspec.checks import pods
from schedspec.api.kinds import Kind
from schedspec.gherkin.step_decorators import given, then, when

@given('a node of {cpu:d} cpus')
def node(world, cpu):
    """A node."""
    world.add_nodes([{"name": "n1", "cpu": cpu, "memory": "8Gi"}])

@given('a queue "{name}"')
def queue(world, name):
    """A queue."""
    world.apply("queue", name=name)

@when('a job of {n:d} pods is submitted to "{queue}"')
def job(world, n, queue):
    """A job."""
    world.apply("job", name="train", queue=queue, replicas=n, cpu=1)

@then("it runs")
def runs(expect):
    """All pods of the job run."""
    expect.eventually(pods.runs("train"), within=timeouts.RUNS)

@given("a queue without a name")
def nameless(world):
    """Apply a queue without a variable that the template needs."""
    world.apply("queue")

@given("a queue of weight 0")
def weightless(world):
    """Apply a queue that the API server rejects."""
    world.apply("queue", name="q", weight=0)

@given("a queue with a capability of words")
def wordy(world):
    """Apply a queue with a value of the wrong type."""
    world.apply("queue", name="q", capability={"cpu": "four"})

@when("the scheduler is killed")
def killed(live):
    """Kill the scheduler, as another process might."""
    os.kill(live.scheduler.pid, signal.SIGKILL)

@given("the default queue has weight {n:d}")
def default(world, n):
    """Change the default queue, which the run did not create."""
    world.apply("queue", name="default", weight=n)

@then("the default queue has weight {n:d}")
def weight(world, n):
    """The default queue has this weight."""
    assert world.history.now().get(Kind.QUEUE, "default")["spec"]["weight"] == n

@given("another client creates a queue")
def stranger(world, live):
    """Create a queue without our label."""
    live.api.call("POST", "/apis/scheduling.volcano.sh/v1beta1/queues", body={
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "strange"}, "spec": {}})

@given("the queue of the other client is deleted")
def alone(live):
    """Delete that queue without the fixture `world`."""
    live.api.delete("/apis/scheduling.volcano.sh/v1beta1/queues/strange")

@given('the policy "{name}"')
def policy(world, name):
    """A policy."""
    world.use_policy(name)

@given("a queue that cannot be deleted")
def stuck(world):
    """Apply a queue with a finalizer that no controller removes."""
    world.apply("queue", name="stuck")
    world.patch(Kind.QUEUE, "stuck", {"metadata": {"finalizers": ["example.org/never"]}})
'''

FEATURE = """\
Feature: What goes wrong
  Scenario: Nothing
    Given a node of 4 cpus
    And a queue "q"
    When a job of 2 pods is submitted to "q"
    Then it runs
  Scenario: The queue is missing
    Given a node of 4 cpus
    When a job of 2 pods is submitted to "absent"
    Then it runs
  Scenario: The node is too small
    Given a node of 1 cpus
    And a queue "q"
    When a job of 2 pods is submitted to "q"
    Then it runs
  Scenario: A variable is missing
    Given a queue without a name
    Then the default queue has weight 1
  Scenario: A value is refused
    Given a queue of weight 0
    Then the default queue has weight 1
  Scenario: A type is refused
    Given a queue with a capability of words
    Then the default queue has weight 1
  Scenario: A policy is refused
    Given the policy "capacity-and-proportion"
    Then the default queue has weight 1
  Scenario: A policy is absent
    Given the policy "absent"
    Then the default queue has weight 1
  Scenario: A queue of others is changed
    Given the default queue has weight 7
    Then the default queue has weight 7
  Scenario: A queue of others is restored
    Given a node of 1 cpus
    Then the default queue has weight 1
  Scenario: Another client interferes
    Given another client creates a queue
    Then the default queue has weight 1
  Scenario: The cluster is not empty
    Given a node of 1 cpus
    Then the default queue has weight 1
  Scenario: The queue of the other client is deleted
    Given the queue of the other client is deleted
    Then the default queue has weight 1
  Scenario: A finalizer prevents a deletion
    Given a queue that cannot be deleted
    Then the default queue has weight 1
  Scenario: It is deleted nevertheless
    Given a node of 1 cpus
    Then the default queue has weight 1
  Scenario: It runs although it should wait
    Given a node of 4 cpus
    And a queue "q"
    When a job of 1 pods is submitted to "q"
    Then "train" stays pending
  Scenario: It was never submitted
    Given a node of 4 cpus
    Then "train" has no pods
  Scenario: The scheduler dies
    Given a node of 4 cpus
    And a queue "q"
    When the scheduler is killed
    And a job of 2 pods is submitted to "q"
    Then it runs
  Scenario: No scheduler runs any more
    Given a node of 4 cpus
    Then the default queue has weight 1
"""

WRONG = {
    "The queue is missing": [
        "wrong.feature:10: Then it runs",
        "  expected: all 2 pods of train run (within 4 s; given up after *",
        "      seen: 0 of 2 run*; there is no queue absent; there are: *",
        "*Job train: QueueNotUsable: queue absent does not exist; *",
        "  pending, with the scheduler's reason:",
        "    podgroup train: queue absent: does not exist",
        "everything that was seen: *",
    ],
    "The node is too small": [
        "wrong.feature:15: Then it runs",
        "  expected: all 2 pods of train run (within 4 s)",
        "      seen: 0 of 2 run*",
        "*podgroup train: *",
        "  queues:",
        "    queue *resource *capability *deserved *guarantee *held",
        "    q * cpu *",
        "  pending, with the scheduler's reason:",
        "*train*: ?*",
    ],
    "A variable is missing": [
        "wrong.feature:17: Given a queue without a name",
        "  *templates/queue.yaml.j2:*: 'name' is undefined",
        "    given: namespace",
    ],
    "A value is refused": [
        "wrong.feature:20: Given a queue of weight 0",
        "  the API server refused queue q: 422 Invalid",
        "*spec.weight*must be at least 1*",
        "    spec.weight: *templates/queue.yaml.j2, rendered line *: weight: 0",
    ],
    "A type is refused": [
        "wrong.feature:23: Given a queue with a capability of words",
        "  the API server refused queue q: *",
        "*four*",
        '    spec.capability*: *templates/queue.yaml.j2, rendered line *: capability: {"cpu": "four"}',
    ],
    "A policy is refused": [
        'wrong.feature:26: Given the policy "capacity-and-proportion"',
        "  the scheduler refused the policy:",
        "*capacity*proportion*",
    ],
    "A policy is absent": [
        'wrong.feature:29: Given the policy "absent"',
        "  there is no policy absent.yaml; there are: binpack.yaml, *capacity-*",
    ],
    "The cluster is not empty": [
        "wrong.feature:41: Given a node of 1 cpus",
        "  the cluster is not empty before the scenario; there are: queue strange",
        "    do next: delete them, or *",
    ],
    "It runs although it should wait": [
        'wrong.feature:56: Then "train" stays pending',
        "  expected: the scheduler publishes why train waits (within 1 s; given up after *",
        "      seen: it runs since *",
    ],
    "It was never submitted": [
        'wrong.feature:59: Then "train" has no pods',
        "  expected: train has no pods (within 6 s; given up after *",
        "      seen: there is no workload train; there are: none",
    ],
    "The scheduler dies": [
        "wrong.feature:6[45]: *",
        "  the scheduler under test was killed by signal 9; scheduling has stopped",
        "    log: *scheduler.log",
        "    | listening on 127.0.0.1:*",
    ],
    "No scheduler runs any more": [
        "wrong.feature:67: Given a node of 4 cpus",
        "  the scheduler under test was killed by signal 9; scheduling has stopped",
    ],
}


@pytest.fixture(scope="module")
def lines_of(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Return the text of each failed scenario, and the outcome of all scenarios under the key `""`."""
    folder = tmp_path_factory.mktemp("wrong")
    (folder / "pytest.ini").write_text("[pytest]\nstrict = true\n")
    (folder / "conftest.py").write_text(STEPS)
    (folder / "wrong.feature").write_text(FEATURE)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "schedspec.plugin", "-p", "no:cacheprovider", "-v"),
            *("--cluster", "embedded", "--timeout-scale", "0.2", "--out", str(folder / "out")),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    parts = re.split(r"^_+ (.+?) _+$", done.stdout, flags=re.MULTILINE)
    found = {name: text.splitlines() for name, text in zip(parts[1::2], parts[2::2], strict=True)}
    return {"": done.stdout.splitlines() + done.stderr.splitlines(), **found}


@pytest.mark.parametrize(("scenario", "lines"), WRONG.items(), ids=WRONG)
def test_the_text_of_a_failure_explains_it(lines_of: dict[str, list[str]], scenario: str, lines: list[str]) -> None:
    assert scenario in lines_of, "\n".join(lines_of[""])
    pytest.LineMatcher(lines_of[scenario]).fnmatch_lines(lines)


def test_the_other_scenarios_pass_and_leave_nothing_behind(lines_of: dict[str, list[str]]) -> None:
    outcomes = {
        found[1]: found[2]
        for line in lines_of[""]
        if (found := re.match(r"wrong.feature::(.+?) (PASSED|FAILED|ERROR)", line))
    }
    assert {name for name, outcome in outcomes.items() if outcome == "FAILED"} == set(WRONG)
    assert "ERROR" not in outcomes.values(), "\n".join(lines_of[""])


def test_no_failure_has_a_python_traceback(lines_of: dict[str, list[str]]) -> None:
    pytest.LineMatcher(lines_of[""]).no_fnmatch_line("*Traceback*")


def test_the_output_has_the_boot_time_of_the_cluster(lines_of: dict[str, list[str]]) -> None:
    pytest.LineMatcher(lines_of[""]).fnmatch_lines(
        ["embedded v*: booted in * s, first pod Running after * s; logs in *"]
    )
