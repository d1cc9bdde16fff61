"""Render `report.html`: every scenario of one or several runs on one page, in one file, complete without JavaScript.

The one rule: the file loads nothing: styles, script, pictures and the records themselves (gzip, base64) are
inside. The templates are in `page/`; a further view of the records is a `View`, passed to `render`.
"""

from __future__ import annotations

import base64
import gzip
import shlex
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup

from .. import distribution
from ..monitors.amounts import parse_quantity, shown, spoken
from ..observe.view import count
from ..results import Result, RunResults
from . import files, timeline
from .axis import seconds
from .lives import Life, Plain, lives_of, natural, shown_names
from .miniature import Miniature, miniature
from .picture import Picture, colours_of, main_dimension
from .record import ActMoment, QueueMoment, Reason, ScenarioRecord, Sentence

PAGE = Path(__file__).with_name("page")


@dataclass(frozen=True, slots=True)
class View:
    """A page of its own beside the scenarios, linked from the head of the overview."""

    anchor: str
    """Its place in the file: letters and dashes; unique."""
    title: str
    body: Markup
    """HTML, escaped where it had to be."""


@dataclass(frozen=True, slots=True)
class NothingEvicted:
    """A search for victims that found too few: how many candidates each reason protects."""

    at: float
    who: str
    action: str
    candidates: int
    protections: list[tuple[int, str]]
    surplus: list[str]


class Scenario:
    """One record, with the values that the templates show."""

    def __init__(self, record: ScenarioRecord, anchor: str = "") -> None:
        self.record, self.anchor = record, anchor or record.anchor

    @cached_property
    def picture(self) -> Picture:
        """The scenario's timeline."""
        return timeline.draw(self.record)

    @cached_property
    def miniature(self) -> Miniature:
        """The scenario's timeline as a miniature."""
        return miniature(self.record)

    @cached_property
    def colours(self) -> dict[str, int]:
        """Queue → colour."""
        return colours_of(self.record)

    @cached_property
    def lives(self) -> list[Life]:
        """The lives of the scenario's pods."""
        return lives_of(self.record)

    @cached_property
    def names(self) -> dict[str, str]:
        """Pod uid → its name in the picture."""
        return shown_names(self.lives)

    @cached_property
    def plain(self) -> Plain:
        """The function that makes the scheduler's texts readable."""
        return Plain(self.record.namespace, self.lives)

    @property
    def evictions(self) -> list[ActMoment]:
        """The evictions, in the order in which they were made."""
        return [act for act in self.record.acts if act.act == "evict"]

    @property
    def gherkin(self) -> list[tuple[int, Sentence]]:
        """The sentences with their numbers."""
        return list(enumerate(self.record.sentences, 1))

    @property
    def facts(self) -> list[str]:
        """The outcome of the scenario, in a line."""
        it, found = self.record, []
        binds = sum(act.act == "bind" for act in it.acts)
        if binds:
            found.append(f"{count(binds, 'pod')} bound")
        if it.evicted.pods:
            found.append(f"{count(it.evicted.pods, 'pod')} evicted")
            found += [f"{_amount(it.evicted.evicted, name)} freed for {_amount(it.evicted.requested, name)} requested "
                      f"(evicted-to-requested {ratio:g})" for name, ratio in self.ratios]  # fmt: skip
        waited = [life.bound - life.created for life in self.lives if life.bound is not None]
        if waited:
            found.append(f"created to bound {seconds(round(statistics.median(waited), 3))} (median)")
        never = sum(life.bound is None and life.gone is None for life in self.lives)
        if never:
            found.append(f"{count(never, 'pod')} still waiting at the end")
        return found

    @property
    def ratios(self) -> list[tuple[str, float]]:
        """The evicted-to-requested ratio of the main resources."""
        main = main_dimension(self.record)
        return [(name, ratio) for name, ratio in self.record.evicted.ratio.items() if name == main]

    @property
    def nothing_evicted(self) -> list[NothingEvicted]:
        """The last search for victims of each workload and action that found too few, from the published data."""
        found: dict[tuple[str, str], NothingEvicted] = {}
        for reason in self.record.reasons:
            for why in reason.data:
                if why.get("type") == "no-victims":
                    row = self._nothing_evicted(reason, why)
                    found[row.who, row.action] = row
        return list(found.values())

    def _nothing_evicted(self, reason: Reason, why: Mapping[str, Any]) -> NothingEvicted:
        protections = [(int(it["count"]), self.plain(str(it["why"].get("text", "")))) for it in why.get("spared", ())]
        surplus = [_surplus(it) for it in why.get("surplus", ())]
        workloads = {name: life.workload for life in self.lives for name in (life.name, life.group)}
        who = workloads.get(reason.name, reason.name)
        return NothingEvicted(reason.at, who, str(why.get("action")), int(why["candidates"]), protections, surplus)

    @property
    def order(self) -> list[tuple[str, str, list[ActMoment]]]:
        """The evictions by preemptor, with its queue and its victims, in order."""
        found: dict[tuple[str, str], list[ActMoment]] = {}
        workloads = {life.uid: life.workload for life in self.lives}
        for act in self.evictions:
            name = workloads.get(act.preemptor_uid, act.preemptor)
            found.setdefault((name, act.preemptor_queue), []).append(act)
        return [(name, queue, acts) for (name, queue), acts in found.items()]

    @property
    def queues(self) -> list[QueueMoment]:
        """Each queue's last numbers."""
        last = {moment.queue: moment for moment in self.record.queues}
        shown = [name for name in last if name not in ("root",) and (name != "default" or last[name].held)]
        return [last[name] for name in sorted(shown, key=natural)]

    @property
    def commands(self) -> list[tuple[str, str]]:
        """The commands to run the scenario, to explain its decisions and to replay them."""
        it = self.record
        run = f"pytest {shlex.quote(it.node_id)}"
        if it.cluster.name not in ("none", "existing"):
            run += f" --cluster {it.cluster.name}"
        recording = shlex.quote(it.recording)
        pod = next((act.pod for act in self.evictions), "") or next((life.name for life in self.lives), "")
        found = [("Run this scenario", run)]
        if pod and recording and it.scheduler.name == "schedspec":
            name = shlex.quote(f"{it.namespace}/{pod}")
            found.append(("Explain a pod", f"{distribution.prompt()} scheduler explain {recording} pod {name} --all"))
            found.append(("Replay", f"{distribution.prompt()} scheduler replay {recording}"))
        return found

    @property
    def data(self) -> str:
        """The compressed record, for the script and for readers who save the file."""
        return base64.b64encode(gzip.compress(msgspec.json.encode(self.record), 6, mtime=0)).decode()

    @property
    def text(self) -> str:
        """The text that the search matches."""
        it = self.record
        words = [
            it.feature,
            it.rule,
            it.title,
            it.feature_file,
            *it.tags,
            *(f"evicted {act.pod}" for act in self.evictions[:50]),
        ]
        words += [sentence.text for sentence in it.sentences]
        return " ".join(words).lower()

    def colour(self, queue: str) -> str:
        """Return the CSS class of a queue's colour."""
        return f"q{self.colours[queue]}" if queue in self.colours else "q"

    def workload(self, uid: str, otherwise: str) -> str:
        """Return the name of a pod's workload, by the pod's uid."""
        return self.names.get(uid, otherwise)


