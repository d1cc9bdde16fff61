"""`schedspec simulate`: a load in virtual time, a page of its result, and many runs at once."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
from click.core import ParameterSource

from ..lab.simulate import command, sweep
from ..lab.simulate import pages as load
from ..lab.simulate.columns import InputError
from .answers import explains_errors, refuse_lost_files, refuse_lost_files_beside, refuses_bad_input

_BAD_INPUT = 2
_PATH = click.Path(path_type=Path)


@explains_errors
@refuses_bad_input
def _simulate(**values: Any) -> int:
    """Run a load in virtual time and measure what each queue received.

    \b
    Examples:
      schedspec simulate --trace jobs.csv --map submitted=start,duration=seconds,job_cards=gpus,queue=team --nodes 125x8
      schedspec simulate --trace philly.csv.gz --preset philly --nodes 70x8 --policy policies/team.yaml
    """
    given = SimpleNamespace(**values)
    page = given.page or given.out.with_suffix(".html")
    refuse_lost_files(
        [("--out", given.out), ("--page", page), ("--record", given.record)],
        [
            *((f"--{name}", getattr(given, name)) for name in ("trace", "synthetic", "state", "policy", "against")),
            *((f"--{name}", file) for name in ("nodes", "queues", "sweep") for file in getattr(given, name)),
        ],
    )
    if given.page is None and given.join is None and given.index is None:
        sweep_folder = given.out.with_suffix("")
        refuse_lost_files_beside("--page", given.out if given.out.exists() else sweep_folder, [page])
    if given.join is not None:
        source = click.get_current_context().get_parameter_source
        is_set = {name for name in values if source(name) is ParameterSource.COMMANDLINE}
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


simulate_command = click.Command(
    "simulate",
    short_help="run a load in virtual time and measure what each queue received",
    help=_simulate.__doc__,
    callback=_simulate,
    params=[
        *command.OPTIONS,
        click.Option(["--page"], metavar="FILE", type=_PATH, help="The page (default: beside --out, as .html)."),
        click.Option(
            ["--seeds"],
            metavar="N",
            type=click.IntRange(max=10_000),
            help="Run a synthetic load with N seeds, on all cores.",
        ),
        click.Option(
            ["--sweep"],
            metavar="FILE",
            type=_PATH,
            multiple=True,
            help="Run this policy as well, and print ranges; may be given several times.",
        ),
        click.Option(
            ["--index"],
            metavar="I",
            type=click.IntRange(max=10**6),
            help="Run only run I of --seeds and --sweep, counted from 0.",
        ),
        click.Option(["--no-monitors"], is_flag=True, help="Leave out the monitors, which judge binds and evictions."),
        click.Option(
            ["--join"],
            metavar="DIR",
            type=_PATH,
            help="Only compare the results below this folder, with those of --policy.",
        ),
    ],
)
