"""Presets read their public traces, with the oddities of each; lists of nodes are read; broken files are refused."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import pytest

from schedspec.lab.simulate.columns import InputError, changed
from schedspec.lab.simulate.inputs import MODEL, read_nodes, read_scene
from schedspec.lab.simulate.trace import read_trace
from tests.support.core.public_traces import public_trace

CARDS = "nvidia.com/gpu"


def test_the_jobs_of_philly_are_sorted_by_time() -> None:
    trace = read_trace(public_trace("philly.csv.gz"), changed("philly", {}), CARDS)
    assert (len(trace.jobs), trace.unsorted, len(trace.queues)) == (82_247, 44_878, 15)
    assert sum(job.pods * job.run_time for job in trace.jobs) / 3600 == pytest.approx(978_078, abs=1)
    places = [(job.submitted, job.line) for job in trace.jobs]
    assert places == sorted(places)


def test_a_pod_of_openb_that_never_started_has_no_run_time() -> None:
    path = public_trace("openb_pod_list_default.csv.gz")
    with pytest.raises(InputError, match="column scheduled_time: '' says that the job never started"):
        read_trace(path, changed("openb", {}), CARDS)
    trace = read_trace(path, changed("openb", {}), CARDS, skip_bad=True)
    assert (len(trace.jobs), [cause.rows for cause in trace.skipped.values()], trace.assumed) == (7_255, [897], "")
    assert max(job.run_time for job in trace.jobs) <= 12_902_960


def test_a_copy_of_openb_without_the_times_of_starts_says_what_it_assumes(tmp_path: Path) -> None:
    rows = gzip.decompress(public_trace("openb_pod_list_default.csv.gz").read_bytes()).decode().splitlines()
    (tmp_path / "pods.csv").write_text("\n".join(row.rpartition(",")[0] for row in rows))
    trace = read_trace(tmp_path / "pods.csv", changed("openb", {}), CARDS, skip_bad=True)
    assert (len(trace.jobs), [cause.rows for cause in trace.skipped.values()]) == (8_151, [1])
    assert "no column says when jobs started" in trace.assumed


def test_openb_with_endless_jobs_has_a_fixed_demand_for_cards() -> None:
    trace = read_trace(public_trace("openb_pod_list_default.csv.gz"), changed("openb", {"duration": "inf"}), CARDS)
    cards = sum(int(dict(job.requests).get(CARDS, "0")) for job in trace.jobs)
    assert (len(trace.jobs), {job.run_time for job in trace.jobs}) == (8_152, {math.inf})
    assert cards == 6_989 + 2 * 16 + 4 * 15 + 8 * 44


@pytest.mark.parametrize(
    ("name", "nodes", "cards", "model"),
    [("openb_node_list_gpu_node.csv.gz", 1_213, 6_212, "P100"), ("node_info_df.csv.gz", 4_278, 10_412, "GPU-series-1")],
)
def test_public_lists_of_nodes_are_read_unchanged(name: str, nodes: int, cards: int, model: str) -> None:
    scene = read_scene([str(public_trace(name))], [], CARDS)
    assert (len(scene.nodes), scene.total[CARDS] // 1000) == (nodes, cards)
    assert (scene.nodes[0].metadata.labels or {})[MODEL] == model


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name,cards\na,8\na,8\n", ":3: column name: 'a' is the name of another node"),
        ("name,cards\n,8\n", ":2: column name: '' is no name"),
        ("name,cards\na,many\n", ":2: column cards: 'many' is not a quantity; write"),
        ("name,cards,memory_mib\na,8,-1\n", ":2: column memory_mib: '-1' is below 0"),
        ("name,cards,cpu\na,8\n", ":2: column cpu: '' is not a quantity"),
        ("name,gpus\na,8\n", ":1: no column cards or gpu or gpu_capacity_num; columns are name, gpus"),
        ("", ":1: no column name or sn or node_name; columns are missing"),
    ],
)
def test_the_error_of_a_bad_list_of_nodes_names_line_and_column(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "nodes.csv").write_text(text)
    with pytest.raises(InputError) as refused:
        read_nodes(tmp_path / "nodes.csv", CARDS)
    assert f"nodes.csv{problem}" in str(refused.value)


UNREADABLE = "cannot be read: .*; name a CSV file in UTF-8, or one compressed with gzip"
WHOLE = gzip.compress(b"submitted,duration\n" + b"1,5\n" * 1000, mtime=0)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("cut.csv.gz", WHOLE[:-20], UNREADABLE),
        ("plain.csv.gz", b"submitted,duration\n1,5\n", UNREADABLE),
        ("quote.csv", b'submitted,duration\n1,"' + b"5" * 200_000, "is no CSV: .*; close each quotation"),
    ],
)
def test_the_error_of_a_broken_file_names_a_remedy(tmp_path: Path, name: str, content: bytes, problem: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=problem):
        read_trace(tmp_path / name, {"submitted": "submitted", "duration": "duration"}, CARDS)
