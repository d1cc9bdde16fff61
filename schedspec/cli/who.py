"""`schedspec who evicted`: say for whom a pod was evicted, and how often these two did that to each other."""

from __future__ import annotations

from pathlib import Path

import click

from ..lab.recorder.evictions import Eviction, EvictionReader, about, between
from ..lab.recorder.versions import VersionReader
from ..scheduler.inputs import Gap
from ..virtual.state.over_time import inputs_over_time, shown
from .answers import FOLDER, NearestCommand, explains_errors, print_json, refuses_bad_input, span


@click.group("who", cls=NearestCommand)
def who_command() -> None:
    """Say who evicted whom, from a recording of a cluster.

    \b
    Examples:
      schedspec who evicted team-a/train-0 --recording recording
    """


@who_command.command("evicted")
@click.argument("pod", required=False, metavar="NAMESPACE/NAME")
@click.option("--recording", required=True, type=FOLDER, metavar="DIR", help="The folder of `schedspec record --out`.")
@click.option("--between", "times", nargs=2, metavar="T1 T2", help="All evictions between two times, in UTC.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="Format.")
@explains_errors
@refuses_bad_input
def evicted_command(pod: str | None, recording: Path, times: tuple[str, str] | None, output: str) -> int:
    """Say for whom a pod was evicted, who had made room before, and how often these jobs did that to each other.

    NAMESPACE/NAME is a pod, or its PodGroup or Workload. The exit status is 1 if it was not evicted.

    \b
    Examples:
      schedspec who evicted team-a/train-0 --recording recording
      schedspec who evicted --between 02:10 02:40 --recording recording
    """
    if (pod is None) == (times is None):
        raise click.UsageError("name a pod, or a span of time with --between")
    if pod is not None and "/" not in pod:
        raise click.UsageError(f"{pod!r}: write NAMESPACE/NAME")
    evictions, gaps = read_evictions(recording)
    if times is not None:
        first, last = span(recording, *times, ("--between", "and"))
        found = [one for one in evictions if first <= one.at <= last]
        gaps = [gap for gap in gaps if gap.until >= first and gap.since <= last]
        text = "\n".join(between(evictions, first, last)) or "nothing was evicted between these times"
    else:
        found, text = [one for one in evictions if pod in (one.pod, one.job)], about(str(pod), evictions)
        text = text or f"{recording} shows no eviction of {pod}; list all with --between T1 T2"
    if output == "json":
        print_json({"evictions": found, "gaps": gaps})
    else:
        click.echo(text)
        for gap in gaps:
            click.echo(f"not seen: {shown(gap)}")
    return 0 if found else 1


def read_evictions(recording: Path) -> tuple[list[Eviction], list[Gap]]:
    """Return the evictions of a recording, the oldest first, and its gaps. Raises StateError."""
    found: list[Eviction] = []
    reader = EvictionReader(found.append)
    VersionReader(reader).read_all(inputs_over_time(recording))
    reader.end()
    return sorted(found, key=lambda one: one.at), reader.gaps
