"""What `judge` and `who` find in a recording becomes a small feature, whichever scheduler decided there."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from schedspec.cli import schedspec
from schedspec.lab.explore.judge import monitors
from schedspec.lab.reduce import NOT_PLAYED, IncidentError, ReductionInput, reduce_incident
from schedspec.lab.reduce import written as features
from schedspec.lab.reduce.feature import Text, write_feature
from tests.schedspec.lab.recorder.recorded_cluster import RecordedCluster, recorded
from tests.schedspec.lab.recorder.test_judge import guarantee, in_part, needless, ping_pong
from tests.schedspec.lab.reduce.recordings import Recorded

LOW, HIGH = {"priority": 1, "priorityClassName": "low"}, {"priority": 9, "priorityClassName": "high"}


def kube_scheduler(made: Recorded) -> None:
    """Evict both pods of a Job for a pod of higher priority; then a pod waits for what no node has."""
    made.node("n1", 8)
    made.node("n2", 2)
    for name, value in (("low", 1), ("high", 9)):
        made.priority(name, value)
    made.pass_time(2)
    for number in range(2):
        made.runs(f"low-{number}", 4, owner="low", **LOW)
    made.pod("noise-0", 1)
    made.bind("noise-0", "n2")
    made.pod("high-0", 8, owner="high", **HIGH)
    made.pass_time(2)
    for number in range(2):
        made.evict(f"low-{number}", "preempting to accommodate a higher priority pod")
    made.bind("high-0")
    made.pass_time(30)
    made.pod("huge-0", 99)


def _two_queues(made: Recorded, **nodes: int) -> None:
    for name, cpu in nodes.items():
        made.node(name, cpu)
    made.note("ResourceFlavor", "any", spec={})
    for name in ("online", "batch"):
        made.cluster_queue(name, 4, reclaimWithinCohort="Any")
    made.pass_time(2)


def kueue(made: Recorded) -> None:
    """Let a queue borrow, and take back what it borrowed; the nodes have more than all quotas."""
    _two_queues(made, n1=12)
    made.kueue_runs("lender", "batch", 4)
    made.kueue_runs("borrower", "batch", 4)
    made.workload("owner", "online", 4)
    made.pass_time(2)
    made.kueue_evicts("borrower", "batch", 4, "owner")
    made.pass_time(2)
    made.kueue_runs("owner", "online", 4)
    made.pass_time(30)
    made.pod("huge-0", 99)


def kueue_in_error(made: Recorded) -> None:
    """Evict a Workload although its quota is free beside the preemptor."""
    _two_queues(made, n1=12, n2=4)
    made.kueue_runs("bystander", "online", 1, "n2")
    made.kueue_runs("spared", "batch", 2)
    made.workload("wants", "online", 2)
    made.pass_time(2)
    made.kueue_evicts("spared", "batch", 2, "wants")
    made.pass_time(2)
    made.kueue_runs("wants", "online", 2)


Story = Callable[[Recorded], None]


def reduced(folder: Path, story: Story, because: str) -> tuple[Result, list[str]]:
    """Record a story and reduce an incident in it; return the answer of the command and the lines of the feature."""
    made = Recorded(folder / "recording")
    story(made)
    made.close()
    out = folder / "incident.feature"
    arguments = ["reduce", str(folder / "recording"), "--because", because, "-o", str(out)]
    done = CliRunner().invoke(schedspec, arguments, standalone_mode=False)
    return done, out.read_text().splitlines() if out.exists() else []


@pytest.mark.parametrize(
    ("story", "because", "sentences"),
    [
        (kube_scheduler, "pod team/low-1 was evicted", ['Then "train-2" is evicted', 'And "train-1" runs']),
        (kube_scheduler, "monitor hopeless-wait", ["stays pending", "2 lack cpu"]),
        (kueue, "pod team/borrower-x was evicted", ['Then "train-1" is evicted', 'And "train-2" runs']),
        (kueue, "monitor hopeless-wait", ["stays pending"]),
    ],
)
def test_an_incident_of_another_scheduler_is_one_of_the_model_in_its_place(
    tmp_path: Path, story: Story, because: str, sentences: Sequence[str]
) -> None:
    done, lines = reduced(tmp_path, story, because)
    assert done.return_value == 0, done.output
    assert f"by its model in the place of {story.__name__.replace('_', '-')}, from " in lines[1]
    thens = "\n".join(lines)
    assert all(sentence in thens for sentence in sentences), thens
    assert "it passes: " in done.output


def test_a_workload_that_had_room_to_stay_is_reduced_as_it_was_recorded(tmp_path: Path) -> None:
    done, lines = reduced(tmp_path, kueue_in_error, "monitor needless-workload-eviction")
    assert done.return_value == 0, done.output
    assert lines[0] == "Feature: No Workload of Kueue is evicted that could have stayed"
    assert "by its model in the place of kueue, from 7 objects" in lines[1]
    assert lines[-1] == '    Then "train-1" keeps running'
    assert not [line for line in lines if "n2" in line.split() or "bystander" in line]
    assert "schedspec's model decides otherwise, so that it passes: " in done.output
    assert "--cluster embedded --scheduler kueue" in done.output


def test_a_rule_of_recordings_is_not_asked_of_another_scheduler(tmp_path: Path) -> None:
    made = Recorded(tmp_path / "recording")
    made.close()
    live = ReductionInput(features.known_policies(), lambda: False, monitors, shows=lambda _case, _wanted: False)
    with pytest.raises(IncidentError, match="no scenario is judged by this rule"):
        reduce_incident(tmp_path / "recording", "monitor ping-pong", "", live)


@pytest.mark.parametrize(
    ("plant", "monitor", "jobs"),
    [
        (needless, "needless-eviction", 2),
        (ping_pong, "ping-pong", 2),
        (guarantee, "guarantee", 1),
        (in_part, "gang", 1),
    ],
    ids=lambda value: str(getattr(value, "__name__", value)),
)
def test_what_no_decision_of_the_model_repeats_is_reduced_as_it_was_recorded(
    tmp_path: Path, plant: Callable[[RecordedCluster], str], monitor: str, jobs: int
) -> None:
    with recorded(tmp_path / "recording") as cluster:
        cluster.node("n2", 2)
        cluster.queue("other")
        for name in ("first", "second"):
            cluster.group(name, "other")
            cluster.runs(f"{name}-0", name, "n2", 1)
        cluster.advance(30.0)
        about = plant(cluster)
        cluster.advance(300.0)
    known = ReductionInput(features.known_policies(), lambda: False, monitors)
    found = reduce_incident(tmp_path / "recording", f"monitor {monitor}", "", known)
    case, text = found.case, write_feature(found.case, NOT_PLAYED, Text("T", 'the policy "capacity"', ['"x" runs']))
    assert (found.stands_in_for, bool(found.acted), len(case.jobs), len(case.all_nodes)) == ("volcano", True, jobs, 1)
    assert found.names_in_state[case.subject] == re.sub(r"-\d+$", "", about)
    assert not re.search("team/|first|second|other", text)
    assert found.policy_name == "capacity"
