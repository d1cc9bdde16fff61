"""`scheduler simulate`: from a trace to a result file, and the errors of bad inputs."""

from __future__ import annotations

import gzip
import json
import signal
from pathlib import Path
from typing import Any

import click
import pytest

from schedspec.lab.simulate.against import judged
from schedspec.virtual import Simulation
from tests.support import simulating

HEADER = "when,secs,gpus,team"
COLUMNS = "submitted=when,duration=secs,job_cards=gpus,queue=team"
POLICY = """
actions: "allocate"
tiers:
- plugins: [{name: priority}]
- plugins: [{name: gang}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
PREEMPT = POLICY.replace("allocate", "allocate, preempt")


def simulate(
    folder: Path, rows: str, *more: str, header: str = HEADER, nodes: str = "2x8", policy: str = POLICY
) -> int:
    (folder / "trace.csv").write_text(f"{header}\n{rows}" if header else rows)
    (folder / "policy.yaml").write_text(policy)
    given = [
        "--trace", str(folder / "trace.csv"), "--nodes", nodes, "--policy", str(folder / "policy.yaml"),
        "--out", str(folder / "result.jsonl"),
    ]  # fmt: skip
    columns = () if "--map" in more or "--preset" in more else ("--map", COLUMNS)
    return simulating.simulate([*given, *columns, *more])


def lines(folder: Path, kind: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (folder / "result.jsonl").read_text().splitlines()]
    return [it for it in found if it["kind"] == kind]


def test_each_job_gets_a_line_with_its_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(tmp_path, "100,60,16,red\n110,30,1,red\n") == 0
    first, second = lines(tmp_path, "job")
    assert (first["submitted"], first["started"], first["ended"], first["outcome"]) == (100, 100, 160, "completed")
    assert (second["submitted"], second["started"], second["ended"]) == (110, 160, 190)
    assert first["card_seconds_used"] == 16 * 60
    assert [wait["seconds"] for wait in second["waits"]] == [50]
    (end,) = lines(tmp_path, "end")
    assert end["metrics"]["wait_seconds"]["max"] == 50
    assert end["metrics"]["makespan_seconds"] == 90
    assert end["metrics"]["utilisation"] == pytest.approx((16 * 60 + 30) / (16 * 90))
    assert "2 jobs until 1970-01-01T00:03:10Z" in capsys.readouterr().out


def test_equal_runs_write_equal_bytes(tmp_path: Path) -> None:
    rows = "".join(f"{100 + n * 7 % 50},{20 + n},{n % 16 + 1},q{n % 3}\n" for n in range(40))
    simulate(tmp_path, rows)
    before = (tmp_path / "result.jsonl").read_bytes()
    simulate(tmp_path, rows)
    assert (tmp_path / "result.jsonl").read_bytes() == before


def test_an_eviction_names_its_preemptor_and_what_was_lost(tmp_path: Path) -> None:
    columns = f"{COLUMNS},priority=prio"
    header = f"{HEADER},prio"
    assert (
        simulate(tmp_path, "100,60,16,red,0\n110,30,16,red,9\n", "--map", columns, header=header, policy=PREEMPT) == 0
    )
    high, low = lines(tmp_path, "job")
    assert (high["started"], low["ended"], low["attempts"]) == (110, 200, 2)
    (eviction,) = low["evictions"]
    assert (eviction["preemptor"], eviction["pods"], eviction["lost"]) == ("load/job-3", 16, 160)
    assert low["card_seconds_lost"] == 160
    metrics = lines(tmp_path, "end")[0]["metrics"]
    assert (metrics["evicted_pods"], metrics["evicted_jobs"], metrics["evicted_to_requested"]) == (16, 1, 1)


def test_unsorted_rows_are_sorted_stably(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(tmp_path, "200,5,16,red\n100,5,16,red\n100,7,16,red\n") == 0
    assert [(it["job"], it["started"]) for it in lines(tmp_path, "job")] == [
        ("job-3", 100),
        ("job-4", 105),
        ("job-2", 200),
    ]
    assert "1 row earlier" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("row", "place", "remedy"),
    [
        ("soon,60,1,red", "column when: 'soon' is not a time", "write 2017-10-09 07:01:55, or seconds"),
        ("1,-5,1,red", "column secs: '-5' is not a duration", "inf for a job that never ends"),
        ("1,nan,1,red", "column secs: 'nan' is not a duration", "write seconds above 0"),
        ("1,5,1.5,red", "column gpus: '1.5' is not a whole number", "a whole number from 0"),
        ("1,5,1e30,red", "column gpus: '1e30' is not a whole number in range", "to 1000000"),
        ("1,5,1,", "column team: '' is not a name of a queue", "name its queue, or leave the column out"),
        ("1,1e300,1,red", "column secs: '1e300' is not a duration", "inf for a job that never ends"),
        ("1,1-02:03:04:05,1,red", "column secs: '1-02:03:04:05' is not a duration", "1-02:03:04 or 02:03:04"),
        ("1,5", "column gpus: '' is not a whole number", "a whole number from 0"),
        ("1_0,60,1,red", "column when: '1_0' is not a time", "write 2017-10-09 07:01:55, or seconds"),
        ("1,６0,1,red", "column secs: '６0' is not a duration", "write seconds above 0"),
        ("1,60,1_0,red", "column gpus: '1_0' is not a whole number", "a whole number from 0"),
        ("1,5,1,red,blue", "column team: '1,5,1,red,blue' is followed by more cells", "quote a cell"),
    ],
)
def test_the_error_of_a_bad_row_names_line_column_and_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], row: str, place: str, remedy: str
) -> None:
    assert simulate(tmp_path, f"1,60,1,red\n{row}\n") == 2
    error = capsys.readouterr().err
    assert f"trace.csv:3: {place}" in error
    assert remedy in error


@pytest.mark.parametrize("row", ['1,5,1,"red', '1,5,1,"red"dish', '"1,5,1,red'])
def test_an_open_quotation_hides_no_later_row(tmp_path: Path, capsys: pytest.CaptureFixture[str], row: str) -> None:
    assert simulate(tmp_path, f"1,60,1,red\n{row}\n2,60,1,red\n") == 2
    assert "trace.csv: is no CSV: " in capsys.readouterr().err


def test_skip_bad_leaves_bad_rows_out_and_counts_them_by_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulate(tmp_path, "1,60,1,red\n1,1,x,red\nx,1,1,red\ny,1,1,red\n", "--skip-bad") == 0
    error = capsys.readouterr().err
    assert "3 bad rows left out\n" in error
    assert "2: column when is not a time; the first: " in error
    assert "trace.csv:4, 'x'\n" in error
    assert "1: column gpus is not a whole number in range; the first: " in error
    assert len(lines(tmp_path, "job")) == 1


def test_an_end_before_the_submission_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(tmp_path, "100,90,1,red\n", "--map", COLUMNS.replace("duration", "ended")) == 2
    assert "trace.csv:2: column secs: '90' is not after the submission: time goes backwards" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "problem"), [("", "is empty"), (f"{HEADER}\n\n", "has no job")])
def test_an_empty_trace_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, problem: str) -> None:
    assert simulate(tmp_path, text, header="") == 2
    assert f"{problem}; name a file with a header" in capsys.readouterr().err


def test_the_error_of_a_missing_column_names_the_columns_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulate(tmp_path, "1,1,1,red\n", "--preset", "philly") == 2
    assert "trace.csv:1: no column timestamp (for submitted); columns are when, secs" in capsys.readouterr().err


def test_the_error_names_a_missing_queue(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    queues = tmp_path / "queues.yaml"
    queues.write_text("{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: blue}, spec: {}}")
    assert simulate(tmp_path, "1,1,1,red\n", "--queues", str(queues)) == 2
    assert (
        "trace.csv:2: column team: 'red' is not a queue; add it to --queues, which has blue" in capsys.readouterr().err
    )
    assert simulate(tmp_path, "1,1,1,blue\n", "--queues", str(queues)) == 0


def test_an_endless_job_still_runs_when_the_run_ends(tmp_path: Path) -> None:
    assert simulate(tmp_path, "1,inf,1,red\n1,10,1,red\n") == 0
    over, endless = lines(tmp_path, "job")
    assert (over["outcome"], endless["outcome"], endless["run_time"], endless["ended"]) == (
        "completed",
        "running",
        None,
        None,
    )
    assert endless["card_seconds_used"] == 10


def test_a_job_that_never_fits_waits_with_a_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(tmp_path, "1,10,17,red\n1,10,1,red\n") == 0
    job = next(it for it in lines(tmp_path, "job") if it["job"] == "job-2")
    assert job["outcome"] == "waiting"
    assert job["waits"][-1]["text"]
    out = capsys.readouterr().out
    assert "waiting at the end: 1 job, such as" in out
    assert job["waits"][-1]["text"] in out


def test_until_stops_the_run_in_virtual_time(tmp_path: Path) -> None:
    assert simulate(tmp_path, "100,1000,1,red\n", "--until", "10m") == 0
    assert lines(tmp_path, "end")[0]["at"] == 700
    assert lines(tmp_path, "job")[0]["card_seconds_used"] == 600


def test_against_shows_metrics_and_jobs_that_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "100,60,16,red\n110,30,1,red\n"
    simulate(tmp_path, rows)
    (tmp_path / "result.jsonl").rename(tmp_path / "before.jsonl")
    capsys.readouterr()
    assert simulate(tmp_path, rows, "--against", str(tmp_path / "before.jsonl"), nodes="3x8") == 0
    out = capsys.readouterr().out
    assert "1 of 2 jobs start at another time" in out
    assert "job-3: waited 50 s, now 0 s (-50 s)" in out
    assert "this run is better by mean wait 25 s → 0 s (-100%), wait p95 50 s → 0 s (-100%)\n" in out
    marks = {line.split()[0]: line.split()[-1] for line in out.splitlines() if line.endswith(("better", "worse"))}
    assert (marks["wait_seconds.mean"], marks["makespan_seconds"]) == ("better", "better")


@pytest.mark.parametrize(
    ("metric", "less"),
    [
        ("wait_seconds.p95", "better"), ("wait_seconds.jobs", ""), ("jobs", ""), ("used_card_hours", ""),
        ("outcomes.completed", "worse"), ("outcomes.waiting", "better"), ("utilisation", "worse"), ("jain", "worse"),
        ("queues.red.below_guarantee_seconds", "better"), ("queues.red.used_card_hours", ""),
        ("wait_seconds_by_queue.a.b.max", "better"), ("evicted_to_requested", "better"),
    ],
)  # fmt: skip
def test_less_of_a_metric_is_better_or_worse(metric: str, less: str) -> None:
    opposite = {"better": "worse", "worse": "better", "": ""}
    assert (judged(metric, 2.0, 1.0), judged(metric, 1.0, 2.0)) == (less, opposite[less])
    assert judged(metric, 1.0, 1.0) == judged(metric, None, 1.0) == ""


def test_against_a_result_that_was_cut_off_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    simulate(tmp_path, "1,10,1,red\n")
    whole = (tmp_path / "result.jsonl").read_text().splitlines()
    (tmp_path / "cut.jsonl").write_text("\n".join(whole[:-1]) + "\n")
    assert simulate(tmp_path, "1,10,1,red\n", "--against", str(tmp_path / "cut.jsonl")) == 2
    assert "has no last line with metrics" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", "a b", "-gpu", "gpu/", "Amd.com/gpu", "a/b/c", "cpu", "memory", "pods"])
def test_what_is_no_name_of_a_resource_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(click.BadParameter, match="is no name of cards"):
        simulate(tmp_path, "100,1000,1,red\n", "--resource", name)


@pytest.mark.parametrize("option", ["--until", "--sample", "--checkpoint-every", "--run-time"])
@pytest.mark.parametrize("time", ["0", "0s", "-1", "nan"])
def test_a_time_in_which_nothing_happens_is_refused(tmp_path: Path, option: str, time: str) -> None:
    with pytest.raises(click.BadParameter) as refused:
        simulate(tmp_path, "100,1000,1,red\n", f"{option}={time}")
    assert refused.value.format_message().startswith(f"Invalid value for '{option}': '{time}' is ")


@pytest.mark.parametrize("nodes", ["8", "0x8", "2x8,cpu=lots", "2x8,cpu=0", "2x8,memory=0Gi", "2x8,pods=0"])
def test_invalid_nodes_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], nodes: str) -> None:
    assert simulate(tmp_path, "1,1,1,red\n", nodes=nodes) == 2
    assert capsys.readouterr().err.startswith("--nodes: ")


def test_an_interrupted_run_writes_the_results_so_far(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    instants = Simulation.instants

    def interrupted(self: Simulation, *given: Any) -> Any:
        for now in instants(self, *given):
            if now >= 110:
                signal.raise_signal(signal.SIGINT)
            yield now

    monkeypatch.setattr(Simulation, "instants", interrupted)
    assert simulate(tmp_path, "100,60,16,red\n110,30,1,red\n120,30,1,red\n") == 130
    assert "interrupted at 1970-01-01T00:01:50Z" in capsys.readouterr().err
    assert [it["outcome"] for it in lines(tmp_path, "job")] == ["running", "waiting"]
    assert lines(tmp_path, "end")[0]["interrupted"] is True


def jobs_of(folder: Path) -> dict[str, dict[str, Any]]:
    return {job["job"]: job for job in lines(folder, "job")}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90), ("90.5", 90.5), ("02:03", 123), ("01:02:03", 3723), ("1-02:03:04", 93784), ("2-00:00:00", 172800),
        ("1-06", 108000), ("1-06:30", 109800), ("00:10.5", 10.5), ("inf", None),
    ],
)  # fmt: skip
def test_durations_are_read_as_slurm_writes_them(tmp_path: Path, text: str, seconds: float | None) -> None:
    assert simulate(tmp_path, f"0,{text},1,red\n") == 0
    assert lines(tmp_path, "job")[0]["run_time"] == seconds


def test_a_job_runs_from_its_start_to_its_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three jobs that ran one after the other, 100 s each: their waits are no part of their run times."""
    rows, header = "0,0,100,8\n0,100,200,8\n0,200,300,8\n", "submit,start,end,gpus"
    given = "submitted=submit,started=start,ended=end,job_cards=gpus"
    assert simulate(tmp_path, rows, "--map", given, header=header, nodes="1x8") == 0
    assert [job["run_time"] for job in lines(tmp_path, "job")] == [100, 100, 100]
    assert lines(tmp_path, "end")[0]["metrics"]["makespan_seconds"] == 300
    assert "when jobs started" not in capsys.readouterr().err
    assert simulate(tmp_path, rows, "--map", given.replace("started=start,", ""), header=header, nodes="1x8") == 0
    assert "no column says when jobs started: each run time is the whole time" in capsys.readouterr().err


