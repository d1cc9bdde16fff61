"""One scenario of `report.html`: its record, with the values that the templates show."""

from __future__ import annotations

import base64
import gzip
import shlex
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from .. import distribution
from ..monitors.amounts import parse_quantity, shown, spoken
from ..observe.view import count
from . import timeline
from .axis import Axis, seconds
from .lives import Life, PlainNames, lives_of, natural, shown_names
from .picture import Picture, band, colours_of, main_dimension
from .record import ActMoment, QueueMoment, Reason, ScenarioRecord, Sentence

WIDTH, HEIGHT = 140, 22


@dataclass(frozen=True, slots=True)
class MiniaturePicture:
    """Paths with the colours of their queues, and the positions of evictions."""

    areas: list[tuple[int, str]]
    ticks: list[float]
    failed_at: float | None


def miniature(record: ScenarioRecord) -> MiniaturePicture:
    dimension, end = main_dimension(record), max(record.seconds, 0.001)
    colours = colours_of(record)
    parents = {moment.parent for moment in record.queues}
    moments = [moment for moment in record.queues if moment.queue not in parents and moment.queue not in ("root",)]
    axis = Axis((act.at for act in record.acts), end, 0.0, float(WIDTH))
    now: dict[str, float] = {}
    rows: dict[int, dict[str, float]] = {}
    for moment in moments:
        now[moment.queue] = float(moment.held.get(dimension, 0))
        rows[round(axis.x(moment.at))] = dict(now)
    most = max((sum(row.values()) for row in rows.values()), default=0.0) or 1.0
    scale = (HEIGHT - 3) / most
    queues = sorted(name for name, held in now.items() if any(row.get(name) for row in rows.values()) or held)
    areas = []
    for n in range(len(queues), 0, -1):  # each area covers the one below
        steps = [(float(x), 0.0, sum(rows[x].get(name, 0.0) for name in queues[:n])) for x in sorted(rows)]
        areas.append((colours.get(queues[n - 1], -1), band(steps, float(WIDTH), float(HEIGHT), scale)))
    ticks = sorted({round(axis.x(act.at), 1) for act in record.acts if act.act == "evict"})[:40]
    failed = record.failed_sentence
    return MiniaturePicture(areas, ticks, axis.x(failed.began) if failed is not None else None)


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
        return timeline.draw(self.record)

    @cached_property
    def miniature(self) -> MiniaturePicture:
        return miniature(self.record)

    @cached_property
    def colours(self) -> dict[str, int]:
        return colours_of(self.record)

    @cached_property
    def lives(self) -> list[Life]:
        return lives_of(self.record)

    @cached_property
    def names(self) -> dict[str, str]:
        return shown_names(self.lives)

    @cached_property
    def plain(self) -> PlainNames:
        return PlainNames(self.record.namespace, self.lives)

    @property
    def evictions(self) -> list[ActMoment]:
        return [act for act in self.record.acts if act.act == "evict"]

    @property
    def gherkin(self) -> list[tuple[int, Sentence]]:
        return list(enumerate(self.record.sentences, 1))

    @property
    def facts(self) -> list[str]:
        """The outcome of the scenario in numbers, such as `2 pods evicted`."""
        evicted, found = self.record.evicted, []
        binds = sum(act.act == "bind" for act in self.record.acts)
        if binds:
            found.append(f"{count(binds, 'pod')} bound")
        if evicted.pods:
            found.append(f"{count(evicted.pods, 'pod')} evicted")
            found += [f"{_amount(evicted.evicted, name)} freed for {_amount(evicted.requested, name)} requested "
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
        """The main resource with its evicted-to-requested ratio; empty without one."""
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
        protections = [
            (int(protection["count"]), self.plain(str(protection["why"].get("text", ""))))
            for protection in why.get("spared", ())
        ]
        surplus = [_surplus(sibling) for sibling in why.get("surplus", ())]
        workloads = {name: life.workload for life in self.lives for name in (life.name, life.group)}
        who = workloads.get(reason.name, reason.name)
        return NothingEvicted(reason.at, who, str(why.get("action")), int(why["candidates"]), protections, surplus)

    @property
    def order(self) -> list[tuple[str, str, list[ActMoment]]]:
        """The evictions by preemptor: its workload, its queue, and the evictions in order of time."""
        found: dict[tuple[str, str], list[ActMoment]] = {}
        workloads = {life.uid: life.workload for life in self.lives}
        for act in self.evictions:
            name = workloads.get(act.preemptor_uid, act.preemptor)
            found.setdefault((name, act.preemptor_queue), []).append(act)
        return [(name, queue, acts) for (name, queue), acts in found.items()]

    @property
    def queues(self) -> list[QueueMoment]:
        last = {moment.queue: moment for moment in self.record.queues}
        shown = [name for name in last if name not in ("root",) and (name != "default" or last[name].held)]
        return [last[name] for name in sorted(shown, key=natural)]

    @property
    def commands(self) -> list[tuple[str, str]]:
        """The commands to run the scenario, to explain its decisions and to replay them."""
        record = self.record
        if not record.feature_file:
            folder = shlex.quote(record.node_id)
            return [
                ("Judge this recording", f"{distribution.prompt()} judge {folder}"),
                ("Ask who evicted a pod", f"{distribution.prompt()} who evicted NAMESPACE/POD --recording {folder}"),
            ]
        run = f"pytest {shlex.quote(record.node_id)}"
        if record.cluster.name not in ("none", "existing"):
            run += f" --cluster {record.cluster.name}"
        recording = shlex.quote(record.recording) if record.recording else ""
        pod = next((act.pod for act in self.evictions), "") or next((life.name for life in self.lives), "")
        found = [("Run this scenario", run)]
        if pod and recording and record.scheduler.name == "schedspec":
            name = shlex.quote(f"{record.namespace}/{pod}")
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
        record = self.record
        words = [record.feature, record.rule, record.title, record.feature_file, *record.tags]
        words += [f"evicted {act.pod}" for act in self.evictions[:50]]
        words += [sentence.text for sentence in record.sentences]
        return " ".join(words).lower()

    def colour(self, queue: str) -> str:
        """Return the CSS class of a queue's colour."""
        return f"q{self.colours[queue]}" if queue in self.colours else "q"

    def pod_name(self, uid: str, default: str) -> str:
        """Return a pod's name in the picture; `default` for a pod that the record lacks."""
        return self.names.get(uid, default)


def _amount(amounts: dict[str, str], name: str) -> str:
    return spoken(name, amounts.get(name, "0"))


def _surplus(item: Mapping[str, str]) -> str:
    """Return a queue's surplus as `research: 4 of 10 gpus`."""
    held, deserved = parse_quantity(item["allocated"]), parse_quantity(item["deserved"])
    return f"{item['queue']}: {shown(item['dimension'], held - deserved)} of {spoken(item['dimension'], held)}"
