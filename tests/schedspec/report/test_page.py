"""The report page as text, and its parts: axis, slots, lanes. `test_browser.py` opens the page in a browser."""

from __future__ import annotations

import base64
import gzip
import re
from itertools import pairwise

import hypothesis
import msgspec
import pytest
from hypothesis import strategies as st
from markupsafe import Markup

from schedspec.report import html, timeline
from schedspec.report.axis import Axis
from schedspec.report.html import Report, View
from schedspec.report.picture import place
from schedspec.report.record import Judgement, ScenarioRecord, Software
from schedspec.report.scenario import Scenario
from schedspec.results import Result
from tests.support.scene import Scene, blocked, reclaim


def test_the_page_requests_nothing_from_a_network() -> None:
    page = html.render([reclaim()])
    assert "default-src 'none'" in page
    links = re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?([^"')\s>]+)""", page)
    assert [it for it in links if not it.startswith("#")] == []


def test_the_page_contains_the_complete_records() -> None:
    made = reclaim()
    [packed] = re.findall(r'class="record">([^<]+)<', html.render([made]))
    assert msgspec.json.decode(gzip.decompress(base64.b64decode(packed)), type=ScenarioRecord) == made


def test_the_texts_of_a_scenario_are_escaped() -> None:
    it = Scene()
    it.add_sentence("Given", "<script>alert(1)</script>", 0.1, table=[["<b>"], ["</script>"]])
    it.now = 1.0
    page = html.render([it.record("<img src=x>")])
    assert "<script>alert" not in page
    assert "<img" not in page
    assert page.count("</script>") == 2  # the page's own, and the record's


def test_the_same_records_make_the_same_page() -> None:
    assert html.render([reclaim()]) == html.render([reclaim()])


def test_a_further_view_is_linked_in_the_head() -> None:
    page = html.render([reclaim()], [View("matrix", "Schedulers", Markup("<p>who may what</p>"))])
    assert '<a href="#matrix">Schedulers</a>' in page
    assert "<p>who may what</p>" in page


def test_a_run_without_scenarios_says_so() -> None:
    assert "No scenario ran" in html.render([])


def test_scenarios_are_grouped_by_rule_and_failed_ones_come_first() -> None:
    made, change = reclaim(), msgspec.structs.replace
    records = [
        change(made, line=3, rule="one", scenario="a"),
        change(made, line=9, rule="two", scenario="b"),
        change(reclaim(fails=True), line=12, rule="two", scenario="c"),
        change(made, feature="Another", feature_file="features/a/a.feature", scenario="d"),
    ]
    features = [
        (name, [(rule, [it.record.scenario for it in found]) for rule, found in rules])
        for name, _, rules in Report(records).features
    ]
    assert features == [("Some feature", [("two", ["c", "b"]), ("one", ["a"])]), ("Another", [("", ["d"])])]


def test_one_scenario_on_two_clusters_has_two_anchors() -> None:
    both = [reclaim(), msgspec.structs.replace(reclaim(), cluster=Software("kind"))]
    assert [it.anchor for it in Report(both).scenarios] == ["area-some-7", "area-some-7-2"]


def test_a_picture_is_a_complete_svg_file() -> None:
    picture = html.picture(reclaim())
    assert picture.startswith("<svg")
    assert "--paper" in picture
    assert len(picture) < 60_000


times = st.lists(st.floats(0, 1000, allow_nan=False), max_size=60)


@hypothesis.given(times, st.floats(0.01, 1000))
def test_an_axis_is_monotonic_and_stays_within_its_ends(points: list[float], end: float) -> None:
    axis = Axis(points, end, 100.0, 900.0)
    xs = [axis.x(end * n / 50) for n in range(51)]
    assert all(a <= b + 1e-6 for a, b in pairwise(xs))
    assert xs[0] == pytest.approx(100.0)
    assert xs[-1] == pytest.approx(900.0)
    corners = axis.points()
    assert all(a <= b and x <= y + 1e-6 for (a, x), (b, y) in pairwise(corners))


def test_an_axis_shortens_a_span_without_events_and_marks_it() -> None:
    axis = Axis([0.1, 0.102, 0.104, 5.104], 5.2, 0.0, 1000.0)
    [short] = [it for it in axis.stretches if it.shortened]
    assert (short.began, short.ended) == (0.104, 5.104)
    assert short.right - short.left < 700
    assert axis.x(0.104) - axis.x(0.1) > 5


intervals = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 10), st.integers(1, 4)), max_size=20)


@hypothesis.given(intervals)
def test_no_two_pods_are_drawn_on_one_card_at_a_time(given: list[tuple[int, int, int]]) -> None:
    wanted = sorted((float(began), float(began + lasts), float(amount)) for began, lasts, amount in given)
    found = place(wanted)
    for (_, _, amount), parts in zip(wanted, found, strict=True):
        assert sum(size for _, size in parts) == pytest.approx(amount)
    for n, (began, until, _) in enumerate(wanted):
        for m in range(n):
            if wanted[m][1] > began and wanted[m][0] < until:
                for low, size in found[n]:
                    assert all(low >= a + b - 1e-9 or low + size <= a + 1e-9 for a, b in found[m])


