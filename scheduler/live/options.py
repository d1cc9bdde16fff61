"""The command-line options of `python -m scheduler run` and `controllers`.

Every option is checked before the process connects to a cluster. An error names the option and a valid value.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..kube import Scope
from ..recording.segments import KEPT, SEGMENT_BYTES
from .terminations import LONGEST_GRACE, GraceLimit

CONTROLLERS = ("podgroup", "queue", "job", "pytorchjob")


@dataclass(frozen=True, slots=True)
class Options:
    """The parsed command line of `run`."""

    policy: Path | None
    kubeconfig: Path | None
    context: str | None
    scheduler_names: tuple[str, ...]
    node_selector: dict[str, str]
    scope: Scope
    controllers: tuple[str, ...]
    queue_command_namespace: str
    listen: tuple[str, int]
    leader_elect: bool
    lease_seconds: float
    lease_namespace: str
    identity: str
    record: Path | None
    record_bytes: int
    log_level: str
    grace: GraceLimit = GraceLimit()  # noqa: RUF009 - frozen


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the options of `run` to its parser."""
    _add_cluster(parser)
    group = parser.add_argument_group("scheduling")
    group.add_argument("--policy", type=Path, metavar="FILE", help="Volcano's configuration file; reloaded on change")
    group.add_argument(
        "--longest-grace",
        type=_seconds,
        default=LONGEST_GRACE,
        metavar="N",
        help="seconds after which the capacity of a terminating pod no longer counts as being freed "
        "(default: %(default)s)",
    )
    group.add_argument(
        "--after-grace",
        choices=("another", "force"),
        default="another",
        help="another: victims with a longer grace period keep it, and after --longest-grace another "
        "victim is chosen (default); force: their grace period is cut to --longest-grace",
    )
    _add_common(group, ", all (default), or none if the command `controllers` runs them in another process")
    process = _add_process(parser)
    process.add_argument("--record", type=Path, metavar="DIR", help="write a record for `replay` and `explain`")
    process.add_argument(
        "--record-bytes",
        type=_bytes,
        default=SEGMENT_BYTES,
        metavar="N",
        help=f"size of each file of the record, before compression; {KEPT} files are kept (default: %(default)s)",
    )


def add_controllers(parser: argparse.ArgumentParser) -> None:
    """Add the options of `controllers` to its parser."""
    _add_cluster(parser)
    _add_common(parser.add_argument_group("controllers"), " or all (default)")
    _add_process(parser)
    parser.set_defaults(
        policy=None, record=None, record_bytes=SEGMENT_BYTES, longest_grace=LONGEST_GRACE, after_grace="another"
    )


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    cluster = parser.add_argument_group("cluster")
    cluster.add_argument("--kubeconfig", type=Path, metavar="FILE", help="default: the service account of the pod")
    cluster.add_argument("--context", metavar="NAME", help="a context of the kubeconfig (default: its current one)")
    cluster.add_argument(
        "--node-selector",
        type=_selector,
        default={},
        metavar="K=V[,K=V]",
        help="labels of the nodes to schedule to; other nodes get no pods and do not count as capacity",
    )
    cluster.add_argument(
        "--queue-selector",
        type=_label,
        default=None,
        metavar="K[=V]",
        help="label of visible queues; other queues are neither read nor written, and root and default are presumed",
    )
    cluster.add_argument(
        "--namespace-prefix",
        default="",
        metavar="PREFIX",
        help="prefix of the namespaces whose jobs, groups and pods are visible; other namespaces are ignored",
    )


def _add_common(group: argparse._ArgumentGroup, other_choices: str) -> None:
    group.add_argument(
        "--scheduler-name",
        action="append",
        dest="scheduler_names",
        metavar="NAME",
        help="schedulerName of the pods to schedule; repeat for several (default: schedspec)",
    )
    group.add_argument(
        "--controllers",
        type=_controllers,
        default=CONTROLLERS,
        metavar="NAMES",
        help=f"which controllers run here: {','.join(CONTROLLERS)}{other_choices}",
    )
    group.add_argument(
        "--queue-command-namespace",
        default="kube-system",
        metavar="NAME",
        help="namespace of Commands to queues (default: kube-system); vcctl writes them into `default`",
    )


def _add_process(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    process = parser.add_argument_group("process")
    process.add_argument("--listen", type=address, default=("127.0.0.1", 0), metavar="HOST:PORT")
    process.add_argument("--leader-elect", action="store_true", help="of several replicas, only the leader works")
    process.add_argument("--lease-seconds", type=_positive, default=15.0, metavar="N")
    process.add_argument("--lease-namespace", default="kube-system", metavar="NAME")
    process.add_argument(
        "--identity", default="", metavar="NAME", help="name of this replica (default: host name and process ID)"
    )
    process.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    return process


def options_from(given: argparse.Namespace) -> Options:
    """Return the options for parsed arguments."""
    names = tuple(given.scheduler_names or ("schedspec",))
    return Options(
        policy=given.policy,
        kubeconfig=given.kubeconfig,
        context=given.context,
        scheduler_names=names,
        node_selector=given.node_selector,
        scope=Scope(given.queue_selector, given.namespace_prefix, names),
        controllers=tuple(given.controllers),
        queue_command_namespace=given.queue_command_namespace,
        listen=given.listen,
        leader_elect=given.leader_elect,
        lease_seconds=given.lease_seconds,
        lease_namespace=given.lease_namespace,
        identity=given.identity,
        record=given.record,
        record_bytes=given.record_bytes,
        log_level=given.log_level,
        grace=GraceLimit(given.longest_grace, force=given.after_grace == "force"),
    )


def parse(arguments: Sequence[str]) -> Options:
    """Parse the arguments that follow `run`. Exits with a message if an option is invalid."""
    parser = argparse.ArgumentParser(prog="python -m scheduler run")
    add_run(parser)
    return options_from(parser.parse_args(arguments))


def _selector(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",") if part]
    if any(not key or not sign for key, sign, _ in pairs):
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE[,KEY=VALUE], as in schedspec.dev/world=true")
    return {key: value for key, _, value in pairs}


def _label(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not key or "," in text or (sign and not value):
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY or KEY=VALUE, as in schedspec.dev/scenario")
    return key, value


def _controllers(text: str) -> tuple[str, ...]:
    names = (
        ()
        if text == "none"
        else CONTROLLERS
        if text == "all"
        else tuple(name.strip() for name in text.split(",") if name.strip())
    )
    for name in names:
        if name not in CONTROLLERS:
            raise argparse.ArgumentTypeError(
                f"unknown controller {name!r}; known: {', '.join(CONTROLLERS)}; or all, or none"
            )
    return names


def address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT, as in 127.0.0.1:8080 (port 0: any free port)")
    return host.strip("[]") or "127.0.0.1", int(port)


def _bytes(text: str) -> int:
    if not text.isdecimal() or int(text) < 1 << 16:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes; the minimum is {1 << 16}")
    return int(text)


def _seconds(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= len(text) <= 9 and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of seconds from 1 to 999999999")
    return int(text)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of seconds")
    return value
