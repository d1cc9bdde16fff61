"""`schedspec why`: say why a job waits in a cluster, and what would have to change."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from ..lab import why
from ..scheduler.inputs import PolicyLoaded
from ..scheduler.kube import KubeError
from ..scheduler.policy.loader import read_policy
from ..virtual.state import At, read_state
from ..virtual.state.dump import take
from ..virtual.state.over_time import time_in
from .answers import explains_errors, print_json, refuse_no_cluster, refuses_bad_input


@click.command("why")
@click.argument("job")
@click.option(
    "--state",
    "--recording",
    "state",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A dump, a recording, or files of kubectl get -o json; default: the cluster of --kube-context.",
)
@click.option(
    "--kube-context", metavar="NAME", help="Read this cluster now, as kubectl does; default: current context."
)
@click.option("--at", metavar="TIME", help="Of the recording of a cluster: the state at 02:13, in UTC, or ISO 8601.")
@click.option(
    "--policy", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="The policy that the cluster runs."
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="Format.")
@explains_errors
@refuses_bad_input
def why_command(
    *, job: str, state: Path | None, at: str | None, kube_context: str | None, policy: Path | None, output: str
) -> int:
    """Say why JOB waits: what it lacks, who is before it, who is evicted for it, what would have to end.

    JOB is the name of a Job, PodGroup or Workload, or NAMESPACE/NAME.

    \b
    Examples:
      schedspec why train --state state.jsonl.gz
      schedspec why team-a/train --kube-context prod -o json
      schedspec why team-a/train --recording recording --at 02:13
    """
    if state is not None and kube_context is not None:
        raise click.UsageError("--state and --kube-context exclude each other")
    if at is not None and state is None:
        raise click.UsageError("--at: nothing reads it without --recording")
    if state is None:
        refuse_no_cluster(None)
    try:
        taken = (
            read_state(state, At.END if at is None else time_in(state, at), with_kueue=True)
            if state is not None
            else asyncio.run(take(None, kube_context, agent="schedspec-why"))
        )
    except KubeError as error:
        click.echo(str(error), err=True)
        return 1
    found = why.why(taken, job, PolicyLoaded(str(policy), read_policy(policy)) if policy is not None else None)
    if output == "json":
        print_json(found)
    else:
        click.echo(why.render(found), nl=False)
    return 0
