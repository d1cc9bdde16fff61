"""Write the story of a failed scenario: the failed sentence, what was expected and seen, and what happened before it.

The story has at most 60 lines and no traceback; it ends with the files and commands that show the rest. Long lines are
wrapped, never cut; instead, the timeline is shortened. With `-vv` and in CI the story is complete.
"""

from __future__ import annotations

import re
import shlex
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import msgspec

from .. import distribution
from ..api.errors import Unmet
from ..api.kinds import Kind, Ref
from ..monitors.amounts import NONE, shown
from ..monitors.ledger import Ledger
from ..monitors.reading import feed
from ..monitors.rules import Rules
from ..observe import view as views
from ..observe.history import History, Object, View
from ..scenario.run import ScenarioRun, SentenceRun
from ..terminal import short_path
from . import files
from .record import UID, title_of

LINES = 60
RECORDING = "recording"
"""The scheduler's recording in a scenario's folder, which `explain` and `replay` read."""
_WIDTH = 160
_COURSE = "what happened, by seconds since the scenario began"
_LEAST = 8
"""Minimum number of lines of the timeline, whatever the other sections need."""
_MAX: dict[str, int | None] = {"course": 34, "queues": 7, "pending": 6}
_TOGETHER = 0.1
"""Seconds within which equal changes of pods of one workload become one row."""
_COLOURS: tuple[tuple[re.Pattern[str], dict[str, bool]], ...] = (
    (re.compile(r"\s+seen: |\s+[\d.]+ > .* fails$|also found: "), {"red": True, "bold": True}),
    (re.compile(r"\s+expected: "), {"green": True}),
    (re.compile(r"\s+[\d.]+ > "), {"bold": True}),
    (re.compile(r"\s+[\d.]+ .*(evicted: | Evict: )"), {"yellow": True}),
    (re.compile(r"  [a-z].*:$|everything that was seen: |  (scenario|policy): "), {"cyan": True}),
)


def headline(running: ScenarioRun, problem: BaseException) -> str:
    """Return the line for the short summary: what was seen, then where."""
    last = running.sentences[-1] if running.sentences else None
    text = problem.seen or "nothing at all" if isinstance(problem, Unmet) else str(problem).partition("\n")[0]
    return f"{text} ({last})" if last is not None and last.verdict == "failed" else text


def colour(row: str, *, first: bool = False) -> dict[str, bool]:
    """Return the terminal markup of a line, in pytest's terms."""
    if first:
        return {"bold": True}
    return next((markup for pattern, markup in _COLOURS if pattern.match(row)), {})


