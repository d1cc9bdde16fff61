"""`report.html`: every scenario of one or several runs on one page, in one file, complete without JavaScript.

The one rule: the file asks nobody for anything: styles, script, pictures and the records themselves (gzip, base64) are
inside. The templates are in `page/`; a further view of the records is a :class:`View`, handed to :func:`render`.
"""

from __future__ import annotations

import base64
import gzip
import shlex
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path

import jinja2
import msgspec
from markupsafe import Markup

from .. import distribution
from . import files, timeline
from .axis import seconds
from .lives import Life, Plain, lives_of, natural, shown_names
from .miniature import Miniature, miniature
from .objects import is_card
from .picture import Picture, colours_of, main_dimension
from .record import ActMoment, QueueMoment, ScenarioRecord, Sentence

PAGE = Path(__file__).with_name("page")


@dataclass(frozen=True, slots=True)
class View:
    """A page of its own beside the scenarios, reached from the head of the overview."""

    anchor: str
    """Its place in the file: letters and dashes; unique."""
    title: str
    body: Markup
    """HTML, escaped where it had to be."""


class Scenario:
    """One record as the templates see it."""

    def __init__(self, record: ScenarioRecord, anchor: str = "") -> None:
        self.record, self.anchor = record, anchor or record.anchor

    @cached_property
    def picture(self) -> Picture:
        """The course of it."""
        return timeline.draw(self.record)

    @cached_property
    def miniature(self) -> Miniature:
        """The same as small as a word."""
        return miniature(self.record)

    @cached_property
    def colours(self) -> dict[str, int]:
        """Queue → colour."""
        return colours_of(self.record)

    @cached_property
    def lives(self) -> list[Life]:
        """Its pods."""
        return lives_of(self.record)

    @cached_property
    def names(self) -> dict[str, str]:
        """Pod uid → what it is called in the picture."""
        return shown_names(self.lives)

    @cached_property
    def plain(self) -> Plain:
        """Makes the scheduler's words readable."""
        return Plain(self.record.namespace, self.lives)

    @property
    def evictions(self) -> list[ActMoment]:
        """In the order in which they were made."""
        return [act for act in self.record.acts if act.act == "evict"]

    @property
    def gherkin(self) -> list[tuple[int, Sentence]]:
        """The sentences with their numbers."""
        return list(enumerate(self.record.sentences, 1))

    @property
    def facts(self) -> list[str]:
        """What came of it, in a line."""
        it, found = self.record, []
        binds = sum(act.act == "bind" for act in it.acts)
        if binds:
            found.append(f"{_count(binds, 'pod')} bound")
        if it.evicted.pods:
            found.append(f"{_count(it.evicted.pods, 'pod')} evicted")
            found += [f"{_amount(it.evicted.evicted, name)} freed for {_amount(it.evicted.requested, name)} requested "
                      f"(evicted-to-requested {ratio:g})" for name, ratio in self.ratios]  # fmt: skip
        waited = [life.bound - life.created for life in self.lives if life.bound is not None]
        if waited:
            found.append(f"created to bound {seconds(round(statistics.median(waited), 3))} (median)")
        never = sum(life.bound is None and life.gone is None for life in self.lives)
        if never:
            found.append(f"{_count(never, 'pod')} still waiting at the end")
        return found

    @property
    def ratios(self) -> list[tuple[str, float]]:
        """Evicted to requested, of what the scenario is about."""
        main = main_dimension(self.record)
        return [(name, ratio) for name, ratio in self.record.evicted.ratio.items() if name == main]

    @property
    def order(self) -> list[tuple[str, str, list[ActMoment]]]:
        """For whom, of which queue, and who went for it, in order."""
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
        """What to type to run it, to explain what it decided, to decide it again."""
        it = self.record
        run = f"pytest {shlex.quote(it.node_id)}"
        if it.cluster.name not in ("none", "existing"):
            run += f" --cluster {it.cluster.name}"
        recording = shlex.quote(it.recording) if it.recording else "RECORDING"
        pod = next((act.pod for act in self.evictions), "") or next((life.name for life in self.lives), "")
        found = [("Run this scenario", run)]
        if pod and it.scheduler.name == "schedspec":
            name = shlex.quote(f"{it.namespace}/{pod}")
            found.append(("Explain a pod", f"{distribution.prompt()} explain {recording} pod {name} --all"))
            found.append(("Decide it again", f"{distribution.prompt()} replay {recording}"))
        return found

    @property
    def data(self) -> str:
        """The record, compressed, for the script and for whoever saves the file."""
        return base64.b64encode(gzip.compress(msgspec.json.encode(self.record), 6, mtime=0)).decode()

    @property
    def text(self) -> str:
        """What the search looks through."""
        it = self.record
        words = [
            it.feature,
            it.rule,
            it.title,
            it.feature_file,
            *it.tags,
            *(f"evicted {act.pod}" for act in self.evictions[:50]),
        ]
        words += [said.text for said in it.sentences]
        return " ".join(words).lower()

    def colour(self, queue: str) -> str:
        """The class of a queue's colour."""
        return f"q{self.colours[queue]}" if queue in self.colours else "q"

    def workload(self, uid: str, otherwise: str) -> str:
        """What a pod is called, by its uid."""
        return self.names.get(uid, otherwise)


