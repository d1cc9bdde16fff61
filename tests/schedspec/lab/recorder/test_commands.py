"""The commands about a recording: their answers, their exit status, and what they refuse."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from schedspec.cli import schedspec
from schedspec.virtual.state.over_time import segments_over_time
from tests.schedspec.lab.recorder.recorded_cluster import recorded
from tests.schedspec.lab.reduce.recordings import START, Recorded


def run(*arguments: object) -> Result:
    return CliRunner().invoke(schedspec, [*map(str, arguments)], standalone_mode=False)


def clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")


@pytest.fixture(scope="module")
def incident(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """Return a recording of an eviction and, three minutes later, of a hopeless wait; and the time between them."""
    folder = tmp_path_factory.mktemp("recording")
    with recorded(folder) as cluster:
        cluster.group("a", "batch")
        cluster.runs("a-0", "a", "n1", 8)
        cluster.group("b", "online")
        cluster.pod("b-0", "b", 4)
        cluster.advance(5.0)
        cluster.evict("a-0", "evicted by volcano")
        cluster.advance(3.0)
        cluster.bind("b-0", "n1")
        cluster.advance(130.0)
        between = cluster.now
        cluster.advance(50.0)
        cluster.group("large", "online")
        cluster.pod("large-0", "large", 99)
        cluster.advance(300.0)
    return folder, between


def test_judge_prints_each_finding_and_exits_with_1(incident: tuple[Path, float]) -> None:
    folder, between = incident
    found = run("judge", folder)
    assert found.return_value == 1
    assert "hopeless-wait: team/large-0 (queue online)" in found.output
    early = run("judge", folder, "--to", clock(between))
    assert early.return_value == 0
    assert "no findings in" in early.output


def test_judge_writes_json(incident: tuple[Path, float]) -> None:
    folder, between = incident
    answer = json.loads(run("judge", folder, "--from", clock(between), "-o", "json").output)
    assert answer["scheduler"] == "volcano"
    assert answer["gaps"] == []
    assert [(one["monitor"], one["job"], one["queue"]) for one in answer["findings"]] == [
        ("hopeless-wait", "team/large", "online")
    ]


def test_who_names_the_preemptor_of_a_pod_or_of_its_job(incident: tuple[Path, float]) -> None:
    folder, _ = incident
    for name in ("team/a-0", "team/a"):
        found = run("who", "evicted", name, "--recording", folder)
        assert found.return_value == 0
        assert "for team/b-0 (queue online) (inferred" in found.output


def test_who_lists_the_evictions_between_two_times(incident: tuple[Path, float]) -> None:
    folder, between = incident
    found = run("who", "evicted", "--recording", folder, "--between", clock(between - 300), clock(between))
    assert found.return_value == 0
    assert "1 pod of team/a (queue batch) for team/b (queue online), inferred" in found.output
    later = run("who", "evicted", "--recording", folder, "--between", clock(between), clock(between + 60))
    assert later.return_value == 1
    assert "nothing was evicted" in later.output


def test_plan_why_simulate_and_reduce_take_a_recording(incident: tuple[Path, float], tmp_path: Path) -> None:
    folder, between = incident
    why = run("why", "team/large", "--recording", folder)
    assert "at most 8 on a node" in why.output
    before = run("why", "team/large", "--recording", folder, "--at", clock(between))
    assert before.return_value == 2
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "online"}}
    (tmp_path / "q.json").write_text(json.dumps(queue | {"spec": {"weight": 1, "deserved": {"cpu": "8"}}}))
    plan = run(
        *("plan", "--state", folder, "--at", clock(between), "--proposed", tmp_path / "q.json"),
        *("--model", "--max-age", "100000d", "--out", tmp_path / "plan"),
    )
    assert plan.return_value == 0, plan.output
    assert "deserved cpu 4 → cpu 8" in plan.output
    simulated = run("simulate", "--trace", folder, "--out", tmp_path / "result.jsonl")
    assert simulated.return_value in (0, 1), simulated.output
    assert "3 jobs until" in simulated.output
    reduced = run(
        "reduce", folder, "--because", "job team/large waits", "-o", tmp_path / "waits.feature", "--cases", 40
    )
    assert reduced.return_value == 0, reduced.output


@pytest.fixture(scope="module")
def of_single_pods(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recording under kube-scheduler: a pod runs, two pods of a gang of Kubernetes wait."""
    made = Recorded(tmp_path_factory.mktemp("single"))
    made.node("n1", 8)
    made.runs("runs-0", 1, owner="runs")
    made.gang("half", schedulingPolicy={"gang": {"minCount": 2}})
    for number in range(2):
        made.pod(f"half-{number}", 8, owner="owner", schedulingGroup={"podGroupName": "half"})
        made.refuse(f"half-{number}", "0/1 nodes are available: 1 Insufficient cpu.")
    made.close()
    return made.folder


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("team/half", "waits, decided by scheduler default-scheduler in the cluster\n  why: 0/1 nodes are available"),
        ("half", "waits, decided by"),
        ("team/half-1", "waits, decided by"),
        ("owner", "waits, decided by"),
        ("team/runs", "runs, decided by"),
    ],
)
def test_why_gives_the_words_of_a_scheduler_without_podgroups(of_single_pods: Path, name: str, answer: str) -> None:
    found = run("why", name, "--recording", of_single_pods, "--at", clock(START + 60.0))
    assert found.return_value == 0, found.output
    assert f"{name} {answer}" in found.output


