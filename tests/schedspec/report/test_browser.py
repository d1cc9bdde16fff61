"""The report in a real browser: what a reader clicks, types and sees, with and without JavaScript."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from playwright.sync_api import expect

from schedspec.report import html, matrix
from schedspec.results import Result, RunResults
from tests.support.browser import Browser, chromium
from tests.support.scene import blocked, large, reclaim

ANCHOR = "area-some-7"
FAILED, INFERRED = f"{ANCHOR}-fails", f"{ANCHOR}-inferred"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as it:
        yield it


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three scenarios: one passed, one failed, one of a scheduler that names no preemptor."""
    change = msgspec.structs.replace
    records = [
        reclaim(),
        change(reclaim(fails=True), example="fails", tags=["smoke"]),
        change(reclaim(names_preemptor=False), example="inferred", seconds=6.0),
    ]
    return html.write(records, tmp_path_factory.mktemp("report") / "report.html")


def opacity(page: Any, what: str) -> float:
    page.wait_for_timeout(250)  # the CSS transition
    return float(page.locator(what).evaluate("it => getComputedStyle(it).opacity"))


def test_a_click_on_an_eviction_shows_its_arrow_its_preemptor_and_the_votes(browser: Browser, report: Path) -> None:
    with browser.page(report, ANCHOR) as page:
        arrow = f"#{ANCHOR} .arrows[data-evict='2']"
        assert opacity(page, arrow) == 0
        page.click(f"#{ANCHOR} a.evict[data-evict='2']")
        assert opacity(page, arrow) == 1
        assert opacity(page, f"#{ANCHOR} .arrows[data-evict='1']") == 0
        inner = page.locator(f"#{ANCHOR} .callout").inner_text()
        for words in (
            *("low-1-task-0", "chat-5f7-x2 of queue inference", "reclaimed for", "decided by tier 2", "gang permits"),
        ):
            assert words in inner
        involved = page.locator(f"#{ANCHOR} .pod.involved").evaluate_all("all => all.map(it => it.dataset.uid)")
        assert set(involved) == {"uid-low-1-task-0", "uid-chat-5f7-x2"}
        page.keyboard.press("Escape")
        assert opacity(page, arrow) == 0


def test_an_arrow_ends_at_the_preemptor(browser: Browser, report: Path) -> None:
    with browser.page(report, ANCHOR) as page:
        head = page.locator(f"#{ANCHOR} .arrows[data-evict='1'] .arrowhead").bounding_box()
        bars = page.locator(f"#{ANCHOR} .pod[data-uid='uid-chat-5f7-x2'] .bar:not(.wait)").bounding_box()
        assert abs(head["x"] + head["width"] - bars["x"]) < 3
        assert bars["y"] < head["y"] < bars["y"] + bars["height"]


def test_an_inferred_arrow_is_dashed_and_labelled_as_inferred(browser: Browser, report: Path) -> None:
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
        page.click(f"#{ANCHOR} .sentence[data-step='5']")
        expect(page.locator(f"#{ANCHOR} h2 .when")).to_have_text(re.compile(r"^at \d"))
        inner = state.inner_text()
        assert "chat-5f7-x2: 1 node: 1 lacks nvidia.com/gpu" in inner
        assert "low-1-task-0 Running on card-node-1" in inner
        assert re.search(r"training\s+4 cpu, 8 gpus", inner)
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
        assert page.locator(f"#{ANCHOR} .sentence.chosen").get_attribute("data-step") in ("7", "8")


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


def test_the_overview_lists_failed_scenarios_first(browser: Browser, report: Path) -> None:
    with browser.page(report) as page:
        assert page.locator("h1").first.inner_text() == "1 of 3 scenarios failed"
        verdicts = page.locator(".entry").evaluate_all("all => all.map(it => it.dataset.verdict)")
        assert verdicts == ["failed", "passed", "passed"]
        page.click(".entry a >> nth=0")
        assert page.locator(f"#{FAILED}").is_visible()
        assert not page.locator("#overview").is_visible()
        page.go_back()
        assert page.locator("#overview").is_visible()


def test_search_and_filters_show_only_the_scenarios_that_match(browser: Browser, report: Path) -> None:
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


def test_the_address_contains_the_filters_and_the_chosen_time_and_eviction(browser: Browser, report: Path) -> None:
    with browser.page(report) as page:
        page.fill("#search", "keeps waiting")
        page.select_option("#by-verdict", "failed")
        page.wait_for_url(lambda url: "verdict=failed" in url)
        page.reload()
        expect(page.locator(".entry:visible")).to_have_count(1)
        assert page.input_value("#search") == "keeps waiting"
    with browser.page(report, f"{ANCHOR}?t=0.500&evict=2") as page:
        expect(page.locator(f"#{ANCHOR} h2 .when")).to_have_text(re.compile("^at 0.5"))
        assert "low-1-task-0" in page.locator(f"#{ANCHOR} .callout").inner_text()
        page.click(f"#{ANCHOR} .sentence[data-step='1']")
        page.wait_for_url(lambda url: "t=0.500" not in url)


def test_keys_open_the_next_and_the_previous_failure(browser: Browser, tmp_path: Path) -> None:
    change = msgspec.structs.replace
    records = [change(reclaim(fails=number % 2 == 1), example=f"r{number}", line=7 + number) for number in range(5)]
    with browser.page(html.write(records, tmp_path / "report.html")) as page:
        seen = []
        for key in ("n", "n", "n", "p"):
            page.keyboard.press(key)
            page.wait_for_timeout(50)
            seen.append(page.locator(".scenario.open").get_attribute("id"))
        assert seen == [
            f"{ANCHOR[:-1]}{8}-r1",
            f"{ANCHOR[:-1]}{10}-r3",
            f"{ANCHOR[:-1]}{8}-r1",
            f"{ANCHOR[:-1]}{10}-r3",
        ]