class Report:
    """All scenarios, as one reads them: by feature and Rule, what failed first."""

    def __init__(self, records: Iterable[ScenarioRecord]) -> None:
        found = sorted(records, key=lambda it: (it.feature_file, it.line, it.example, it.began))
        self.scenarios: list[Scenario] = []
        taken: Counter[str] = Counter()
        for record in found:  # of several clusters or schedulers the same scenario may be there more than once
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
        """How many of which verdict."""
        return Counter(it.record.verdict for it in self.scenarios)

    @property
    def verdict(self) -> str:
        """Of all of it."""
        return (
            "failed"
            if self.counts["failed"]
            else "passed"
            if self.counts["passed"] or self.counts["known"]
            else "skipped"
        )

    @property
    def headline(self) -> str:
        """What happened, in a sentence."""
        counts, total = self.counts, len(self.scenarios)
        if not total:
            return "No scenario ran"
        if counts["failed"]:
            return f"{counts['failed']} of {_count(total, 'scenario')} failed"
        others = {"known": "failed as known", "skipped": "skipped"}
        also = "".join(f", {counts[verdict]} {text}" for verdict, text in others.items() if counts[verdict])
        return f"{_count(counts['passed'], 'scenario')} passed{also}"

    @property
    def environment(self) -> list[tuple[str, str]]:
        """On what it ran."""
        records = [it.record for it in self.scenarios]
        policies = {it.policy_sha256: _title_of(it.policy) for it in records if it.policy}
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
            ("Decisions", f"{_count(binds, 'bind')}, {_count(evicted, 'eviction')}" if records else ""),
        ]
        return [(name, value) for name, value in rows if value.strip()]

    @property
    def tags(self) -> list[str]:
        """All that a scenario bears."""
        return sorted({tag for it in self.scenarios for tag in it.record.tags})

    @property
    def environments(self) -> int:
        """How many pairs of cluster and scheduler."""
        return len({(it.record.cluster.name, it.record.scheduler.name) for it in self.scenarios})


def render(records: Iterable[ScenarioRecord], views: Sequence[View] = ()) -> str:
    """The page. Pure: the same records make the same page."""
    return template("report.html.j2").render(report=Report(records), views=views)


def write(records: Iterable[ScenarioRecord], path: Path, views: Sequence[View] = ()) -> Path:
    """Write the page; give its path. Raises OSError."""
    files.make_folder(path.parent)
    return files.write(path, render(records, views))


def picture(record: ScenarioRecord) -> str:
    """One scenario's picture as an SVG file of its own."""
    return template("picture.svg.j2").render(scenario=Scenario(record))


@lru_cache
def _environment() -> jinja2.Environment:
    loader = jinja2.FileSystemLoader(PAGE)
    it = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    it.filters |= {"n": _number, "seconds": seconds, "short": _short_resource, "inline": _inline, "title_of": _title_of}
    return it


def template(name: str) -> jinja2.Template:
    """One of `page/`."""
    return _environment().get_template(name)


def _inline(name: str) -> Markup:
    """A file of `page/` as it is."""
    return Markup((PAGE / name).read_text("utf-8"))  # noqa: S704 - our own


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _short_resource(name: str) -> str:
    """``nvidia.com/gpu`` as a column's head."""
    return "cards" if is_card(name) else name


def _amount(amounts: dict[str, str], name: str) -> str:
    amount = float(amounts.get(name, "0"))
    return f"{amount:g} {'card' if amount == 1 else 'cards'}" if is_card(name) else f"{amount:g} {name}"


def _title_of(policy: str) -> str:
    """A policy's first comment says what it is for."""
    first = policy.partition("\n")[0]
    return first.removeprefix("#").strip() if first.startswith("#") else "without a title"


def _passed(it: Scenario) -> bool:
    return it.record.verdict != "failed"


def _none_failed(rule: tuple[str, list[Scenario]]) -> bool:
    return all(_passed(it) for it in rule[1])


def _all(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(text.strip() for text in texts))


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
