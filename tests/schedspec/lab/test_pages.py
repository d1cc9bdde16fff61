"""Every kind of page fits its window, cuts no text, shows no raw uid, and is accessible, in light and in dark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from schedspec.lab.plan import Request, Side, make_plan, queue_line
from schedspec.lab.plan import page as plan_page
from schedspec.lab.recorder.window import record_of
from schedspec.lab.simulate import pages as load
from schedspec.lab.simulate.pages import sweep
from schedspec.report import comparison, html, matrix
from schedspec.results import Numbers, Result, RunResults
from schedspec.virtual.state.dump import write_state
from schedspec.virtual.state.over_time import span_of
from tests.schedspec.lab.recorder import story
from tests.support import simulating
from tests.support.browser import Browser, chromium
from tests.support.core.states import NOW, state_of
from tests.support.scene import blocked, reclaim

LONG = "inference-serving-team-europe-west-with-a-name-of-63-characters"
UID = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}")
POLICY = """
actions: "allocate, backfill, reclaim"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
"""
MANIFESTS = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {{name: red}}
spec: {{deserved: {{nvidia.com/gpu: "4"}}, guarantee: {{resource: {{nvidia.com/gpu: "2"}}}}}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {{name: {long}}}
spec: {{deserved: {{nvidia.com/gpu: "{deserved}"}}, capability: {{nvidia.com/gpu: "14"}}}}
"""
MADE = "train-0d1f6c3e-1111-4222-8333-444455556666"
"""The name that a controller gave to a PodGroup of the job `train`."""
TABLE: dict[str, Any] = {
    "policy": POLICY,
    "nodes": [{"name": "n[1-4]", "has": "16 cpu, 4 gpu"}],
    "queues": [{"name": "red", "deserved": "4 gpu"}, {"name": LONG, "deserved": "4 gpu"}],
    "jobs": [
        *({"name": f"low-{n}", "queue": "red", "tasks": f"1 x 2 gpu running on n{n % 4 + 1}"} for n in range(8)),
        *({"name": f"{MADE[:-1]}{n}", "queue": LONG, "tasks": "2 x 2 gpu"} for n in range(3)),
    ],
}


def simulate(folder: Path, name: str, seed: int = 1, deserved: int = 4, nodes: str = "2x8") -> Path:
    """Simulate red and the queue with the long name, which reclaims."""
    rows = [f"{1_767_571_200 + n * 7 * seed},{300 + n},{n % 3 + 1},{LONG if n > 20 else 'red'}" for n in range(40)]
    (folder / "trace.csv").write_text("when,secs,gpus,team\n" + "\n".join(rows))
    (folder / f"{name}.yaml").write_text(POLICY)
    (folder / "queues.yaml").write_text(MANIFESTS.format(long=LONG, deserved=deserved))
    out = folder / f"{name}-{seed}.jsonl"
    given = ("--trace", str(folder / "trace.csv"), "--policy", str(folder / f"{name}.yaml"), "--out", str(out))
    columns = ("--map", "submitted=when,duration=secs,job_cards=gpus,queue=team", "--sample", "10")
    assert simulating.simulate([*given, *columns, "--nodes", nodes, "--queues", str(folder / "queues.yaml")]) == 0
    return out


def plan_of(folder: Path) -> Path:
    """Plan that the long queue deserves 12 cards, with all jobs that the state has as the load."""
    write_state(state_of(TABLE), folder / "state.jsonl.gz")
    proposed = Side("new", {"q.yaml": MANIFESTS.format(long=LONG, deserved=12)})
    plan = make_plan(
        Request(folder / "state.jsonl.gz", None, proposed, load="drain", out=folder, clock=NOW + 60, run_times="1h")
    )
    plan.names = {f"t/{MADE[:-1]}{n}": f"t/train-{n}" for n in range(3)}
    assert plan.at_once.evictions
    plan.failed = ["evictions>0: 4"]
    results = {side: folder / f"{side}.jsonl" for side in ("now", "proposed")}
    queues = [queue_line(row, plan.subject.resource) for row in plan.at_once.queues]
    return plan_page.write(plan, results, queues, folder / "plan.html")


def run_of(scheduler_name: str, *verdicts: str) -> RunResults:
    names = ("gang", "queue", "a-folder-with-quite-a-long-name/" + "long" * 12)
    rows = [
        Result(feature=f"features/{name}/x.feature", scenario=f"The scenario of {name}", example={"cards": "8"}, run=1,
               verdict=cast("Any", verdict), why="expected one eviction, seen " + "none," * 40,
               numbers=Numbers(2.0, 3))
        for name, verdict in zip(names, verdicts, strict=True)
    ]  # fmt: skip
    return RunResults(scheduler=scheduler_name, version="v1", kubernetes="v1.36.3", cluster="embedded", results=rows)