@pytest.mark.parametrize("started", ["100", "150"])
def test_an_end_before_the_start_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], started: str) -> None:
    given = "submitted=submit,started=start,ended=end,job_cards=gpus"
    assert simulate(tmp_path, f"0,{started},100,8\n", "--map", given, header="submit,start,end,gpus") == 2
    assert "column end: '100' is not after the start" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("submitted=submit,started=start", "no column for duration or ended"),
        ("submitted=submit,submitted=start,duration=end", "submitted has two columns, submit and start"),
        ("submitted=submit,started=start,duration=end", "duration and started exclude each other"),
        ("submitted=submit,duration=end,job_cards=gpus,job=start", "job_cards and job exclude each other"),
        ("submitted=submit,duration=submit", "submitted and duration are both column submit"),
        ("submitted=submit,ended=submit", "submitted and ended are both column submit"),
    ],
)
def test_columns_that_contradict_each_other_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: str, problem: str
) -> None:
    assert simulate(tmp_path, "0,0,100,8\n", "--map", given, header="submit,start,end,gpus") == 2
    assert problem in capsys.readouterr().err


def test_a_column_that_the_header_names_twice_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(tmp_path, "0,5,1,red,9\n", header=f"{HEADER},when") == 2
    assert "trace.csv:1: 2 columns are called when; rename one of them" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (("--run-time", "2h"), "--run-time: nothing reads it without --state"),
        (("--checkpoint-every", "5m"), "--checkpoint-every: nothing reads it without --on-eviction checkpoint"),
        (("--trace", "/dev/zero"), "/dev/zero: cannot be read: a character device is not a regular file"),
    ],
)
def test_an_input_that_nothing_reads_or_that_never_ends_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], problem: str
) -> None:
    assert simulate(tmp_path, "0,5,1,red\n", *more) == 2
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--map=submitted=when", "--preset=philly", "--skip-bad"])
def test_an_option_of_a_trace_is_refused_without_a_trace(capsys: pytest.CaptureFixture[str], option: str) -> None:
    assert simulating.simulate(["--synthetic", "load.yaml", option]) == 2
    assert f"{option.partition('=')[0]}: nothing reads it without --trace" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--map=submitted=when", "--preset=philly", "--skip-bad"])
