"""`schedspec dump`: read a cluster's state and write it to a file."""

from __future__ import annotations

import argparse
import sys
from contextlib import redirect_stdout
from typing import TextIO, cast

from ..scheduler.model.printable import PrintableStream
from ..virtual.state import dump
from .scheduling import ParsedCommand


class DumpCommand(ParsedCommand):
    """Command that takes the state of a cluster."""

    examples = """\
  schedspec dump --context staging --out state.jsonl.gz          # of the kubeconfig that kubectl uses
  schedspec dump --redact                                         # only what influences decisions"""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        dump.add_arguments(parser)

    def execute(self, given: argparse.Namespace) -> int:
        """Run the command."""
        with redirect_stdout(cast("TextIO", PrintableStream(sys.stdout))):
            return dump.main(given)


dump_command = DumpCommand("dump", "read a cluster's state and write it to a file")
