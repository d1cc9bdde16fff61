"""The page of a plan shows the difference first and both worlds, loads nothing, and fits wide and narrow windows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedspec.lab.plan import Plan, Request, Side, make_plan, page
from schedspec.virtual.state.dump import write_state
from tests.support.browser import Browser, chromium
from tests.support.core.states import NOW, state_of

TABLE: dict[str, Any] = {
    "policy": """
actions: "allocate, backfill, reclaim"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
""",
    "nodes": [{"name": "n[1-2]", "has": "16 cpu, 4 gpu"}],
    "queues": [{"name": "a", "deserved": "2 gpu"}, {"name": "b", "deserved": "4 gpu"}],
    "jobs": [
        {"name": "low", "queue": "b", "min": 1, "tasks": "4 x 1 gpu running on n1"},
        {"name": "too", "queue": "b", "min": 1, "tasks": "4 x 1 gpu running on n2"},
        {"name": "new1", "queue": "a", "tasks": "2 x 1 gpu"},
        {"name": "new2", "queue": "a", "tasks": "2 x 1 gpu"},
    ],
}
QUEUE = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: a}
spec: {deserved: {nvidia.com/gpu: "4"}}
"""


def plan_of(folder: Path, **more: Any) -> Plan:
    write_state(state_of(TABLE), folder / "state.jsonl.gz")
    given = {"out": folder, "clock": NOW + 60, "run_times": "1h", **more}
    return make_plan(Request(folder / "state.jsonl.gz", None, Side("new", {"q.yaml": QUEUE}), **given))


@pytest.fixture(scope="module")
def over_load(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plan")
    results = {side: folder / f"{side}.jsonl" for side in ("now", "proposed")}
    return page.write(plan_of(folder, load="drain"), results, [], folder / "plan.html")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as it:
        yield it


def test_the_difference_comes_before_both_worlds(over_load: Path) -> None:
    text = over_load.read_text()
    places = [text.index(it) for it in ("At once: the difference", "At once: both worlds", "Over time", "Assumptions")]
    assert places == sorted(places)
    assert "Plan: 2 pods evicted, 1 job more starts, 0 refused" in text
    assert "deserved nvidia.com/gpu 2 → nvidia.com/gpu 4" in text


def test_names_and_reasons_of_a_cluster_are_escaped(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    plan.at_once.evictions[0].why = "<script>alert(1)</script>"
    text = page.write(plan, {}, ["b 8 → 6 gpus"], tmp_path / "plan.html").read_text()
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text
    assert "Over time" not in text


def rows(page: Any, title: str) -> list[list[str]]:
    """Return the cells of a table's rows."""
    table = page.get_by_role("region", name=title, exact=True)
    return [row.locator("th, td").all_inner_texts() for row in table.locator("tbody tr").all()]


def test_equal_sentences_are_one_row_that_opens_to_its_pods(browser: Browser, tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    uid = "0d1f6c3e-1111-2222-3333-444455556666"
    first, second = plan.at_once.evictions
    plan.names = {f"t/train-{uid}": "t/train"}
    for number, eviction in enumerate((first, second)):
        eviction.pod, eviction.node, eviction.preemptor = f"t/low-{number}", f"n{number}", f"t/train-{uid}"
        eviction.why = f"reclaimed for t/train-{uid}; tier 2 decided (gang permits); others: {number + 1} not needed"
    plan.at_once.proposed.waiting = {f"t/train-{uid}": "no room", "t/b": "no room", "t/c": "other"}
    with browser.page(page.write(plan, {}, [], tmp_path / "plan.html")) as shown:
        ((pod, *cells),) = rows(shown, "Evicted by the change")
        assert pod == "t/low-0 and 1 more pod"
        assert cells == ["b", "t/train (a)", "reclaimed for t/train; tier 2 decided (gang permits)"]
        table = shown.get_by_role("region", name="Evicted by the change", exact=True)
        table.locator("summary").click()
        assert table.locator("li").all_inner_texts() == ["t/low-0 on n0", "t/low-1 on n1"]
        assert rows(shown, "Waiting, proposed") == [["t/train and 1 more job", "no room"], ["t/c", "other"]]
        assert uid not in shown.locator("main").inner_text()


names = st.text("ab", min_size=1, max_size=2)
reasons = st.tuples(st.sampled_from("xy"), st.sampled_from(["r", "r; others: 1", "r; others: 2", "s"]))


@given(found=st.lists(st.builds(lambda name, cells: (name, *cells), names, reasons)))
def test_groups_keep_every_subject_once_and_only_join_equal_sentences(found: list[tuple[str, ...]]) -> None:
    groups = Plan.groups(found)
    assert sorted(name for subjects, _ in groups for name in subjects) == sorted(row[0] for row in found)
    shared = [tuple(cell.partition("; others: ")[0] for cell in cells) for _, cells in groups]
    assert len(set(shared)) == len(shared)
    alone = [(*subjects, *cells) for subjects, cells in groups if len(subjects) == 1]
    assert {*alone} <= {*found}  # a row alone keeps its whole text


@pytest.mark.parametrize("width", [1440, 390])
def test_both_worlds_are_shown_within_the_width_of_the_window(over_load: Path, browser: Browser, width: int) -> None:
    with browser.page(over_load, width=width) as shown:
        assert shown.locator("h2", has_text="At once: the difference").is_visible()
        assert shown.locator(".worlds").first.locator(".world").count() == 2
        wide = shown.evaluate("document.documentElement.scrollWidth")
        assert wide <= width
        shown.screenshot(path=over_load.with_name(f"plan-{width}.png"), full_page=True)


def test_a_page_says_whose_program_decided_and_in_how_many_runs(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    plan.decided_by, plan.runs = "volcano v1.14.1", [plan.at_once] * 3
    for eviction in plan.at_once.evictions:
        eviction.runs, eviction.preemptor = 2, ""
    text = page.write(plan, {}, [], tmp_path / "plan.html").read_text("utf-8")
    assert "volcano v1.14.1, the scheduler&#39;s own program in 3 runs" in text
    assert "in 2 of 3 runs: " in text
    assert "<td> (" not in text
