"""`schedspec`: one command for a project with scenarios, its clusters, the scheduler and its recordings.

A command's module is imported when the command is used, so that `schedspec scheduler` does not import pytest.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click
from click.shell_completion import get_completion_class

from .. import distribution
from .answers import NearestCommand

_COMMANDS = {
    "init": ("init", "write a first feature, a policy and a workflow"),
    "test": ("testing", "run features with pytest"),
    "check": ("check", "check features, policies and queues without a cluster"),
    "steps": ("project", "list the sentences that scenarios can use"),
    "features": ("project", "print the folder of the features that come with schedspec"),
    "up": ("clusters", "boot a cluster that runs until `down`"),
    "down": ("clusters", "remove clusters"),
    "list": ("clusters", "list the clusters of this machine"),
    "doctor": ("clusters", "list what this machine lacks for each kind of cluster, and what to do"),
    "binary": ("clusters", "download or build programs (etcd, kwok, kind …) and print their paths"),
    "ci": ("ci", "run features as a job of GitHub Actions does"),
    "matrix": ("matrix", "compare runs of several schedulers"),
    "conformance": ("conformance", "run a profile of scenarios with a scheduler, and write its report and badge"),
    "report": ("report", "join the records of runs into one page"),
    "scheduler": ("scheduling", "run the scheduler or its controllers, lint policies, explain or replay a recording"),
    "simulate": ("simulate", "run a load in virtual time and measure what each queue received"),
    "plan": ("plan", "show what a change of policies, queues or nodes does, before it is merged"),
    "reduce": ("reduce", "reduce a dump and an incident to the smallest feature that shows the incident"),
    "explore": ("explore", "play random scenarios, and write each violation of a rule as a feature"),
    "dump": ("scheduling", "read a cluster's state and write it to a file"),
    "completion": ("", "print the completion script of a shell"),
}
"""Module and purpose of each command, by name; `schedspec --help` prints the purposes."""

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


class Commands(NearestCommand):
    """Group whose commands are imported when they are needed; help lists them in the order of their use."""

    aliases = ("run", "controllers", "lint", "explain", "replay")
    """Commands of `schedspec scheduler` that also work without the word `scheduler`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names of all commands."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return the command of that name, or None."""
        if cmd_name not in _COMMANDS and cmd_name not in self.aliases:
            return None
        module = _COMMANDS[cmd_name][0] if cmd_name in _COMMANDS else "scheduling"
        if not module:
            return completion
        found: click.Command = getattr(import_module(f"{__name__}.{module}"), f"{cmd_name}_command")
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the names and purposes of the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, purpose) for name, (_, purpose) in _COMMANDS.items()])


@click.command(cls=Commands, help=_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="schedspec", message="%(version)s")
def schedspec() -> None:
    """Do nothing: the commands do the work."""


@click.command(short_help=_COMMANDS["completion"][1])
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
    try:
        status: Any = schedspec.main(
            arguments, prog_name=distribution.prompt(), standalone_mode=False, complete_var="_SCHEDSPEC_COMPLETE"
        )
    except click.ClickException as problem:
        problem.show()
        sys.exit(problem.exit_code)
    except click.Abort:
        click.echo("interrupted", err=True)
        sys.exit(130)
    sys.exit(status if isinstance(status, int) else 0)
