"""The command-line options of `python -m scheduler run` and `controllers`.

Every option is checked before the process connects to a cluster. An error names the option and a valid value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

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


_FILE = click.Path(path_type=Path)


def _selector(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",") if part]
    if any(not key or not sign for key, sign, _ in pairs):
        raise click.BadParameter(f"{text!r} is not KEY=VALUE[,KEY=VALUE], as in schedspec.dev/world=true")
    return {key: value for key, _, value in pairs}


def _label(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not key or "," in text or (sign and not value):
        raise click.BadParameter(f"{text!r} is not KEY or KEY=VALUE, as in schedspec.dev/scenario")
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
            raise click.BadParameter(f"unknown controller {name!r}; known: {', '.join(CONTROLLERS)}; or all, or none")
    return names


def address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise click.BadParameter(f"{text!r} is not HOST:PORT, as in 127.0.0.1:8080 (port 0: any free port)")
    return host.strip("[]") or "127.0.0.1", int(port)


def _bytes(text: str) -> int:
    if not text.isdecimal() or int(text) < 1 << 16:
        raise click.BadParameter(f"{text!r} is not a number of bytes; the minimum is {1 << 16}")
    return int(text)


def _seconds(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= len(text) <= 9 and int(text)):
        raise click.BadParameter(f"{text!r} is not a whole number of seconds from 1 to 999999999")
    return int(text)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if value <= 0:
        raise click.BadParameter(f"{text!r} is not a positive number of seconds")
    return value


_CLUSTER = (
    click.Option(["--kubeconfig"], type=_FILE, metavar="FILE", help="Default: the service account of the pod."),
    click.Option(["--context"], metavar="NAME", help="A context of the kubeconfig (default: its current one)."),
    click.Option(
        ["--node-selector"],
        type=_selector,
        default="",
        metavar="K=V[,K=V]",
        help="Labels of the nodes to schedule to; other nodes get no pods and do not count as capacity.",
    ),
    click.Option(
        ["--queue-selector"],
        type=_label,
        metavar="K[=V]",
        help="Label of visible queues; other queues are neither read nor written, and root and default are presumed.",
    ),
    click.Option(
        ["--namespace-prefix"],
        default="",
        metavar="PREFIX",
        help="Prefix of the namespaces whose jobs, groups and pods are visible; other namespaces are ignored.",
    ),
    click.Option(
        ["--scheduler-name", "scheduler_names"],
        multiple=True,
        metavar="NAME",
        help="The schedulerName of the pods to schedule; repeat for several (default: schedspec).",
    ),
    click.Option(
        ["--controllers"],
        type=_controllers,
        default="all",
        metavar="NAMES",
        help=f"Which controllers run here: {','.join(CONTROLLERS)}, all (default), or none if `controllers` "
        "runs them in another process.",
    ),
    click.Option(
        ["--queue-command-namespace"],
        default="kube-system",
        metavar="NAME",
        help="Namespace of Commands to queues (default: kube-system); vcctl writes them into `default`.",
    ),
)
_PROCESS = (
    click.Option(["--listen"], type=address, default="127.0.0.1:0", metavar="HOST:PORT"),
    click.Option(["--leader-elect"], is_flag=True, help="Of several replicas, only the leader works."),
    click.Option(["--lease-seconds"], type=_positive, default="15", metavar="N"),
    click.Option(["--lease-namespace"], default="kube-system", metavar="NAME"),
    click.Option(
        ["--identity"], default="", metavar="NAME", help="Name of this replica (default: host name and process ID)."
    ),
    click.Option(["--log-level"], type=click.Choice(["debug", "info", "warning", "error"]), default="info"),
)
_SCHEDULING = (
    click.Option(["--policy"], type=_FILE, metavar="FILE", help="Volcano's configuration file; reloaded on change."),
    click.Option(
        ["--longest-grace"],
        type=_seconds,
        default=str(LONGEST_GRACE),
        show_default=True,
        metavar="N",
        help="Seconds after which the capacity of a terminating pod no longer counts as being freed.",
    ),
    click.Option(
        ["--after-grace"],
        type=click.Choice(["another", "force"]),
        default="another",
        help="another: victims with a longer grace period keep it, and after --longest-grace another "
        "victim is chosen (default); force: their grace period is cut to --longest-grace.",
    ),
    click.Option(["--record"], type=_FILE, metavar="DIR", help="Write a record for `replay` and `explain`."),
    click.Option(
        ["--record-bytes"],
        type=_bytes,
        default=str(SEGMENT_BYTES),
        show_default=True,
        metavar="N",
        help=f"Size of each file of the record, before compression; {KEPT} files are kept.",
    ),
)
RUN: tuple[click.Parameter, ...] = (*_CLUSTER, *_SCHEDULING, *_PROCESS)
"""The options of `run`."""
ONLY_CONTROLLERS: tuple[click.Parameter, ...] = (*_CLUSTER, *_PROCESS)
"""The options of `controllers`."""


def options_from(given: Mapping[str, Any]) -> Options:
    """Return the options of `run` or `controllers` from the values of a command line."""
    values = dict(given)
    names = values.pop("scheduler_names") or ("schedspec",)
    scope = Scope(values.pop("queue_selector"), values.pop("namespace_prefix"), names)
    grace = GraceLimit(
        values.pop("longest_grace", LONGEST_GRACE), force=values.pop("after_grace", "another") == "force"
    )
    recorded = {"policy": None, "record": None, "record_bytes": SEGMENT_BYTES}
    return Options(**{**recorded, **values}, scheduler_names=names, scope=scope, grace=grace)


def parse(arguments: Sequence[str], params: Sequence[click.Parameter] = RUN) -> Options:
    """Parse the arguments that follow `run`. Raises click.UsageError if an option is invalid."""
    return options_from(click.Command("run", params=[*params]).make_context("run", [*arguments]).params)
