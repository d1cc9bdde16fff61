"""What a failed scenario says: the sentence, what was expected and seen, and everything that explains it, in the order
in which it happened.

Never more than 60 lines, never a frame of Python; what does not fit is in the files that the last line names. Uncut
(``-vv``, CI) it is all of it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from .. import distribution
from ..api.errors import Unmet
from ..api.kinds import Kind, Ref
from ..monitors.amounts import NONE
from ..monitors.ledger import Ledger
from ..monitors.queues import usage
from ..monitors.rules import Rules
from ..observe import view as views
from ..observe.history import History, Object, View
from ..scenario.run import ScenarioRun, SentenceRun

LINES = 60
RECORDING = "recording"
"""The scheduler's recording in a scenario's folder, which `explain` and `replay` take."""
_WIDTH = 160
_UID = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_MOST: dict[str, int | None] = {"course": 34, "queues": 7, "pending": 6}
"""How many lines a section may have."""
_TOGETHER = 0.1
"""Seconds within which alike pods of one workload that do the same do it together."""
_COLOURS: tuple[tuple[re.Pattern[str], dict[str, bool]], ...] = (
    (re.compile(r"\s+seen: |\s+[\d.]+ > .* fails$|also found: "), {"red": True, "bold": True}),
    (re.compile(r"\s+expected: "), {"green": True}),
    (re.compile(r"\s+[\d.]+ > "), {"bold": True}),
    (re.compile(r"\s+[\d.]+ .*(evicted: | Evict: )"), {"yellow": True}),
    (re.compile(r"  [a-z].*:$|everything that was seen: |  (scenario|policy): "), {"cyan": True}),
)


def headline(running: ScenarioRun, problem: BaseException) -> str:
    """The one line that the summary of a run shows: what was seen, then where."""
    said = running.sentences[-1] if running.sentences else None
    text = problem.seen or "nothing at all" if isinstance(problem, Unmet) else str(problem).partition("\n")[0]
    return _cut(f"{text} ({said})" if said is not None and said.verdict == "failed" else text)


def colour(row: str, *, first: bool = False) -> dict[str, bool]:
    """How a line is marked up on a terminal, in pytest's words."""
    if first:
        return {"bold": True}
    return next((markup for pattern, markup in _COLOURS if pattern.match(row)), {})


def tell(running: ScenarioRun, problem: BaseException, *, whole: bool = False, cut: bool = True) -> list[str]:
    """The story, line by line; with `whole` nothing is left out and names stand as they are, not to be `cut` is only to
    be long.
    """
    rows = list(_head(running, problem))
    most: dict[str, int | None] = _MOST if cut and not whole else dict.fromkeys(_MOST)
    rows += [f"also found: {finding}" for finding in running.findings if finding not in str(problem)]
    history, about = running.history, problem.about if isinstance(problem, Unmet) else ()
    course = _course(running, about)
    rows += _section("what happened, by seconds since the scenario began", course, most["course"], last=True)
    if history is not None:
        view = history.now()
        rows += _section("queues", _queues(history, view, Rules(running.policy)), most["queues"])
        rows += _section("pending, and why the scheduler says so", _pending(view), most["pending"])
    if whole:
        return rows
    files = [f"everything that was seen: {running.folder}", *_commands(running, problem)]
    room = LINES - len(files)
    if cut and len(rows) > room:
        rows = [*rows[: room - 1], f"  … {len(rows) - room + 1} more lines"]
    space = history.namespace if history is not None else ""
    shown = [_plain(row, space) for row in rows]
    return (list(map(_cut, shown)) if cut else shown) + files


