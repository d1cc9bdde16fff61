"""`schedspec scheduler run|controllers|lint|explain|replay`: the scheduler's own commands.

The scheduler is also a program of its own that does not depend on this package, and parses its arguments with
argparse. This module formats its help and its errors like those of all other commands.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem

from ..scheduler import __main__ as program
from .answers import NearestCommand, refuse_option_twice

_EXAMPLES = {
    "run": """\
  schedspec scheduler run --kubeconfig ~/.kube/config --context staging --policy policies/team.yaml
  schedspec scheduler run --policy team.yaml --record recording   # for explain and replay""",
    "controllers": """\
  schedspec scheduler controllers --kubeconfig ~/.kube/config     # beside:
  schedspec scheduler run --kubeconfig ~/.kube/config --policy team.yaml --controllers none""",
    "lint": """\
  schedspec scheduler lint policies/*.yaml --strict
  kubectl get configmap volcano-scheduler -o jsonpath='{.data.conf}' | schedspec scheduler lint -""",
    "explain": """\
  schedspec scheduler explain recording pod default/build-task-0
  schedspec scheduler explain out/run/scenarios/SCENARIO job build --all""",
    "replay": """\
  schedspec scheduler replay recording                            # the same decisions, bit for bit
  schedspec scheduler replay recording --policy policies/new.yaml # what would have been decided""",
}


class ParsedCommand(click.Command):
    """Command whose arguments argparse parses; its help and its errors have the format of click."""

    examples = ""
    """Lines of the help, each with a command."""

    def __init__(self, name: str, purpose: str) -> None:
        super().__init__(name, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
        self.short_help = purpose
        self.params = [click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)]
        self.callback = self._run

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        raise NotImplementedError

    def execute(self, given: argparse.Namespace) -> int:
        """Run the command; return its exit status."""
        raise NotImplementedError

    def _run(self, arguments: tuple[str, ...]) -> int:
        context = click.get_current_context()
        if {"-h", "--help"} & {*arguments}:
            click.echo(context.get_help())
            return 0
        parser = self._parser(context)
        single = {
            name: action
            for name, action in parser._option_string_actions.items()
            if isinstance(action, argparse._StoreAction)
        }
        refuse_option_twice(arguments, single, context)
        return self.execute(parser.parse_args(arguments))

    def _parser(self, context: click.Context | None = None) -> argparse.ArgumentParser:
        """Return the parser of the arguments; it reports errors as click does."""
        found = argparse.ArgumentParser(prog=str(self.name))
        self.add_arguments(found)

        def error(message: str) -> NoReturn:
            raise click.UsageError(message, context)

        found.error = error  # type: ignore[method-assign]
        return found

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one line: the command, its options and its positional arguments."""
        positional = [_metavar(action) for action in self._parser()._actions if not action.option_strings]
        formatter.write_usage(ctx.command_path, " ".join(["[OPTIONS]", *positional]))

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the purpose and examples."""
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(f"{str(self.short_help).capitalize()}.")
            formatter.write("\n  Examples:\n")
            for line in self.examples.splitlines():
                formatter.write(f"  {line}\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of the parser and --help."""
        shown = self.get_help_option(ctx)
        record = shown.get_help_record(ctx) if shown is not None else None
        with formatter.section("Options"):
            formatter.write_dl([*self._rows(), *([record] if record is not None else [])])

    def _rows(self) -> Iterator[tuple[str, str]]:
        for action in self._parser()._actions:
            if action.help != argparse.SUPPRESS and not isinstance(action, argparse._HelpAction):
                names = ", ".join(action.option_strings)
                value = _metavar(action) if action.nargs != 0 else ""
                yield f"{names} {value}".strip(), _help(action)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Complete options after a dash, else files."""
        if not incomplete.startswith("-"):
            return [CompletionItem(incomplete, type="file")]
        names = {name for action in self._parser()._actions for name in action.option_strings if name.startswith("--")}
        return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete)]


def _metavar(action: argparse.Action) -> str:
    if action.choices and action.metavar is None:
        return f"[{'|'.join(map(str, action.choices))}]"
    found = action.metavar or action.dest.upper()
    return " ".join(found) if isinstance(found, tuple) else f"{found}{'…' if action.nargs in ('+', '*') else ''}"


def _help(action: argparse.Action) -> str:
    values: dict[str, Any] = {**vars(action), "prog": "schedspec"}
    return (action.help or "") % values if action.help else ""


class SchedulerCommand(ParsedCommand):
    """Command of the scheduler."""

    def __init__(self, name: str) -> None:
        super().__init__(name, program.PURPOSES[name])
        self.examples = _EXAMPLES[name]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options of the scheduler's command."""
        program.add_arguments(str(self.name), parser)

    def execute(self, given: argparse.Namespace) -> int:
        """Run the scheduler's command."""
        return program.run(str(self.name), given)


@click.group("scheduler", cls=NearestCommand)
def scheduler_command() -> None:
    """Run the scheduler or its controllers, lint policies, explain or replay a recording.

    \b
    Examples:
      schedspec scheduler run --policy policies/team.yaml
      schedspec scheduler lint policies/team.yaml
    """


for _name in program.PURPOSES:
    scheduler_command.add_command(SchedulerCommand(_name))
