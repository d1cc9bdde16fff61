"""The conformance report of a run: counts that add up, a schema, a badge."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from schedspec.conformance import report_file
from schedspec.conformance.levels import Level
from schedspec.conformance.report_file import ConformanceReport, Implementation
from schedspec.results import Result, RunResults, Verdict

SCHEMA = Path(__file__).parents[3] / "docs" / "conformance.schema.json"


def result(name: str, verdict: Verdict, level: str = "core", why: str = "", run: int = 1) -> Result:
    return Result(
        feature="features/f.feature", scenario=name, example={}, level=level, run=run, verdict=verdict, why=why
    )


def report(*results: Result, profiles: tuple[Level, ...] = (Level.CORE,)) -> ConformanceReport:
    run = RunResults(scheduler="x", version="v1", kubernetes="v1.36.3", cluster="embedded", results=list(results))
    return report_file.make(run, profiles, "0.1")


EACH: tuple[Verdict, ...] = ("passed", "failed", "known", "by design", "lacks", "skipped", "error")


def test_the_counts_add_up() -> None:
    profile = report(*(result(verdict, verdict) for verdict in EACH), result("other", "passed", "extended")).profiles[0]
    parts = (profile.failed, profile.known_differences, profile.by_design, profile.lacking, profile.unjudged)
    assert profile.scenarios == 7 == profile.passed + sum(map(len, parts))


@pytest.mark.parametrize(
    ("verdicts", "outcome"),
    [
        (("passed", "passed"), "conformant"),
        (("passed", "lacks"), "partial"),
        (("lacks", "lacks"), "incomplete"),
        (("passed", "failed"), "not conformant"),
        (("passed", "known"), "not conformant"),
        (("passed", "by design"), "partial"),
        (("by design", "by design"), "incomplete"),
        (("known", "by design"), "not conformant"),
        (("passed", "error"), "incomplete"),
        (("failed", "error"), "not conformant"),
        ((), "incomplete"),
    ],
)
def test_the_outcome_of_a_profile(verdicts: tuple[Verdict, ...], outcome: str) -> None:
    assert report(*(result(verdict, verdict) for verdict in verdicts)).profiles[0].result == outcome


def test_a_profile_above_the_core_may_lack_capabilities() -> None:
    extended = (result("a", "passed", "extended"), result("b", "lacks", "extended"))
    assert report(*extended, profiles=(Level.EXTENDED,)).profiles[0].result == "conformant"


def test_the_worst_of_several_runs_counts() -> None:
    profile = report(result("a", "passed"), result("a", "failed", why="it hangs\nmore", run=2)).profiles[0]
    assert (profile.scenarios, profile.passed) == (1, 0)
    assert profile.failed[0].why == "it hangs"


def test_a_known_difference_has_its_link() -> None:
    why = "known difference: two gangs lose a pod (https://github.com/volcano-sh/volcano/issues/4607)"
    assert report(result("a", "known", why=why)).profiles[0].known_differences[0].link == (
        "https://github.com/volcano-sh/volcano/issues/4607"
    )


@pytest.mark.parametrize("where", ["", "venv/lib/python3.11/site-packages/schedspec/", "../site-packages/schedspec/"])
def test_a_feature_is_named_by_its_path_in_the_suite(where: str) -> None:
    failed = msgspec.structs.replace(result("a", "failed"), feature=f"{where}features/f.feature")
    assert report(failed).profiles[0].failed[0].feature == "features/f.feature"


def test_the_docs_have_the_schema_of_the_report() -> None:
    assert json.loads(SCHEMA.read_text("utf-8")) == msgspec.json.schema(ConformanceReport)


def test_a_report_is_read_back_from_yaml() -> None:
    found = report(*(result(verdict, verdict) for verdict in EACH))
    assert msgspec.yaml.decode(msgspec.yaml.encode(found), type=ConformanceReport) == found


def test_the_badge_counts_the_scenarios_that_the_scheduler_does_not_lack() -> None:
    found = report_file.badge(report(result("a", "passed"), result("b", "failed"), result("c", "lacks")))
    assert "core 1 of 2" in "".join(ElementTree.fromstring(found).itertext())


def test_the_badge_is_valid_whatever_the_version_of_the_scheduler() -> None:
    version = '"v1" <next> & more'
    found = report(result("a", "passed"))
    found = msgspec.structs.replace(found, implementation=Implementation("x", version), suite_version="<0.1>")
    badge = ElementTree.fromstring(report_file.badge(found))
    assert badge.get("aria-label") == badge[0].text == f"x {version}: core 1 of 1"
    assert "schedspec <0.1>" in list(badge.itertext())


@pytest.mark.parametrize("kubernetes", ["", "v1.36.3"])
def test_a_report_of_virtual_time_says_so_and_names_no_kubernetes(kubernetes: str) -> None:
    given = [result("a", "passed")]
    run = RunResults(scheduler="x", version="", kubernetes=kubernetes, cluster="simulated", results=given)
    found = report_file.make(run, (Level.CORE,), "0.1")
    assert (found.kubernetes, found.cluster, found.implementation.version) == ("simulated", "simulated", "unknown")
    assert "core 1 of 1, simulated" in report_file.badge(found)
    assert "simulated" not in report_file.badge(report(*given))
