"""Facts of the cluster that the collection assumes before a cluster exists."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml

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
