"""`schedspec`: one command for a project with scenarios, its clusters, the scheduler and its recordings.

A command's module is imported when the command is used, so that `schedspec scheduler` does not import pytest.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

from .. import distribution
from ..scheduler.model.printable import printable_streams
from .answers import NearestCommand

_PURPOSES = {
    "init": "write a first feature, a policy and a workflow",
    "test": "run features with pytest",
    "check": "check features, policies and queues without a cluster",
    "steps": "list the sentences that scenarios can use",
    "features": "print the folder of the features that come with schedspec",
    "up": "boot a cluster that runs until `down`",
    "down": "remove clusters",
    "list": "list the clusters of this machine",
    "doctor": "list what this machine lacks for each kind of cluster, and what to do",
    "binary": "download or build programs (etcd, kwok, kind …) and print their paths",
    "ci": "run features as a job of GitHub Actions does",
    "matrix": "compare runs of several schedulers",
    "conformance": "run a profile of scenarios with a scheduler, and write its report and badge",
    "report": "join the records of runs into one page",
    "scheduler": "run the scheduler or its controllers, lint policies, explain or replay a recording",
    "simulate": "run a load in virtual time and measure what each queue received",
    "plan": "show what a change of policies, queues or nodes does, before it is merged",
    "why": "say why a job waits in a cluster, and what would have to change",
    "reduce": "reduce a dump and an incident to the smallest feature that shows the incident",
    "explore": "play random scenarios, and write each violation of a rule as a feature",
    "dump": "read a cluster's state and write it to a file",
    "names": "put the names of a cluster back into what was computed from a redacted state",
    "record": "record what happens in a cluster, whichever scheduler decides there",
    "judge": "judge what a recording of a cluster shows by the monitors of its scheduler",
    "who": "say who evicted whom in a recording of a cluster",
    "completion": "print the completion script of a shell",
}
"""Purpose of each command, by name, in the order of their use; `schedspec --help` prints them."""

_HELP = """Executable specifications for queue scheduling on Kubernetes.

\b
Examples:
  schedspec init                                  write first files into a repository or an empty folder
  schedspec test                                  run the features
  schedspec check                                 find mistakes without a cluster
  eval "$(schedspec up)"                          boot a cluster, also for kubectl
  pytest --reuse-cluster                          run features on that cluster, any number of times
  schedspec scheduler explain out/run/scenarios/S pod build-task-0
"""


def _imported(name: str) -> click.Command | None:  # noqa: PLR0912, PLR0915 - a table of imports
    """Return a command. Only its module is imported."""
    match name:
        case "init":
            from .init import init_command as found
        case "test":
            from .testing import test_command as found
        case "check":
            from .check import check_command as found
        case "steps":
            from .project import steps_command as found
        case "features":
            from .project import features_command as found
        case "up":
            from .clusters import up_command as found
        case "down":
            from .clusters import down_command as found
        case "list":
            from .clusters import list_command as found
        case "doctor":
            from .clusters import doctor_command as found
        case "binary":
            from .clusters import binary_command as found
        case "ci":
            from .ci import ci_command as found
        case "matrix":
            from .matrix import matrix_command as found
        case "conformance":
            from .conformance import conformance_command as found
        case "report":
            from .report import report_command as found
        case "scheduler":
            from .scheduling import scheduler_command as found
        case "simulate":
            from .simulate import simulate_command as found
        case "plan":
            from .plan import plan_command as found
        case "why":
            from .why import why_command as found
        case "reduce":
            from .reduce import reduce_command as found
        case "explore":
            from .explore import explore_command as found
        case "dump":
            from .dump import dump_command as found
        case "names":
            from .names import names_command as found
        case "record":
            from .record import record_command as found
        case "judge":
            from .judge import judge_command as found
        case "who":
            from .who import who_command as found
        case _:
            return completion if name == "completion" else None
    return found


class Commands(NearestCommand):
    """Group whose commands are imported when they are needed; help lists them in the order of their use."""

    aliases = ("run", "controllers", "lint", "explain", "replay")
    """Commands of `schedspec scheduler` that also work without the word `scheduler`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of all commands."""
        return [*_PURPOSES]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of that name, or None."""
        if cmd_name in self.aliases:
            group = _imported("scheduler")
            return group.get_command(ctx, cmd_name) if isinstance(group, click.Group) else None
        return _imported(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the names and purposes of the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([*_PURPOSES.items()])


@click.command(cls=Commands, help=_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="schedspec", message="%(version)s")
def schedspec() -> None:
    """Do nothing: the commands do the work."""


@click.command(short_help=_PURPOSES["completion"])
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    Examples:
      schedspec completion bash > ~/.local/share/bash-completion/completions/schedspec
      eval "$(schedspec completion zsh)"
    """
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(schedspec, {}, "schedspec", "_SCHEDSPEC_COMPLETE").source())


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit with its status: 0, 1 after a failure, 2 after a usage error."""
    from .output import run  # imported here, because output is also a program

    run(lambda: _main(arguments))


def _main(arguments: list[str] | None) -> None:
    try:
        Path.cwd()
    except FileNotFoundError:
        click.echo("the working directory does not exist any more\n  do next: cd to a folder that exists", err=True)
        sys.exit(2)
    try:
        status: Any = schedspec.main(
            arguments, prog_name=distribution.prompt(), standalone_mode=False, complete_var="_SCHEDSPEC_COMPLETE"
        )
    except click.ClickException as problem:
        with printable_streams():
            problem.show()
        sys.exit(problem.exit_code)
    except click.Abort:
        click.echo("interrupted", err=True)
        sys.exit(130)
    sys.exit(status if isinstance(status, int) else 0)
