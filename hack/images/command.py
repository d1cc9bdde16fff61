"""Command line of a module that provides an image: `build` builds it, `where` prints which image would be used."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from schedspec import terminal
from schedspec.clusters.docker import Docker
from schedspec.clusters.protocol import ClusterError, Progress

Verb = Callable[[Docker, Progress], str]


def run(program: str, verbs: dict[str, Verb], arguments: list[str] | None = None) -> int:
    """Run the verb that the command line names, print what it returns, and return the exit status.

    Args:
        program: Name in usage and errors, for instance `python -m hack.images.node_image`.
        verbs: Each returns the text to print, or raises ClusterError.
        arguments: The command line; `sys.argv[1:]` by default.
    """
    parser = argparse.ArgumentParser(prog=program)
    parser.add_argument("verb", choices=tuple(verbs))
    verb = verbs[parser.parse_args(arguments).verb]
    docker, lines = Docker(), terminal.on_stderr()
    try:
        docker.require()
        text = verb(docker, lines.show)
    except ClusterError as error:
        lines.close()
        sys.stderr.write(f"{error}\n")
        return 1
    lines.close()
    sys.stdout.write(f"{text}\n")
    return 0