def test_an_option_of_rows_is_refused_with_a_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    recording = tmp_path / "recording"
    assert simulate(tmp_path, "0,5,1,red\n", "--record", str(recording)) == 0
    capsys.readouterr()
    assert simulating.simulate(["--trace", str(recording), option]) == 2
    printed = capsys.readouterr().err
    assert f"{option.partition('=')[0]}: nothing reads it: {recording} is a recording" in printed
    assert "leave" in printed


def test_a_compressed_trace_is_read_whatever_its_name_is(tmp_path: Path) -> None:
    (tmp_path / "packed.csv").write_bytes(gzip.compress(f"{HEADER}\n0,5,1,red\n".encode()))
    assert simulate(tmp_path, "0,7,1,red\n", "--trace", str(tmp_path / "packed.csv")) == 0
    assert [job["ended"] for job in lines(tmp_path, "job")] == [5]


def test_queue_names_of_other_systems_are_mapped_and_stay_different(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["phys_lab", "Team_A", "équipe", "team-a", "研究", "a.b/c", "phys_lab", "x" * 70, "数据"]
    assert simulate(tmp_path, "".join(f"{n},10,1,{name}\n" for n, name in enumerate(names))) == 0
    found = [job["queue"] for job in jobs_of(tmp_path).values()]
    assert found[:4] == ["phys-lab", "team-a", "equipe", "team-a-2"]
    assert (found[0], found[5]) == (found[6], "a-b-c")
    assert len(set(found)) == len(set(names))
    error = capsys.readouterr().err
    assert "Team_A → team-a" in error
    assert "team-a → team-a-2" in error


def test_a_mapped_name_finds_its_queue(tmp_path: Path) -> None:
    queues = tmp_path / "queues.yaml"
    queues.write_text("{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: phys-lab}, spec: {}}")
    assert simulate(tmp_path, "1,1,1,phys_lab\n", "--queues", str(queues)) == 0
    assert lines(tmp_path, "job")[0]["queue"] == "phys-lab"
    assert simulate(tmp_path, "1,1,1,chem_lab\n", "--queues", str(queues)) == 2


@pytest.mark.parametrize("separator", [",", "|", ";", "\t"])
def test_columns_are_found_whatever_separates_them(tmp_path: Path, separator: str) -> None:
    def separated(text: str) -> str:
        return text.replace(",", separator)

    assert simulate(tmp_path, separated("1,60,2,red\n"), header=separated(f'{HEADER},"a, b|c;d"')) == 0
    assert (lines(tmp_path, "job")[0]["pods"], lines(tmp_path, "job")[0]["queue"]) == (2, "red")


def test_rows_of_one_name_are_the_pods_of_one_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = "submitted=when,duration=secs,cards=gpus,queue=team,job=name"
    rows = "5,60,2,red,a\n0,30,1,red,b\n4,70,2,red,a\n9,10,1,red,\n9,10,1,red,\n"
    assert simulate(tmp_path, rows, "--map", given, header=f"{HEADER},name") == 0
    found = [(job["pods"], job["cards"], job["submitted"], job["run_time"]) for job in jobs_of(tmp_path).values()]
    assert sorted(found) == [(1, 1, 0, 30), (1, 1, 9, 10), (1, 1, 9, 10), (2, 4, 4, 70)]
    for other in ("4,70,3,red,a", "4,70,2,blue,a"):
        assert simulate(tmp_path, f"5,60,2,red,a\n{other}\n", "--map", given, header=f"{HEADER},name") == 2
        assert "trace.csv:3: column name: 'a' has a row with" in capsys.readouterr().err


def test_jobs_without_cards_run_on_their_cpus(tmp_path: Path) -> None:
    given = ("--map", f"{COLUMNS},cpu=cpus")
    assert simulate(tmp_path, "0,60,0,red,8\n0,60,0,red,8\n", *given, header=f"{HEADER},cpus", nodes="1x0,cpu=8") == 0
    assert [(job["cards"], job["started"]) for job in jobs_of(tmp_path).values()] == [(0, 0), (0, 60)]


def test_a_run_ends_before_time_itself_does(tmp_path: Path) -> None:
    """Two jobs that follow each other, of 4,000 years each."""
    assert simulate(tmp_path, "0,2e11,8,red\n0,2e11,8,red\n", nodes="1x8") == 0
    assert sorted(job["outcome"] for job in lines(tmp_path, "job")) == ["completed", "running"]
