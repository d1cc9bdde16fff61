"""The command line of one simulation: its options, its inputs and its exit status."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from ... import distribution
from ...monitors import Rules
from ...scheduler.inputs import Input, PolicyLoaded
from ...scheduler.model import resources, times
from ...scheduler.model.cluster import Cluster
from ...scheduler.model.times import timestamp
from ...scheduler.policy.loader import PolicyError, load_policy, read_policy
from ...scheduler.reasons.text import count
from ...scheduler.recording.segments import SegmentWriter, segments
from ...virtual import OnEviction, Settings
from ...virtual.state import StateError
from .against import differences, read_end
from .columns import FIELDS, PRESETS, InputError
from .inputs import Inputs, read_inputs
from .metrics import scaled
from .monitored import MonitoredRun
from .records import FORMAT, End, Finding, Run
from .runner import Outcome, run


def render(end: End, out: Path, stuck: int = 0, examples: Sequence[str] = ()) -> str:
    """Format the metrics of a run, and examples of the `stuck` jobs that wait at its end."""
    metrics = end.metrics
    below = "below deserved", "longest", "below guarantee"
    lines = [
        f"{count(metrics['jobs'], 'job')} until {timestamp(end.at)} in {count(end.cycles, 'cycle')}: "
        + (", ".join(f"{number} {outcome}" for outcome, number in sorted(metrics["outcomes"].items())) or "none"),
        "",
        f"{'wait':<24}{'jobs':>8}{'mean':>11}{'p50':>11}{'p95':>11}{'p99':>11}{'max':>11}",
        _row("all", metrics["wait_seconds"]),
        *(_row(f"queue {name}", spread) for name, spread in metrics["wait_seconds_by_queue"].items()),
        *(_row(f"{name} cards", spread) for name, spread in metrics["wait_seconds_by_size"].items()),
        _row("completion", metrics["completion_seconds"]),
        "",
        f"{'queue':<24}{'card-hours':>11}{'lost':>11}{'evicted cards':>15}{below[0]:>16}{below[1]:>11}{below[2]:>17}",
        *(_queue(name, queue) for name, queue in metrics["queues"].items()),
        "",
        (
            f"makespan {_time(metrics['makespan_seconds'])} · utilisation {_percent(metrics['utilisation'])} · "
            f"lost {metrics['lost_card_hours']:.1f} of {metrics['used_card_hours']:.1f} card-hours"
        ),
        (
            f"evicted {count(metrics['evicted_pods'], 'pod')} of {count(metrics['evicted_jobs'], 'job')} "
            f"({metrics['evictions_per_job']:.3f} a job) · "
            f"evicted to requested {_number(metrics['evicted_to_requested'])} · "
            f"distance from deserved {_percent(metrics['distance_from_deserved'])} · Jain {_number(metrics['jain'])}"
        ),
        *(
            [f"waiting at the end: {count(stuck, 'job')}, such as", *(f"  {text}" for text in examples)]
            if stuck
            else []
        ),
        f"result: {out}",
    ]
    return "\n".join(lines) + "\n"


def _queue(name: str, figures: Mapping[str, Any]) -> str:
    return (
        f"{name:<24}{figures['used_card_hours']:>11.1f}{figures['lost_card_hours']:>11.1f}"
        f"{figures['evicted_cards']:>15g}{_time(figures['below_deserved_seconds']):>16}"
        f"{_time(figures['below_deserved_longest_seconds']):>11}{_time(figures['below_guarantee_seconds']):>17}"
    )


def _row(name: str, spread: Mapping[str, Any]) -> str:
    values = "".join(f"{_time(spread[key]):>11}" for key in ("mean", "p50", "p95", "p99", "max") if key in spread)
    return f"{name:<24}{spread['jobs']:>8}{values}"


def _time(seconds: float) -> str:
    amount, unit = scaled(seconds)
    return f"{amount:.1f}{unit[0]}"


def _percent(part: float | None) -> str:
    return "-" if part is None else f"{part:.1%}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


_POLICY = distribution.folder("templates") / "policies" / "proportion.yaml"
_SHOWN = 20
"""Maximum number of findings that are printed."""
_SAMPLES = 1000
"""Number of samples of the queues while the load arrives, unless --sample is set."""


LONGEST = 1e10
"""The longest time of an option, in seconds: three centuries."""


def _span(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = times.duration(text) or -1.0
    if not 0 <= found <= LONGEST:
        raise click.BadParameter(f"{text!r} is not a time up to {LONGEST:.0f} s; write seconds, or 30s, 10m, 2h")
    return found


def _positive(text: str) -> float:
    if not (found := _span(text)):
        raise click.BadParameter(f"{text!r} is no time: write one above 0, such as 30s, 10m or 2h")
    return found


def _resource(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9][-a-z0-9.]*/[A-Za-z0-9]([-\w.]*[A-Za-z0-9])?", text, re.ASCII):
        raise click.BadParameter(f"{text!r} is no name of cards; write, for instance, amd.com/gpu")
    return text


_FILE = click.Path(path_type=Path)


def _option(name: str, metavar: str | None, kind: Any, text: str, **more: Any) -> click.Option:
    return click.Option([name], metavar=metavar, type=kind, help=text, **more)


_ON_EVICTION = click.Choice([str(policy) for policy in OnEviction if policy.deletes_remaining_pods])
OPTIONS: tuple[click.Parameter, ...] = (
    _option("--trace", "FILE", _FILE, "A CSV file with one job a row, also .csv.gz; or a recording."),
    _option("--map", "FIELD=COLUMN,…", None, f"The columns of the trace; fields: {', '.join(FIELDS)}.", default=""),
    _option("--preset", None, click.Choice([*PRESETS]), "The columns of a public trace; --map changes single ones."),
    _option("--synthetic", "FILE", _FILE, "A load by rates and distributions (docs/simulation.md)."),
    _option("--seed", "N", click.IntRange(max=2**63 - 1), "Seed of the synthetic load (default: the file's, or 1)."),
    _option(
        "--state",
        "FILE",
        _FILE,
        "Begin from a state: files of kubectl get -o json, a dump, or a recording and its later load.",
    ),
    _option(
        "--run-time", "TIME", _positive, "How long jobs of the state still run (default: as long as they have run)."
    ),
    _option(
        "--nodes",
        "COUNTxCARDS",
        None,
        "Nodes with cards: 125x8 or 125x8,cpu=96,memory=768Gi; or a CSV file; may be repeated.",
        multiple=True,
    ),
    _option(
        "--queues",
        "FILE",
        _FILE,
        "Manifests of Queues, Nodes and PriorityClasses; default: the trace's queues, of weight 1.",
        multiple=True,
    ),
    _option("--policy", "FILE", _FILE, "The policy (default: the state's, or policies/proportion.yaml)."),
    _option(
        "--resource", "NAME", _resource, "The resource name of cards.", default="nvidia.com/gpu", show_default=True
    ),
    _option("--skip-bad", None, None, "Leave out bad rows of the trace, and count them.", is_flag=True),
    _option("--out", "FILE", _FILE, "The result file.", default="simulation.jsonl", show_default=True),
    _option("--until", "TIME", _positive, "Stop at this virtual time after the first submission, such as 24h."),
    _option("--start-delay", "TIME", _span, "From a pod's bind to its start.", default="0"),
    _option("--grace", "TIME", _span, "From a pod's eviction to its end.", default="0"),
    _option(
        "--on-eviction",
        None,
        _ON_EVICTION,
        "After the eviction of a gang: restart it, continue from its last checkpoint, or give it up.",
        default=str(OnEviction.RESTART),
    ),
    _option("--checkpoint-every", "TIME", _positive, "Work between checkpoints."),
    _option(
        "--sample",
        "TIME",
        _positive,
        "Virtual time between samples of the queues (default: a thousandth of the load's time).",
    ),
    _option("--against", "FILE", _FILE, "Compare with this result of another run."),
    _option("--record", "DIR", _FILE, "Write every input, as `scheduler run --record` does."),
)


def main(given: SimpleNamespace, *, is_judged: bool = False) -> int:
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


def _simulate(given: SimpleNamespace, *, is_judged: bool) -> Outcome:
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
            monitors=MonitoredRun(Rules(policy.text)) if is_judged else None,
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


def _policy_of(given: SimpleNamespace, inputs: Inputs) -> PolicyLoaded:
    """Return the policy of --policy, of the state, or the default policy, with its name."""
    if given.policy is None and inputs.policy:
        return PolicyLoaded(f"the policy of {given.state}", inputs.policy)
    path = given.policy or _POLICY
    return PolicyLoaded(str(path.name if given.policy is None else path), read_policy(path))