def test_a_pods_drawer_shows_its_versions_as_yaml_and_its_events(browser: Browser, report: Path) -> None:
    with browser.page(report, ANCHOR) as page:
        page.click(f"#{ANCHOR} .pod[data-uid='uid-low-1-task-0'] .bar")
        drawer = page.locator(f"#{ANCHOR} .drawer")
        expect(drawer).to_be_visible()
        inner = drawer.inner_text()
        for words in ("Pod low-1-task-0", "queue training", "on card-node-1", "Evict: reclaimed for", "Versions ("):
            assert words in inner
        drawer.locator("summary").first.click()
        assert "name: low-1-task-0" in drawer.locator("pre").first.inner_text()
        assert "nvidia.com/gpu" in drawer.locator("pre").first.inner_text()
        page.wait_for_url(lambda url: "pod=uid-low-1-task-0" in url)
        page.keyboard.press("Escape")
        expect(drawer).to_be_hidden()
        page.click(f"#{ANCHOR} .podlink >> nth=0")
        expect(drawer).to_be_visible()


def test_a_waiting_pods_drawer_shows_its_reasons_over_time(browser: Browser, tmp_path: Path) -> None:
    made = blocked()
    with browser.page(html.write([made], tmp_path / "report.html"), f"{made.anchor}?pod=uid-chat-1") as page:
        inner = page.locator(f"#{made.anchor} .drawer").inner_text()
        assert "Why it waited" in inner
        assert "which needs all 8 pods (gang, tier 1)" in inner


@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_is_wider_than_the_screen(browser: Browser, tmp_path: Path, width: int) -> None:
    records = [blocked(), msgspec.structs.replace(reclaim(), feature_file="features/a/" + "long" * 20 + ".feature")]
    left_out = [Result(feature="features/x.feature", scenario="S", verdict="lacks", why="needs-" + "x" * 200)]
    path = html.write(records, tmp_path / "report.html", skipped=left_out)
    for anchor in ("", records[0].anchor, records[1].anchor, f"{records[0].anchor}?pod=uid-chat-1"):
        with browser.page(path, anchor, width=width) as page:
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.locator("main").bounding_box()["width"] > width * 0.9


def test_a_command_is_copied(browser: Browser, report: Path) -> None:
    with browser.page(report, ANCHOR, permissions=["clipboard-read", "clipboard-write"]) as page:
        page.click(f"#{ANCHOR} .commands .copy >> nth=0")
        page.wait_for_selector(f"#{ANCHOR} .copy:has-text('Copied')")
        text = page.evaluate("navigator.clipboard.readText()")
        assert text.startswith("pytest 'features/area/some.feature::A service of six cards")


def test_the_page_is_complete_without_javascript(browser: Browser, report: Path) -> None:
    with browser.page(report, ANCHOR, java_script_enabled=False) as page:
        section = page.locator(f"#{ANCHOR}")
        assert section.is_visible()
        assert not page.locator("#overview").is_visible()
        inner = section.inner_text()
        for words in ("low-2, then low-1, then medium-2 made room for chat of queue inference", "tier 2 decided",
                      "chat-5f7-x2 Running on card-node-1", "gang permits"):  # fmt: skip
            assert words in inner
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


def test_a_scenario_fits_a_narrow_screen_and_can_be_printed(browser: Browser, report: Path) -> None:
    cells = f"[...document.querySelectorAll('#{ANCHOR} .evictions td')]"
    with browser.page(report, ANCHOR, width=390) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert 0 < max(page.evaluate(f"{cells}.map(it => it.getBoundingClientRect().right)")) <= 390
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
        page.click(f"#{made.anchor} .sentence[data-step='2']")
        expect(page.locator(f"#{made.anchor} h2 .when")).to_have_text(re.compile(r"^at \d"))
        page.click("tr[data-evict='1']")
        page.wait_for_selector(f"#{made.anchor} .callout:not([hidden])")
        assert "gang-0-0" in page.locator(".callout").inner_text()
        expect(page.locator("tr[data-evict]:visible")).to_have_count(30)
        page.click(".showall")
        expect(page.locator("tr[data-evict]:visible")).to_have_count(500)


def test_the_matrix_page_opens_on_the_matrix_and_can_show_only_differences(browser: Browser, tmp_path: Path) -> None:
    def run(scheduler: str, *verdicts: str) -> RunResults:
        rows = [
            Result(feature=f"features/{name}/x.feature", scenario=name, example={}, run=1, verdict=cast("Any", verdict))
            for name, verdict in zip(("gang", "queue", "cards"), verdicts, strict=True)
        ]
        return RunResults(scheduler=scheduler, version="v1", kubernetes="v1.36.3", cluster="embedded", results=rows)

    made = matrix.make([run("schedspec", "passed", "passed", "passed"), run("volcano", "failed", "passed", "lacks")])
    matrix.write(made, tmp_path)
    with browser.page(tmp_path / "matrix.html", width=390) as page:
        assert page.locator("#schedulers").is_visible()
        assert not page.locator("#overview").is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        expect(page.locator(".folder:visible")).to_have_count(3)
        page.check("#differences-only")
        expect(page.locator(".folder:visible")).to_have_count(1)
        assert page.locator(".folder:visible tbody th, .folder:visible tr.differs th").first.inner_text() == "gang"
        assert "features/gang\t1 of 1\t0 of 1" in page.locator(".folders").inner_text()
