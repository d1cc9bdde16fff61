"""Render `report.html`: every scenario of one or several runs on one page, in one file, complete without JavaScript.

The one rule: the file loads nothing. Styles, script, pictures and the records themselves (gzip, base64) are
inside. The templates are in `page/`; a further view of the records is a `View`, passed to `render`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

import jinja2
from markupsafe import Markup

from ..monitors.amounts import spoken
from ..observe.view import count
from ..results import Result, RunResults
from . import files
from .axis import seconds
from .picture import number
from .record import ScenarioRecord, title_of
from .scenario import Scenario

PAGE = Path(__file__).with_name("page")


@dataclass(frozen=True, slots=True)
class View:
    """A page of its own beside the scenarios, linked from the head of the overview."""

    anchor: str
    """The anchor of the page: letters and dashes; unique."""
    title: str
    body: Markup
    """The content as HTML; texts in it are escaped already."""


def without_record(runs: Iterable[RunResults], records: Iterable[ScenarioRecord]) -> list[Result]:
    """Return the scenarios of these runs that were skipped and have no record."""
    recorded = {record.node_id for record in records}
    found = {
        (result.node_id, run.scheduler): result
        for run in runs
        for result in run.results
        if result.verdict in ("skipped", "lacks") and result.node_id not in recorded
    }
    return list(found.values())


class Report:
    """All scenarios in reading order: by feature and Rule, failed ones first."""

    def __init__(self, records: Iterable[ScenarioRecord], skipped: Sequence[Result] = ()) -> None:
        self.skipped = skipped
        found = sorted(records, key=lambda record: (record.feature_file, record.line, record.example, record.began))
        self.scenarios: list[Scenario] = []
        seen: Counter[str] = Counter()
        for record in found:  # with several clusters or schedulers, a scenario may have several records
            seen[record.anchor] += 1
            again = f"-{seen[record.anchor]}" if seen[record.anchor] > 1 else ""
            self.scenarios.append(Scenario(record, record.anchor + again))

    @property
    def features(self) -> list[tuple[str, str, list[tuple[str, list[Scenario]]]]]:
        """Each feature's name and file, with its Rules and their scenarios."""
        by_file: dict[tuple[str, str], dict[str, list[Scenario]]] = {}
        for scenario in self.scenarios:
            record = scenario.record
            rules = by_file.setdefault((record.feature or record.feature_file, record.feature_file), {})
            rules.setdefault(record.rule, []).append(scenario)
        features = []
        for (name, file), rules in by_file.items():
            ordered = ((rule, sorted(found, key=_did_not_fail)) for rule, found in rules.items())
            features.append((name, file, sorted(ordered, key=_none_failed)))
        return sorted(features, key=lambda feature: all(_none_failed(rule) for rule in feature[2]))

    @property
    def counts(self) -> Counter[str]:
        return Counter(scenario.record.verdict for scenario in self.scenarios) + Counter(skipped=len(self.skipped))

    @property
    def verdict(self) -> str:
        if self.counts["failed"]:
            return "failed"
        return "passed" if any(self.counts[verdict] for verdict in ("passed", "known", "by design")) else "skipped"

    @property
    def headline(self) -> str:
        """The outcome in one sentence."""
        counts, total = self.counts, len(self.scenarios)
        if total and not any(scenario.record.feature_file for scenario in self.scenarios):  # spans of recordings
            return count(sum(len(scenario.record.findings) for scenario in self.scenarios), "finding")
        skipped = f", {len(self.skipped)} skipped" if self.skipped else ""
        if not total:
            return f"No scenario ran{skipped}"
        if counts["failed"]:
            return f"{counts['failed']} of {count(total, 'scenario')} failed{skipped}"
        others = {"known": "failed as known", "by design": "differ by design", "skipped": "skipped"}
        also = "".join(f", {counts[verdict]} {text}" for verdict, text in others.items() if counts[verdict])
        return f"{count(counts['passed'], 'scenario')} passed{also}"

    @property
    def environment(self) -> list[tuple[str, str]]:
        """The clusters and schedulers of the runs."""
        records = [scenario.record for scenario in self.scenarios]
        policies = {record.policy_sha256: _policy_of(record) for record in records if record.policy}
        policy = "".join(policies.values()) if len(policies) < 2 else f"{len(policies)} policies"
        began = min((record.began for record in records), default=0.0)
        took = max((record.began + record.seconds for record in records), default=0.0) - began
        evicted = sum(record.evicted.pods for record in records)
        binds = sum(act.act == "bind" for record in records for act in record.acts)
        rows = [
            ("Cluster", _all(f"{record.cluster.name} {record.cluster.version}".strip() for record in records)),
            ("Scheduler", _all(f"{record.scheduler.name} {record.scheduler.version}" for record in records)),
            ("Policy", policy),
            ("Began", datetime.fromtimestamp(began, UTC).strftime("%Y-%m-%d %H:%M UTC") if records else ""),
            ("Took", seconds(round(took, 1)) if records else ""),
            ("Decisions", f"{count(binds, 'bind')}, {count(evicted, 'eviction')}" if records else ""),
        ]
        return [(name, value) for name, value in rows if value.strip()]

    @property
    def tags(self) -> list[str]:
        return sorted({tag for scenario in self.scenarios for tag in scenario.record.tags})

    @property
    def environments(self) -> int:
        """The number of pairs of cluster and scheduler."""
        return len({(scenario.record.cluster.name, scenario.record.scheduler.name) for scenario in self.scenarios})