def test_simulate_refuses_a_recording_without_podgroups(of_single_pods: Path, tmp_path: Path) -> None:
    found = run("simulate", "--trace", of_single_pods, "--out", tmp_path / "result.jsonl")
    assert found.return_value == 2
    assert "has no PodGroup of scheduling.volcano.sh" in found.output


@pytest.fixture(scope="module")
def reclaimed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return the recording of a reclaim by our scheduler, and the name of the victim."""
    folder = tmp_path_factory.mktemp("reclaimed")
    with recorded(folder, scheduler="schedspec") as cluster:
        cluster.group("lender", "batch")
        for number in range(2):
            cluster.pod(f"lender-{number}", "lender", 4)
        cluster.advance(30.0)
        cluster.group("owner", "online")
        cluster.pod("owner-0", "owner", 4)
        cluster.advance(120.0)
    answer = json.loads(
        run("who", "evicted", "--between", "00:00", "23:59", "--recording", folder, "-o", "json").output
    )
    [victim] = answer["evictions"]
    assert (victim["preemptor_job"], "is_inferred" in victim) == ("team/owner", False)
    return folder, victim["pod"]


def test_reduce_begins_with_the_state_before_an_eviction(reclaimed: tuple[Path, str], tmp_path: Path) -> None:
    folder, pod = reclaimed
    out = tmp_path / "evicted.feature"
    done = run("reduce", folder, "--because", f"pod {pod} was evicted", "-o", out, "--cases", 60)
    assert done.return_value == 0, done.output
    assert "is evicted" in out.read_text()


@pytest.mark.parametrize(
    "because", ["pod team/never was evicted", "monitor gang", "job team/never waits", "pod team/owner-0 was evicted"]
)
def test_reduce_refuses_what_did_not_happen(reclaimed: tuple[Path, str], tmp_path: Path, because: str) -> None:
    out = tmp_path / "none.feature"
    done = run("reduce", reclaimed[0], "--because", because, "-o", out, "--cases", 20)
    assert done.return_value in (1, 2)
    assert not out.exists()
    assert "Traceback" not in done.output


def test_report_writes_the_page_of_a_span(incident: tuple[Path, float], tmp_path: Path) -> None:
    folder, between = incident
    page = tmp_path / "page.html"
    found = run("report", folder, "--to", clock(between), "-o", page)
    assert found.return_value == 0, found.output
    assert "a-0" in page.read_text()
    assert page.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["judge", "{}", "--from", "noon"], "is no time"),
        (["judge", "{}", "--from", "14:20", "--to", "14:10"], "ends before it begins"),
        (["judge", "{}", "--from", "2020-01-01", "--to", "2020-01-02"], "has nothing between these times"),
        (["judge", "{}", "--scheduler", "volcanoo"], "volcano"),
        (["judge", "{empty}"], "no recording of a cluster"),
        (["who", "evicted", "team/never", "--recording", "{}"], "shows no eviction of team/never"),
        (["who", "evicted", "--recording", "{}", "--between", "14:20", "14:10"], "ends before it begins"),
        (["why", "team/a", "--recording", "{}", "--at", "2020-01-01"], "has no state at"),
        (["why", "team/a", "--state", "{list}", "--at", "14:13"], "no recording of a cluster"),
        (["report", "{}", "--from", "noon"], "is no time"),
        (["record", "--out", "{file}", "--kubeconfig", "{list}"], "Invalid kube-config file"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(
    incident: tuple[Path, float], tmp_path: Path, arguments: list[str], error: str
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "list.json").write_text("{}")
    places = {"empty": tmp_path / "empty", "list": tmp_path / "list.json", "file": tmp_path / "out"}
    found = run(*(text.format(incident[0], **places) for text in arguments))
    assert found.exception is None, found.exc_info
    assert found.return_value in (1, 2)
    assert error in found.output
    assert "Traceback" not in found.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["who", "evicted", "--recording", "{}"],
        ["who", "evicted", "a", "--recording", "{}"],
        ["who", "evicted", "team/a", "--recording", "{}", "--between", "14:10", "14:20"],
        ["why", "team/a", "--at", "14:13"],
        ["report", "{}", "{}"],
        ["report", "{plain}", "--from", "14:13"],
        ["record"],
        ["record", "--out", "x", "--keep", "0d"],
        ["record", "--out", "x", "--keep", "soon"],
        ["record", "--out", "x", "--max-size", "10"],
        ["record", "--out", "x", "--max-size", "-1GiB"],
        ["record", "--out", "x", "--redact"],
        ["record", "--out", "x", "--names", "n"],
        ["record", "--out", "x", "--redact", "--names", "x/names"],
        ["record", "--out", "x", "--scheduler", "volcano"],
        ["record", "--out", "x", "--listen", "nowhere"],
    ],
    ids=" ".join,
)
def test_options_that_do_not_fit_are_usage_errors(
    incident: tuple[Path, float], tmp_path: Path, arguments: list[str]
) -> None:
    (tmp_path / "plain").mkdir()
    given = [text.format(incident[0], plain=tmp_path / "plain") for text in arguments]
    assert CliRunner().invoke(schedspec, given).exit_code == 2
    assert segments_over_time(incident[0])
