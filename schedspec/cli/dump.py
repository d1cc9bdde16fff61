"""`schedspec dump`: read a cluster's state and write it to a file."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from ..virtual.state import dump
from .answers import refuse_lost_files, refuse_no_cluster, refuses_bad_input

_FILE = click.Path(path_type=Path)


@click.command("dump", short_help="read a cluster's state and write it to a file")
@click.option(
    "--kubeconfig", type=_FILE, metavar="FILE", help="Default: $KUBECONFIG, else ~/.kube/config, else of the pod."
)
@click.option("--context", metavar="NAME", help="A context of the kubeconfig (default: its current one).")
@click.option("--out", type=_FILE, metavar="FILE", default="state.jsonl.gz", show_default=True, help="The file.")
@click.option("--redact", is_flag=True, help="Replace names, in the same order; keep only what influences decisions.")
@click.option("--names", type=_FILE, metavar="FILE", help="Of --redact: the table of names, for `schedspec names`.")
@click.option("--policy", type=_FILE, metavar="FILE", help="The policy, if no ConfigMap of the cluster has it.")
@click.option(
    "--scheduler-name",
    "scheduler_names",
    multiple=True,
    metavar="NAME",
    help="The schedulerName of the pods to schedule; repeat for several (default: that of pods of PodGroups).",
)
@refuses_bad_input
def dump_command(**given: Any) -> int:
    """Read a cluster's state and write it to a file.

    \b
    Examples:
      schedspec dump --context staging --out state.jsonl.gz          # of the kubeconfig that kubectl uses
      schedspec dump --redact                                         # only what influences decisions
      schedspec dump --redact --names names.jsonl                     # and keep the table of names at home
    """
    written = [("--out", given["out"]), ("--names", given["names"])]
    refuse_lost_files(written, [("--policy", given["policy"]), ("--kubeconfig", given["kubeconfig"])])
    refuse_no_cluster(given["kubeconfig"])
    return dump.main(SimpleNamespace(**given))