def _commands(running: ScenarioRun, problem: BaseException) -> Iterator[str]:
    """What to type to learn more of the work that the failure is about, where the scheduler was recorded."""
    if running.history is None or not (running.folder / RECORDING).is_dir():
        return
    about = problem.about if isinstance(problem, Unmet) else ()
    view = running.history.now()
    pods = [ref.name for ref in about if ref.kind == Kind.POD]
    jobs = [ref.name for ref in about if ref.kind in (Kind.VCJOB, Kind.PODGROUP, Kind.DEPLOYMENT)]
    pods += [] if jobs else [str(pod["metadata"]["name"]) for pod in view.mine(Kind.POD) if views.waits(pod)]
    call = f"{distribution.prompt()} %s {shlex.quote(_shown(running.folder))}"
    if pods or jobs:
        which = f"pod {pods[0]}" if pods else f"job {_UID.sub('', jobs[0])}"
        yield f"why, cycle by cycle: {call % 'explain'} {which} --all"
    yield f"with another policy: {call % 'replay'} --policy FILE"


def _shown(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _head(running: ScenarioRun, problem: BaseException) -> Iterator[str]:
    said = running.sentences[-1] if running.sentences else None
    failed = said is not None and said.verdict == "failed"
    yield f"{running.where}: {said}" if failed else f"{running.where}: after the last sentence"
    yield from (f"  {row}" for row in str(problem).splitlines())
    policy = (running.policy.splitlines() or [""])[0].removeprefix("#").strip()
    yield f"  scenario: {running.name} (namespace {running.history.namespace if running.history else '-'})"
    if policy:
        yield f"  policy: {policy}"


@dataclass(slots=True)
class _Row:
    """Something that happened, to one object or, alike, to several pods of a workload."""

    at: float
    subject: str
    text: str
    workload: str = ""
    nodes: dict[str, None] = field(default_factory=dict)
    pods: int = 1


def _course(running: ScenarioRun, about: Sequence[Ref]) -> Iterator[str]:
    """Sentences, what the objects did and what events say, by time."""
    history = running.history
    zero = history.began if history is not None else running.began
    rows = [_said(it, it.began - zero) for it in running.sentences]
    if history is not None:
        rows += _merged(_objects(history, about))
        rows += _merged(_events(history))
    for row in sorted(rows, key=lambda it: it.at):
        subject = f"{row.pods} pods of {row.workload}" if row.pods > 1 else row.subject
        where = f", on {', '.join(row.nodes)}" if row.nodes else ""
        yield f"{max(0.0, row.at):7.2f} {subject}{': ' if subject else ''}{row.text}{where}"


def _said(sentence: SentenceRun, at: float) -> _Row:
    took = f"{sentence.ended - sentence.began:.2f} s" if sentence.ended is not None else "not over"
    return _Row(at, "", f"> {sentence} ({took}){' fails' if sentence.verdict == 'failed' else ''}")


def _merged(rows: Iterable[_Row]) -> list[_Row]:
    """Alike pods that do the same at about the same time as one row."""
    found: list[_Row] = []
    last: dict[tuple[str, str], _Row] = {}
    for row in sorted(rows, key=lambda it: it.at):
        before = last.get((row.workload, row.text)) if row.workload else None
        if before is not None and row.at - before.at <= _TOGETHER:
            before.pods += 1
            before.nodes |= row.nodes
            continue
        found.append(row)
        last[row.workload, row.text] = row
    return found


def _objects(history: History, about: Sequence[Ref]) -> Iterator[_Row]:
    for ref in involved(history, about):
        before = ""
        for version in history.story(ref):
            state = "gone" if version.change == "gone" else views.summary(ref.kind, version.object)
            if state == before:
                continue
            before, node = state, str((version.object.get("spec") or {}).get("nodeName") or "")
            row = _Row(history.seconds(version.at), str(ref), state)
            if ref.kind == Kind.POD:
                row.workload, row.text = _workload(version.object), state.replace(f", on {node}", "")
                row.nodes = {node: None} if node and row.text != state else {}
            yield row


def _workload(pod: Object) -> str:
    """What alike pods have in common; a pod of no workload is like no other."""
    name = views.workload_of(pod)
    return name if name != pod["metadata"]["name"] else ""


def involved(history: History, about: Sequence[Ref]) -> list[Ref]:
    """The objects that an expectation names, with their pods and PodGroups."""
    wanted = {ref.name for ref in about}
    found = dict.fromkeys(ref for ref in about if ref.kind not in (Kind.EVENT, Kind.NODE))
    for version in history.since(0):
        ref, meta = version.ref, version.object["metadata"]
        if ref.namespace != history.namespace or ref.kind not in (Kind.POD, Kind.PODGROUP):
            continue
        owners = {owner["name"] for owner in meta.get("ownerReferences") or ()}
        pod = ref.kind == Kind.POD
        names = owners | ({views.workload_of(version.object), views.group_of(version.object)} if pod else {ref.name})
        if names & wanted:
            found[ref] = None
    return list(found)


def _events(history: History) -> Iterator[_Row]:
    pods = {version.ref.name: _workload(version.object) for version in history.versions(Kind.POD)}
    for version in history.versions(Kind.EVENT):
        about = version.object.get("involvedObject") or {}
        name, count = str(about.get("name")), version.object.get("count") or 1
        text = f"{views.summary(Kind.EVENT, version.object)}{f' (x{count})' if count > 1 else ''}"
        workload = pods.get(name, "") if about.get("kind") == "Pod" else ""
        yield _Row(history.seconds(version.at), f"{about.get('kind')} {name}", text, workload)


def _queues(history: History, view: View, rules: Rules) -> list[str]:
    """What each queue may have, and what its pods hold."""
    rows: list[tuple[str, ...]] = [("queue", "resource", "capability", "deserved", "guarantee", "held")]
    ledger = Ledger(history.since(0))
    for queue in sorted(view.all(Kind.QUEUE), key=lambda it: str(it["metadata"]["name"])):
        spec, status, name = queue.get("spec") or {}, queue.get("status") or {}, str(queue["metadata"]["name"])
        held = usage.held_below(ledger, len(ledger.versions) - 1, name, rules)
        columns = (
            spec.get("capability") or {},
            status.get("deserved") or spec.get("deserved") or {},
            (spec.get("guarantee") or {}).get("resource") or {},
            {it: f"{amount.normalize():f}" for it, amount in held.items() if amount != NONE},
        )
        resources = sorted({it for column in columns for it in column} - {"pods"}) or ["-"]
        rows += [(name, it, *(str(column.get(it, "-")) for column in columns)) for it in resources]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _pending(view: View) -> Iterator[str]:
    for kind in (Kind.POD, Kind.PODGROUP):
        found = []
        for obj in sorted(view.mine(kind), key=lambda it: str(it["metadata"]["name"])):
            said, name = views.reason(obj), str(obj["metadata"]["name"])
            if views.waits(obj) if kind == Kind.POD else said or views.phase(obj) in ("", "Pending"):
                workload = _workload(obj) if kind == Kind.POD else ""
                found.append((workload or name, said or "the scheduler has not said anything", name))
        for (workload, said), group in groupby(found, key=lambda it: it[:2]):
            names = [name for _, _, name in group]
            yield f"{kind} {names[0]}: {said}" if len(names) == 1 else f"{len(names)} pods of {workload}: {said}"


def _section(title: str, rows: Iterable[str], limit: int | None, *, last: bool = False) -> list[str]:
    """A title and its rows, the first or the last of them if there are too many."""
    found = list(rows)
    if not found:
        return []
    left = len(found) - limit if limit is not None else 0
    if limit is not None and left > 0:
        note = f"… {left + 1} {'earlier' if last else 'more'}"
        found = [note, *found[-limit + 1 :]] if last else [*found[: limit - 1], note]
    return [f"  {title}:", *(f"    {row}" for row in found)]


def _plain(row: str, namespace: str) -> str:
    """As people name things: without the scenario's namespace, and a PodGroup without the uid in its name."""
    here = rf"\b{re.escape(namespace)}/" if namespace else r"(?!)"
    return _UID.sub("", re.sub(here, "", row))


def _cut(row: str) -> str:
    return row if len(row) <= _WIDTH else row[: _WIDTH - 1] + "…"
