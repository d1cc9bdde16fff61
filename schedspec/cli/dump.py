"""`schedspec dump`: read a cluster's state and write it to a file."""

from __future__ import annotations

import argparse

from ..virtual.state import dump
from .answers import refuse_one_file_twice, refuses_bad_input
from .scheduling import ParsedCommand


class DumpCommand(ParsedCommand):
    """Command that takes the state of a cluster."""

    examples = """\
  schedspec dump --context staging --out state.jsonl.gz          # of the kubeconfig that kubectl uses
  schedspec dump --redact                                         # only what influences decisions
  schedspec dump --redact --names names.jsonl                     # and keep the table of names at home"""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options."""
        dump.add_arguments(parser)

    @refuses_bad_input
    def execute(self, given: argparse.Namespace) -> int:
        """Run the command."""
        written = [("--out", given.out), ("--names", given.names)]
        refuse_one_file_twice(written, [("--policy", given.policy), ("--kubeconfig", given.kubeconfig)])
        return dump.main(given)


dump_command = DumpCommand("dump", "read a cluster's state and write it to a file")
