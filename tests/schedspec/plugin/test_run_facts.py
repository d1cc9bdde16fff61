"""Facts of the cluster that the collection assumes before a cluster exists."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import yaml

from schedspec.schedulers import ADAPTERS

ROOT = Path(__file__).parents[3]
Run = Callable[..., pytest.RunResult]

FEATURE = """Feature: f
  Scenario: s
    When these jobs are submitted:
      | job | priority |
      | a   | theirs   |
    Then "a" runs
"""
_CLUSTER = {"name": "prod", "cluster": {"server": "https://127.0.0.1:1"}}
KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [_CLUSTER],
    "users": [{"name": "prod", "user": {}}],
    "contexts": [{"name": "prod", "context": {"cluster": "prod", "user": "prod"}}],
}


@pytest.mark.parametrize(
    ("cluster", "errors"), [(["embedded"], 1), (["existing", "--kube-context", "prod"], 0)], ids=["ours", "of others"]
)
def test_a_foreign_priority_class_is_allowed_on_an_existing_cluster_only(
    specs: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, cluster: list[str], errors: int
) -> None:
    path = pytester.path / "kubeconfig"
    path.write_text(yaml.safe_dump(KUBECONFIG))
    monkeypatch.setenv("KUBECONFIG", str(path))
    result = specs("--collect-only", "--cluster", *cluster, f=FEATURE)
    result.assert_outcomes(errors=errors)
    result.stdout.fnmatch_lines(["*no earlier sentence creates a priority class 'theirs'*" if errors else "*1 test*"])


JOBS = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train}
spec:
  queue: research
  minAvailable: 1
  tasks: [{name: t, replicas: 1, template: {spec: {containers: [{name: c, image: i}]}}}]
"""
OF_FILES = {
    "a file that is not there": (
        'the jobs of "job.yaml" are submitted',
        'the jobs of "job.yml" are submitted',
        "f.feature:6: there is no file 'job.yml' (is 'job.yaml' meant?)",
    ),
    "work that is not in the file": ('"train" runs', '"trian" runs', "f.feature:7: *'trian' (is 'train' meant?)*"),
    "a queue that no sentence creates": (
        "| research |",
        "| resaerch |",
        "f.feature:6: no sentence creates a queue 'research' (is 'resaerch' meant?)*",
    ),
    "a pod of another job": ('"train" runs', 'pod "chat-t-0" stays pending', "f.feature:7: *'chat-t-0'*"),
}
WITH_FILE = """Feature: f
  Scenario: s
    Given these queues:
      | queue    | capability |
      | research | cpu 1      |
    When the jobs of "job.yaml" are submitted
    Then "train" runs
"""


@pytest.mark.parametrize(("right", "wrong", "says"), OF_FILES.values(), ids=OF_FILES)
def test_names_in_a_file_of_work_are_checked(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, right: str, wrong: str, says: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (pytester.path / "job.yaml").write_text(JOBS)
    (pytester.path / "g.feature").write_text(WITH_FILE)
    (pytester.path / "f.feature").write_text(WITH_FILE.replace(right, wrong))
    result = pytester.runpytest_subprocess("-p", "schedspec.plugin", "-p", "no:cacheprovider", "--collect-only")
    result.assert_outcomes(errors=1)  # of f, while g is right
    result.stdout.fnmatch_lines([says.replace("[", "[[]")])


OF_KUEUE = """Feature: f
  Scenario: s
    Given the Kueue queues of "queues.yaml"
    When these jobs are submitted:
      | job | queue | cpu | required |
      | a   | user  | 1   | rack     |
    Then "a" runs
"""
QUEUES = """
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: user}, spec: {clusterQueue: all}}
"""


def test_a_scenario_that_is_skipped_is_not_judged_by_the_policy_of_the_run(
    specs: Run, pytester: pytest.Pytester
) -> None:
    (pytester.path / "queues.yaml").write_text(QUEUES)
    racks = "    Given these nodes:\n      | node | cpu | memory | rack |\n      | n | 1 | 1Gi | r |\n"
    steps = OF_KUEUE.replace("    Given the Kueue", f"{racks}    Given the Kueue")
    specs(f=steps).assert_outcomes(skipped=1)


COUNTED = """Feature: f
  Scenario: s
    Given the policy "{policy}"
    And these nodes:
      | node | cpu | memory |
      | n    | 4   | 4Gi    |
    And these queues:
      | queue | {column} |
      | a     | {amounts} |
    When these jobs are submitted:
      | job | queue | cpu |
      | j   | a     | 1   |
    Then "j" runs
"""


@pytest.mark.parametrize("policy", ["capacity", "hierarchy", "proportion"])
@pytest.mark.parametrize("column", ["capability", "guarantee"])
def test_a_number_of_pods_is_no_amount_of_a_queue(specs: Run, policy: str, column: str) -> None:
    feature = COUNTED.format(policy=policy, column=column, amounts="cpu 2, pods 2")
    result = specs("--collect-only", f=feature)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f'f.feature:9: pods of {column} has no effect under the policy "{policy}": *'])
    specs("--collect-only", "--scheduler", "kueue", f=feature).assert_outcomes(errors=0)  # Kueue counts pods


