"""`schedspec reduce`: from a dump and what happened to the smallest feature that shows it."""

from __future__ import annotations

import time
from pathlib import Path

import click

from .. import distribution
from ..api.errors import HarnessError
from ..explore.judge import monitors
from ..incident import confirm, feature, of_record, written
from .answers import explains_errors, refuses_bad_input


@click.command("reduce")
@click.argument("state", type=click.Path(path_type=Path))
@click.option(
    "--because",
    required=True,
    metavar="WHAT",
    help="'pod NS/NAME was evicted', 'job NS/NAME waits', 'monitor NAME', 'policy FILE' or 'sentence failed'.",
)
@click.option("-o", "--out", required=True, metavar="FILE.feature", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--policy",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The policy that was in force; default: that of STATE.",
)
@click.option("--minutes", default=2.0, show_default=True, help="The budget.")
@explains_errors
@refuses_bad_input
def reduce_command(state: Path, because: str, out: Path, policy: Path | None, minutes: float) -> int:
    """Reduce an incident to the smallest scenario that shows the same, and write it as a feature.

    STATE is a dump (`schedspec dump`), a SIGUSR2 dump, a recording, the record of a scenario, or a file of
    `kubectl get -o json`. The exit status is 0 if the feature shows it in the simulated cluster, 1 if it does not, 2 on
    bad input.

    'policy FILE' is the first job about which another policy decides otherwise; 'sentence failed' is what the record of
    a scenario says of its first failed sentence.

    \b
    Examples:
      schedspec reduce state.jsonl.gz --because 'pod team-a/train-7-0 was evicted' -o evicted.feature
      schedspec reduce list.json --policy policies/team.yaml --because 'job team-a/train-7 waits' -o waits.feature
      schedspec reduce out/run/scenarios/S --because 'sentence failed' -o smaller.feature
    """
    room = distribution.load("scheduler.incident")
    ends = time.monotonic() + minutes * 60
    if out.suffix != ".feature":
        raise HarnessError(f"-o {out}: a feature ends with .feature\n  do next: write -o {out.stem}.feature")
    because = of_record.because_of(state) if because == of_record.FAILED else because
    known = room.Known(written.known_policies(), lambda: time.monotonic() > ends, monitors)
    text = distribution.load("scheduler.policy.file").read_policy(policy) if policy is not None else ""
    found = room.reduce_incident(state, because, text, known)
    origin = f"Reduced by schedspec {written.own_version()} from {found.before} objects: {because}, in {state.name}"
    lines = written.write(out, found, [origin])
    click.echo(f"{out}: {found.case.size} of {found.before} objects, {lines} lines, {found.tried} candidates")
    for note in found.notes + ([f"more than {written.MOST_LINES} lines"] if lines > written.MOST_LINES else []):
        click.echo(f"  {note}")
    for note in found.left_out:
        click.echo(f"  has no sentence and is left out: {feature.clean(note)}")
    if because.split(maxsplit=1)[0] == "monitor":
        return _print_broken(out, because.split()[1])
    if failure := confirm.problem_of(out):
        click.echo(f"  it does not pass in the simulated cluster:\n{failure}", err=True)
        return 1
    click.echo(f"  it passes: {distribution.prompt()} test {out} --cluster simulated")
    return 0


def _print_broken(out: Path, monitor: str) -> int:
    """Print whether the monitor finds anything in the simulated cluster; return the exit status."""
    if problem := confirm.unbroken(out, monitor):
        click.echo(f"  the monitor is silent in the simulated cluster: {problem}", err=True)
        return 1
    click.echo(f"  it fails for the monitor {monitor}: {distribution.prompt()} test {out} --cluster simulated")
    return 0
