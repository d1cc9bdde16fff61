"""`scheduler explain`: show why a recorded cycle decided as it did about a pod or job.

The output consists of recorded decisions and reasons; nothing is decided again.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import msgspec

from ..framework.decisions import Decisions, Evict, QueueNumbers
from ..inputs import Decided, ObjectSeen
from ..model.card_notation import GPU_INDEX, VGPU_IDS
from ..model.cluster import Cluster
from ..model.job import Job
from ..model.printable import OUTPUT
from ..model.resources import render_amount
from ..model.task import Task
from ..reasons import refusal_data, render_refusal, render_victim
from .replay import RECORDING, RecordedCycle, cycles, print_lost_end
from .segments import RecordError, read_segment, required_segments

_UID = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_SHOWN = 8


class NotNamedError(RecordError):
    """No pod or job has the name, or several have. The message lists similar names."""


class RecordedNames:
    """Every pod and PodGroup in a recording, by `namespace/name`, with its other names.

    The user may omit the namespace, name the workload instead of its PodGroup, or write only a part of a name.
    """

    def __init__(self) -> None:
        self._names: dict[str, dict[str, set[str]]] = {"pod": {}, "job": {}}
        """Kind → key → all names of the object."""

    def add(self, kind: str, key: str, *names: str) -> None:
        """Add an object.

        Args:
            kind: `pod` or `job`.
            key: `namespace/name`.
            names: Other names of the object in its namespace.
        """
        namespace, _, name = key.partition("/")
        plain = {name, _UID.sub("", name), *names}
        self._names[kind].setdefault(key, set()).update({key, *plain, *(f"{namespace}/{name}" for name in plain)})

    def find(self, kind: str, text: str) -> str:
        """Return the key of the object that `text` names: by a name, a unique part of a name, or a part of a key.

        A workload that was created again has several PodGroups of one name; the youngest is returned.

        Raises:
            NotNamedError: No object matches, or several match.
        """
        known = self._names[kind]
        if text in known:
            return text
        by_name = [key for key, names in known.items() if text in names]
        by_part = [key for key, names in known.items() if any(text in name for name in names if "/" not in name)]
        found = by_name or by_part or [key for key, names in known.items() if any(text in name for name in names)]
        if len({_plain(key) for key in found}) == 1:
            return found[-1]
        if found:
            raise NotNamedError(f"{text!r} matches several {kind}s; name one: {_listed(map(_plain, found))}")
        similar = difflib.get_close_matches(text, {name: None for key in known for name in (_plain(key), _bare(key))})
        hint = f"similar names: {_listed(similar)}" if similar else f"it contains: {_listed(map(_plain, known))}"
        raise NotNamedError(f"the recording contains no {kind} {text!r}; {hint}")


def read_names(path: Path) -> RecordedNames:
    """Return the names in a recording, without deciding its cycles again.

    Raises:
        RecordError: There is no recording, or it cannot be read.
    """
    names, has_cycle = RecordedNames(), False
    for segment in required_segments(path):
        for given in read_segment(segment):
            has_cycle |= isinstance(given, Decided)
            if isinstance(given, ObjectSeen) and given.kind in ("Pod", "PodGroup"):
                meta = given.object.metadata
                owners = [owner.name for owner in meta.owner_references or ()] if given.kind == "PodGroup" else []
                names.add("pod" if given.kind == "Pod" else "job", meta.key, *owners)
    if not has_cycle:
        raise RecordError(f"{path} contains no cycle: the scheduler decided nothing, or the recording is cut off")
    return names


def _plain(key: str) -> str:
    return _UID.sub("", key)


def _bare(key: str) -> str:
    return _plain(key).partition("/")[2]


def _listed(names: Iterable[str]) -> str:
    found: Sequence[str] = list(dict.fromkeys(names))
    more = f" … {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return (", ".join(found[:_SHOWN]) or "none") + more


def explain_task(task: Task, decisions: Decisions) -> list[str]:
    """Return a cycle's decisions about a pod, one a line; empty if there is none."""
    lines: list[str] = []
    for bind in (bind for bind in decisions.binds if bind.uid == task.uid):
        cards = bind.annotations.get(GPU_INDEX) or bind.annotations.get(VGPU_IDS, "")
        lines.append(f"bound to {bind.node}" + (f", cards {cards}" if cards else ""))
    for evict in decisions.evictions:
        if evict.uid == task.uid:
            lines.append(f"evicted: {render_victim(evict.reason)}")
        elif evict.reason.preemptor_task == task.key:
            lines.append(f"{evict.task} is evicted for it: {render_victim(evict.reason)}")
    if node := decisions.pipelined.get(task.key):
        lines.append(f"waits for room on {node}")
    return lines


def explain_job(job: Job, decisions: Decisions) -> list[str]:
    """Return a cycle's decisions about a job and its pods, one a line; empty if there is none."""
    lines = []
    if phase := decisions.phases.get(job.key):
        lines.append(f"its PodGroup becomes {phase}")
    if refusal := decisions.refusals.get(job.key):
        lines.append(f"waits: {render_refusal(refusal)}")
    for _, task in sorted(job.tasks.items()):
        lines += [f"{task.key}: {line}" for line in explain_task(task, decisions)]
    return lines


