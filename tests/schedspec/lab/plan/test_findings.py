"""The findings of monitors in the jobs of a simulation."""

from __future__ import annotations

from typing import Any

from schedspec.lab.plan import findings
from schedspec.lab.plan.answer import Finding
from schedspec.lab.simulate.records import Eviction, JobRecord


def job(name: str, *evictions: tuple[float, float, str], **more: Any) -> JobRecord:
    """Return a job of two pods with a card each; an eviction is a time, a number of cards and a preemptor."""
    evicted = [Eviction(at, int(cards), cards, "reclaim", preemptor) for at, cards, preemptor in evictions]
    fields = {"started": 1.0, "outcome": "completed", **more}
    return JobRecord(name, "q", "", 0, 2, 2, {}, 2.0, 60.0, 0.0, evictions=evicted, **fields)


def rules(*jobs: JobRecord) -> list[tuple[str, str]]:
    return [(it.rule, it.subject) for it in findings.of_jobs({it.job: it for it in jobs})]


def test_an_eviction_for_a_job_that_starts_is_no_finding() -> None:
    assert rules(job("low", (10, 2, "high")), job("high")) == []


def test_two_evictions_for_the_same_job_are_repeated() -> None:
    assert rules(job("low", (10, 1, "high"), (20, 1, "high")), job("high")) == [("repeated-eviction", "low")]
    assert rules(job("low", (10, 1, "high"), (20, 1, "other")), job("high"), job("other")) == []


def test_evictions_beyond_the_request_and_a_victim_for_each_pod_are_findings() -> None:
    victims = [job(f"low{at}", (10, 2, "load/high")) for at in range(4)]
    assert rules(*victims[:3], job("high")) == []  # 6 cards: its own 2, and a victim of 2 for each of its 2 pods
    assert rules(*victims, job("high")) == [("disproportionate-eviction", "high")]


def test_an_eviction_for_a_job_that_never_starts_is_in_vain() -> None:
    assert rules(job("low", (10, 2, "high")), job("high", started=None, outcome="waiting")) == [
        ("eviction-in-vain", "high")
    ]


def test_only_findings_that_the_change_causes_are_reported_and_each_once() -> None:
    old, new = Finding("guarantee", "a", "a", "now"), Finding("guarantee", "b", "b", "then")
    assert findings.caused([old], [old, new, new]) == [new]
