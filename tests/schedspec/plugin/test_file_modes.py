"""On a shared cluster the files of a run are private: they hold objects of other users."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Run = Callable[..., pytest.RunResult]
KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:9"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: t}}]
"""
FEATURE = "Feature: f\n  Scenario: good\n    Then all is well\n  Scenario: bad\n    Then all is lost\n"


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def _readable_by_others(folder: Path) -> list[str]:
    """Return the files that other users may read, and could reach."""
    return [
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.stat().st_mode & 0o77
    ]


@pytest.mark.parametrize("earlier", [False, True], ids=["fresh", "over an earlier run"])
def test_only_the_user_can_read_the_files_of_a_run_on_a_shared_cluster(
    specs: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, earlier: bool
) -> None:
    (pytester.path / "kubeconfig").write_text(KUBECONFIG)
    monkeypatch.setenv("KUBECONFIG", str(pytester.path / "kubeconfig"))
    junit = pytester.path / "out" / "junit.xml"
    if earlier:
        junit.parent.mkdir()
        junit.write_text("")
        junit.chmod(0o644)
    specs(
        "--junitxml",
        "out/junit.xml",
        "--cluster",
        "existing",
        "--kube-context",
        "c",
        "-o",
        "strict=false",
        good=FEATURE,
    )
    assert junit.stat().st_size
    assert list((pytester.path / "out").rglob("results.json"))
    assert _readable_by_others(pytester.path / "out") == []
    assert os.umask(0o022) == 0o022, "the umask is restored after the run"
