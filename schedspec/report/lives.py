"""Derive each pod's life from a record: when it was created, bound, running, evicted and deleted, and why it waited.

This module is pure. It ignores the clean-up: a life ends with the scenario.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from .objects import is_card
from .record import ActMoment, ScenarioRecord, Story


@dataclass(slots=True)
class Life:
    """One pod. Times are seconds on the record's clock; None if the event did not happen."""

    name: str
    uid: str
    queue: str = ""
    workload: str = ""
    group: str = ""
    priority: str = ""
    card: str = ""
    amounts: dict[str, float] = field(default_factory=dict)
    created: float = 0.0
    bound: float | None = None
    node: str = ""
    started: float | None = None
    leaving: float | None = None
    ended: float | None = None
    gone: float | None = None
    phase: str = ""
    reasons: list[tuple[float, str]] = field(default_factory=list)
    eviction: ActMoment | None = None

    def released(self, end: float) -> float:
        """Return when the pod freed its node: its end or deletion, else `end`."""
        return min((t for t in (self.ended, self.gone) if t is not None), default=end)

    def waited_until(self, end: float) -> float:
        """Return when the pod stopped waiting for a node: its bind, end or deletion, else `end`."""
        return min((t for t in (self.bound, self.gone, self.ended) if t is not None), default=end)

    @property
    def cards(self) -> float:
        return sum(amount for name, amount in self.amounts.items() if is_card(name))


def lives_of(record: ScenarioRecord) -> list[Life]:
    """Return every pod of a scenario, in the order of creation."""
    found: dict[str, Life] = {}
    for story in record.objects:
        if story.kind == "pod":
            _add_story(story, found)
    for act in record.acts:
        if act.act == "evict" and act.uid in found:
            found[act.uid].eviction = act
    return sorted(found.values(), key=lambda life: (life.created, natural(life.name)))


def _add_story(story: Story, found: dict[str, Life]) -> None:
    for moment in story.moments:
        if moment.cleanup:
            continue
        at, state = moment.at, moment.state
        life = found.get(moment.uid)
        if life is None:
            life = found[moment.uid] = Life(story.name, moment.uid, created=at)
        if moment.change == "gone":
            life.gone = at
            continue
        life.queue, life.workload = state.get("queue", life.queue), state.get("workload", story.name)
        life.group, life.card = state.get("group", ""), state.get("card", "")
        life.priority, life.phase = state.get("priority", ""), state.get("phase", "")
        life.amounts = {name: float(amount) for name, amount in state.get("requests", {}).items()}
        if "node" in state and life.bound is None:
            life.bound, life.node = at, state["node"]
        if life.phase == "Running" and life.started is None:
            life.started = at
        if (state.get("leaving") or state.get("evicted")) and life.leaving is None:
            life.leaving = at
        if life.phase in ("Succeeded", "Failed") and life.ended is None:
            life.ended = at
        why = state.get("waits", "")
        if why and life.bound is None and (not life.reasons or life.reasons[-1][1] != why):
            life.reasons.append((at, why))


def shown_names(lives: Iterable[Life]) -> dict[str, str]:
    """Return each pod's name in a picture, by uid: its workload's name, if the workload has no other pod."""
    lives = list(lives)
    siblings = Counter(life.workload for life in {(life.workload, life.name): life for life in lives}.values())
    return {life.uid: life.workload if siblings[life.workload] == 1 else _short(life) for life in lives}


class PlainNames:
    """Makes the scheduler's texts readable: drops the scenario's namespace, and names a PodGroup by its workload."""

    def __init__(self, namespace: str, lives: Iterable[Life]) -> None:
        self._prefix = f"{namespace}/" if namespace else ""
        self._names = {life.group: life.workload for life in lives if life.group and life.group != life.workload}

    def __call__(self, text: str) -> str:
        if self._prefix:
            text = text.replace(self._prefix, "")
        if "-" not in text:
            return text
        return re.sub(r"[\w.-]+", lambda found: self._names.get(found[0], found[0]), text)


def _short(life: Life) -> str:
    if len(life.name) <= 22 or not life.name.startswith(life.workload):
        return life.name
    return f"{life.workload}…{life.name[-5:]}"


def natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key that puts `node-10` after `node-9`."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name) if part]
