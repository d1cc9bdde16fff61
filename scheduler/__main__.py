"""`python -m scheduler`: run, controllers, lint, explain, replay.

This module only dispatches to the command; other modules implement the commands. A usage error prints one sentence and
no traceback.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Protocol, TextIO, cast

# Set before numpy is imported: otherwise numpy starts a thread for each further CPU of the node, and each thread uses
# 0.1 s of CPU before it sleeps. No matrix of ours is large enough for a second thread.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from .live.options import add_controllers, add_run, options_from
from .model.printable import PrintableStream

_PROGRAM = "python -m scheduler"
PURPOSES = {
    "run": "schedule a cluster",
    "controllers": "run the controllers in a separate process, beside run --controllers none",
    "lint": "find errors and probable errors in policy files",
    "explain": "explain the decisions on a pod or job of a recording",
    "replay": "repeat the decisions of recorded cycles, with the same or another policy",
}
"""Purpose of each command, by name."""


class Command(Protocol):
    """A command with options, as a module has it."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""

    def main(self, given: argparse.Namespace) -> int:
        """Run the command and return its exit status."""


def _reader(name: str) -> Command:
    """Return the command that reads files. Only the module of this command is imported."""
    match name:
        case "lint":
            from . import lint  # noqa: PLC0415

            return lint
        case "explain":
            from .recording import explain  # noqa: PLC0415

            return explain
        case _:
            from .recording import replay  # noqa: PLC0415

            return replay


def add_arguments(name: str, parser: argparse.ArgumentParser) -> None:
    """Declare the options of a command."""
    if name == "run":
        add_run(parser)
    elif name == "controllers":
        add_controllers(parser)
    else:
        _reader(name).add_arguments(parser)


def run(name: str, given: argparse.Namespace) -> int:
    """Run a command; return its exit status: 0, 1 after a failure, 2 after a usage error."""
    if name in ("run", "controllers"):
        return _serve(given, name)
    with contextlib.redirect_stdout(cast("TextIO", PrintableStream(sys.stdout))):
        return _reader(name).main(given)


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the arguments and run their command; return its exit status."""
    words = sys.argv[1:] if arguments is None else [*arguments]
    chooser = argparse.ArgumentParser(prog=_PROGRAM, description="A queue scheduler for Kubernetes.")
    commands = chooser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, purpose in PURPOSES.items():
        commands.add_parser(name, help=purpose, add_help=False)
    chosen = chooser.parse_args(words[:1]).command
    parser = argparse.ArgumentParser(prog=f"{_PROGRAM} {chosen}", description=f"{PURPOSES[chosen].capitalize()}.")
    add_arguments(chosen, parser)
    return run(chosen, parser.parse_args(words[1:]))


def _serve(given: argparse.Namespace, command: str) -> int:
    from .kube import ConfigError  # noqa: PLC0415 - the other commands need no client
    from .live import log  # noqa: PLC0415
    from .live.process import control, serve  # noqa: PLC0415
    from .live.server import ListenError  # noqa: PLC0415
    from .policy.loader import PolicyError  # noqa: PLC0415

    options = options_from(given)
    log.set_up(options.log_level)
    try:
        return asyncio.run((serve if command == "run" else control)(options))
    except (ConfigError, ListenError, PolicyError) as error:
        sys.stderr.write(f"{error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
