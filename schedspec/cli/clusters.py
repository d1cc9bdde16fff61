"""`schedspec up`, `down`, `list`, `doctor` and `binary`: manage clusters from the command line."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from .. import distribution
from ..clusters import Settings, provide
from ..clusters.cleanup import destroy
from ..clusters.doctor import examine
from ..clusters.programs.binaries import provide as provide_binaries
from ..clusters.programs.pinned import kubernetes_versions
from ..clusters.protocol import ClusterError
from ..clusters.registry import ClusterRecord, Registry
from ..terminal import on_stderr
from .answers import explains_errors, output_option, print_json

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command("up")
@click.option("--cluster", type=click.Choice(["auto", "embedded", "kind"]), default="embedded", show_default=True)
@click.option("--kind-image", metavar="IMAGE", help="The node image of a Kind cluster.")
@click.option("--kind-config", type=_FILE, help="The configuration of a Kind cluster.")
@click.option(
    "--kubernetes-version", type=click.Choice([*kubernetes_versions()]), help="The Kubernetes of an embedded cluster."
)
@click.option("--binaries", type=_FOLDER, help="A folder with the programs to use.")
@explains_errors
def up_command(
    cluster: str,
    kind_image: str | None,
    kind_config: Path | None,
    kubernetes_version: str | None,
    binaries: Path | None,
) -> int:
    """Boot a cluster that runs until `down`, and print the export of its KUBECONFIG.

    A later `pytest --reuse-cluster` with the same options uses this cluster. A cluster that another terminal of this
    machine has booted is left alone.

    \b
    Examples:
      eval "$(schedspec up)" && kubectl get nodes
      schedspec up --cluster kind --kind-config three-nodes.yaml
      pytest --cluster embedded --reuse-cluster
    """
    kind: Any = cluster
    settings = Settings(
        kind=kind,
        reuse=True,
        joins=False,
        kind_image=kind_image,
        kind_config=kind_config,
        kubernetes_version=kubernetes_version,
        binaries=binaries,
    )
    made = provide(settings)
    lines = on_stderr()
    made.up(lines.show)
    lines.close()
    facts = made.facts()
    parts = ", ".join(facts.made_of)
    _to_stderr(f"Kubernetes {facts.server_version}, ready after {facts.boot_seconds:.1f} s: {parts}")
    click.echo(f"export KUBECONFIG={made.kubeconfig}")
    _to_stderr(f"run features on it with: pytest --cluster {made.kind} --reuse-cluster")
    _to_stderr(f"remove it with: {distribution.prompt()} down {made.name}")
    made.down()  # releases the cluster, which keeps running
    return 0


@click.command("down")
@click.argument("names", nargs=-1, metavar="[NAME]…")
@explains_errors
def down_command(names: tuple[str, ...]) -> int:
    """Remove the named clusters, else all clusters of schedspec on this machine that no run uses.

    \b
    Examples:
      schedspec down
      schedspec down embedded-f964d4
    """
    registry = Registry()
    records = registry.records()
    unknown = set(names) - {record.name for record in records}
    if unknown:
        raise ClusterError(
            f"no cluster of ours is called {', '.join(sorted(unknown))}",
            str(registry.root),
            f"see: {distribution.prompt()} list",
        )
    status = 0
    for record in records:
        if names and record.name not in names:
            continue
        if not names and not record.keep and record.owner.alive:
            _to_stderr(f"{record.name}: left alone, process {record.owner.pid} is using it (name it to remove it)")
            continue
        try:
            destroy(record, registry)
            _to_stderr(f"{record.name}: removed")
        except ClusterError as error:
            _to_stderr(f"{record.name}: {error}")
            status = 1
    return status


@click.command("list")
@output_option
@explains_errors
def list_command(output: str) -> int:
    """List the clusters of this machine with the process that uses each, and its kubeconfig.

    \b
    Examples:
      schedspec list
      schedspec list -o json | jq -r '.[].kubeconfig'
    """
    rows = [
        {
            "name": record.name,
            "kind": record.kind,
            "state": _state(record),
            "minutes": round((time.time() - record.made) / 60),
            "kubeconfig": str(record.kubeconfig),
        }
        for record in Registry().records()
    ]
    if output == "json":
        print_json(rows)
    else:
        for row in rows:
            click.echo("{name}  {kind}  {state}  {minutes} min  {kubeconfig}".format(**row))
    return 0


@click.command("doctor")
@output_option
@explains_errors
def doctor_command(output: str) -> int:
    """List what this machine has and lacks for each kind of cluster, and what to do.

    \b
    Examples:
      schedspec doctor
      schedspec doctor -o json
    """
    found = examine()
    if output == "json":
        fields = ("good", "needed", "what", "do_next")
        print_json([{name: getattr(diagnosis, name) for name in fields} for diagnosis in found])
    else:
        for diagnosis in found:
            state = "ok     " if diagnosis.good else "MISSING" if diagnosis.needed else "no     "
            click.echo(f"{state} {diagnosis.what}")
            if diagnosis.do_next:
                click.echo(f"        do next: {diagnosis.do_next}")
    return 0 if all(diagnosis.good or not diagnosis.needed for diagnosis in found) else 1


@click.command("binary")
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@click.option(
    "--kubernetes-version", type=click.Choice([*kubernetes_versions()]), help="The Kubernetes of an embedded cluster."
)
@click.option("--binaries", type=_FOLDER, help="A folder with the programs to use.")
@explains_errors
def binary_command(names: tuple[str, ...], kubernetes_version: str | None, binaries: Path | None) -> int:
    """Print the paths of programs (etcd, kube-apiserver, kwok, kubelet, kind …); download or build missing ones.

    NAME@VERSION is a scheduler's program in another version.

    \b
    Example:
      schedspec binary kube-apiserver etcd
      schedspec binary kueue@v0.17.0
    """
    lines = on_stderr()
    for text in names:
        name, _, version = text.partition("@")
        binary = provide_binaries(
            [name], folder=binaries, progress=lines.show, kubernetes=kubernetes_version, version=version
        )[name]
        lines.close()
        click.echo(str(binary.path))
    return 0


def _state(record: ClusterRecord) -> str:
    if record.keep:
        return "kept"
    return f"used by process {record.owner.pid}" if record.owner.alive else "abandoned: down removes it"


def _to_stderr(line: str) -> None:
    click.echo(line, err=True)
