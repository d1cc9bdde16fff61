"""The page of a plan shows the difference first and both worlds, loads nothing, and fits wide and narrow windows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from schedspec.lab.plan import Plan, Request, Side, make_plan, page
from schedspec.virtual.state.dump import write_state
from tests.schedspec.report.browser import Browser, chromium
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


@pytest.mark.parametrize("width", [1440, 390])
def test_both_worlds_are_shown_within_the_width_of_the_window(over_load: Path, browser: Browser, width: int) -> None:
    with browser.page(over_load, width=width) as shown:
        assert shown.locator("h2", has_text="At once: the difference").is_visible()
        assert shown.locator(".worlds").first.locator(".world").count() == 2
        wide = shown.evaluate("document.documentElement.scrollWidth")
        assert wide <= width
        shown.screenshot(path=over_load.with_name(f"plan-{width}.png"), full_page=True)