def test_a_policy_of_past_use_skips_where_the_scheduler_has_none(specs: Run) -> None:
    feature = COUNTED.format(policy="share-of-use", column="deserved", amounts="cpu 2")
    result = specs("-rs", f=feature)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*schedspec lacks past-use (its queues share what they hold now)"])


NO_POLICIES = {
    "no YAML": ("{{{", "*mine.yaml: this is not a policy of Kueue: * line 1*"),
    "an unknown field": (
        "\nnonsense: 1",
        "*mine.yaml: this is not a policy of Kueue: line 2: *`nonsense`; its fields: *",
    ),
    "a misspelt field": ("share: use", "*line 1: *`share` (is 'shares' meant?); its fields: *"),
    "an unknown value": ("shares: useful", "*line 1: Invalid enum value 'useful' *"),
    "a Configuration": ("kind: Configuration", "*: write the fields of a Configuration below `configuration:`*"),
}


@pytest.mark.parametrize(("text", "says"), NO_POLICIES.values(), ids=NO_POLICIES)
def test_a_file_that_is_no_policy_of_kueue_is_refused(
    specs: Run, pytester: pytest.Pytester, text: str, says: str
) -> None:
    (pytester.path / "policies").mkdir()
    (pytester.path / "policies" / "mine.yaml").write_text(text)
    feature = COUNTED.format(policy="mine", column="deserved", amounts="cpu 2")
    result = specs("--collect-only", "--scheduler", "kueue", f=feature)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([says])


def test_check_tells_what_is_skipped_and_which_file_has_errors(
    specs: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    specs("--collect-only", f=COUNTED.format(policy="capacity", column="priority", amounts="1"), g="Feature: g")
    found = pytester.run(sys.executable, "-m", "schedspec", "check", "--scheduler", "kueue", "f.feature")
    assert found.outlines == [
        "1 scenario is skipped: kueue lacks queue-priority (a ClusterQueue has no priority)",
        "1 scenario, no policies: no errors",
    ]
    found = pytester.run(sys.executable, "-m", "schedspec", "check", "g.feature")
    assert found.outlines[-1] == "1 feature with errors, no policies: 1 error"


TWO_LOCAL_QUEUES = """\
Feature: LocalQueues of two namespaces
  Scenario: s
    Given these nodes:
      | node | cpu | memory |
      | n1   | 8   | 16Gi   |
    And the Kueue queues of "two.yaml"
    When these jobs are submitted:
      | job   | queue   | cpu |
      | {job} | {queue} | 1   |
    Then "{job}" runs
"""
CLUSTER_QUEUE = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: all}\nspec: {}\n"
LOCAL_QUEUE = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nspec: {clusterQueue: all}\n"
IN_A_NAMESPACE = {
    "work in the namespace of its queue": (("red/main", "blue/main"), "red/train", "main", ""),
    "work in no namespace with such a queue": (
        ("red/main", "blue/main"),
        "train",
        "main",
        "; there are: *red/main, blue/main",
    ),
    "a queue of one of the namespaces": (
        ("red/main", "blue/main", "red/spare"),
        "train",
        "spare",
        "*queue 'spare' is in namespace red, and takes work of that namespace only: call it 'red/train'",
    ),
    "work of another namespace": (
        ("red/main", "blue/main", "red/spare"),
        "blue/train",
        "spare",
        "*queue 'spare' is in namespace red, *: call it 'red/train'",
    ),
    "queues of distinct names": (("red/main", "blue/spare"), "train", "spare", ""),
}


@pytest.mark.parametrize(("queues", "job", "queue", "says"), IN_A_NAMESPACE.values(), ids=IN_A_NAMESPACE)
def test_work_names_a_local_queue_of_its_own_namespace(
    specs: Run, pytester: pytest.Pytester, queues: Sequence[str], job: str, queue: str, says: str
) -> None:
    named = (name.split("/") for name in queues)
    local = (f"{LOCAL_QUEUE}metadata: {{name: {name}, namespace: {space}}}\n" for space, name in named)
    (pytester.path / "two.yaml").write_text("---\n".join((CLUSTER_QUEUE, *local)))
    result = specs("--collect-only", "--scheduler", "kueue", f=TWO_LOCAL_QUEUES.format(job=job, queue=queue))
    result.assert_outcomes(errors=bool(says))
    if says:
        result.stdout.fnmatch_lines([f"*{says}"])


@pytest.mark.parametrize("scheduler", ADAPTERS)
def test_each_feature_is_valid_or_skipped_under_every_scheduler(scheduler: str) -> None:
    command = [sys.executable, "-m", "schedspec", "check", "features", "--scheduler", scheduler]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.stdout.endswith(": no errors\n"), found.stdout
