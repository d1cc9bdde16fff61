"""`schedspec record`: record what happens in a cluster, whichever scheduler decides there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from ..lab.recorder.process import ListenError, RecordOptions, record
from ..lab.recorder.writer import FolderError
from ..scheduler.inputs import PolicyLoaded
from ..scheduler.kube import KubeError
from ..scheduler.live import log
from ..scheduler.live.options import address
from ..scheduler.policy.loader import load_policy, read_policy
from ..schedulers import find
from ..virtual.state.redacted_inputs import InputRedaction, table_in
from .answers import explains_errors, parse_bytes, parse_seconds, refuse_no_cluster, refuses_bad_input


def _seconds(_context: click.Context, _option: click.Parameter, value: str) -> float:
    try:
        return parse_seconds(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is no duration; write 7d, 12h or 30m") from None


def _bytes(_context: click.Context, _option: click.Parameter, value: str) -> int:
    try:
        return parse_bytes(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is no size of at least 1MiB; write 10GiB or 500MiB") from None


def _address(_context: click.Context, _option: click.Parameter, value: str | None) -> tuple[str, int] | None:
    return None if value is None else address(value)


@click.command("record")
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
@click.option("--kubeconfig", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE")
@click.option("--context", metavar="NAME", help="A context of the kubeconfig; default: its current one.")
@click.option("--keep", default="7d", show_default=True, callback=_seconds, metavar="TIME", help="How long to keep.")
@click.option("--max-size", default="10GiB", show_default=True, callback=_bytes, metavar="SIZE", help="Of all files.")
@click.option(
    "--policy",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The policy of Volcano or schedspec, if no ConfigMap of the cluster has it.",
)
@click.option("--redact", is_flag=True, help="Replace names before anything is written; --names has the table.")
@click.option("--names", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="The table of names.")
@click.option("--judge", is_flag=True, help="Print what the scheduler's monitors find, and count it in /metrics.")
@click.option("--scheduler", default="", metavar="NAME", help="Whose monitors; default: that of the cluster's objects.")
@click.option(
    "--listen", callback=_address, metavar="HOST:PORT", help="Serve /healthz, /readyz and /metrics at this address."
)
@explains_errors
@refuses_bad_input
def record_command(
    *,
    out: Path,
    kubeconfig: Path | None,
    context: str | None,
    keep: float,
    max_size: int,
    policy: Path | None,
    redact: bool,
    names: Path | None,
    judge: bool,
    scheduler: str,
    listen: tuple[str, int] | None,
) -> int:
    """Record what happens in a cluster into DIR, until SIGTERM or Ctrl-C. Nothing in the cluster is changed.

    \b
    Examples:
      schedspec record --context prod --out recording --keep 7d --max-size 10GiB
      schedspec record --context prod --out recording --judge --listen 127.0.0.1:9090
      schedspec record --context prod --out recording --redact --names names.jsonl
    """
    if scheduler and not judge:
        raise click.UsageError("--scheduler: nothing reads it without --judge")
    if redact != (names is not None):
        raise click.UsageError("--redact and --names belong together: name the file for the table of names")
    if names is not None and out.resolve() in names.resolve().parents:
        raise click.UsageError("--names: the table of names does not belong into the recording that it explains")
    refuse_no_cluster(kubeconfig)
    log.set_up("warning")
    options = RecordOptions(
        out,
        keep,
        max_size,
        kubeconfig,
        context,
        policy_in(policy),
        redacted=InputRedaction(table_in(names)) if names is not None else None,
        is_judged=judge,
        adapter=find(scheduler) if scheduler else None,
        listen=listen,
    )
    try:
        return asyncio.run(record(options))
    except (KubeError, ListenError) as error:
        click.echo(str(error), err=True)
        return 1
    except FolderError as error:
        click.echo(str(error), err=True)
        return 2


def policy_in(path: Path | None) -> PolicyLoaded | None:
    """Return the policy in a file. Raises PolicyError."""
    if path is None:
        return None
    text = read_policy(path)
    load_policy(text, str(path))
    return PolicyLoaded(str(path), text)
