"""`python -m scheduler`: run, controllers, lint, replay, explain, simulate, dump.

This module only dispatches to the command; other modules implement the commands. A usage error prints one sentence and
no traceback.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import os
import sys
from collections.abc import Sequence
from typing import TextIO, cast

# Set before numpy is imported: otherwise numpy starts a thread for each further CPU of the node, and each thread uses
# 0.1 s of CPU before it sleeps. No matrix of ours is large enough for a second thread.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from .live.options import add_controllers, add_run, options_from
from .model.printable import PrintableStream

_PROGRAM = "python -m scheduler"
_PURPOSES = {
    "run": "schedule a cluster",
    "controllers": "run the controllers in a separate process, beside run --controllers none",
    "lint": "find errors and probable errors in policy files",
    "replay": "repeat the decisions of recorded cycles, with the same or another policy",
    "explain": "explain the decisions on a pod or job of a recording",
    "simulate": "run a load in virtual time and measure what each queue received",
    "dump": "read a cluster's state and write it to a file",
}
_MODULES = {
    "lint": ".lint",
    "replay": ".recording.replay",
    "explain": ".recording.explain",
    "simulate": ".simulate",
    "dump": ".state.dump",
}
"""Commands that live in a module, with `add_arguments(parser)` and `main(arguments) -> status`."""


def parser_of(command: str, *, program: str = _PROGRAM, examples: str = "") -> argparse.ArgumentParser:
    """Return the parser of one command; `program` is the name in its usage, `examples` follow its help."""
    purpose = _PURPOSES[command].capitalize() + "."
    parser = argparse.ArgumentParser(
        prog=f"{program} {command}",
        description=purpose,
        epilog=f"examples:\n{examples}" if examples else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if command == "run":
        add_run(parser)
    elif command == "controllers":
        add_controllers(parser)
    else:  # load only the module of this command
        importlib.import_module(_MODULES[command], __package__).add_arguments(parser)
    return parser


def main(arguments: Sequence[str] | None = None, *, program: str = _PROGRAM, examples: str = "") -> int:
    """Run a command; return its exit status: 0, 1 after a failure, 2 after a usage error."""
    words = sys.argv[1:] if arguments is None else [*arguments]
    chooser = argparse.ArgumentParser(prog=program, description="A queue scheduler for Kubernetes.")
    commands = chooser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, purpose in _PURPOSES.items():
        commands.add_parser(name, help=purpose, add_help=False)
    chosen = chooser.parse_args(words[:1]).command
    given = parser_of(chosen, program=program, examples=examples).parse_args(words[1:])
    if chosen in ("run", "controllers"):
        return _run(given, chosen)
    with contextlib.redirect_stdout(cast("TextIO", PrintableStream(sys.stdout))):
        status: int = importlib.import_module(_MODULES[chosen], __package__).main(given)
    return status


def _run(given: argparse.Namespace, command: str) -> int:
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
