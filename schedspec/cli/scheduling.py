"""`schedspec run`, `controllers`, `lint`, `explain` and `replay`: the scheduler's own commands, with its own options.

The scheduler is a program of its own that knows nothing of this package; its parsers are argparse's. Here they get
help with examples and completion, and their arguments are handed over as they are.
"""

from __future__ import annotations

import argparse
from typing import Any

import click
from click.shell_completion import CompletionItem

from .. import distribution

_EXAMPLES = {
    "run": """\
  schedspec run --kubeconfig ~/.kube/config --context staging --policy policies/team.yaml
  schedspec run --policy team.yaml --record recording   # for explain and replay""",
    "controllers": """\
  schedspec controllers --kubeconfig ~/.kube/config     # beside:
  schedspec run --kubeconfig ~/.kube/config --policy team.yaml --controllers none""",
    "lint": """\
  schedspec lint policies/*.yaml --strict
  kubectl get configmap volcano-scheduler -o jsonpath='{.data.conf}' | schedspec lint -""",
    "explain": """\
  schedspec explain recording pod default/build-task-0
  schedspec explain out/run/scenarios/SCENARIO job build --all""",
    "replay": """\
  schedspec replay recording                            # the same decisions, bit for bit
  schedspec replay recording --policy policies/new.yaml # what would have been decided""",
}


class SchedulerCommand(click.Command):
    """A command of the scheduler: its help and its options are those of its own parser."""

    def __init__(self, name: str) -> None:
        super().__init__(name, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
        self.add_help_option = False
        self.params = [click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)]
        self.callback = self._run

    def _run(self, arguments: tuple[str, ...]) -> int:
        ran: int = distribution.load("scheduler.__main__").main([str(self.name), *arguments], **self._words())
        return ran

    def _words(self) -> dict[str, Any]:
        return {"program": distribution.prompt(), "examples": _EXAMPLES[str(self.name)]}

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002
        """Options where one is begun, else files."""
        if not incomplete.startswith("-"):
            return [CompletionItem(incomplete, type="file")]
        parser: argparse.ArgumentParser = distribution.load("scheduler.__main__").parser_of(
            str(self.name), **self._words()
        )
        usage = parser.format_help().split()
        names = {word.strip(",[]") for word in usage if word.lstrip("[").startswith("--")}
        return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete)]


run_command = SchedulerCommand("run")
controllers_command = SchedulerCommand("controllers")
lint_command = SchedulerCommand("lint")
explain_command = SchedulerCommand("explain")
replay_command = SchedulerCommand("replay")
