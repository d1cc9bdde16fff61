"""`schedspec judge`: judge what a recording shows by the monitors of its scheduler."""

from __future__ import annotations

from pathlib import Path

import click

from ..lab.recorder.judge import HOPELESS, PING_PONG, SETTLED, Finding, Judge
from ..lab.recorder.versions import VersionReader
from ..monitors import MONITORS
from ..scheduler.inputs import Gap
from ..scheduler.policy.loader import load_policy, read_policy
from ..schedulers import find
from ..virtual.state.over_time import inputs_over_time, shown, span_of
from .answers import FOLDER, count, explains_errors, print_json, refuses_bad_input, span

_BEFORE = 600.0
"""Seconds before the span that are read as well: what happened there decides about evictions in the span."""


@click.command("judge")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--from", "since", metavar="TIME", help="02:13, 02:13:07 or ISO 8601, in UTC; default: the beginning.")
@click.option("--to", "until", metavar="TIME", help="Default: the end.")
@click.option("--scheduler", default="", metavar="NAME", help="Whose monitors; default: that of the recorded objects.")
@click.option(
    "--policy",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The policy that was in force; default: the recorded one.",
)
@click.option(
    "--without", multiple=True, type=click.Choice([*MONITORS, PING_PONG, HOPELESS]), help="Leave out this monitor."
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="Format.")
@explains_errors
@refuses_bad_input
def judge_command(
    folder: Path,
    *,
    since: str | None,
    until: str | None,
    scheduler: str,
    policy: Path | None,
    without: tuple[str, ...],
    output: str,
) -> int:
    """Judge what the recording in DIR shows: needless and repeated evictions, guarantees, gangs, hopeless waits.

    The exit status is 0 if nothing is found, 1 if something is, 2 on bad input.

    \b
    Examples:
      schedspec judge recording --from 02:10 --to 02:40
      schedspec judge recording -o json | jq -r '.findings[].monitor' | sort | uniq -c
    """
    first, last = span(folder, since, until, ("--from", "--to"))
    text = None if policy is None else read_policy(policy)
    if text is not None:
        load_policy(text, str(policy))
    found: list[Finding] = []
    judge = Judge(found.append, without, first)
    reader = VersionReader(judge, find(scheduler) if scheduler else None, text)
    after = last + SETTLED if until is not None else last
    reader.read_all(inputs_over_time(folder, first - _BEFORE, after))
    judge.end(min(after, span_of(folder)[1]) + (SETTLED if until is None else 0.0))
    found = sorted((finding for finding in found if finding.at <= last), key=lambda finding: finding.at)
    gaps = [gap for gap in judge.gaps if gap.until >= first and gap.since <= last]
    if output == "json":
        print_json({"scheduler": str(judge.adapter), "findings": found, "gaps": gaps})
    else:
        _print(found, gaps, judge)
    return 1 if found else 0


def _print(found: list[Finding], gaps: list[Gap], judge: Judge) -> None:
    for finding in found:
        click.echo(finding.line)
    for gap in gaps:
        click.echo(f"not judged: {shown(gap)}")
    rules = "" if judge.policy or not judge.adapter or judge.adapter.name not in ("volcano", "schedspec") else (
        "; no policy is recorded, so its rules are not judged: name it with --policy"
    )  # fmt: skip
    click.echo(f"{count(len(found), 'finding', 'findings')} in {judge.versions:,} versions of {judge.adapter}{rules}")
