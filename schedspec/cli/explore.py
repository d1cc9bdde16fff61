"""`schedspec explore`: play random scenarios, judge them by monitors and promises, write violations as features."""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from ..api.errors import HarnessError
from ..conformance.levels import Level
from ..lab.explore import found as findings
from ..lab.explore import profiles, rounds
from ..lab.explore.on_cluster import OnCluster, names_in
from ..lab.explore.promises import PROMISES
from ..lab.reduce import written
from ..lab.reduce.confirm import OWN, Site
from ..lab.reduce.live import Live
from ..monitors import MONITORS
from ..schedulers import find
from .answers import YEAR, Finite, count, explains_errors, refuses_bad_input
from .sites import site_options

_CANDIDATES = 3000
"""Cases that a reduction may try: a number, not a time, so that equal seeds write equal bytes."""
_DEFAULT_SEEDS = 1000
_EVERY = 60.0
"""Seconds between two lines of progress."""


class _ListsNames(click.Command):
    """Command whose help ends with the names that `--without` accepts."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        for title, names in (("Monitors", tuple(MONITORS)), ("Promises", PROMISES)):
            with formatter.section(title):
                formatter.write_text(", ".join(names))


@click.command("explore", cls=_ListsNames)
@click.option(
    "--seeds", type=click.IntRange(1, 10**8), metavar="N", help=f"How many scenarios; default: {_DEFAULT_SEEDS}."
)
@click.option("--minutes", type=Finite(0, YEAR, min_open=True), metavar="M", help="How long, instead of --seeds.")
@click.option(
    "--first-seed",
    type=click.IntRange(0, 2**63 - 1),
    default=1,
    show_default=True,
    metavar="N",
    help="The first seed; the next ones follow.",
)
@click.option(
    "--out",
    default=Path("out/explore"),
    show_default=True,
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the features of findings.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 1024),
    metavar="N",
    help="Number of processes in virtual time; it does not change the result. Default: one for each core.",
)
@click.option(
    "--profile",
    type=click.Choice([*map(str, Level)]),
    help="Use only the capabilities that this level requires; default: all that the scheduler has.",
)
@click.option(
    "--reduce-minutes",
    type=Finite(0, YEAR, min_open=True),
    default=10.0,
    show_default=True,
    metavar="M",
    help="The budget of each reduction on a cluster.",
)
@click.option(
    "--without",
    multiple=True,
    metavar="NAME",
    help="A monitor or promise to switch off, or one of its signatures ('guarantee: bind'). Repeat for several.",
)
@explains_errors
@refuses_bad_input
@site_options
def explore_command(
    *,
    seeds: int | None,
    minutes: float | None,
    first_seed: int,
    out: Path,
    jobs: int | None,
    profile: str | None,
    reduce_minutes: float,
    without: tuple[str, ...],
    site: Site,
) -> int:
    """Generate random scenarios, play them with a scheduler, and look for violations of rules.

    Each scenario has 1 to 4 nodes, 1 to 5 queues, 2 to 8 jobs, and changes while they run. The monitors and promises
    below judge it. Each violation is reduced and written as a feature, once for each monitor or promise and type of
    reason. The exit status is 0 without a violation, 1 with one, 2 on bad input.

    Our scheduler plays in virtual time. Another scheduler, or ours with --cluster embedded, plays on a cluster, where a
    scenario takes seconds. There the scheduler's monitors and the promises `told` and `owed` judge.

    \b
    Examples:
      schedspec explore --seeds 5000
      schedspec explore --minutes 60 --out out/explore --first-seed 100000
      schedspec explore --scheduler kueue --profile core --minutes 10
      schedspec explore --scheduler volcano --minutes 60 --without 'guarantee: bind' --shown 1/3
    """
    _check(seeds, minutes, without)
    remaining = _budget(seeds, minutes)
    with tempfile.TemporaryDirectory() as folder:
        level = Level(profile) if profile else None
        player, how = _player(site, level, out, jobs or os.cpu_count() or 1, (Path(folder), reduce_minutes))
        progress = _Progress(first_seed, how)

        def seeds_left(so_far: rounds.Explored) -> int:
            progress.update(so_far)
            return remaining(so_far)

        done = rounds.explore(first_seed, player, seeds_left, frozenset(without))
    click.echo(f"{done.seeds} scenarios from seed {first_seed}, {count(len(done.broken), 'finding', 'findings')}")
    for why, times in sorted(done.unjudged.items(), key=lambda pair: -pair[1]):
        click.echo(f"  {times} not judged: {why}")
    for line in done.coverage(() if site.is_simulated else ("change",)):
        click.echo(f"  {line}")
    progress.print_speed(done)
    for name, found in progress.written.items():
        _print_finding(name, done.times[name], done.broken[name], found)
    return 1 if done.broken else 0


def _player(
    site: Site, profile: Level | None, out: Path, jobs: int, live: tuple[Path, float]
) -> tuple[rounds.Player, findings.How]:
    """Return the player of the cases and how findings are reduced; `live`: folder and minutes for a cluster."""
    adapter = find(site.scheduler)
    options = "" if site.scheduler == OWN else f" --scheduler {site.scheduler}"
    options += " --cluster embedded" if site.scheduler == OWN and not site.is_simulated else ""
    options += f" --profile {profile}" if profile else ""
    if site.is_simulated:
        policies = profiles.policies(adapter, profile) if profile else written.known_policies()
        vocabulary = profiles.vocabulary(adapter, profile) if profile else None
        return rounds.Processes(policies, jobs, vocabulary), findings.How(out, policies, site, options)
    policies, (folder, minutes) = profiles.policies(adapter, profile), live
    player = OnCluster(site, policies, profiles.vocabulary(adapter, profile), folder)
    return player, findings.How(out, policies, site, options, lambda: Live(site, folder, minutes, names_in))


class _Progress:
    """Progress of a run: reduce and write each finding at once, and print a line each minute."""

    def __init__(self, first_seed: int, how: findings.How) -> None:
        self._first, self._how = first_seed, how
        self._begun = self._printed = time.monotonic()
        self.written: dict[str, findings.Written] = {}

    def update(self, so_far: rounds.Explored) -> None:
        for name, broken in so_far.broken.items():
            if name not in self.written:
                candidates = itertools.count(1)
                is_over = partial(lambda numbers: next(numbers) > _CANDIDATES, candidates)
                seeds = broken.seed - self._first + 1
                origin = f"explore{self._how.options} --first-seed {self._first} --seeds {seeds}"
                self.written[name] = findings.write_finding(broken, origin, self._how, is_over)
        if time.monotonic() - self._printed >= _EVERY:
            self._printed = time.monotonic()
            self.print_speed(so_far)

    def print_speed(self, so_far: rounds.Explored) -> None:
        """Print the speed to stderr: it differs from run to run, and equal seeds must print equal lines to stdout."""
        speed = so_far.seeds / max(time.monotonic() - self._begun, 1e-9)
        found = count(len(so_far.broken), "finding", "findings")
        sys.stderr.write(f"{so_far.seeds} scenarios, {found}, {speed:.1f} scenarios a second\n")


def _check(seeds: int | None, minutes: float | None, without: tuple[str, ...]) -> None:
    if seeds is not None and minutes is not None:
        raise HarnessError("--seeds and --minutes contradict each other\n  do next: leave out one of the two")
    known = {*MONITORS, *PROMISES}
    for name in without:
        if name.partition(":")[0] not in known:
            names = ", ".join(sorted(known))
            raise HarnessError(f"--without {name}: no monitor and no promise\n  do next: name one of {names}")


def _budget(seeds: int | None, minutes: float | None) -> Callable[[rounds.Explored], int]:
    begun = time.monotonic()

    def by_time(_: rounds.Explored) -> int:
        return _DEFAULT_SEEDS if minutes is not None and time.monotonic() - begun < minutes * 60 else 0

    def by_number(so_far: rounds.Explored) -> int:
        return (seeds or _DEFAULT_SEEDS) - so_far.seeds

    return by_time if minutes is not None else by_number


def _print_finding(name: str, times: int, broken: rounds.Broken, feature: findings.Written) -> None:
    click.echo(f"{name}: {times} of the scenarios, first seed {broken.seed}")
    click.echo(f"  {broken.finding.text}")
    click.echo(f"  {feature.path}: {feature.objects} objects, {feature.lines} lines")
    if feature.unconfirmed:
        click.echo(f"  not confirmed: {feature.unconfirmed}")