def without_record(runs: Iterable[RunResults], records: Iterable[ScenarioRecord]) -> list[Result]:
    """Return the scenarios of these runs that were skipped and have no record."""
    recorded = {it.node_id for it in records}
    found = {
        (it.node_id, run.scheduler): it
        for run in runs
        for it in run.results
        if it.verdict in ("skipped", "lacks") and it.node_id not in recorded
    }
    return list(found.values())


class Report:
    """All scenarios in reading order: by feature and Rule, failed ones first."""

    def __init__(self, records: Iterable[ScenarioRecord], skipped: Sequence[Result] = ()) -> None:
        self.skipped = skipped
        found = sorted(records, key=lambda it: (it.feature_file, it.line, it.example, it.began))
        self.scenarios: list[Scenario] = []
        taken: Counter[str] = Counter()
        for record in found:  # with several clusters or schedulers, a scenario may have several records
            taken[record.anchor] += 1
            again = f"-{taken[record.anchor]}" if taken[record.anchor] > 1 else ""
            self.scenarios.append(Scenario(record, record.anchor + again))

    @property
    def features(self) -> list[tuple[str, str, list[tuple[str, list[Scenario]]]]]:
        """Each feature's name and file, with its Rules and their scenarios."""
        by_file: dict[tuple[str, str], dict[str, list[Scenario]]] = {}
        for it in self.scenarios:
            rules = by_file.setdefault((it.record.feature or it.record.feature_file, it.record.feature_file), {})
            rules.setdefault(it.record.rule, []).append(it)
        features = [
            (
                name,
                file,
                sorted(((rule, sorted(found, key=_passed)) for rule, found in rules.items()), key=_none_failed),
            )
            for (name, file), rules in by_file.items()
        ]
        return sorted(features, key=lambda it: all(_none_failed(rule) for rule in it[2]))

    @property
    def counts(self) -> Counter[str]:
        """The number of scenarios of each verdict."""
        return Counter(it.record.verdict for it in self.scenarios) + Counter(skipped=len(self.skipped))

    @property
    def verdict(self) -> str:
        """The verdict of all scenarios together."""
        return (
            "failed"
            if self.counts["failed"]
            else "passed"
            if self.counts["passed"] or self.counts["known"]
            else "skipped"
        )

    @property
    def headline(self) -> str:
        """The outcome in one sentence."""
        counts, total = self.counts, len(self.scenarios)
        skipped = f", {len(self.skipped)} skipped" if self.skipped else ""
        if not total:
            return f"No scenario ran{skipped}"
        if counts["failed"]:
            return f"{counts['failed']} of {count(total, 'scenario')} failed{skipped}"
        others = {"known": "failed as known", "skipped": "skipped"}
        also = "".join(f", {counts[verdict]} {text}" for verdict, text in others.items() if counts[verdict])
        return f"{count(counts['passed'], 'scenario')} passed{also}"

    @property
    def environment(self) -> list[tuple[str, str]]:
        """The clusters and schedulers of the runs."""
        records = [it.record for it in self.scenarios]
        policies = {it.policy_sha256: _policy_of(it) for it in records if it.policy}
        policy = (
            next(iter(policies.values())) if len(policies) == 1 else f"{len(policies)} policies" if policies else ""
        )
        began = min((it.began for it in records), default=0.0)
        took = max((it.began + it.seconds for it in records), default=0.0) - began
        evicted = sum(it.evicted.pods for it in records)
        binds = sum(act.act == "bind" for it in records for act in it.acts)
        rows = [
            ("Cluster", _all(f"{it.cluster.name} {it.cluster.version}" for it in records)),
            ("Scheduler", _all(f"{it.scheduler.name} {it.scheduler.version}" for it in records)),
            ("Policy", policy),
            ("Began", datetime.fromtimestamp(began, UTC).strftime("%Y-%m-%d %H:%M UTC") if records else ""),
            ("Took", seconds(round(took, 1)) if records else ""),
            ("Decisions", f"{count(binds, 'bind')}, {count(evicted, 'eviction')}" if records else ""),
        ]
        return [(name, value) for name, value in rows if value.strip()]

    @property
    def tags(self) -> list[str]:
        """Return all tags of a scenario."""
        return sorted({tag for it in self.scenarios for tag in it.record.tags})

    @property
    def environments(self) -> int:
        """The number of pairs of cluster and scheduler."""
        return len({(it.record.cluster.name, it.record.scheduler.name) for it in self.scenarios})


