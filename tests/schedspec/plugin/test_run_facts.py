"""Facts of the cluster that the collection assumes before a cluster exists."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

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
