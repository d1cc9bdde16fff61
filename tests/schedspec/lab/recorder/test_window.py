"""The page of a span shows what happened in it, by the scenario's page, and says what the recording did not see."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedspec.lab.recorder import window
from schedspec.lab.recorder.window import record_of
from schedspec.report import html
from tests.schedspec.lab.recorder.recorded_cluster import recorded


def test_a_span_has_what_lived_when_it_began_and_what_happened_in_it(tmp_path: Path) -> None:
    with recorded(tmp_path) as cluster:
        cluster.group("a", "batch")
        cluster.runs("a-0", "a", "n1", 8)
        cluster.group("b", "online")
        cluster.pod("b-0", "b", 8)
        cluster.advance(30.0)
        since = cluster.now
        cluster.advance(10.0)
        cluster.evict("a-0", "evicted by volcano")
        cluster.advance(3.0)
        cluster.bind("b-0", "n1")
        cluster.advance(10.0)
        until = cluster.now - 0.1
        cluster.pod("later", "b", 1)
        cluster.advance(100.0)
    record = record_of(tmp_path, since, until)
    [evicted, bound] = record.acts
    assert (evicted.act, evicted.pod, evicted.preemptor, evicted.inferred) == ("evict", "a-0", "b-0", True)
    assert (bound.act, bound.pod, bound.node) == ("bind", "b-0", "n1")
    assert 9.9 < evicted.at < 10.2
    stories = {story.name: [moment.change for moment in story.moments] for story in record.objects}
    assert stories["n1"] == stories["online"][:1] == ["was"]
    assert stories["a-0"][0] == "was"
    assert stories["a-0"][-1] == "gone"
    assert "later" not in stories
    held = {moment.queue: moment.held for moment in record.queues}
    assert (held["online"], held["batch"]) == ({"cpu": "8"}, {})


def test_the_page_shows_queues_findings_gaps_and_commands(tmp_path: Path) -> None:
    with recorded(tmp_path) as cluster:
        since = cluster.now
        cluster.group("large", "online")
        cluster.pod("large-0", "large", 99)
        cluster.advance(20.0)
        cluster.kill()
        cluster.advance(20.0)
        cluster.record()
        cluster.advance(200.0)
        until = cluster.now
    record = record_of(tmp_path, since, until)
    page = html.render([record], opens_on=record.anchor)
    assert [finding.monitor for finding in record.findings] == ["hopeless-wait"]
    for text in (
        "waits for what no node has: 99 cpu",
        "not seen: versions of all kinds",
        "<h2>Queues</h2>",
        "1 finding",
    ):
        assert text in page
    assert f"judge {tmp_path}" in page
    assert "<h2>Sentences</h2>" not in page
    assert record.is_private


def test_differences_that_a_gap_hides_are_shown_at_its_end(tmp_path: Path) -> None:
    with recorded(tmp_path) as cluster:
        since = cluster.now
        cluster.runs("stays", "", "n1", 1)
        cluster.runs("goes", "", "n1", 1)
        cluster.kill()
        cluster.call("DELETE", "/api/v1/namespaces/team/pods/goes", {"gracePeriodSeconds": 0})
        cluster.runs("comes", "", "n1", 1)
        cluster.record()
        cluster.advance(5.0)
        until = cluster.now
    stories = {story.name: story.moments for story in record_of(tmp_path, since, until).objects}
    assert stories["goes"][-1].change == "gone"
    assert stories["comes"][0].change == "added"
    assert stories["goes"][-1].at == stories["comes"][0].at


def test_a_text_of_a_tenant_runs_nothing_in_the_page(tmp_path: Path) -> None:
    with recorded(tmp_path) as cluster:
        since = cluster.now
        cluster.group("a", "batch")
        cluster.runs("a-0", "a", "n1", 1)
        cluster.evict("a-0", "<script>alert(1)</script> for team/a")
        cluster.advance(100.0)
    page = html.render([record_of(tmp_path, since, since + 60.0)])
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_a_span_that_a_page_cannot_show_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with recorded(tmp_path) as cluster:
        since = cluster.now
        for number in range(5):
            cluster.runs(f"p-{number}", "", "n1", 0)
    monkeypatch.setattr(window, "MOST", 10)
    with pytest.raises(window.TooLongError, match="name a shorter span"):
        record_of(tmp_path, since, since + 60.0)
