"""The report in a real browser: what a reader clicks, types and sees, with and without JavaScript."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.sync_api import expect

from schedspec.report import html
from tests.schedspec.report.browser import Browser, chromium
from tests.schedspec.report.scene import large, reclaim

ANCHOR = "area-some-7"
FAILED, INFERRED = f"{ANCHOR}-fails", f"{ANCHOR}-inferred"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as it:
        yield it


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three scenarios: one passed, one failed, one of a scheduler that names nobody."""
    change = msgspec.structs.replace
    records = [
        reclaim(),
        change(reclaim(fails=True), example="fails", tags=["smoke"]),
        change(reclaim(names_preemptor=False), example="inferred", seconds=6.0),
    ]
    return html.write(records, tmp_path_factory.mktemp("report") / "report.html")


def opacity(page: Any, what: str) -> float:
    page.wait_for_timeout(250)  # its transition
    return float(page.locator(what).evaluate("it => getComputedStyle(it).opacity"))


def test_a_click_on_an_eviction_draws_the_arrow_and_tells_for_whom_by_which_votes(
    browser: Browser, report: Path
) -> None:
    with browser.page(report, ANCHOR) as page:
        arrow = f"#{ANCHOR} .arrows[data-evict='2']"
        assert opacity(page, arrow) == 0
        page.click(f"#{ANCHOR} a.evict[data-evict='2']")
        assert opacity(page, arrow) == 1
        assert opacity(page, f"#{ANCHOR} .arrows[data-evict='1']") == 0
        told = page.locator(f"#{ANCHOR} .callout").inner_text()
        for words in (
            *("low-1-task-0", "chat-5f7-x2 of queue inference", "reclaimed for", "decided by tier 2", "gang permits"),
        ):
            assert words in told
        involved = page.locator(f"#{ANCHOR} .pod.involved").evaluate_all("all => all.map(it => it.dataset.uid)")
        assert set(involved) == {"uid-low-1-task-0", "uid-chat-5f7-x2"}
        page.keyboard.press("Escape")
        assert opacity(page, arrow) == 0


def test_the_arrow_ends_at_the_pod_that_it_made_room_for(browser: Browser, report: Path) -> None:
    with browser.page(report, ANCHOR) as page:
        head = page.locator(f"#{ANCHOR} .arrows[data-evict='1'] .arrowhead").bounding_box()
        bars = page.locator(f"#{ANCHOR} .pod[data-uid='uid-chat-5f7-x2'] .bar:not(.wait)").bounding_box()
        assert abs(head["x"] + head["width"] - bars["x"]) < 3
        assert bars["y"] < head["y"] < bars["y"] + bars["height"]


def test_an_inferred_arrow_is_dashed_and_says_so(browser: Browser, report: Path) -> None:
    with browser.page(report, INFERRED) as page:
        page.click(f"#{INFERRED} a.evict[data-evict='1']")
        dashes = page.locator(f"#{INFERRED} .arrows[data-evict='1'] .arrow").evaluate(
            "it => getComputedStyle(it).strokeDasharray"
        )
        assert dashes != "none"
        assert "inferred" in page.locator(f"#{INFERRED} .callout").inner_text()


def test_an_eviction_is_reached_and_chosen_by_keyboard(browser: Browser, report: Path) -> None:
    with browser.page(report, ANCHOR) as page:
        page.locator(f"#{ANCHOR} a.evict[data-evict='1']").focus()
        page.keyboard.press("Enter")
        page.wait_for_selector(f"#{ANCHOR} .callout:not([hidden])")
        expect(page.locator(f"#{ANCHOR} tr.chosen")).to_have_count(1)


def test_a_chosen_sentence_moves_the_cursor_and_shows_the_state_at_that_time(browser: Browser, report: Path) -> None:
    with browser.page(report, ANCHOR) as page:
        state = page.locator(f"#{ANCHOR} .state")
        assert "chat-5f7-x2 Running on card-node-1" in state.inner_text()
        page.click(f"#{ANCHOR} .said[data-step='5']")
        expect(page.locator(f"#{ANCHOR} h2 .when")).to_have_text(re.compile(r"^at \d"))
        told = state.inner_text()
        assert "chat-5f7-x2: 1 node: 1 lacks nvidia.com/gpu" in told
        assert "low-1-task-0 Running on card-node-1" in told
        assert re.search(r"training\s+4 cpu, 8 cards", told)
        assert page.locator(f"#{ANCHOR} .cursors").get_attribute("visibility") == "visible"


def test_moving_over_the_picture_moves_the_cursor_and_chooses_the_sentence(browser: Browser, report: Path) -> None:
    with browser.page(report, ANCHOR) as page:
        box = page.locator(f"#{ANCHOR} .picture").bounding_box()
        times = []
        for part in (0.3, 0.6, 0.98):
            page.mouse.move(box["x"] + box["width"] * part, box["y"] + 100)
            times.append(float(page.locator(f"#{ANCHOR} .cursorbar output").inner_text().removesuffix(" s")))
        assert times == sorted(times)
        assert times[0] < times[-1]
        assert page.locator(f"#{ANCHOR} .said.chosen").get_attribute("data-step") in ("7", "8")


