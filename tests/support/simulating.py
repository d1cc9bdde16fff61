"""Run one simulation as `schedspec simulate` does, without monitors and without a page."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from schedspec.lab.simulate import command


def simulate(arguments: Sequence[str]) -> int:
    """Run a load; return the exit status."""
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.main(parser.parse_args(arguments))