def night_of(folder: Path) -> Path:
    """Write the page of a recording."""
    with ThreadPoolExecutor(1) as thread:  # the browser's driver has an event loop in this one
        thread.submit(story.tell, folder / "recording").result()
    record = record_of(folder / "recording", *span_of(folder / "recording"))
    assert record.findings
    return html.write([record], folder / "night.html", opens_on=record.anchor)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[Path, str]]:
    """Page → file and anchor."""
    folder = tmp_path_factory.mktemp("pages")
    change = msgspec.structs.replace
    failed = change(reclaim(fails=True), feature_file="features/a/" + "long" * 20 + ".feature")
    table = [["queue", "deserved"], [LONG, "cpu 64, memory 512Gi, gpus 16"]]
    sentences = [change(failed.sentences[0], table=table), *failed.sentences[1:]]
    failed = change(failed, sentences=sentences, seconds=120.0)  # its axis ends with the wide label `2 min`
    ours, theirs = run_of("schedspec", "passed", "passed", "passed"), run_of("volcano", "failed", "passed", "lacks")
    both = matrix.make([ours, theirs])
    matrix.write(both, folder)
    records = [failed, blocked()]
    against = comparison.view(comparison.compare([theirs], [ours]), "out/" + "main" * 20)
    report = html.write(records, folder / "report.html", [against], ours.results)
    before, after = simulate(folder, "old"), simulate(folder, "new", deserved=10, nodes="3x8")
    more = [simulate(folder, "old", seed=2), simulate(folder, "new", seed=2, deserved=10)]
    worlds = [load.read(before, "before", keeps_waits=True), load.read(after, "now", keeps_waits=True)]
    return {
        "report": (report, ""),
        "failed": (report, failed.anchor),
        "blocked": (report, records[1].anchor),
        "drawer": (report, f"{records[1].anchor}?pod=uid-chat-1"),
        "against": (report, comparison.VIEW),
        "matrix": (folder / "matrix.html", ""),
        "plan": (plan_of(folder), ""),
        "one": (load.write(load.make(worlds[1:]), folder / "one.html"), ""),
        "both": (load.write(load.make(worlds), folder / "both.html"), ""),
        "sweep": (sweep.write(sweep.read([before, after, *more]), folder / "sweep.html"), ""),
        "night": (night_of(folder), ""),
    }


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as it:
        yield it


CUT = """() => {
  const cut = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const parent = node.parentElement, range = document.createRange();
    if (!node.data.trim() || parent.closest("script, style, title, .vh") || !parent.checkVisibility()) continue;
    range.selectNodeContents(node);
    const text = range.getBoundingClientRect();
    let left = 0, right = document.documentElement.clientWidth, scrolls = false;
    for (let it = parent; it && !scrolls; it = it.parentElement) {
      const style = getComputedStyle(it), box = it.getBoundingClientRect();
      scrolls = ["auto", "scroll"].includes(style.overflowX);
      if (["hidden", "clip"].includes(style.overflowX) && it !== document.body) {
        const margin = parseFloat(style.overflowClipMargin) || 0;
        left = Math.max(left, box.left - margin); right = Math.min(right, box.right + margin);
      }
    }
    const svg = parent.closest("svg"), picture = svg?.getBoundingClientRect();
    if (svg) {
      left = scrolls ? picture.left : Math.max(left, picture.left);
      right = scrolls ? picture.right : Math.min(right, picture.right);
    }
    const outside = text.left < left - 1 || text.right > right + 1;
    if ((svg || !scrolls) && text.width && outside) cut.push(node.data.trim());
    for (const word of node.data.matchAll(/(?<!\\S)[A-Za-z]{2,12}(?=[.,:;)]*(\\s|$))/g)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const lines = [...range.getClientRects()].map((it) => it.top);
      if (Math.max(...lines) > Math.min(...lines) + 3) cut.push(`${word[0]} in two lines`);
    }
  }
  return cut;
}"""
"""Texts that the window or an ancestor cuts off, where nothing scrolls, and short words that are broken."""
PAGES = ("report", "failed", "blocked", "drawer", "against", "matrix", "plan", "one", "both", "sweep", "night")


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_its_window_and_cuts_no_text(
    browser: Browser, pages: Mapping[str, tuple[Path, str]], name: str, width: int
) -> None:
    path, anchor = pages[name]
    with browser.page(path, anchor, width=width) as page:
        if page.locator("#load").count():
            page.wait_for_selector("#load[data-drawn]")
        page.evaluate("for (const it of document.querySelectorAll('details')) it.open = true")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(CUT) == []
        assert not UID.search(page.locator("body").inner_text())


@pytest.mark.parametrize("name", ["plan", "one", "both"])
def test_the_times_of_a_chart_do_not_touch(browser: Browser, pages: Mapping[str, tuple[Path, str]], name: str) -> None:
    for script in (True, False):
        with browser.page(pages[name][0], width=390, java_script_enabled=script) as page:
            if script:
                page.wait_for_selector("#load[data-drawn]")
            assert page.evaluate(CUT) == []
            for ticks in page.locator(".chart[data-chart] .x-ticks").all():
                boxes = [it.bounding_box() for it in ticks.locator("span").all()]
                assert boxes
                assert all(a["x"] + a["width"] + 2 < b["x"] for a, b in pairwise(boxes))


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_on_a_page(
    browser: Browser, pages: Mapping[str, tuple[Path, str]], name: str, width: int, scheme: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    path, anchor = pages[name]
    with browser.page(path, anchor, width=width, color_scheme=scheme) as page:
        found = axe.run(page).response["violations"]
        assert [(it["id"], [node["html"][:160] for node in it["nodes"][:4]]) for it in found] == []
