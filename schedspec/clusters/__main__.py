"""Clusters for people at a prompt.

python -m schedspec.clusters up [--cluster embedded|kind|auto] [--kind-config FILE] [--kind-image IMAGE]
python -m schedspec.clusters list
python -m schedspec.clusters down [NAME…]
python -m schedspec.clusters doctor
python -m schedspec.clusters binary NAME…
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from . import Settings, provide
from .cleanup import destroy
from .doctor import examine
from .programs.binaries import provide as provide_binaries
from .programs.pinned import kubernetes_versions
from .protocol import ClusterError
from .registry import ClusterRecord, Registry


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
    except ClusterError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; what was started is gone\n")
        return 130
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m schedspec.clusters", description="Clusters to run features on.")
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    up = verbs.add_parser("up", help="boot a cluster that stays until `down`")
    up.add_argument("--cluster", choices=("auto", "embedded", "kind"), default="embedded")
    up.add_argument("--kind-image", metavar="IMAGE")
    up.add_argument("--kind-config", metavar="FILE", type=Path)
    up.add_argument("--binaries", metavar="FOLDER", type=Path, help="a folder with the programs to use")
    up.set_defaults(run=_up)

    down = verbs.add_parser("down", help="remove clusters: the named ones, else all of this machine's that are ours")
    down.add_argument("names", metavar="NAME", nargs="*")
    down.set_defaults(run=_down)

    verbs.add_parser("list", help="what runs, whose it is, how to reach it").set_defaults(run=_list)
    verbs.add_parser("doctor", help="what is missing on this machine, and what to do").set_defaults(run=_doctor)

    binary = verbs.add_parser("binary", help="make programs (kubelet, kind …) and print their paths")
    binary.add_argument("--kubernetes-version", metavar="MINOR", choices=(*kubernetes_versions(),))
    binary.add_argument("names", metavar="NAME", nargs="+")
    binary.add_argument("--binaries", metavar="FOLDER", type=Path)
    binary.set_defaults(run=_binary)
    return parser


def _up(options: argparse.Namespace) -> int:
    settings = Settings(
        kind=options.cluster,
        keep=True,
        kind_image=options.kind_image,
        kind_config=options.kind_config,
        binaries=options.binaries,
    )
    cluster = provide(settings)
    cluster.up(_tell)
    facts = cluster.facts()
    _tell(f"Kubernetes {facts.server_version}, ready after {facts.boot_seconds:.1f} s: {', '.join(facts.made_of)}")
    _print(f"export KUBECONFIG={cluster.kubeconfig}")
    _tell(f"remove it with: python -m schedspec.clusters down {cluster.name}")
    cluster.down()  # lets go of it; a kept cluster stays
    return 0


def _down(options: argparse.Namespace) -> int:
    registry = Registry()
    records = registry.records()
    unknown = set(options.names) - {record.name for record in records}
    if unknown:
        raise ClusterError(
            f"no cluster of ours is called {', '.join(sorted(unknown))}", str(registry.root), "see: list"
        )
    status = 0
    for record in records:
        if options.names and record.name not in options.names:
            continue
        if not options.names and not record.keep and record.owner.alive:
            _tell(f"{record.name}: left alone, process {record.owner.pid} is using it (name it to remove it)")
            continue
        try:
            destroy(record, registry)
            _tell(f"{record.name}: removed")
        except ClusterError as error:
            _tell(f"{record.name}: {error}")
            status = 1
    return status


def _list(_options: argparse.Namespace) -> int:
    for record in Registry().records():
        age = (time.time() - record.made) / 60
        _print(f"{record.name}  {record.kind}  {_state(record)}  {age:.0f} min  {record.kubeconfig}")
    return 0


def _state(record: ClusterRecord) -> str:
    if record.keep:
        return "kept"
    return f"used by process {record.owner.pid}" if record.owner.alive else "abandoned: down removes it"


def _doctor(_options: argparse.Namespace) -> int:
    findings = examine()
    for finding in findings:
        _print(f"{'ok     ' if finding.good else 'MISSING' if finding.needed else 'no     '} {finding.what}")
        if finding.do_next:
            _print(f"        do next: {finding.do_next}")
    return 0 if all(finding.good or not finding.needed for finding in findings) else 1


def _binary(options: argparse.Namespace) -> int:
    for binary in provide_binaries(
        options.names, folder=options.binaries, progress=_tell, kubernetes=options.kubernetes_version
    ).values():
        _print(str(binary.path))
    return 0


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
