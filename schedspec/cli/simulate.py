"""`schedspec simulate`: a load in virtual time, a page of its result, and many runs at once."""

from __future__ import annotations

import argparse
from pathlib import Path

import click

from ..lab.simulate import command, sweep
from ..lab.simulate import pages as load
from ..lab.simulate.columns import InputError
from .answers import explains_errors, refuse_one_file_twice, refuses_bad_input
from .scheduling import ParsedCommand

_BAD_INPUT = 2


class SimulateCommand(ParsedCommand):
    """Command of a simulation, with monitors, a page of the result, and many runs at once."""

    examples = """\
  schedspec simulate --trace jobs.csv --map submitted=start,duration=seconds,job_cards=gpus,queue=team --nodes 125x8
  schedspec simulate --trace philly.csv.gz --preset philly --nodes 70x8 --policy policies/team.yaml"""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        command.add_arguments(parser)
        add = parser.add_argument
        add("--page", metavar="FILE", type=Path, help="the page of the result (default: beside --out, as .html)")
        add("--seeds", metavar="N", type=int, help="run a synthetic load with N seeds, on all cores")
        add("--sweep", metavar="FILE", type=Path, action="append", default=[],
            help="run this policy as well, and print ranges; may be given several times")  # fmt: skip
        add("--index", metavar="I", type=int, help="run only run I of --seeds and --sweep, counted from 0")
        add("--no-monitors", action="store_true", help="leave out the monitors, which judge each bind and eviction")
        add(
            "--join",
            metavar="DIR",
            type=Path,
            help="only compare the results below this folder, with those of --policy",
        )

    def execute(self, given: argparse.Namespace) -> int:
        """Run the command."""
        parser = self._parser()
        return _simulate(given, {name for name, value in vars(given).items() if value != parser.get_default(name)})


@explains_errors
@refuses_bad_input
def _simulate(given: argparse.Namespace, is_set: set[str]) -> int:
    page = given.page or given.out.with_suffix(".html")
    refuse_one_file_twice(
        [("--out", given.out), ("--page", page), ("--record", given.record)],
        [
            *((f"--{name}", getattr(given, name)) for name in ("trace", "synthetic", "state", "policy", "against")),
            *((f"--{name}", file) for name in ("nodes", "queues", "sweep") for file in getattr(given, name)),
        ],
    )
    if given.join is not None:
        for name in sorted(is_set - {"join", "policy", "page"}):
            option = f"--{name.replace('_', '-')}"
            raise InputError(option, "--join only compares results, and reads no such option", f"leave {option} out")
        return sweep.join(given.join, given)
    if given.seeds is not None and given.seeds < 1:
        raise InputError("--seeds", f"{given.seeds} seeds are no run", "name at least 1")
    if given.seed is not None and given.seed < 0:
        raise InputError("--seed", f"{given.seed} is below 0", "name 0 or more")
    if given.seeds is not None or given.sweep:
        return sweep.run_all(given)
    if given.index is not None:
        raise InputError("--index", "nothing reads it without --seeds and --sweep", "add one, or leave --index out")
    status = command.main(given, is_judged=not given.no_monitors)
    if status != _BAD_INPUT:
        write_page(given.out, page, given.against)
        click.echo(f"page: {page}")
    return status


def write_page(result: Path, page: Path, before: Path | None) -> None:
    """Write the page of a result; with `before`, a page that shows both results beside each other."""
    if before is None:
        worlds = [load.read(result, "now")]
    else:
        worlds = [load.read(before, "before", keeps_waits=True), load.read(result, "now", keeps_waits=True)]
    load.write(load.make(worlds), page)


simulate_command = SimulateCommand("simulate", "run a load in virtual time and measure what each queue received")
