"""Sweeps: differences are those of two runs with the same load, and loads that contradict each other are no verdict."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedspec.lab.simulate.pages import sweep
from tests.schedspec.lab.simulate.pages.test_page import EMPTY
from tests.support.browser import Browser, chromium

POLICIES = ("old.yaml", "some/folder/new.yaml", "third.yaml")


def write_result(path: Path, policy: str, seed: int | None, evicted: int, **more: object) -> Path:
    """Write the first and the last line of a result."""
    load = "load.yaml" if seed is None else f"load.yaml with seed {seed}"
    run = {"kind": "run", "format": 1, "policy": policy, "load": load, "resource": "gpu", "cards": 8, "nodes": 1,
           "jobs": 9, "queues": ["a"], "sample": 1, "seed": seed}  # fmt: skip
    waits = {"jobs": 9, "mean": 60.0 * evicted}
    metrics = {**json.loads(EMPTY), "evicted_pods": evicted, "utilisation": 0.5, "wait_seconds": waits}
    end = {"kind": "end", "at": 9, "interrupted": False, "cycles": 1, "metrics": metrics, **more}
    path.write_text("\n".join(map(json.dumps, (run, end))))
    return path


def sweep_of(folder: Path, values: Mapping[str, Mapping[int, int]]) -> sweep.Sweep:
    return sweep.read(
        write_result(folder / f"{Path(policy).stem}-{seed}.jsonl", policy, seed, value)
        for policy, by_seed in values.items()
        for seed, value in by_seed.items()
    )


seeds = st.dictionaries(st.integers(1, 12), st.integers(0, 5), min_size=1, max_size=5)


@given(old=seeds, new=seeds)
def test_each_difference_is_of_two_runs_with_the_same_seed(old: dict[int, int], new: dict[int, int]) -> None:
    runs = {
        policy: {f"seed {seed}": {"evicted_pods": value} for seed, value in values.items()}
        for policy, values in (("old", old), ("new", new))
    }
    made = sweep.Sweep(runs, [f"seed {seed}" for seed in sorted(old.keys() | new.keys())], [])
    both = sorted(old.keys() & new.keys())
    expected = {f"seed {seed}": float(new[seed] - old[seed]) for seed in both}
    found = {values.label: values for values in made.differences("new")}
    assert ("evicted pods" in found) is bool(both)
    if both:
        evicted = found["evicted pods"]
        assert [*evicted.by_load.items()] == [*expected.items()]  # in the order of the seeds
        assert (evicted.count("better"), evicted.count("worse")) == (
            sum(it < 0 for it in expected.values()),
            sum(it > 0 for it in expected.values()),
        )
        zero, dots = evicted.dots
        assert all(
            (x < zero, x > zero) == (it < 0, it > 0) for (x, *_), it in zip(dots, expected.values(), strict=True)
        )
        assert all(0 <= x <= sweep.WIDTH for x, *_ in dots)


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [((-1, -2), "better"), ((-1, 0), "better"), ((0, 0), ""), ((0, 3), "worse"), ((-9, 1), "mixed")],
)
def test_a_policy_is_better_only_if_no_seed_contradicts(
    tmp_path: Path, differences: tuple[int, ...], verdict: str
) -> None:
    new = {seed: 10 + it for seed, it in enumerate(differences)}
    made = sweep_of(tmp_path, {"old": dict.fromkeys(new, 10), "new": new})
    found = {side: [it.label for it in values] for side, values in made.verdicts("new").items() if values}
    assert found == ({verdict: ["wait mean", "evicted pods"]} if verdict else {})


def test_runs_that_did_not_end_are_left_out_and_named(tmp_path: Path) -> None:
    whole = write_result(tmp_path / "whole.jsonl", "old", 1, 1)
    stopped = write_result(tmp_path / "stopped.jsonl", "old", 2, 1, interrupted=True)
    cut = tmp_path / "cut.jsonl"
    cut.write_text(whole.read_text().splitlines()[0])
    made = sweep.read([whole, stopped, cut])
    assert made.incomplete == [stopped, cut]
    assert [*made.runs["old"]] == ["seed 1"]
    text = sweep.write(made, tmp_path / "page.html").read_text("utf-8")
    assert "Left out, because the runs did not end: stopped.jsonl, cut.jsonl" in text


def test_pairs_are_in_the_order_of_their_seeds(tmp_path: Path) -> None:
    made = sweep_of(tmp_path, {"old": {10: 1, 9: 2}, "new": {9: 3, 10: 4}})
    assert made.loads == ["seed 9", "seed 10"]
    (evicted,) = (values for values in made.differences("new") if values.label == "evicted pods")
    assert [*evicted.by_load.values()] == [1.0, 3.0]


def test_loads_without_seeds_keep_their_names(tmp_path: Path) -> None:
    results = [write_result(tmp_path / f"{policy}.jsonl", policy, None, 1) for policy in ("old", "new")]
    made = sweep.read(results)
    assert made.loads == ["load.yaml"]
    assert [*made.differences("new")[0].by_load] == ["load.yaml"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as it:
        yield it


def test_the_page_compares_each_policy_with_the_first(browser: Browser, tmp_path: Path) -> None:
    made = sweep_of(tmp_path, {policy: {1: 3 + n, 2: 9 - n, 3: 4} for n, policy in enumerate(POLICIES)})
    with browser.page(sweep.write(made, tmp_path / "sweep.html"), width=390) as page:
        assert page.locator("h1").inner_text() == "9 runs: 3 policies, 3 loads"
        titles = [it for it in page.locator("h2").all_inner_texts() if "against" in it]
        assert titles == ["new.yaml against old.yaml", "third.yaml against old.yaml"]
        row = page.get_by_role("region", name="Differences of third.yaml").locator("tr", has_text="evicted pods")
        assert row.locator("td").first.inner_text().split() == ["±0", "mixed", "1", "better,", "1", "worse"]
        assert row.locator("circle").count() == 3
        assert row.locator("circle.better title").text_content() == "seed 2: −2"
        assert page.locator("summary").count() == 2
