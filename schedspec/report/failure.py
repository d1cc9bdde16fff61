"""What a failed scenario says: the sentence, what was expected and seen, and everything that explains it.

Never more than 60 lines, never a frame of Python; what does not fit is in the files that the last line names.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from .. import distribution
from ..api.errors import Unmet
from ..api.kinds import Kind, Ref
from ..observe import view as views
from ..observe.history import History, View
from ..scenario.run import ScenarioRun

LINES = 60
RECORDING = "recording"
"""The scheduler's recording in a scenario's folder, which `explain` and `replay` take."""
_WIDTH = 160
_UID = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_MOST: dict[str, int | None] = {"sentences": 10, "objects": 20, "events": 7, "queues": 7, "pending": 6}
"""How many lines a section may have."""


def headline(running: ScenarioRun, problem: BaseException) -> str:
    """The one line that the summary of a run shows."""
    said = running.sentences[-1] if running.sentences else None
    text = problem.seen if isinstance(problem, Unmet) else str(problem).partition("\n")[0]
    return _cut(f"{said}: {text}" if said is not None and said.verdict == "failed" else text)


def tell(running: ScenarioRun, problem: BaseException, *, whole: bool = False) -> list[str]:
    """The story, line by line; with `whole` nothing is left out."""
    rows = list(_head(running, problem))
    most: dict[str, int | None] = dict.fromkeys(_MOST) if whole else _MOST
    rows += _section("sentences, with their seconds", _sentences(running), most["sentences"], last=True)
    rows += [f"also found: {finding}" for finding in running.findings if finding not in str(problem)]
    if running.history is not None:
        history, view = running.history, running.history.now()
        about = problem.about if isinstance(problem, Unmet) else ()
        seen = _objects(history, about)
        rows += _section("history, seconds since the scenario began", seen, most["objects"], last=True)
        rows += _section("events", _events(history), most["events"], last=True)
        rows += _section("queues", _queues(view), most["queues"])
        rows += _section("pending, and why the scheduler says so", _pending(view), most["pending"])
    if whole:
        return rows
    files = [f"everything that was seen: {running.folder}", *_commands(running, problem)]
    room = LINES - len(files)
    if len(rows) > room:
        rows = [*rows[: room - 1], f"  … {len(rows) - room + 1} more lines"]
    space = running.history.namespace if running.history is not None else ""
    return [_cut(_plain(row, space)) for row in rows] + files


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


def _sentences(running: ScenarioRun) -> Iterator[str]:
    for said in running.sentences:
        took = f"{said.ended - said.began:6.2f}" if said.ended is not None else "     -"
        yield f"{took} {'fails ' if said.verdict == 'failed' else 'passes'} {said}"


def _objects(history: History, about: Sequence[Ref]) -> Iterator[str]:
    for ref in involved(history, about):
        before = ""
        for version in history.story(ref):
            state = "gone" if version.change == "gone" else views.summary(ref.kind, version.object)
            if state != before:
                yield f"{max(0.0, history.seconds(version.at)):7.2f} {ref}: {state}"
            before = state


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


def _events(history: History) -> Iterator[str]:
    for version in history.versions(Kind.EVENT):
        about = version.object.get("involvedObject") or {}
        count = f" (x{version.object['count']})" if (version.object.get("count") or 1) > 1 else ""
        said = views.summary(Kind.EVENT, version.object)
        yield f"{max(0.0, history.seconds(version.at)):7.2f} {about.get('kind')} {about.get('name')}: {said}{count}"


def _queues(view: View) -> list[str]:
    rows = [("queue", "resource", "capability", "deserved", "guarantee", "allocated")]
    for queue in sorted(view.all(Kind.QUEUE), key=lambda it: str(it["metadata"]["name"])):
        spec, status = queue.get("spec") or {}, queue.get("status") or {}
        columns = (
            spec.get("capability") or {},
            status.get("deserved") or spec.get("deserved") or {},
            (spec.get("guarantee") or {}).get("resource") or {},
            status.get("allocated") or {},
        )
        resources = sorted({name for column in columns for name in column} - {"pods"}) or ["-"]
        name = str(queue["metadata"]["name"])
        rows += [(name, it, *(str(column.get(it, "-")) for column in columns)) for it in resources]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _pending(view: View) -> Iterator[str]:
    for kind in (Kind.POD, Kind.PODGROUP):
        for obj in sorted(view.mine(kind), key=lambda it: str(it["metadata"]["name"])):
            said = views.reason(obj)
            if views.waits(obj) if kind == Kind.POD else said or views.phase(obj) in ("", "Pending"):
                yield f"{kind} {obj['metadata']['name']}: {said or 'the scheduler has not said anything'}"


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
