"""Run one simulation as `schedspec simulate` does, without monitors and without a page."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import click

from schedspec.lab.simulate import command


def simulate(arguments: Sequence[str]) -> int:
    """Run a load; return the exit status."""
    parsed = click.Command("simulate", params=[*command.OPTIONS]).make_context("simulate", [*arguments])
    return command.main(SimpleNamespace(**parsed.params))