def test_a_pod_is_drawn_on_the_lowest_contiguous_free_cards() -> None:
    assert place([(0, 9, 2), (0, 3, 2), (0, 9, 2), (4, 9, 2), (5, 9, 1)]) == [
        [(0.0, 2)], [(2, 2)], [(4, 2)], [(2, 2)], [(6, 1)],
    ]  # fmt: skip


def test_similar_waiting_pods_share_a_bar_with_their_reason() -> None:
    it = Scene()
    it.gang("train", "q")
    for n in range(3):
        it.pod(f"train-{n}", "train")
        it.waits(f"train-{n}", f"queue q is full; PodGroup {it.namespace}/train")
    it.now = 5.0
    picture = timeline.draw(it.record())
    [bar] = picture.bars
    assert (bar.kind, bar.label or bar.note) == ("wait", "3 pods of train")
    [text] = picture.texts
    assert text.text == "queue q is full; PodGroup train"


def test_a_long_reason_is_drawn_in_full_below_its_own_bar() -> None:
    made = blocked()
    picture = timeline.draw(made)
    [bar] = [it for it in picture.bars if it.kind == "wait" and it.uid == "uid-chat-1"]
    lines = [it for it in picture.texts if it.y > bar.y]
    assert " ".join(it.text for it in lines) == made.reasons[0].message.replace("spec-1/", "")
    assert all(bar.y + bar.height < it.y for it in lines)
    [lane] = [it for it in picture.lanes if it.kind == "waiting"]
    assert max(it.y for it in lines) < lane.y + lane.height


def test_the_page_says_why_nothing_was_reclaimed_by_kind_of_protection() -> None:
    [row] = Scenario(blocked()).nothing_evicted
    assert (row.who, row.action, row.candidates) == ("chat", "reclaim", 8)
    assert row.protections == [(8, "needed by gang train, which needs all 8 pods (gang, tier 1)")]
    assert row.surplus == ["research: 4 of 8 gpus"]
    assert "Why nothing was reclaimed" in html.render([blocked()])
    assert "Why nothing was reclaimed" not in html.render([reclaim()])


def test_a_lane_shows_the_capacity_of_its_node_even_if_more_pods_are_drawn() -> None:
    it = Scene()
    it.node("gpu-1", cards=8)
    for number in range(10):  # the end of two of them was seen late
        it.gang(f"j{number}", "q")
        it.pod(f"j{number}", f"j{number}", cards=1)
        it.bind(f"j{number}", "gpu-1")
    it.now = 1.0
    [lane] = [it for it in timeline.draw(it.record()).lanes if it.kind == "node"]
    assert lane.detail == "8 gpus"


def test_skipped_scenarios_are_counted_and_listed_with_their_reason() -> None:
    lacks = Result(feature="features/x.feature", scenario="Gangs <grow>", verdict="lacks", why="volcano lacks gangs")
    page = html.render([reclaim()], skipped=[lacks])
    assert "1 scenario passed, 1 skipped" in page
    assert "Gangs &lt;grow&gt;" in page
    assert "volcano lacks gangs" in page


def test_a_finding_of_a_monitor_is_marked_on_the_judged_pod() -> None:
    made = reclaim()
    found = Judgement(0.61, "node", "chat-5f7-x2", "over")
    made = msgspec.structs.replace(made, findings=[found])
    picture = timeline.draw(made)
    [mark] = [it for it in picture.marks if it.kind == "finding"]
    [bar] = [it for it in picture.bars if it.uid == "uid-chat-5f7-x2" and it.kind == "run"]
    assert bar.y <= mark.y <= bar.y + bar.height
    assert "monitor node, chat-5f7-x2: over" in mark.title


@pytest.mark.parametrize(("preemptors", "folded"), [(8, ""), (10, "2 more preemptors")])
def test_the_ninth_and_further_preemptors_are_folded(preemptors: int, folded: str) -> None:
    it = Scene()
    it.node("n1")
    for number in range(preemptors):
        it.gang(f"old-{number}", "guest")
        it.gang(f"new-{number}", "owner")
        it.pod(f"old-{number}-0", f"old-{number}")
        it.pod(f"new-{number}-0", f"new-{number}")
        it.bind(f"old-{number}-0", "n1")
    for number in range(preemptors):
        it.now += 0.1
        it.evict(f"old-{number}-0", f"new-{number}-0")
    it.now += 0.1
    page = html.render([it.record()])
    assert page.count("made room for <strong>new-") == preemptors
    assert (re.findall(r"<summary>(\d+ more preemptors)</summary>", page) or [""]) == [folded]
