"""Volcano's own table tests, as data: each case runs its actions once over its snapshot.

`pytest -k conformance`. The cases are read from `$CONFORMANCE_DIR` or `../shared/conformance`; without cases the test
is skipped.
"""

from __future__ import annotations

import pytest

from schedspec.scheduler.decide import decide
from tests.scheduler.conformance.cases import Case, Expect, cases, directory, outcome

CASES = cases()
NOW = 1_790_000_000.0


@pytest.mark.skipif(not CASES, reason=f"no conformance cases in {directory()}; set CONFORMANCE_DIR")
@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_conformance(case: Case) -> None:
    cluster = case.cluster()
    decisions = decide(cluster, case.policy(), NOW)
    got, expect = outcome(cluster, decisions), case.expect
    why = {job: [str(item) for item in refusal.items] for job, refusal in decisions.refusals.items()}

    assert got.evicted == sorted(expect.evicted), why
    if expect.bind_count_only or case.bind_count_only:
        assert len(got.binds) == expect.binds_num, why
    else:
        assert got.binds == expect.binds, why
    for job, nodes in expect.pipelined.items():
        assert got.pipelined.get(job), f"{job} has no pipelined task; {why}"
        assert got.pipelined[job] <= set(nodes), why
    for job, phase in expect.pod_group_phase.items():
        assert got.phases[job] == phase, why
    for job, counts in expect.task_status_nums.items():
        assert got.statuses[job] == counts, why


def test_kinds_that_the_scheduler_does_not_read_are_left_out() -> None:
    nodes = [{"metadata": {"name": "n1"}}]
    objects = {"storageClasses": [{"metadata": {"name": "standard"}}], "nodes": nodes}

    cluster = Case("a case", [], [], objects, Expect()).cluster()

    assert list(cluster.nodes.by_name) == ["n1"]
