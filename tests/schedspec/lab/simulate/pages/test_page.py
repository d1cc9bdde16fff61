"""The page of a simulation: exact amounts, a bounded size, zooming, and the comparison of two worlds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedspec.lab.simulate import pages as load
from schedspec.lab.simulate.columns import InputError
from schedspec.lab.simulate.pages.charts import Chart, rounded_up
from schedspec.lab.simulate.pages.world import Changes
from tests.support import simulating
from tests.support.browser import Browser, chromium

POLICY = """
actions: "allocate, reclaim"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
"""
WIDTHS = (1440, 390)


def simulate(folder: Path, name: str, nodes: str = "2x8") -> Path:
    """Simulate a load in which red borrows all cards, and blue then reclaims its half."""
    rows = [*(f"{100 + n},500,1,red" for n in range(24)), *(f"{150 + n},200,1,blue" for n in range(12))]
    (folder / "trace.csv").write_text("when,secs,gpus,team\n" + "\n".join(rows))
    (folder / "policy.yaml").write_text(POLICY)
    out = folder / f"{name}.jsonl"
    given = ("--trace", str(folder / "trace.csv"), "--policy", str(folder / "policy.yaml"), "--out", str(out))
    columns = ("--map", "submitted=when,duration=secs,job_cards=gpus,queue=team", "--sample", "10")
    assert simulating.simulate([*given, *columns, "--nodes", nodes]) == 0
    return out


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A cluster of 16 cards, and one of 24."""
    folder = tmp_path_factory.mktemp("results")
    return simulate(folder, "small"), simulate(folder, "large", "3x8")


