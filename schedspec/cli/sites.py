"""The options of `reduce` and `explore` that name a cluster and a scheduler."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import click

from ..api.errors import HarnessError
from ..lab.reduce.confirm import OWN, SIMULATED, Site
from ..schedulers import find

_RUNS = re.compile(r"(\d+)/(\d+)")


def site_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options `--cluster`, `--scheduler` and `--shown`; the command receives a `site`."""

    @click.option(
        "--cluster",
        type=click.Choice([SIMULATED, "embedded"]),
        help="Where features run; default: simulated, or embedded with another scheduler.",
    )
    @click.option("--scheduler", default=OWN, show_default=True, metavar="WHICH", help="As for pytest.")
    @click.option(
        "--shown",
        default="",
        metavar="K/N",
        help="A result counts if K of N runs show it; default: 1/1, or 2/3 if the scheduler is not deterministic.",
    )
    @functools.wraps(command)
    def wrapped(cluster: str | None, scheduler: str, shown: str, **others: Any) -> int:
        return command(site=_site(cluster, scheduler, shown), **others)

    return wrapped


def _site(cluster: str | None, scheduler: str, shown: str) -> Site:
    if cluster == SIMULATED and scheduler != OWN:
        raise HarnessError(
            f"--cluster {SIMULATED} has our scheduler only, not {scheduler}\n  do next: name --cluster embedded"
        )
    default = "2/3" if find(scheduler).runs > 1 else "1/1"
    match = _RUNS.fullmatch(shown or default)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise HarnessError(f"--shown {shown}: not K/N with 1 ≤ K ≤ N\n  do next: write, for instance, 2/3")
    return Site(cluster or (SIMULATED if scheduler == OWN else "embedded"), scheduler, int(match[1]), int(match[2]))
