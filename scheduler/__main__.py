"""``python -m scheduler``: run · lint · replay · explain.

The one rule: nothing happens here but choosing; each command lives with what it does. What the user did wrong ends
with one sentence, no traceback.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import sys
from collections.abc import Sequence

from .live.options import add_run, options_from

_OTHERS = {
    "lint": "say what is wrong, and what is probably wrong, with a policy file",
    "replay": "decide recorded cycles again, or with another policy",
    "explain": "say why a pod or job of a recorded cycle got what it got",
}
_MODULES = {"replay": ".recording.replay", "explain": ".recording.explain"}
"""Commands that live in a module of their name, or in this one, with ``add_arguments(parser)`` and
``main(arguments) -> status``."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status: 0, 1 where it failed, 2 where it was called wrongly."""
    parser = argparse.ArgumentParser(prog="python -m scheduler", description="A queue scheduler for Kubernetes.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_run(commands.add_parser("run", help="schedule a cluster", description="Schedule a cluster."))
    asked = (sys.argv[1:] if arguments is None else [*arguments])[:1]
    for name, purpose in _OTHERS.items():
        command = commands.add_parser(name, help=purpose, description=purpose.capitalize() + ".")
        if asked == [name]:  # the others need not be loaded
            importlib.import_module(_MODULES.get(name, f".{name}"), __package__).add_arguments(command)
    given = parser.parse_args(arguments)
    if given.command == "run":
        return _run(given)
    status: int = importlib.import_module(_MODULES.get(given.command, f".{given.command}"), __package__).main(given)
    return status


def _run(given: argparse.Namespace) -> int:
    from .kube import ConfigError  # noqa: PLC0415 - the other commands need no client
    from .live import log  # noqa: PLC0415
    from .live.policy_file import PolicyUnreadable  # noqa: PLC0415
    from .live.process import serve  # noqa: PLC0415
    from .live.server import ListenError  # noqa: PLC0415
    from .policy.loader import PolicyError  # noqa: PLC0415

    options = options_from(given)
    log.set_up(options.log_level)
    try:
        return asyncio.run(serve(options))
    except (ConfigError, ListenError, PolicyError, PolicyUnreadable) as error:
        sys.stderr.write(f"{error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
