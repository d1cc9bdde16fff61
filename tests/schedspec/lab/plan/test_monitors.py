"""The monitors of `simulate` judge both worlds of a plan over its load."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from schedspec.lab.plan import Request, Side, judge, make_plan, parse_conditions
from schedspec.lab.plan.make import nothing
from schedspec.lab.plan.over_load import Course, Result, compare, run_courses
from schedspec.lab.simulate.present import RunTimes
from schedspec.lab.simulate.records import JobEviction, JobRecord, read_result
from schedspec.scheduler.policy.loader import load_policy
from schedspec.virtual import Settings
from schedspec.virtual.state.dump import write_state
from tests.support.core.states import NOW, state_of

POLICY = """
actions: "allocate, backfill, preempt"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
"""
NODE = {"name": "n1", "has": "64 cpu, 8 gpu"}


def test_an_eviction_again_after_a_job_has_ended_is_no_finding(tmp_path: Path) -> None:
    """Regression: the plan found it, and the monitor of that name did not find it in the same run."""
    (tmp_path / "jobs.csv").write_text(
        "submitted,duration,cards,priority,queue\n0,1000,2,1,a\n10,300,8,5,a\n60,100,6,9,a\n"
    )
    write_state(state_of({"policy": POLICY, "nodes": [NODE], "queues": [{"name": "a"}]}), tmp_path / "state.jsonl.gz")
    found = make_plan(
        Request(
            tmp_path / "state.jsonl.gz",
            Side("old", {"policy.yaml": POLICY.replace(", preempt", "")}),
            Side("new", {"policy.yaml": POLICY}),
            load=str(tmp_path / "jobs.csv"),
            mapping="submitted=submitted,duration=duration,job_cards=cards,priority=priority,queue=queue",
            out=tmp_path / "out",
            clock=NOW,
        )
    )
    records = read_result(tmp_path / "out" / "proposed.jsonl")
    evicted = {record.job: record.evictions for record in records if isinstance(record, JobRecord)}
    assert [eviction.preemptor for eviction in evicted["job-2"]] == ["load/job-3", "load/job-3"]
    assert found.over_load[0].findings == []
    assert judge(found, parse_conditions(["monitor"])) == []


def result(tmp_path: Path, name: str, policy: str, judged: str, jobs: list[dict[str, Any]]) -> Result:
    """Return the result of a state under a policy; `judged` is the policy that the monitors read."""
    state = state_of(
        {"policy": policy, "nodes": [NODE], "queues": [{"name": "a", "capability": "2 gpu"}], "jobs": jobs}
    )
    out = tmp_path / f"{name}.jsonl"
    settings, resource = Settings(start_delay=1.0, grace=30.0), "nvidia.com/gpu"
    course = Course(
        state, load_policy(policy, name), judged, nothing, RunTimes(fixed=600.0), settings, resource, out, name,
        math.inf, None,
    )  # fmt: skip
    assert run_courses([course]) == [""]
    return Result(out, frozenset())


@pytest.mark.parametrize(
    ("job", "rules"),
    [
        ({"name": "new", "queue": "a", "tasks": "3 x 1 gpu"}, ["capability"]),
        ({"name": "new", "queue": "a", "tasks": "2 x 1 gpu"}, []),
        ({"name": "new", "queue": "a", "tasks": "3 x 1 gpu running on n1"}, []),
    ],
)
def test_monitors_find_what_the_scheduler_does_over_the_load(
    tmp_path: Path, job: dict[str, Any], rules: list[str]
) -> None:
    """The scheduler reads no queues here, so it binds above the capability. Pods of the state are no acts of it."""
    without = POLICY.replace(", {name: capacity}", "")
    now = result(tmp_path, "now", POLICY, POLICY, [job])
    proposed = result(tmp_path, "proposed", without, POLICY, [job])
    found = compare(now, proposed, "", "", "").findings
    assert [(it.rule, it.subject, it.queue) for it in found] == [(rule, "t/new", "a") for rule in rules]
    assert compare(proposed, proposed, "", "", "").findings == []


def test_pods_for_which_other_pods_are_evicted_in_vain_are_a_finding(tmp_path: Path) -> None:
    now = result(tmp_path, "now", POLICY, POLICY, [])
    proposed = result(tmp_path, "proposed", POLICY, POLICY, [{"name": "low", "queue": "a", "tasks": "2 x 1 gpu"}])
    (low,) = proposed.jobs.values()
    starts = {**proposed.jobs, "high": JobRecord("high", "a", "", 0, 1, 1, {}, 1.0, 60.0, NOW, started=NOW)}
    waits = {**starts, "high": JobRecord("high", "a", "", 0, 1, 1, {}, 1.0, 60.0, NOW)}
    low.evictions = [JobEviction(NOW, 2, 2.0, "preempt", "load/high")]
    for jobs, rules in ((starts, []), (waits, ["eviction-in-vain"])):
        proposed.jobs = jobs
        assert [it.rule for it in compare(now, proposed, "", "", "").findings] == rules