@pytest.fixture(scope="module")
def pages(results: Sequence[Path]) -> tuple[Path, Path]:
    """The page of one world, and of both."""
    small, large = results
    one = load.make([load.read(small, "now")])
    both = load.make([load.read(small, "before", keeps_waits=True), load.read(large, "now", keeps_waits=True)])
    return load.write(one, small.with_name("one.html")), load.write(both, small.with_name("both.html"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as it:
        yield it


# --------------------------------------------------------------------------------------------------------- amounts


def test_means_over_any_edges_are_exact() -> None:
    changes = Changes()
    for at, amount in ((110.0, -2.0), (100.0, 4.0), (104.0, 2.0), (104.0, -1.0)):
        changes.add(at, amount)
    steps = changes.steps(100.0, 10, 20.0)
    assert steps.times.tolist() == [0, 4, 10]
    assert steps.values.tolist() == [4, 5, 3]
    assert steps.means(np.array([0.0, 8.0, 12.0, 20.0])).tolist() == [4.5, 4.0, 3.0]


def test_times_of_too_many_changes_are_rounded_and_no_amount_is_lost() -> None:
    changes = Changes()
    for n in range(1000):
        changes.add(n + 0.25, 1.0 if n % 2 else 3.0)
    steps = changes.steps(0.0, 100, 1000.0)
    assert len(steps.times) <= 101
    assert steps.rounded == 10
    assert steps.values[-1] == 2000


@pytest.mark.parametrize(("value", "end"), [(0, 1), (3, 4), (160, 200), (200, 200), (0.7, 1.0), (410, 500)])
def test_an_axis_ends_at_a_round_number(value: float, end: float) -> None:
    assert rounded_up(value) == pytest.approx(end)


@given(st.floats(4, 1e8), st.sampled_from([0.0, 1_767_571_200.0, 1_700_000_123.0]))
def test_a_chart_of_any_span_has_a_few_times_at_its_axis(span: float, start: float) -> None:
    ticks = Chart("held", "Held", "cards", []).draw({}, start, span).x_ticks
    assert 1 <= len(ticks) <= 5
    assert all(0 <= part <= 1 for part, _ in ticks)


def test_held_cards_are_the_card_seconds_of_the_result(results: Sequence[Path]) -> None:
    world = load.read(results[0], "now")
    for name in ("red", "blue"):
        held = world.steps(name, world.start, "held")
        mean = float(held.means(np.array([0.0, world.span]))[0])
        assert mean * world.span / 3600 == pytest.approx(world.metrics["queues"][name]["used_card_hours"])
        assert held.values[-1] == 0
        assert world.steps(name, world.start, "waiting").values[-1] == 0


def test_evictions_are_summed_by_victim_queue_and_preemptor_queue(results: Sequence[Path]) -> None:
    world = load.read(results[0], "now")
    (loss,) = world.losses.values()
    assert (loss.victim, loss.preemptor) == ("red", "blue")
    assert loss.pods == world.metrics["evicted_pods"] > 0
    assert loss.card_hours == pytest.approx(world.metrics["lost_card_hours"])


def test_a_file_that_was_cut_off_is_refused(results: Sequence[Path], tmp_path: Path) -> None:
    cut = tmp_path / "cut.jsonl"
    cut.write_text("\n".join(results[0].read_text().splitlines()[:-1]))
    with pytest.raises(InputError, match="was cut off; run it again"):
        load.read(cut, "now")


def test_the_page_of_100000_jobs_is_a_few_megabytes(tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    write_large(path, 100_000)
    page = load.write(load.make([load.read(path, "now")]), tmp_path / "large.html")
    assert page.stat().st_size < 4_000_000


def write_large(path: Path, jobs: int) -> None:
    """Write a result of single-card jobs of ten queues, with times that do not repeat."""
    queues = [f"q{n}" for n in range(10)]
    metrics: dict[str, Any] = json.loads(EMPTY)
    head = {
        "kind": "run", "format": 1, "policy": "p", "load": "l", "resource": "gpu", "cards": 1000, "nodes": 125,
        "jobs": jobs, "queues": queues, "sample": 60,
    }  # fmt: skip
    with path.open("w") as file:
        file.write(json.dumps(head) + "\n")
        for n in range(jobs):
            submitted = n * 31.7 % 2_600_000 + n / 1000
            started = submitted + n * n % 7919
            ended = started + 60 + n * 13 % 86_411
            job = {
                "kind": "job", "job": f"job-{n}", "queue": queues[n % 10], "user": "", "priority": 0, "pods": 1,
                "min_member": 1, "requests": {"gpu": "1"}, "cards": 1, "run_time": ended - started,
                "submitted": submitted, "started": started, "ended": ended, "outcome": "completed",
                "held": [[started, ended, 1]],
            }  # fmt: skip
            file.write(json.dumps(job) + "\n")
        file.write(json.dumps({"kind": "end", "at": 2_700_000, "interrupted": False, "cycles": 1, "metrics": metrics}))


EMPTY = """{"jobs": 100000, "outcomes": {}, "wait_seconds": {"jobs": 0}, "wait_seconds_by_queue": {},
"wait_seconds_by_size": {}, "completion_seconds": {"jobs": 0}, "makespan_seconds": 0, "utilisation": null,
"used_card_hours": 0, "lost_card_hours": 0, "evicted_pods": 0, "evicted_jobs": 0, "evictions_per_job": 0,
"evicted_to_requested": null, "distance_from_deserved": null, "jain": null, "queues": {}}"""

# --------------------------------------------------------------------------------------------------------- the page


def drawn(page: Any) -> None:
    page.wait_for_selector("#load[data-drawn]")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("number", [0, 1], ids=["one", "both"])
def test_the_page_fits_its_width(browser: Browser, pages: Sequence[Path], width: int, number: int) -> None:
    with browser.page(pages[number], width=width) as page:
        drawn(page)
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        assert page.locator(".chart[data-chart]").count() == 4


def test_a_drag_zooms_all_pictures_and_a_double_click_shows_all(browser: Browser, pages: Sequence[Path]) -> None:
    with browser.page(pages[0]) as page:
        drawn(page)
        first, third = (page.locator(f".chart[data-chart='{n}'] svg path").first for n in (0, 2))
        before = first.get_attribute("d"), third.get_attribute("d")
        shown = page.locator("#load").get_attribute("data-drawn")
        plot = page.locator(".chart[data-chart='0'] .plot")
        box = plot.bounding_box()
        page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + 20)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 20, steps=4)
        page.mouse.up()
        page.wait_for_function("was => document.getElementById('load').dataset.drawn !== was", arg=shown)
        assert first.get_attribute("d") != before[0]
        assert third.get_attribute("d") != before[1]
        plot.dblclick()
        page.wait_for_function("was => document.getElementById('load').dataset.drawn === was", arg=shown)
        assert first.get_attribute("d") == before[0]


def test_the_exact_amounts_at_the_pointer_are_shown(browser: Browser, pages: Sequence[Path]) -> None:
    with browser.page(pages[0]) as page:
        drawn(page)
        plot = page.locator(".chart[data-chart='0'] .plot")
        box = plot.bounding_box()
        page.mouse.move(box["x"] + box["width"] * 0.03, box["y"] + 20)
        tooltip = page.locator(".chart[data-chart='0'] output")
        assert tooltip.inner_text().endswith(" · red 16 · all cards 16")
        page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + 20)
        assert re.search(r" · (red|blue) 8 · (red|blue) 8 · all cards 16$", tooltip.inner_text())


def test_zooming_in_ends_at_seconds(browser: Browser, pages: Sequence[Path]) -> None:
    with browser.page(pages[0]) as page:
        drawn(page)
        for _ in range(12):
            page.click("[data-zoom='in']")
        page.wait_for_function("document.getElementById('load').dataset.drawn.split('-').reduce((a, b) => b - a) <= 2")
        assert page.locator(".chart[data-chart='0'] .x-ticks span").count() >= 2