def explain_queue(name: str, numbers: QueueNumbers, deciding: Collection[str] = ()) -> str:
    """Return a queue's numbers in a cycle: `queue a: cpu 3 allocated, 2 deserved, …`.

    The resources that decided come first, then those that the queue uses, cards before others. Resources that nobody
    uses are left out, unless the queue uses none.
    """
    kinds = (
        ("allocated", numbers.allocated),
        ("deserved", numbers.deserved),
        ("requested in total", numbers.request),
        ("guaranteed", numbers.guarantee),
        ("at most", numbers.capability),
    )
    known = {name for _, amounts in kinds for name in amounts}
    used = {name for name in known if numbers.allocated.get(name) or numbers.request.get(name)} | {*deciding} & known
    parts = []
    for dimension in sorted(used or known, key=lambda name: (name not in deciding, "/" not in name, name)):
        amounts_of_kinds = [
            f"{render_amount(dimension, amounts[dimension])} {kind}" for kind, amounts in kinds if dimension in amounts
        ]
        parts.append(f"{dimension} {', '.join(amounts_of_kinds)}")
    return f"queue {name}: {'; '.join(parts) or 'holds nothing'}"


def explanation(cycle: RecordedCycle, kind: str, name: str) -> list[str]:
    """Return all decisions of a cycle about one pod or job, one a line; empty if there are none."""
    found = subject(cycle.cluster, kind, name)
    decisions = cycle.decided.decisions
    if found is None:
        return []
    job = found if isinstance(found, Job) else cycle.cluster.jobs.get(found.job)
    if isinstance(found, Job):
        lines = explain_job(found, decisions)
    else:
        lines = explain_task(found, decisions)
        if job is not None and (refusal := decisions.refusals.get(job.key)) and found.key not in decisions.pipelined:
            lines.append(f"its job {job.key} waits: {render_refusal(refusal)}")
    if not lines:
        return []
    deciding = {
        str(reason["dimension"]) for reason in reasons_of(cycle, kind, name) if isinstance(reason.get("dimension"), str)
    }
    return [*lines, *_queue_lines(cycle.cluster, decisions, job.queue if job is not None else "", deciding)]


def reasons_of(cycle: RecordedCycle, kind: str, name: str) -> list[dict[str, Any]]:
    """Return why a job, or the job of a pod, waits after a cycle, as data; empty if the job does not wait."""
    found = subject(cycle.cluster, kind, name)
    key = found.key if isinstance(found, Job) else found.job if found is not None else ""
    refusal = cycle.decided.decisions.refusals.get(key)
    return refusal_data(refusal) if refusal is not None else []


def subject(cluster: Cluster, kind: str, name: str) -> Task | Job | None:
    return cluster.tasks.get(name) if kind == "pod" else cluster.jobs.get(name)


def _queue_lines(cluster: Cluster, decisions: Decisions, name: str, deciding: Collection[str]) -> Iterator[str]:
    """Yield the numbers of a queue and its ancestors."""
    seen: set[str] = set()
    while name in decisions.queues and name not in seen:
        seen.add(name)
        yield explain_queue(name, decisions.queues[name], deciding)
        name = cluster.queues[name].parent if name in cluster.queues else ""


# ------------------------------------------------------------------------------------------------------------- command


ARGUMENTS: tuple[click.Parameter, ...] = (
    RECORDING,
    click.Argument(["kind"], type=click.Choice(["pod", "job"])),
    click.Argument(["name"]),
    click.Option(["--cycle"], type=int, metavar="N", help="Cycle to show (default: the last with a decision)."),
    click.Option(["--all"], is_flag=True, help="Show every cycle with a decision about the pod or job."),
    OUTPUT,
)


def main(given: SimpleNamespace) -> int:
    """Run the command.

    Returns:
        0 if decisions were shown, 1 if no cycle decided anything about the object, 2 on bad input.
    """
    shown: list[tuple[str, list[str], list[dict[str, Any]]]] = []
    earlier: list[tuple[str, Evict]] = []
    last: Task | Job | None = None
    count = 0
    try:
        name = read_names(given.recording).find(given.kind, given.name)
        for cycle in cycles(given.recording, print_lost_end):
            if given.cycle not in (None, cycle.decided.cycle):
                continue
            count += 1
            last = subject(cycle.cluster, given.kind, name) or last
            if lines := explanation(cycle, given.kind, name):
                shown = [*(shown if given.all else ()), (cycle.title, lines, reasons_of(cycle, given.kind, name))]
            if given.kind == "pod":
                earlier += [
                    (cycle.title, eviction) for eviction in cycle.decided.decisions.evictions if eviction.task == name
                ]
    except NotNamedError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except RecordError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if not count:
        sys.stderr.write(f"{given.recording} contains no cycle {given.cycle}\n")
        return 2
    uid = last.uid if isinstance(last, Task) else ""
    before = [
        f"an earlier pod of this name was evicted in {title}: {render_victim(evict.reason)}"
        for title, evict in earlier
        if uid and evict.uid != uid
    ]
    if given.output == "json":
        in_cycles = [{"cycle": title, "says": lines, "waits": reasons} for title, lines, reasons in shown]
        answer = {"kind": given.kind, "name": name, "cycles": in_cycles, "earlier": before}
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(answer), indent=2).decode() + "\n")
        return 0 if shown or before else 1
    for title, lines, _ in shown:
        sys.stdout.write(f"{given.kind} {name}, {title}\n" + "".join(f"  {line}\n" for line in lines))
    if before:
        sys.stdout.write("".join(f"{line}\n" for line in before))
    if not shown:
        sys.stderr.write(f"{given.kind} {name}: no recorded cycle made a decision about it\n")
    return 0 if shown or before else 1
