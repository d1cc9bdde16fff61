"""Build the conformance report of one scheduler: a YAML file that a project can publish, and a badge. Pure.

In each profile, the numbers of passed, failed, known, by design, lacking and unjudged scenarios add up to all of its
scenarios.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from ..report.matrix import ORDER, title_of
from ..results import SIMULATED, Result, RunResults, Verdict, where
from .levels import Level

API = "schedspec.dev/v1"
_URL = "https://"
Outcome = Literal["conformant", "partial", "not conformant", "incomplete"]


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A scenario that did not pass."""

    feature: str
    scenario: str
    why: str
    link: str = ""
    """Where a known difference is discussed."""


class Profile(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The scenarios of one level."""

    name: Level
    result: Outcome
    """`conformant`: every judged scenario passed; `partial`: the same, but the scheduler lacks a part of the core or
    differs there by design; `incomplete`: some scenarios could not be judged, or no scenario passed."""
    scenarios: int
    passed: int
    failed: list[Entry]
    known_differences: list[Entry]
    by_design: list[Entry]
    """Scenarios that ask for what the design of the scheduler does not aim at, by a document of its project."""
    lacking: list[Entry]
    """Scenarios that need a capability that the scheduler lacks."""
    unjudged: list[Entry]
    """Scenarios that could not be judged or were skipped."""


class Implementation(msgspec.Struct, frozen=True):
    """The scheduler."""

    name: str
    version: str


class ConformanceReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The report of one scheduler in one version on one Kubernetes."""

    api_version: str = API
    kind: str = "ConformanceReport"
    implementation: Implementation
    kubernetes: str
    """Version of Kubernetes; `simulated` if virtual time decided."""
    cluster: str
    suite_version: str
    profiles: list[Profile]


def make(run: RunResults, profiles: Sequence[Level], suite_version: str) -> ConformanceReport:
    """Return the report of a run for these profiles. Several runs of one scenario count once, by the worst."""
    worst: dict[tuple[str, str], Result] = {}
    for result in run.results:
        place = (result.feature, title_of(result.scenario, result.example))
        before = worst.get(place)
        if before is None or ORDER.index(result.verdict) < ORDER.index(before.verdict):
            worst[place] = result
    return ConformanceReport(
        implementation=Implementation(run.scheduler, run.version or "unknown"),
        kubernetes=where(run.cluster, run.kubernetes),
        cluster=run.cluster,
        suite_version=suite_version,
        profiles=[
            _profile(level, [result for result in worst.values() if result.level == level]) for level in profiles
        ],
    )


def badge(report: ConformanceReport) -> str:
    """Return a badge (SVG) with the result of each profile: `core 12 of 13`, or `core 6 of 6 (partial)`."""
    judged = [
        (profile, profile.scenarios - len(profile.lacking) - len(profile.by_design)) for profile in report.profiles
    ]
    parts = [
        f"{profile.name} {profile.passed} of {count}{' (partial)' * (profile.result == 'partial')}"
        for profile, count in judged
    ]
    bad = any(profile.result != "conformant" for profile in report.profiles)
    left, right = f"schedspec {report.suite_version}", ", ".join(parts)
    right += f", {SIMULATED}" if report.cluster == SIMULATED else ""
    widths = [7 * len(text) + 12 for text in (left, right)]
    colour = "#b07d00" if bad else "#2b7a3d"
    title = html.escape(f"{report.implementation.name} {report.implementation.version}: {right}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{sum(widths)}" height="20" role="img" aria-label="{title}">'
        f"<title>{title}</title>"
        f'<rect width="{widths[0]}" height="20" fill="#444"/>'
        f'<rect x="{widths[0]}" width="{widths[1]}" height="20" fill="{colour}"/>'
        f'<g fill="#fff" font-family="Verdana,sans-serif" font-size="11">'
        f'<text x="6" y="14">{html.escape(left)}</text><text x="{widths[0] + 6}" y="14">{right}</text></g></svg>\n'
    )


def _profile(level: Level, results: Sequence[Result]) -> Profile:
    failed, known, by_design = (_entries(results, verdict) for verdict in ("failed", "known", "by design"))
    unjudged = _entries(results, "error", "skipped")
    lacking, passed = _entries(results, "lacks"), sum(scenario.verdict == "passed" for scenario in results)
    result: Outcome = "conformant"
    if failed or known:
        result = "not conformant"
    elif unjudged or not passed:
        result = "incomplete"
    elif (lacking or by_design) and level is Level.CORE:
        result = "partial"
    return Profile(
        name=level,
        result=result,
        scenarios=len(results),
        passed=passed,
        failed=failed,
        known_differences=known,
        by_design=by_design,
        lacking=lacking,
        unjudged=unjudged,
    )


def _entries(results: Iterable[Result], *verdicts: Verdict) -> list[Entry]:
    found = [result for result in results if result.verdict in verdicts]
    return [
        Entry(
            feature=_of_suite(result.feature),
            scenario=title_of(result.scenario, result.example),
            why=_first_line(result.why),
            link=_link(result.why),
        )
        for result in found
    ]


def _of_suite(feature: str) -> str:
    """Return the path of a feature in the suite; an installed wheel has it in `site-packages/schedspec/`."""
    _, installed, rest = feature.partition("/schedspec/features/")
    return f"features/{rest}" if installed else feature


def _first_line(why: str) -> str:
    return why.strip().partition("\n")[0]


def _link(why: str) -> str:
    _, url, rest = why.partition(_URL)
    return f"{url}{rest.split()[0].rstrip('),.')}" if rest.split() else ""
