"""`schedspec scheduler run|controllers|lint|explain|replay`: the scheduler's own commands.

The scheduler is also a program of its own that does not depend on this package.
"""

from __future__ import annotations

import click

from ..scheduler import __main__ as program
from .answers import NearestCommand


class _Commands(NearestCommand, program.Commands):
    """The scheduler's commands, with the errors of all other commands."""


@click.group("scheduler", cls=_Commands)
def scheduler_command() -> None:
    """Run the scheduler or its controllers, lint policies, explain or replay a recording.

    \b
    Examples:
      schedspec scheduler run --policy policies/team.yaml
      schedspec scheduler lint policies/team.yaml
    """