def test_the_slider_moves_the_cursor_by_keyboard(browser: Browser, report: Path) -> None:
    with browser.page(report, ANCHOR) as page:
        page.locator(f"#{ANCHOR} .slider").focus()
        page.keyboard.press("Home")
        expect(page.locator(f"#{ANCHOR} h2 .when")).to_have_text("at 0.000 s")
        assert "On nodes" not in page.locator(f"#{ANCHOR} .state").inner_text()


def test_a_failure_shows_expected_and_seen_beside_the_picture(browser: Browser, report: Path) -> None:
    with browser.page(report, FAILED) as page:
        failure, picture = page.locator(f"#{FAILED} .failure"), page.locator(f"#{FAILED} .picture")
        assert '"chat" keeps waiting (for 1 s)' in failure.inner_text()
        assert "it runs on card-node-1" in failure.inner_text()
        assert failure.bounding_box()["x"] + failure.bounding_box()["width"] <= picture.bounding_box()["x"]
        assert failure.bounding_box()["y"] < 1000


def test_the_overview_begins_with_what_failed(browser: Browser, report: Path) -> None:
    with browser.page(report) as page:
        assert page.locator("h1").first.inner_text() == "1 of 3 scenarios failed"
        verdicts = page.locator(".entry").evaluate_all("all => all.map(it => it.dataset.verdict)")
        assert verdicts == ["failed", "passed", "passed"]
        page.click(".entry a >> nth=0")
        assert page.locator(f"#{FAILED}").is_visible()
        assert not page.locator("#overview").is_visible()
        page.go_back()
        assert page.locator("#overview").is_visible()


def test_search_and_filters_leave_what_fits(browser: Browser, report: Path) -> None:
    with browser.page(report) as page:
        shown = page.locator(".entry:visible")
        page.keyboard.press("/")
        page.keyboard.type("keeps waiting")
        expect(shown).to_have_count(1)
        page.fill("#search", "no such words")
        expect(shown).to_have_count(0)
        expect(page.locator(".feature:visible")).to_have_count(0)
        page.fill("#search", "")
        page.select_option("#by-verdict", "passed")
        expect(shown).to_have_count(2)
        page.select_option("#by-seconds", "5")
        expect(shown).to_have_count(1)
        page.select_option("#by-seconds", "0")
        page.select_option("#by-verdict", "")
        page.select_option("#by-tag", "smoke")
        expect(shown).to_have_count(1)


def test_a_command_is_copied(browser: Browser, report: Path) -> None:
    with browser.page(report, ANCHOR, permissions=["clipboard-read", "clipboard-write"]) as page:
        page.click(f"#{ANCHOR} .commands .copy >> nth=0")
        page.wait_for_selector(f"#{ANCHOR} .copy:has-text('Copied')")
        text = page.evaluate("navigator.clipboard.readText()")
        assert text.startswith("pytest 'features/area/some.feature::A service of six cards")


def test_without_javascript_everything_is_told(browser: Browser, report: Path) -> None:
    with browser.page(report, ANCHOR, java_script_enabled=False) as page:
        section = page.locator(f"#{ANCHOR}")
        assert section.is_visible()
        assert not page.locator("#overview").is_visible()
        told = section.inner_text()
        for words in ("low-2, then low-1, then medium-2 made room for chat of queue inference", "tier 2 decided",
                      "chat-5f7-x2 Running on card-node-1", "gang permits"):  # fmt: skip
            assert words in told
        assert section.locator(".arrows").count() == 3
        assert not section.locator(".slider").is_visible()
        page.click(f"#{ANCHOR} a.evict[data-evict='1']")
        assert section.is_visible()
        page.click(f"#{ANCHOR} .crumbs a >> nth=0")
        assert page.locator("#overview").is_visible()
        assert not section.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("anchor", ["", ANCHOR, FAILED])
def test_axe_finds_no_serious_issue(browser: Browser, report: Path, scheme: str, anchor: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    with browser.page(report, anchor, color_scheme=scheme) as page:
        found = [it for it in axe.run(page).response["violations"] if it["impact"] in ("serious", "critical")]
        assert [(it["id"], [node["html"][:160] for node in it["nodes"][:4]]) for it in found] == []


def test_it_is_read_on_a_narrow_screen_and_on_paper(browser: Browser, report: Path) -> None:
    with browser.page(report, ANCHOR, width=390) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    with browser.page(report, ANCHOR, color_scheme="dark") as page:
        page.emulate_media(media="print", color_scheme="light")
        assert page.locator(f"#{ANCHOR} .picture").is_visible()
        assert not page.locator(".top").is_visible()
        assert len(page.pdf()) > 10_000


def test_five_thousand_pods_on_a_thousand_nodes_stay_readable_and_usable(browser: Browser, tmp_path: Path) -> None:
    made = large()
    path = html.write([made], tmp_path / "report.html")
    assert path.stat().st_size < 3_000_000
    with browser.page(path, made.anchor) as page:
        assert page.locator(".lane").count() <= 20
        assert page.locator(".picture *").count() < 5_000
        page.click(f"#{made.anchor} .said[data-step='2']")
        expect(page.locator(f"#{made.anchor} h2 .when")).to_have_text(re.compile(r"^at \d"))
        page.click("tr[data-evict='1']")
        page.wait_for_selector(f"#{made.anchor} .callout:not([hidden])")
        assert "gang-0-0" in page.locator(".callout").inner_text()
        expect(page.locator("tr[data-evict]:visible")).to_have_count(30)
        page.click(".showall")
        expect(page.locator("tr[data-evict]:visible")).to_have_count(500)
