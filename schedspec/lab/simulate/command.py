"""The command line of one simulation: its options, its inputs and its exit status."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from ... import distribution
from ...monitors import Rules
from ...scheduler.inputs import Input, PolicyLoaded
from ...scheduler.model import resources, times
from ...scheduler.model.cluster import Cluster
from ...scheduler.policy.file import read_policy
from ...scheduler.policy.loader import PolicyError, load_policy
from ...scheduler.recording.segments import SegmentWriter, segments
from ...virtual import OnEviction, Settings
from ...virtual.state import StateError
from .against import differences, read_end
from .columns import FIELDS, PRESETS
from .errors import InputError
from .inputs import Inputs, read_inputs
from .monitored import Monitors
from .records import FORMAT, Finding, Run
from .runner import Outcome, run
from .summary import render

_POLICY = distribution.folder("templates") / "policies" / "proportion.yaml"
_SHOWN = 20
"""Maximum number of findings that are printed."""
_SAMPLES = 1000
"""Number of samples of the queues while the load arrives, unless --sample is set."""


def _span(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = times.duration(text) or -1.0
    if not 0 <= found < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; write seconds, or 30s, 10m, 2h")
    return found


def _positive(text: str) -> float:
    if not (found := _span(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is no time: write one above 0, such as 30s, 10m or 2h")
    return found


def _resource(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9][-a-z0-9.]*/[A-Za-z0-9]([-\w.]*[A-Za-z0-9])?", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is no name of cards; write, for instance, amd.com/gpu")
    return text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    add = parser.add_argument
    add("--trace", metavar="FILE", type=Path, help="a CSV file with one job a row, also .csv.gz; or a recording")
    add("--map", metavar="FIELD=COLUMN,…", default="", help=f"the columns of the trace; fields: {', '.join(FIELDS)}")
    add("--preset", choices=tuple(PRESETS), help="the columns of a public trace; --map changes single ones")
    add("--synthetic", metavar="FILE", type=Path, help="a load by arrival rates and distributions (docs/simulation.md)")
    add("--seed", metavar="N", type=int, help="seed of the synthetic load (default: the file's, or 1)")
    add("--state", metavar="FILE", type=Path,
        help="begin from a state: files of kubectl get -o json, a dump, or a recording and its later load")  # fmt: skip
    add("--run-time", metavar="TIME", type=_positive,
        help="how long jobs of the state still run (default: as long as they have run)")  # fmt: skip
    add("--nodes", metavar="COUNTxCARDS", action="append", default=[],
        help="nodes with cards: 125x8 or 125x8,cpu=96,memory=768Gi; or a CSV file; may be repeated")  # fmt: skip
    add("--queues", metavar="FILE", type=Path, action="append", default=[],
        help="manifests of Queues, Nodes and PriorityClasses; default: the trace's queues, of weight 1")  # fmt: skip
    add("--policy", metavar="FILE", type=Path,
        help="the policy (default: the state's, or policies/proportion.yaml)")  # fmt: skip
    add(
        "--resource",
        metavar="NAME",
        type=_resource,
        default="nvidia.com/gpu",
        help="the resource name of cards (%(default)s)",
    )
    add("--skip-bad", action="store_true", help="leave out bad rows of the trace, and count them")
    add("--out", metavar="FILE", type=Path, default=Path("simulation.jsonl"), help="the result file (%(default)s)")
    add(
        "--until",
        metavar="TIME",
        type=_positive,
        help="stop at this virtual time after the first submission, such as 24h",
    )
    add("--start-delay", metavar="TIME", type=_span, default=0.0, help="from a pod's bind to its start (0s)")
    add("--grace", metavar="TIME", type=_span, default=0.0, help="from a pod's eviction to its end (0s)")
    add("--on-eviction", choices=[str(policy) for policy in OnEviction if policy.deletes_remaining_pods],
        default=str(OnEviction.RESTART),
        help="after the eviction of a gang: restart it, continue from its last checkpoint, or give it up")  # fmt: skip
    add("--checkpoint-every", metavar="TIME", type=_positive, default=0.0, help="work between checkpoints")
    add("--sample", metavar="TIME", type=_positive, default=0.0,
        help="virtual time between samples of the queues (default: a thousandth of the load's time)")  # fmt: skip
    add("--against", metavar="FILE", type=Path, help="compare with this result of another run")
    add("--record", metavar="DIR", type=Path, help="write every input, as `scheduler run --record` does")


def main(given: argparse.Namespace, *, is_judged: bool = False) -> int:
    """Run the command. If `is_judged`, monitors judge the run, and their first findings are printed.

    Returns:
        0 if the load ran to its end, 1 if the run could not continue or monitors found something, 2 on bad input, 130
        if it was interrupted.
    """
    try:
        if given.against is not None:
            read_end(given.against)
        outcome = _simulate(given, is_judged=is_judged)
        sys.stdout.write(render(outcome.end, given.out, outcome.stuck, outcome.examples))
        if given.against is not None:
            sys.stdout.write(differences(given.against, given.out))
    except (InputError, PolicyError, StateError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    _show(outcome.findings, given.out)
    if outcome.problem:
        sys.stderr.write(f"stopped: {outcome.problem}\n{given.out} holds the results so far\n")
        return 1
    if outcome.end.interrupted:
        sys.stderr.write(f"interrupted at {times.timestamp(outcome.end.at)}; {given.out} holds the results so far\n")
        return 130
    return 1 if outcome.findings else 0


def _show(findings: Sequence[Finding], out: Path) -> None:
    for finding in findings[:_SHOWN]:
        when = datetime.fromtimestamp(finding.at, UTC).isoformat()
        why = f" ({finding.reason})" if finding.reason else ""
        about = f"{finding.monitor}: {when}, cycle {finding.cycle}, {finding.about}"
        sys.stderr.write(f"{about}: {finding.text}{why}\n")
    if findings:
        sys.stderr.write(f"{len(findings)} findings of monitors; {out} has all\n")


def _simulate(given: argparse.Namespace, *, is_judged: bool) -> Outcome:
    inputs = read_inputs(given)
    policy = _policy_of(given, inputs)
    settings = Settings(start_delay=given.start_delay, grace=given.grace)
    until = inputs.until if given.until is None else min(inputs.start + given.until, inputs.until)
    header = Run(
        format=FORMAT,
        policy=policy.source,
        load=inputs.name,
        resource=given.resource,
        cards=inputs.total.get(given.resource, 0) / resources.unit_of(given.resource),
        nodes=inputs.nodes,
        jobs=inputs.jobs,
        queues=inputs.queues,
        sample=given.sample or max(inputs.span / _SAMPLES, 1.0),
        seed=inputs.seed,
    )
    with _recording(given.record, inputs, policy) as on_input:
        return run(
            load_policy(policy.text, policy.source),
            inputs.scene,
            inputs.load,
            header,
            settings=settings,
            out=given.out,
            start=inputs.start,
            until=until,
            begin=inputs.begin,
            cluster=inputs.cluster,
            monitors=Monitors(Rules(policy.text)) if is_judged else None,
            on_input=on_input,
        )


@contextmanager
def _recording(folder: Path | None, inputs: Inputs, policy: PolicyLoaded) -> Iterator[Callable[[Input], None] | None]:
    """Yield a writer of every input into a new recording; None without a folder."""
    if folder is None:
        yield None
        return
    if segments(folder):
        raise InputError(
            f"--record {folder}", "has the recording of another run, which would go on", "name a new folder"
        )
    writer = SegmentWriter(folder)
    try:
        writer.checkpoint(inputs.cluster or Cluster(), policy)
    except OSError as error:
        raise InputError(f"--record {folder}", f"cannot be written: {error.strerror}", "name another folder") from error
    yield writer.write
    writer.close()


def _policy_of(given: argparse.Namespace, inputs: Inputs) -> PolicyLoaded:
    """Return the policy of --policy, of the state, or the default policy, with its name."""
    if given.policy is None and inputs.policy:
        return PolicyLoaded(f"the policy of {given.state}", inputs.policy)
    path = given.policy or _POLICY
    return PolicyLoaded(str(path.name if given.policy is None else path), read_policy(path))
