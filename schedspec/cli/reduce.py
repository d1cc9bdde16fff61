"""`schedspec reduce`: reduce a dump and an incident to the smallest feature that shows the incident."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from .. import distribution
from ..api.errors import HarnessError
from ..lab.explore.judge import found_by_monitors, monitors
from ..lab.reduce import confirm, feature, of_record, of_recording, written
from ..lab.reduce.confirm import Site
from ..lab.reduce.incident import OF_RECORDINGS, reduce_incident
from ..lab.reduce.live import Live
from ..lab.reduce.of_recording import is_recording
from ..lab.reduce.reduce import Reduced, ReductionInput
from ..lab.reduce.signature import rule_of
from ..monitors import MONITORS
from ..scheduler.policy.loader import load_policy, read_policy
from .answers import YEAR, Finite, count, explains_errors, refuse_lost_files, refuses_bad_input
from .sites import site_options

_OWN = "Reduced by schedspec"
"""The beginning of a comment in each feature that this command writes."""


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
@click.option(
    "--minutes",
    type=Finite(0, YEAR, min_open=True),
    default=2.0,
    show_default=True,
    help="The budget: of CPU time; of time, with another scheduler.",
)
@click.option(
    "--cases", type=click.IntRange(1, 10**9), metavar="N", help="Try at most N cases, so that every machine ends alike."
)
@explains_errors
@refuses_bad_input
@site_options
def reduce_command(
    *, state: Path, because: str, out: Path, policy: Path | None, minutes: float, cases: int | None, site: Site
) -> int:
    """Reduce an incident to the smallest scenario that shows it, and write the scenario as a feature.

    STATE is a dump (`schedspec dump`), a SIGUSR2 dump, a recording, the record of a scenario, or a file of
    `kubectl get -o json`. The exit status is 0 if the feature shows the incident in the simulated cluster, 1 if it does
    not, 2 on bad input.

    'policy FILE' means the first job on which that policy decides differently; 'sentence failed' means the first failed
    sentence in the record of a scenario. Our scheduler plays the candidates in virtual time. With another --scheduler
    each candidate runs on a cluster, which takes seconds: allow more --minutes.

    \b
    Examples:
      schedspec reduce state.jsonl.gz --because 'pod team-a/train-7-0 was evicted' -o evicted.feature
      schedspec reduce list.json --policy policies/team.yaml --because 'job team-a/train-7 waits' -o waits.feature
      schedspec reduce out/run/scenarios/S --because 'sentence failed' -o smaller.feature
      schedspec reduce out/run/scenarios/S --because 'monitor gang' --scheduler volcano --minutes 20 -o gang.feature
    """
    if out.suffix != ".feature":
        raise HarnessError(f"-o {out}: a feature ends with .feature\n  do next: write -o {out.stem}.feature")
    refuse_lost_files([("-o", out)], [("STATE", state), ("--policy", policy)], own=".feature")
    if out.is_file() and _OWN not in out.read_text("utf-8", "replace"):
        raise HarnessError(f"-o {out}: is a file that reduce has not written\n  do next: name a new file")
    known = [*MONITORS, *OF_RECORDINGS]
    if because.startswith("monitor ") and (name := because.rsplit(maxsplit=1)[-1]) not in known:
        raise HarnessError(f"--because {because!r}: no monitor {name}\n  do next: name one of {', '.join(known)}")
    because = of_record.because_of(state) if because == of_record.FAILED else because
    with tempfile.TemporaryDirectory() as folder:
        live = Live(site, Path(folder), minutes) if site.scheduler != confirm.OWN else None
        found = _reduce(
            state, because, _text_of(state, policy), live, is_over=_budget(minutes, cases, live), folder=Path(folder)
        )
    monitor = rule_of(found.signature).partition(":")[0]
    comments = [f"{_OWN} {written.own_version()} from {found.before} objects: {because}, in {state.name}"]
    if found.stands_in_for:
        model = f"by its model in the place of {found.stands_in_for}"
        comments = [
            f"{_OWN} {written.own_version()} {model}, from {found.before} objects",
            f"{because}, in {state.name}",
        ]
    comments += [f"Run it: schedspec test {out.name} {site.shown}", *written.names_of_the_state(found)]
    thens: tuple[str, ...] = ()
    if found.acted:
        comments.append(f"It fails where the scheduler acts as recorded: {found.acted}")
        thens = tuple(written.thens_of_monitor(monitor, found.case.subject, found.case))
    elif monitor and live is None:
        last = next(finding for finding in found_by_monitors(found.case) if finding.name == rule_of(found.signature))
        comments, thens = [*comments, f"It fails because of this finding: {last.text}"], last.thens
    elif monitor:
        comments.append(written.why_it_fails(monitor, site.scheduler))
    lines = written.write(out, found, comments, thens, scheduler=site.scheduler, is_played=live is None)
    tried = count(found.tried, "candidate", "candidates")
    click.echo(f"{out}: {found.case.size} of {found.before} objects, {lines} lines, {tried}")
    for note in found.notes + ([f"more than {written.MAX_LINES} lines"] if lines > written.MAX_LINES else []):
        click.echo(f"  {note}")
    for note in found.left_out:
        click.echo(f"  has no sentence and is left out: {feature.clean(note)}")
    return _confirm_acts(out, monitor, found.stands_in_for) if found.acted else _confirm(out, monitor, site)


def _budget(minutes: float, cases: int | None, live: Live | None) -> Callable[[], bool]:
    """Return whether the budget is used up, asked once for each case. Other programs do not use it up."""
    clock = time.process_time if live is None else time.monotonic
    ends, numbers = clock() + minutes * 60, itertools.count()

    def is_over() -> bool:
        return (cases is not None and next(numbers) >= cases) or clock() > ends

    return is_over


def _reduce(
    state: Path, because: str, policy: str, live: Live | None, *, is_over: Callable[[], bool], folder: Path
) -> Reduced:
    """Return the smallest case, played in virtual time or, with another scheduler, on a cluster."""
    how: dict[str, Any] = {"shows": live.shows} if live is not None else {"moments": of_recording.moments}
    known = ReductionInput(written.known_policies(), is_over, monitors, **how)
    if of_record.has_history(state) and (live or not is_recording(state)):
        state = of_record.list_before(state, because, folder)
    return reduce_incident(state, because, policy, known)


def _text_of(state: Path, policy: Path | None) -> str:
    """Return the text of the policy that the user names, else of the policy beside a scenario's history."""
    beside = state / "policy.yaml"
    if policy is None and not (of_record.has_history(state) and beside.exists()):
        return ""
    text = read_policy(policy or beside)
    load_policy(text, str(policy or beside))
    return text


def _confirm_acts(out: Path, monitor: str, scheduler: str) -> int:
    """Print what a feature of recorded acts shows with our model; return the exit status."""
    ran = confirm.run([out])
    if ran.problem and not ran.finds(monitor):
        click.echo(f"  it fails for another reason than the monitor {monitor}: {ran.problem}", err=True)
        return 1
    by = f" --scheduler {scheduler}" if scheduler else ""
    model = "does the same" if ran.problem else "decides otherwise, so that it passes"
    click.echo(f"  schedspec's model {model}: {distribution.prompt()} test {out} --cluster simulated")
    click.echo(f"  whether the scheduler does it again: {distribution.prompt()} test {out} --cluster embedded{by}")
    return 0


def _confirm(out: Path, monitor: str, site: Site) -> int:
    """Print whether the feature shows the incident; return the exit status."""
    problem = confirm.unbroken(out, monitor, site) if monitor else confirm.problem_of(out, site)
    if problem:
        click.echo(f"  it does not show the incident {site.where}: {problem}", err=True)
        return 1
    does = f"fails for the monitor {monitor}" if monitor else "passes"
    click.echo(f"  it {does}: {distribution.prompt()} test {out} {site.shown}")
    return 0
