"""A process that hangs at one job marks the job before it exits, and its successor starts the other jobs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from schedspec.scheduler.decide import decide
from schedspec.scheduler.framework.decisions import Decisions
from schedspec.scheduler.framework.tracing import Step
from schedspec.scheduler.framework.work import Budget
from schedspec.scheduler.kube import PODGROUPS
from schedspec.scheduler.live.app import App
from schedspec.scheduler.live.options import parse
from schedspec.scheduler.live.policy_file import PolicyFile
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.policy.model import Policy
from tests.support.live.status_queries import conditions
from tests.support.live.target_cluster import NAMESPACE, RECLAIM, TargetCluster

pytestmark = pytest.mark.embedded


@contextmanager
def without_end(job: str, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let every attempt to place the job last until the block ends; the process gives up after a second."""
    ended = threading.Event()

    def stuck(cluster: Cluster, policy: Policy, now: float, step: Step, *, budget: Budget) -> Decisions:
        def waits(what: str, *of: Any) -> Any:
            if cluster.trying == job:
                ended.wait()
            return step(what, *of)

        return decide(cluster, policy, now, waits, budget=budget)

    with patch.context() as patched:
        patched.setattr("schedspec.scheduler.live.loop.decide", stuck)
        patched.setattr("schedspec.scheduler.live.progress.LONGEST", 1.0)
        try:
            yield
        finally:
            ended.set()


@pytest.mark.deadline(60)
async def test_a_job_at_which_the_scheduler_hung_is_marked_and_blocks_no_other_job(
    target: TargetCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with target.scenario(nodes=1, cpu="2"):  # room for one of the two gangs
        await target.gang("stuck", 2)
        policy = tmp_path / "policy.yaml"
        policy.write_text(RECLAIM)
        options = ("--kubeconfig", str(target.kubeconfig), "--policy", str(policy), "--controllers", "none")
        with without_end(f"{NAMESPACE}/stuck-0", monkeypatch):
            assert await App(parse([*options, "--node-selector", "schedspec.dev/world=true"]), PolicyFile(policy)).run()
        condition = (await conditions(target.client, PODGROUPS, "stuck-0", NAMESPACE))["Unschedulable"]
        assert (condition.status, condition.reason) == ("True", "TooCostly")
        assert "the scheduler gave up while it tried this job (no cycle has ended" in condition.message
        await target.gang("good", 2)
        await target.ready(target.start())
        await target.bound(2)
        assert len(target.history.bound("good-0")) == 2
