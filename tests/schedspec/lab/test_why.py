"""Why a job waits: its reason with numbers, who is before it, whose end would start it, and what the cluster shows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from schedspec.cli.why import why_command
from schedspec.lab.why import WhyError, render, why
from schedspec.scheduler.inputs import PolicyLoaded
from schedspec.scheduler.model.objects import Condition, ObjectMeta, PriorityClass
from schedspec.virtual.state import State, kueue
from schedspec.virtual.state.dump import write_state
from tests.schedspec.lab.plan.test_submitted import POLICY
from tests.support.core.states import NOW, state_of
from tests.support.kueue_state import GPU, cluster_queue, local_queue, workload

TABLE: dict[str, Any] = {
    "policy": POLICY,
    "nodes": [{"name": "n1", "has": "16 cpu, 4 gpu"}],
    "queues": [
        {"name": "a", "deserved": "2 gpu", "capability": "2 gpu"},
        {"name": "b", "deserved": "2 gpu"},
    ],
    "jobs": [
        {"name": "small", "queue": "a", "tasks": "1 x 1 gpu running on n1"},
        {"name": "large", "queue": "a", "min": 1, "tasks": "2 x 1 gpu"},
        {"name": "next", "queue": "a", "tasks": "2 x 1 gpu"},
        {"name": "idle", "queue": "b", "tasks": "1 x 1 gpu"},
    ],
}


def state() -> State:
    return state_of(TABLE)


def test_a_job_that_waits_is_told_the_numbers_of_its_queue_and_who_is_before_it() -> None:
    found = why(state(), "next")
    assert (found.job, found.queue, found.fate) == ("t/next", "a", "waits")
    assert "capability" in found.why
    assert any(line.startswith("queue a: nvidia.com/gpu") for line in found.queues)
    assert found.ahead == ["t/large"]


@pytest.mark.parametrize(("default", "ahead"), [(9, []), (5, ["t/large"]), (4, ["t/large"])])
def test_a_job_without_a_class_has_the_priority_of_the_default_one(default: int, ahead: list[str]) -> None:
    known = state()
    for name, value, is_default in (("usual", default, True), ("low", 5, False)):
        known.put("PriorityClass", PriorityClass(ObjectMeta(name=name), value, is_default))
    known.objects["PodGroup"]["t/large"].spec.priority_class_name = "low"
    assert why(known, "next").ahead == ahead


def test_it_says_whose_end_would_start_the_job() -> None:
    alone = state()
    for key in [key for key in alone.objects["Pod"] if "large" in key]:
        del alone.objects["Pod"][key]
    del alone.objects["PodGroup"]["t/large"]
    found = why(alone, "t/next")
    assert found.ends == ["t/small"]
    assert "it would start if one of these ended: t/small" in render(found)


def test_a_job_that_could_start_is_no_job_that_waits() -> None:
    assert why(state(), "idle").fate == "starts"
    assert why(state(), "small").fate == "runs"


@pytest.mark.parametrize(("job", "agrees"), [("next", True), ("idle", False)])
def test_it_says_whether_the_cluster_agrees(job: str, agrees: bool) -> None:
    shown = state()
    group = shown.objects["PodGroup"][f"t/{job}"]
    group.status.conditions = [Condition(type="Unschedulable", status="True", message="no room")]
    found = why(shown, job)
    assert (found.agrees, found.cluster) == (agrees, f"its PodGroup is {group.status.phase}; no room")
    assert f"the cluster {'agrees' if agrees else 'does not agree'}" in render(found)


REFUSED = {"nobody": "there is no such job", "": "there is no such job"}


@pytest.mark.parametrize(("name", "says"), REFUSED.items())
def test_a_job_that_is_not_there_is_refused_with_the_names_that_are(name: str, says: str) -> None:
    with pytest.raises(WhyError, match=f"{says}.*t/large"):
        why(state(), name)


def test_a_state_without_jobs_has_none_to_name() -> None:
    empty = state_of({key: TABLE[key] for key in ("policy", "nodes", "queues")} | {"jobs": []})
    with pytest.raises(WhyError, match="the state has no job"):
        why(empty, "next")


def test_without_a_policy_the_question_is_refused() -> None:
    unknown = state()
    unknown.policy = None
    with pytest.raises(WhyError, match="has no policy"):
        why(unknown, "next")
    assert why(unknown, "next", PolicyLoaded("p.yaml", POLICY)).fate == "waits"


NO_POLICIES = {"": r"p\.yaml:1: file: empty", "kind: Queue": r"p\.yaml:1: kind"}


@pytest.mark.parametrize(("text", "says"), NO_POLICIES.items())
def test_a_file_that_is_no_policy_is_refused_by_its_name(text: str, says: str, tmp_path: Path) -> None:
    write_state(state(), tmp_path / "state.jsonl.gz")
    (tmp_path / "p.yaml").write_text(text)
    asked = ["next", "--state", str(tmp_path / "state.jsonl.gz"), "--policy", str(tmp_path / "p.yaml")]
    done = CliRunner().invoke(why_command, asked, standalone_mode=False)
    assert (done.return_value, bool(re.search(says, done.output))) == (2, True)


def test_of_kueue_no_policy_is_read() -> None:
    found = State("list", NOW)
    kueue.put_served(found, workload("asked", "team", 2))
    with pytest.raises(WhyError, match=r"p\.yaml: Kueue reads no policy"):
        why(found, "asked", PolicyLoaded("p.yaml", POLICY))


def test_of_kueue_the_workload_says_why_and_the_quotas_are_added_up() -> None:
    found = State("list", NOW)
    refused = {"type": "QuotaReserved", "status": "False", "message": "insufficient unused quota for nvidia.com/gpu"}
    items = [cluster_queue("team", 4), cluster_queue("other", 2), local_queue("team"), local_queue("other")]
    items += [workload("runs", "team", 3, admitted=5), workload("lent", "other", 2, admitted=6)]
    items += [workload("first", "team", 2, priority=10), workload("asked", "team", 2)]
    items[-1]["status"]["conditions"] = [refused]
    for item in items:
        kueue.put_served(found, item)
    answer = why(found, "asked")
    assert (answer.job, answer.queue, answer.fate, answer.why) == ("team/asked", "team", "waits", refused["message"])
    assert answer.ahead == ["team/first"]
    assert answer.queues == [
        f"queue team: {GPU} of flavor gpu: 3 reserved, 4 nominal; in cohort all",
        f"queue other: {GPU} of flavor gpu: 2 reserved, 2 nominal; in cohort all",
    ]
    assert why(found, "runs").fate == "runs"


def test_the_command_answers_as_text_and_as_data(tmp_path: Path) -> None:
    write_state(state(), tmp_path / "state.jsonl.gz")
    run = CliRunner().invoke
    done = run(why_command, ["next", "--state", str(tmp_path / "state.jsonl.gz")], standalone_mode=False)
    assert done.output.startswith("t/next (a) waits, decided by schedspec's model\n  why: ")
    done = run(why_command, ["next", "--state", str(tmp_path / "state.jsonl.gz"), "-o", "json"], standalone_mode=False)
    assert json.loads(done.output)["ahead"] == ["t/large"]
    assert (
        run(why_command, ["nobody", "--state", str(tmp_path / "state.jsonl.gz")], standalone_mode=False).return_value
        == 2
    )
