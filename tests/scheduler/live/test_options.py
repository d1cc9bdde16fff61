"""The command line of `run`, and the errors of bad options."""

from __future__ import annotations

import click
import pytest

from schedspec.scheduler.kube import Scope
from schedspec.scheduler.live.options import parse


def test_the_options_of_a_run() -> None:
    names = ["--scheduler-name", "a", "--scheduler-name", "volcano", "--controllers", "job,queue"]
    options = parse([*names, "--policy", "p.yaml", "--node-selector", "x/y=z,w=", "--listen", "[::1]:80"])
    assert options.scheduler_names == ("a", "volcano")
    assert options.node_selector == {"x/y": "z", "w": ""}
    assert options.controllers == ("job", "queue")
    assert options.listen == ("::1", 80)


def test_every_option_has_a_default() -> None:
    options = parse([])
    assert options.scheduler_names == ("schedspec",)
    assert options.controllers == ("podgroup", "queue", "job", "pytorchjob")
    assert options.listen == ("127.0.0.1", 0)
    assert parse(["--controllers", "none"]).controllers == ()


def test_on_a_shared_cluster_queues_are_selected_by_label_and_namespaces_by_prefix() -> None:
    options = parse(["--queue-selector", "x/y", "--namespace-prefix", "spec-", "--scheduler-name", "a"])
    assert options.scope == Scope(("x/y", ""), "spec-", ("a",))
    assert parse(["--queue-selector", "x/y=z"]).scope.queue_label == ("x/y", "z")


REFUSED = {
    "--queue-selector =z": "'=z' is not KEY or KEY=VALUE, as in schedspec.dev/scenario",
    "--node-selector world": "'world' is not KEY=VALUE[,KEY=VALUE], as in schedspec.dev/world=true",
    "--controllers job,jobs": "unknown controller 'jobs'; known: podgroup, queue, job, pytorchjob; or all, or none",
    "--listen 8080": "'8080' is not HOST:PORT, as in 127.0.0.1:8080 (port 0: any free port)",
    "--listen a:99999": "'a:99999' is not HOST:PORT, as in 127.0.0.1:8080 (port 0: any free port)",
    "--lease-seconds 0": "'0' is not a positive number of seconds",
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.items(), ids=REFUSED)
def test_a_bad_option_is_refused_with_its_name_and_a_valid_value(arguments: str, message: str) -> None:
    with pytest.raises(click.UsageError) as refused:
        parse(arguments.split())
    assert refused.value.format_message() == f"Invalid value for '{arguments.split(maxsplit=1)[0]}': {message}"