def test_a_long_wait_has_its_reasons_and_a_button_that_zooms_to_it(browser: Browser, pages: Sequence[Path]) -> None:
    with browser.page(pages[0]) as page:
        drawn(page)
        rows = page.locator(".worst > li")
        assert rows.count() == 12
        assert "nvidia.com/gpu" in rows.first.inner_text()
        was = page.locator("#load").get_attribute("data-drawn")
        rows.first.locator(".show").click()
        page.wait_for_function("was => document.getElementById('load').dataset.drawn !== was", arg=was)


def test_two_worlds_show_their_differences(browser: Browser, pages: Sequence[Path]) -> None:
    with browser.page(pages[1]) as page:
        drawn(page)
        table = page.get_by_role("region", name="Differences").inner_text()
        assert "wait mean" in table
        assert "−" in table
        assert page.locator(".chart.waits").count() == 1
        assert page.get_by_role("region", name="Changed jobs").locator("tr").count() > 1


def levels(page: Any, what: str) -> list[float]:
    """Return the heights of a drawn path."""
    d = page.locator(what).first.get_attribute("d")
    return [float(it) for it in re.findall(r"V([\d.]+)", d)]


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_each_picture_has_both_worlds_over_each_other(browser: Browser, pages: Sequence[Path], script: bool) -> None:
    with browser.page(pages[1], java_script_enabled=script) as page:
        if script:
            drawn(page)
        for number in range(4):
            assert page.locator(f".chart[data-chart='{number}'] svg path.area").count() == 1
            assert page.locator(f".chart[data-chart='{number}'] svg path.was").count() == 1
        assert min(levels(page, ".chart.held path.was")) > min(levels(page, ".chart.held path.area"))  # 16 of 24 cards
        key = page.locator(".key").first.locator("span").all_inner_texts()
        assert key == [
            "filled: now",
            "dashed: before",
            "deserved",
            "all cards",
            "deserved, before",
            "all cards, before",
        ]


def test_the_amounts_of_both_worlds_are_shown_at_the_pointer(browser: Browser, pages: Sequence[Path]) -> None:
    with browser.page(pages[1]) as page:
        drawn(page)
        box = page.locator(".chart.held .plot").bounding_box()
        page.mouse.move(box["x"] + box["width"] * 0.03, box["y"] + 20)
        shown = page.locator(".chart.held output").inner_text()
        assert shown.endswith(" · now 24 · all cards 24 · all cards before 16 · before 16")


def test_the_page_says_which_world_is_better_and_where_they_part(browser: Browser, pages: Sequence[Path]) -> None:
    with browser.page(pages[1]) as page:
        drawn(page)
        assert re.match(
            r"better now is better by mean wait .+ → .+ \(-\d+%\)", page.locator(".verdict").first.inner_text()
        )
        assert page.locator("section", has=page.locator("h2", has_text="Over time")).locator(
            "p"
        ).first.inner_text() == (
            "Until 00:00:16 both worlds hold and wait for the same. Show"  # the cluster of 16 cards is full
        )
        marks = {
            row.locator("th").inner_text(): row.locator(".better, .worse").all_inner_texts()
            for row in page.get_by_role("region", name="Differences").locator("tbody tr").all()
        }
        assert (marks["wait mean"], marks["makespan"]) == (["better"], ["better"])


def test_a_world_beside_itself_never_parts_and_is_not_better(results: Sequence[Path], tmp_path: Path) -> None:
    worlds = [load.read(results[0], title, keeps_waits=True) for title in ("before", "now")]
    page = load.make(worlds)
    assert page.parting is None
    assert not page.verdict["better"]
    assert not page.verdict["worse"]
    text = load.write(page, tmp_path / "same.html").read_text("utf-8")
    assert "Both worlds hold and wait for the same at all times" in text
    assert "Neither is better" in text


amounts = st.lists(st.tuples(st.integers(0, 9), st.integers(-3, 3)), max_size=8)


@given(first=amounts, second=amounts)
def test_two_amounts_part_at_the_first_instant_at_which_they_differ(
    first: list[tuple[int, int]], second: list[tuple[int, int]]
) -> None:
    made = []
    for changes in (first, second):
        all_changes = Changes()
        for at, amount in changes:
            all_changes.add(at, amount)
        made.append(all_changes.steps(0.0, 100, 10.0))
    levels = [[sum(amount for at, amount in changes if at <= now) for now in range(10)] for changes in (first, second)]
    differ = [now for now in range(10) if levels[0][now] != levels[1][now]]
    assert made[0].parting(made[1]) == (differ[0] if differ else None)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_charts_are_drawn_without_javascript(browser: Browser, pages: Sequence[Path], scheme: str) -> None:
    with browser.page(pages[0], java_script_enabled=False, color_scheme=scheme) as page:
        assert page.locator(".chart[data-chart='0'] svg path.area").count() == 2
        assert page.locator(".zoombar").is_hidden()