def render(
    records: Iterable[ScenarioRecord],
    views: Sequence[View] = (),
    skipped: Sequence[Result] = (),
    *,
    opens_on: str = "",
) -> str:
    """Return the page. Pure: the same records make the same page.

    `skipped`: the scenarios that were collected but did not run. `opens_on`: the anchor of the view on which the page
    opens; empty for the overview.
    """
    report = Report(records, skipped)
    return template("report.html.j2").render(report=report, views=views, start=opens_on)


def write(
    records: Iterable[ScenarioRecord],
    path: Path,
    views: Sequence[View] = (),
    skipped: Sequence[Result] = (),
    *,
    opens_on: str = "",
) -> Path:
    """Write the page and return its path; see `render`. Raises OSError."""
    found = list(records)
    private = any(record.is_private for record in found)
    files.make_folder(path.parent, private=private)
    return files.write(path, render(found, views, skipped, opens_on=opens_on), private=private)


def picture(record: ScenarioRecord) -> str:
    return template("picture.svg.j2").render(scenario=Scenario(record))


@lru_cache
def _environment() -> jinja2.Environment:
    loader = jinja2.FileSystemLoader(PAGE)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {"n": number, "seconds": seconds, "spoken": _spoken, "inline": _inline, "title_of": title_of}
    return environment


def template(name: str) -> jinja2.Template:
    """Return one of the templates in `page/`."""
    return _environment().get_template(name)


def _inline(name: str) -> Markup:
    """Return a file of `page/` unchanged."""
    return Markup((PAGE / name).read_text("utf-8"))  # noqa: S704 - our own


def _spoken(amounts: dict[str, str], *left_out: str) -> str:
    """Format amounts as `4 cpu, 8 gpus`, without `left_out` unless nothing else remains; a dash for no amounts."""
    shown = {name: amount for name, amount in amounts.items() if name not in left_out} or amounts
    return ", ".join(spoken(name, amount) for name, amount in shown.items()) or "–"


def _policy_of(record: ScenarioRecord) -> str:
    """Return a policy as `team (Two teams lend to each other.)`."""
    title = title_of(record.policy)
    return f"{record.policy_name} ({title})" if record.policy_name and title else record.policy_name or title


def _did_not_fail(scenario: Scenario) -> bool:
    return scenario.record.verdict != "failed"


def _none_failed(rule: tuple[str, list[Scenario]]) -> bool:
    return all(_did_not_fail(scenario) for scenario in rule[1])


def _all(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(text.strip() for text in texts))