def render(running: ScenarioRun, problem: BaseException, *, whole: bool = False, cut: bool = True) -> list[str]:
    """Return the story, line by line.

    With `whole`, nothing is left out and no name is shortened; without `cut`, the number of lines has no limit.
    """
    rows = list(_head(running, problem))
    most: dict[str, int | None] = _MAX if cut and not whole else dict.fromkeys(_MAX)
    rows += [f"also found: {finding}" for finding in running.findings if finding not in str(problem)]
    history, about = running.history, problem.about if isinstance(problem, Unmet) else ()
    course = list(_course(running, about))
    state: list[str] = []
    if history is not None:
        view = history.now()
        state += _section("queues", _queues(history, view, Rules(running.policy)), most["queues"])
        state += _section("pending, with the scheduler's reason", _pending(view), most["pending"])
    if whole:
        return [*rows, *_section(_COURSE, course, None, last=True), *state]
    files = [f"everything that was seen: {running.folder}", *_commands(running, problem)]
    space = history.namespace if history is not None else ""
    rows, course, state = ([_plain(row, space) for row in part] for part in (rows, course, state))
    if not cut:
        return [*rows, *_section(_COURSE, course, None, last=True), *state, *files]
    rows, state = _wrapped(rows), _wrapped(state)
    limit = LINES - len(files)
    if len(rows) + len(state) > limit - _LEAST:  # a monitor may have one finding for each pod
        rows = _shortened(rows, max(limit // 3, limit - _LEAST - len(state)))
        state = _shortened(state, limit - _LEAST - len(rows))
    happened = _section(_COURSE, course, min(_MAX["course"] or LINES, limit - len(rows) - len(state) - 1), last=True)
    return [*rows, *_fitting(happened, limit - len(rows) - len(state)), *state, *files]


def _wrapped(rows: Iterable[str]) -> list[str]:
    """Wrap the rows that are too long; the continuation lines are indented."""
    found: list[str] = []
    for row in rows:
        indent = " " * (len(row) - len(row.lstrip()) + 4)
        found += (
            textwrap.wrap(row, _WIDTH, subsequent_indent=indent, break_on_hyphens=False, drop_whitespace=False)
            if len(row) > _WIDTH
            else [row]
        )
    return [row.rstrip() for row in found]


def _fitting(section: Sequence[str], limit: int) -> list[str]:
    """Wrap the rows of a section of the timeline, and return its latest rows that fit into `limit` lines."""
    if not section:
        return []
    kept: list[str] = []
    for number, row in enumerate(reversed(section[1:])):
        lines = _wrapped([row])
        left = len(section) - 1 - number
        if len(kept) + len(lines) > limit - 1 - (left > len(lines)):
            return [section[0], f"    … {left} earlier", *kept]
        kept = lines + kept
    return [section[0], *kept]


def _shortened(rows: list[str], limit: int) -> list[str]:
    """Return at most `limit` rows: the first ones, and a last line with the number of the rest."""
    return rows if len(rows) <= limit else [*rows[: limit - 1], f"  … {len(rows) - limit + 1} more lines"]


def _commands(running: ScenarioRun, problem: BaseException) -> Iterator[str]:
    """Yield the commands that show renamed objects and, if the scheduler was recorded, explain the failed workload."""
    if running.history is not None and running.session is not None:
        seen = {version.ref for version in running.history.since(0)}
        if hint := running.session.names.hint(seen):
            yield f"to see the renamed objects: {hint}"
    if running.history is None or not (running.folder / RECORDING).is_dir():
        return
    about = problem.about if isinstance(problem, Unmet) else ()
    view = running.history.now()
    pods = [ref.name for ref in about if ref.kind == Kind.POD]
    jobs = [ref.name for ref in about if ref.kind in (Kind.VCJOB, Kind.PODGROUP, Kind.DEPLOYMENT)]
    pods += [] if jobs else [str(pod["metadata"]["name"]) for pod in view.mine(Kind.POD) if views.waits(pod)]
    call = f"{distribution.prompt()} scheduler %s {shlex.quote(short_path(running.folder))}"
    if pods or jobs:
        which = f"pod {pods[0]}" if pods else f"job {UID.sub('', jobs[0])}"
        yield f"why, cycle by cycle: {call % 'explain'} {which} --all"
    yield f"with another policy: {call % 'replay'} --policy FILE"


def _head(running: ScenarioRun, problem: BaseException) -> Iterator[str]:
    last = running.sentences[-1] if running.sentences else None
    failed = last is not None and last.verdict == "failed"
    yield f"{running.where}: {last}" if failed else f"{running.where}: after the last sentence"
    # a condition's message in what was seen may have line breaks: they begin no rows
    rows = str(problem).split("\n", 1) if isinstance(problem, Unmet) else str(problem).splitlines()
    yield from (f"  {row}" for row in rows)
    title = title_of(running.policy)
    yield f"  scenario: {running.name} (namespace {running.history.namespace if running.history else '-'})"
    if running.policy:
        yield f"  policy: {running.policy_name}{f' ({title})' if title else ''}"


@dataclass(slots=True)
class _Row:
    """A row of the timeline: a change of one object, or the same change of several pods of a workload."""

    at: float
    subject: str
    text: str
    workload: str = ""
    nodes: dict[str, None] = field(default_factory=dict)
    pods: set[str] = field(default_factory=set)
    """The names of the workload's pods that changed."""


def _course(running: ScenarioRun, about: Sequence[Ref]) -> Iterator[str]:
    """Yield the timeline as text: sentences, changes of objects, and events."""
    history = running.history
    zero = history.began if history is not None else running.began
    rows = [_sentence_row(sentence, sentence.began - zero) for sentence in running.sentences]
    if history is not None:
        rows += _merged(_objects(history, about))
        rows += _merged(_events(history))
    for row in sorted(rows, key=lambda row: row.at):
        subject = f"{len(row.pods)} pods of {row.workload}" if len(row.pods) > 1 else row.subject
        where = f", on {', '.join(row.nodes)}" if row.nodes else ""
        yield f"{max(0.0, row.at):7.2f} {subject}{': ' if subject else ''}{row.text}{where}"


def _sentence_row(sentence: SentenceRun, at: float) -> _Row:
    took = f"{sentence.ended - sentence.began:.2f} s" if sentence.ended is not None else "unfinished"
    return _Row(at, "", f"> {sentence} ({took}){' fails' if sentence.verdict == 'failed' else ''}")


def _merged(rows: Iterable[_Row]) -> list[_Row]:
    """Merge equal changes of a workload's pods at about the same time, those with and without a node apart."""
    found: list[_Row] = []
    last: dict[tuple[str, str, bool], _Row] = {}
    for row in sorted(rows, key=lambda row: row.at):
        key = (row.workload, row.text, bool(row.nodes))
        row.pods.add(row.subject)
        before = last.get(key) if row.workload else None
        if before is not None and row.at - before.at <= _TOGETHER:
            before.pods |= row.pods
            before.nodes |= row.nodes
            continue
        found.append(row)
        last[key] = row
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
    """Return the name of the pod's workload; empty if the pod has none."""
    name = views.workload_of(pod)
    return name if name != pod["metadata"]["name"] else ""


def involved(history: History, about: Sequence[Ref]) -> list[Ref]:
    """Return the objects that an expectation names, with their pods and PodGroups."""
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
    """Return the limits of each queue and the amounts that its pods hold, as the rows of a table."""
    rows: list[tuple[str, ...]] = [("queue", "resource", "capability", "deserved", "guarantee", "held")]
    ledger = feed(Ledger(rules), history.since(0))
    for queue in sorted(view.all(Kind.QUEUE), key=lambda queue: str(queue["metadata"]["name"])):
        spec, status, name = queue.get("spec") or {}, queue.get("status") or {}, str(queue["metadata"]["name"])
        held = ledger.below(name)
        columns = (
            spec.get("capability") or {},
            status.get("deserved") or spec.get("deserved") or {},
            (spec.get("guarantee") or {}).get("resource") or {},
            {resource: amount for resource, amount in held.items() if amount != NONE},
        )
        resources = sorted({resource for column in columns for resource in column} - {"pods"}) or ["-"]
        rows += [
            (name, resource, *(shown(resource, column[resource]) if resource in column else "-" for column in columns))
            for resource in resources
        ]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _pending(view: View) -> Iterator[str]:
    for kind in (Kind.POD, Kind.PODGROUP):
        found = []
        for obj in sorted(view.mine(kind), key=lambda obj: str(obj["metadata"]["name"])):
            reason, name = views.reason(obj), str(obj["metadata"]["name"])
            if views.waits(obj) if kind == Kind.POD else reason or views.phase(obj) in ("", "Pending"):
                workload = _workload(obj) if kind == Kind.POD else ""
                found.append((workload or name, reason or "the scheduler has published no reason", name))
        for (workload, reason), group in groupby(found, key=lambda row: row[:2]):
            names = [name for _, _, name in group]
            yield f"{kind} {names[0]}: {reason}" if len(names) == 1 else f"{len(names)} pods of {workload}: {reason}"


def _section(title: str, rows: Iterable[str], limit: int | None, *, last: bool = False) -> list[str]:
    """Return a title and its rows; only the first or the last rows if there are too many."""
    found = list(rows)
    if not found:
        return []
    left = len(found) - limit if limit is not None else 0
    if limit is not None and left > 0:
        note = f"… {left + 1} {'earlier' if last else 'more'}"
        found = [note, *found[-limit + 1 :]] if last else [*found[: limit - 1], note]
    return [f"  {title}:", *(f"    {row}" for row in found)]


def _plain(row: str, namespace: str) -> str:
    """Return the row without the scenario's namespace and without the uids in names of PodGroups."""
    here = rf"\b{re.escape(namespace)}/" if namespace else r"(?!)"
    return UID.sub("", re.sub(here, "", row))


_LOG_LINES = 400


def write_dump(running: ScenarioRun, problem: BaseException) -> Path:
    """Write the files into the scenario's folder and return its path. Raises OSError."""
    private = running.session is not None and running.session.ownership.shared
    folder = files.make_folder(running.folder, private=private)
    text = "\n".join(render(running, problem, whole=True)) + "\n"
    files.write(folder / "failure.txt", text, private=private)
    files.write(folder / "policy.yaml", running.policy, private=private)
    if running.history is not None:
        rows = (
            {
                "at": round(running.history.seconds(version.at), 4),
                "wall": version.wall,
                "change": version.change,
                "object": version.object,
            }
            for version in running.history.since(0)
        )
        files.write(
            folder / "history.jsonl", b"".join(msgspec.json.encode(row) + b"\n" for row in rows), private=private
        )
    scheduler = running.session.scheduler if running.session is not None else None
    if scheduler is not None:
        files.write(folder / "scheduler.log", "\n".join(scheduler.last_lines(_LOG_LINES)) + "\n", private=private)
        keep_recording(running)
    return folder


def keep_recording(running: ScenarioRun) -> None:
    """Keep the scheduler's recording of this scenario, for `explain` and `replay`. Raises OSError."""
    scheduler = running.session.scheduler if running.session is not None else None
    if scheduler is None:
        return
    files.make_folder(running.folder, private=running.session is not None and running.session.ownership.shared)
    shutil.rmtree(running.folder / RECORDING, ignore_errors=True)  # left by an earlier run
    since = running.began_wall if running.history is None else running.history.began_wall  # by the cluster's clock
    scheduler.keep_recording(since, running.folder / RECORDING)
