"""`scheduler replay`: decide the cycles of a recording again, with the recorded policy or another one.

The one rule: a replayed cycle gets exactly the recorded inputs. Under the recorded policy, its decisions equal the
recorded decisions bit for bit; otherwise the scheduler has a bug. Under another policy, each cycle is decided on the
state to which the recorded policy led.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import click
import msgspec

from ..core import Core
from ..framework.decisions import Bind, Decisions
from ..framework.work import UNLIMITED
from ..inputs import Decided, Input, PolicyLoaded, Remembered, Started, apply_input
from ..model.cluster import Cluster
from ..model.printable import OUTPUT, one_line
from ..policy.loader import PolicyError, load_policy, read_policy
from ..policy.model import Policy
from ..reasons import render_refusal, render_victim
from .segments import RecordError, read_segment, required_segments

_encode = msgspec.json.Encoder(order="deterministic").encode  # the order of keys is not a decision


class _ChangedCycle(msgspec.Struct, frozen=True):
    """A cycle whose replay has other decisions, as an element of the JSON output."""

    cycle: str
    says: list[str]


@dataclass(frozen=True, slots=True)
class RecordedCycle:
    """A recorded cycle with the state that it decided on.

    `core` changes when the next cycle is read.
    """

    decided: Decided
    core: Core
    policy: Policy

    @property
    def cluster(self) -> Cluster:
        return self.core.cluster

    @property
    def title(self) -> str:
        return f"cycle {self.decided.cycle} at {datetime.fromtimestamp(self.decided.now, UTC):%Y-%m-%d %H:%M:%S.%f}Z"


def print_lost_end(text: str) -> None:
    """Tell the user that a segment ends within a line."""
    sys.stderr.write(f"{text}\n")


def cycles(path: Path, lost_end: Callable[[str], object] = lambda _: None) -> Iterator[RecordedCycle]:
    """Return the cycles of a recording (a directory, or one segment), oldest first. `lost_end`: as of `read_segment`.

    Raises:
        RecordError: There is no recording, or it cannot be read.
    """
    for segment in required_segments(path):
        yield from cycles_of(read_segment(segment, lost_end))


def cycles_of(inputs: Iterable[Input]) -> Iterator[RecordedCycle]:
    """Return the cycles of a stream of inputs that begins with a checkpoint."""
    core, policy = Core(Cluster()), Policy((), ())
    for given in inputs:
        match given:
            case Started():
                core = Core(Cluster(given.scheduler_names, given.node_selector))
            case PolicyLoaded():
                policy = load_policy(given.text, given.source)
            case Decided():
                yield RecordedCycle(given, core, policy)
                _check_jobs(core.cluster, given.decisions.memory.waiting)
                apply_input(core, given)
            case Remembered():
                _check_jobs(core.cluster, given.waiting)
                apply_input(core, given)
            case _:
                try:
                    apply_input(core, given)
                except ValueError:  # an object that the live scheduler could not read either
                    continue


def _check_jobs(cluster: Cluster, waiting: Iterable[str]) -> None:
    """Raise RecordError if a job waits that the state does not have: every later cycle would look it up in vain."""
    missing = next((key for key in waiting if key not in cluster.jobs), None)
    if missing is not None:
        raise RecordError(f"job {one_line(missing)} waits, but was not recorded; lines are missing or in another order")


def is_equal(a: Decisions, b: Decisions) -> bool:
    """Whether two decisions are equal bit for bit, reasons included."""
    return _encode(a) == _encode(b)


def difference(recorded: Decisions, replayed: Decisions) -> list[str]:
    """Return the differences, one a line: `-` for recorded decisions, `+` for replayed decisions."""
    before, after = _lines(recorded), _lines(replayed)
    return [f"- {line}" for line in before if line not in after] + [f"+ {line}" for line in after if line not in before]


def _annotations_of(bind: Bind) -> str:
    return "".join(f", {key}={value}" for key, value in sorted(bind.annotations.items()))


def _lines(decisions: Decisions) -> dict[str, None]:
    lines = [f"bind {bind.task} to {bind.node}{_annotations_of(bind)}" for bind in decisions.binds]
    lines += [f"evict {evict.task}: {render_victim(evict.reason)}" for evict in decisions.evictions]
    lines += [f"nominate {n.task} for {n.node or 'no node'}" for n in decisions.nominations]
    lines += [f"{task} waits for room on {node}" for task, node in decisions.pipelined.items()]
    lines += [f"{job} becomes {phase}" for job, phase in decisions.phases.items()]
    lines += [f"{job} waits: {render_refusal(refusal)}" for job, refusal in decisions.refusals.items()]
    return dict.fromkeys(lines)


# ------------------------------------------------------------------------------------------------------------- command


RECORDING = click.Argument(["recording"], type=click.Path(path_type=Path))
ARGUMENTS: tuple[click.Parameter, ...] = (
    RECORDING,
    click.Option(
        ["--policy"], type=click.Path(path_type=Path), help="Decide with this policy file and show the differences."
    ),
    click.Option(["--cycle"], type=int, help="Replay only this cycle."),
    OUTPUT,
)


def main(given: SimpleNamespace) -> int:
    """Run the command.

    Returns:
        0 if all decisions are equal or the differences of another policy were shown, 1 if a cycle differs, 2 on bad
        input.
    """
    out = sys.stdout.write
    try:
        other = load_policy(read_policy(given.policy), str(given.policy)) if given.policy else None
        count = 0
        differing: list[_ChangedCycle] = []
        for cycle in cycles(given.recording, print_lost_end):
            if given.cycle not in (None, cycle.decided.cycle):
                continue
            count += 1
            budget = UNLIMITED if other else cycle.decided.budget
            replayed = cycle.core.decide(other or cycle.policy, cycle.decided.now, budget=budget)
            if is_equal(cycle.decided.decisions, replayed):
                continue
            lines = difference(cycle.decided.decisions, replayed)
            if other and not lines:
                continue
            changed = _ChangedCycle(cycle.title, lines or ["(only numbers differ)"])
            differing.append(changed)
            if given.output == "text":
                out(f"{changed.cycle}\n" + "".join(f"  {line}\n" for line in changed.says))
    except (RecordError, PolicyError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"{error.filename}: {error.strerror}\n")
        return 2
    if not count:
        sys.stderr.write(f"{given.recording} contains no cycle" + (f" {given.cycle}\n" if given.cycle else "\n"))
        return 2
    if given.output == "json":
        answer = {"cycles": count, "otherwise": differing}
        out(msgspec.json.format(msgspec.json.encode(answer), indent=2).decode() + "\n")
    else:
        out(f"{count} cycles, {len(differing)} with other decisions{' under this policy' if other else ''}\n")
    return 1 if differing and not other else 0
