"""`schedspec`: one command for a project with scenarios, its clusters, the scheduler and its recordings.

Each command is a module's; it is loaded when it is asked for, so that `schedspec run` loads no pytest.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click
from click.shell_completion import get_completion_class

from .. import distribution

_COMMANDS = {
    "init": ("project", "write a feature, a policy, a conftest and a workflow, to begin with"),
    "check": ("project", "check features and policies without a cluster"),
    "steps": ("project", "list the sentences that scenarios can use"),
    "features": ("project", "print the folder of the features that come with it"),
    "up": ("clusters", "boot a cluster that stays until `down`"),
    "down": ("clusters", "remove clusters"),
    "list": ("clusters", "list the clusters of this machine"),
    "doctor": ("clusters", "say what this machine lacks for which cluster, and what to do"),
    "binary": ("clusters", "make programs (etcd, kwok, kind …) and print their paths"),
    "ci": ("ci", "run features as a job of GitHub Actions does"),
    "matrix": ("matrix", "lay runs of several schedulers side by side"),
    "report": ("report", "join the records of runs into one page"),
    "run": ("scheduling", "schedule a cluster"),
    "controllers": ("scheduling", "run the controllers in a process of their own, beside run --controllers none"),
    "lint": ("scheduling", "say what is wrong, and what is probably wrong, with policy files"),
    "explain": ("scheduling", "say why a pod or job of a recording got what it got"),
    "replay": ("scheduling", "decide recorded cycles again, or with another policy"),
    "completion": ("", "print the completion script of a shell"),
}
"""Name → the module of this package that has it, and what `schedspec --help` says."""

_HELP = """Executable specifications for queue scheduling on Kubernetes.

\b
Examples:
  schedspec init                                  begin in an empty folder
  pytest                                          run the features
  schedspec check                                 find typos without a cluster
  eval "$(schedspec up)"                          a cluster for kubectl and for
  pytest --reuse-cluster                          as many runs as you like
  schedspec explain out/run/scenarios/S pod build-task-0
"""


class Commands(click.Group):
    """Commands by name, imported when they are needed; help shows them in the order of their use."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """All of them."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of that name."""
        if cmd_name not in _COMMANDS:
            return None
        module, _ = _COMMANDS[cmd_name]
        if not module:
            return completion
        found: click.Command = getattr(import_module(f"{__name__}.{module}"), f"{cmd_name}_command")
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Their names and purposes, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, purpose) for name, (_, purpose) in _COMMANDS.items()])


@click.command(cls=Commands, help=_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="schedspec", message="%(version)s")
def schedspec() -> None:
    """The group itself does nothing."""


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
    """Run a command; exits with its status: 0, 1 where it failed, 2 where it was called wrongly."""
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
