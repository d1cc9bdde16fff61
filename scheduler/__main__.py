"""`python -m scheduler`: run, controllers, lint, explain, replay.

This module only dispatches to the command; other modules implement the commands. A usage error prints one sentence and
no traceback.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import click

# Set before numpy is imported: otherwise numpy starts a thread for each further CPU of the node, and each thread uses
# 0.1 s of CPU before it sleeps. No matrix of ours is large enough for a second thread.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from .live.options import ONLY_CONTROLLERS, RUN, options_from
from .model.printable import printable_streams

PURPOSES = {
    "run": "schedule a cluster",
    "controllers": "run the controllers in a separate process, beside run --controllers none",
    "lint": "find errors and probable errors in policy files",
    "explain": "explain the decisions on a pod or job of a recording",
    "replay": "repeat the decisions of recorded cycles, with the same or another policy",
}
"""Purpose of each command, by name."""
_RECORDING = "RECORDING is the directory of `run --record`, or one of its files."
_MORE = {
    "run": """\
  schedspec scheduler run --kubeconfig ~/.kube/config --context staging --policy policies/team.yaml
  schedspec scheduler run --policy team.yaml --record recording   # for explain and replay""",
    "controllers": """\
  schedspec scheduler controllers --kubeconfig ~/.kube/config     # beside:
  schedspec scheduler run --kubeconfig ~/.kube/config --policy team.yaml --controllers none""",
    "lint": """\
  schedspec scheduler lint policies/*.yaml --strict
  kubectl get configmap volcano-scheduler -o jsonpath='{.data.conf}' | schedspec scheduler lint -""",
    "explain": f"""\
  schedspec scheduler explain recording pod default/build-task-0
  schedspec scheduler explain out/run/scenarios/SCENARIO job build --all

{_RECORDING} NAME is namespace/name, the name of the workload, or a unique part of a name.""",
    "replay": f"""\
  schedspec scheduler replay recording                            # the same decisions, bit for bit
  schedspec scheduler replay recording --policy policies/new.yaml # what would have been decided

{_RECORDING}""",
}
"""The rest of each command's help: examples, and what its arguments are."""


def command(name: str) -> click.Command | None:
    """Return the command of a name, or None. Only its module is imported."""
    params: Sequence[click.Parameter]
    call: Callable[[SimpleNamespace], int]
    match name:
        case "run" | "controllers":
            params, call = (RUN if name == "run" else ONLY_CONTROLLERS), lambda given: _serve(given, name)
        case "lint":
            from . import lint  # noqa: PLC0415

            params, call = lint.ARGUMENTS, printable_streams()(lint.main)
        case "explain":
            from .recording import explain  # noqa: PLC0415

            params, call = explain.ARGUMENTS, printable_streams()(explain.main)
        case "replay":
            from .recording import replay  # noqa: PLC0415

            params, call = replay.ARGUMENTS, printable_streams()(replay.main)
        case _:
            return None
    return click.Command(
        name,
        params=[*params],
        callback=lambda **given: call(SimpleNamespace(**given)),
        short_help=PURPOSES[name],
        help=f"{PURPOSES[name].capitalize()}.\n\n\b\nExamples:\n{_MORE[name]}",
    )


class Commands(click.Group):
    """The commands of the scheduler; each is imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return [*PURPOSES]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        return command(cmd_name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status: 0, 1 after a failure, 2 after a usage error."""
    settings = {"help_option_names": ["-h", "--help"]}
    group = Commands("scheduler", help="A queue scheduler for Kubernetes.", context_settings=settings)
    words = None if arguments is None else [*arguments]
    try:
        status: Any = group.main(words, prog_name="python -m scheduler", standalone_mode=False)
    except click.ClickException as problem:
        problem.show()
        return problem.exit_code
    return status if isinstance(status, int) else 0


def _serve(given: SimpleNamespace, command: str) -> int:
    from .kube import ConfigError  # noqa: PLC0415 - the other commands need no client
    from .live import log  # noqa: PLC0415
    from .live.process import control, serve  # noqa: PLC0415
    from .live.server import ListenError  # noqa: PLC0415
    from .policy.loader import PolicyError  # noqa: PLC0415

    options = options_from(vars(given))
    log.set_up(options.log_level)
    try:
        return asyncio.run((serve if command == "run" else control)(options))
    except (ConfigError, ListenError, PolicyError) as error:
        sys.stderr.write(f"{error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