def render(
    records: Iterable[ScenarioRecord],
    views: Sequence[View] = (),
    skipped: Sequence[Result] = (),
    *,
    opens_on: str = "",
) -> str:
    """Return the page. Pure: the same records make the same page.

    Args:
        records: The scenarios that ran.
        views: Further pages.
        skipped: The scenarios that were collected and did not run.
        opens_on: The anchor of the view that the page begins with; the overview without one.
    """
    report = Report(records, skipped)
    return template("report.html.j2").render(report=report, views=views, start=opens_on)


def write(
    records: Iterable[ScenarioRecord], path: Path, views: Sequence[View] = (), skipped: Sequence[Result] = ()
) -> Path:
    """Write the page and return its path. Raises OSError."""
    found = list(records)
    private = any(it.is_private for it in found)
    files.make_folder(path.parent, private=private)
    return files.write(path, render(found, views, skipped), private=private)


def picture(record: ScenarioRecord) -> str:
    """Return one scenario's picture as an SVG file of its own."""
    return template("picture.svg.j2").render(scenario=Scenario(record))


@lru_cache
def _environment() -> jinja2.Environment:
    loader = jinja2.FileSystemLoader(PAGE)
    it = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    it.filters |= {"n": _number, "seconds": seconds, "spoken": _spoken, "inline": _inline, "title_of": _title_of}
    return it


def template(name: str) -> jinja2.Template:
    """Return one of the templates in `page/`."""
    return _environment().get_template(name)


def _inline(name: str) -> Markup:
    """Return a file of `page/` unchanged."""
    return Markup((PAGE / name).read_text("utf-8"))  # noqa: S704 - our own


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _spoken(amounts: dict[str, str], *left_out: str) -> str:
    """Return amounts as `4 cpu, 8 gpus`, without minor resources if there are others; a dash for no amounts."""
    shown = {name: amount for name, amount in amounts.items() if name not in left_out} or amounts
    return ", ".join(spoken(name, amount) for name, amount in shown.items()) or "–"


def _amount(amounts: dict[str, str], name: str) -> str:
    return spoken(name, amounts.get(name, "0"))


def _surplus(item: Mapping[str, str]) -> str:
    """Return a queue's surplus as `research: 4 of 10 gpus`."""
    held, deserved = parse_quantity(item["allocated"]), parse_quantity(item["deserved"])
    return f"{item['queue']}: {shown(item['dimension'], held - deserved)} of {spoken(item['dimension'], held)}"


def _title_of(policy: str) -> str:
    """Return a policy's first comment, which states its purpose."""
    first = policy.partition("\n")[0]
    return first.removeprefix("#").strip() if first.startswith("#") else ""


def _policy_of(record: ScenarioRecord) -> str:
    """Return a policy as `team (Two teams lend to each other.)`."""
    title = _title_of(record.policy)
    return f"{record.policy_name} ({title})" if record.policy_name and title else record.policy_name or title


def _passed(it: Scenario) -> bool:
    return it.record.verdict != "failed"


def _none_failed(rule: tuple[str, list[Scenario]]) -> bool:
    return all(_passed(it) for it in rule[1])


def _all(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(text.strip() for text in texts))
