"""The options of a run as users see them: name, value and purpose, on the command line and in the ini file."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from ..schedulers import ADAPTERS

NOT_GIVEN = object()
"""The default of each option on the command line: the option is not given, so the ini file applies."""

ALWAYS = "always"
RECORDS = (ALWAYS, "failed")
"""Which scenarios keep the recording of their scheduler."""
FEW = 20
"""A run of fewer scenarios keeps the recordings of all of them."""
FLAGS: dict[str, tuple[str, str]] = {
    "cluster": (
        "KIND",
        (
            "embedded, kind, existing, simulated (our scheduler in virtual time: nothing to boot) or auto (default: "
            "kind if Docker and a node image exist, else embedded)"
        ),
    ),
    "kube-context": ("NAME", "the context of an existing cluster; the current context is never a default"),
    "adopt-nodes": ("NAMES", "an existing cluster's own nodes that scenarios may use: NAME,NAME (restored at the end)"),
    "reuse-cluster": ("", "use a running cluster of the same configuration and leave it running"),
    "keep-cluster": ("", "leave the cluster running at the end"),
    "kind-image": ("IMAGE", "the node image of a Kind cluster"),
    "kind-config": ("FILE", "the configuration of a Kind cluster"),
    "kubernetes-version": ("MINOR", "the Kubernetes of an embedded cluster, 1.36 or 1.37 (default: the pinned one)"),
    "binaries": ("DIR", "a folder with the programs of the cluster"),
    "scheduler": (
        "WHICH",
        f"{', '.join(ADAPTERS)}, MODULE:CLASS (an adapter of your own), or a COMMAND (default: schedspec)",
    ),
    "gang-api": (
        "API",
        "the API of gangs if the scheduler supports two: volcano, or kubernetes (PodGroups of scheduling.k8s.io)",
    ),
    "scheduler-binaries": ("DIR", "a folder with the programs of the scheduler"),
    "scheduler-in-cluster": (
        "",
        "run the scheduler in pods of a Kind cluster (ours with the manifests of deploy/), not as a process",
    ),
    "scheduler-image": (
        "IMAGES",
        "the images of kueue, or of volcano (vc-scheduler,vc-controller-manager), for pods of a Kind cluster",
    ),
    "policy": ("FILE", "the policy of scenarios that name none (default: templates/policies/default.yaml)"),
    "runs": ("N", "how often each scenario is run (default: 1; 3 where a scheduler's order is not deterministic)"),
    "pause-on-failure": ("", "when a scenario fails, leave the cluster unchanged until Enter is pressed"),
    "templates": ("DIR", "own templates, in place of ours of the same name (default: templates/ beside the features)"),
    "policies": ("DIR", "own policies, in place of ours of the same name (default: policies/ beside the features)"),
    "timeout-scale": ("FACTOR", "multiply every timeout (default: 1)"),
    "cucumber-messages": ("FILE", "write the run as Cucumber Messages (NDJSON) too"),
    "record": (
        "WHEN",
        f"keep recordings for explain and replay: {' or '.join(RECORDS)} (default: always below {FEW} scenarios)",
    ),
    "shard": ("N/OF", "run one part of the suite, for instance 2/5: the second of five machines"),
    "shard-durations": ("FILE", "durations.json of earlier runs, for shards of about equal duration (default: none)"),
    "out": (
        "DIR",
        "the folder for logs, dumps and reports (default: beside the JUnit file, else out/run, or out/run-N if in use)",
    ),
}
"""Name, placeholder of the value (none: a switch), purpose."""

READ_BY = {
    "kind-image": ("kind",),
    "kind-config": ("kind",),
    "binaries": ("embedded", "kind", "existing"),
    "scheduler-binaries": ("embedded", "kind", "existing"),
}
"""The kinds of clusters that read an option, if not all do; `auto` may become any of them."""

PATHS = {
    "schedspec_features": "folders and files whose .feature files are ours (default: the folder of the ini file)",
    "schedspec_steps": "Python files, and folders of them, with sentences of your own (default: none)",
}
"""Settings of the ini file alone: paths, relative to that file."""


def declare(parser: pytest.Parser) -> None:
    """Declare the options and their ini settings (`--kind-image` is `schedspec_kind_image`)."""
    group = parser.getgroup("schedspec", "schedspec: specifications of a scheduler on a live cluster")
    for flag, (value, text) in FLAGS.items():
        name = ini_name(flag)
        more: dict[str, Any] = {"metavar": value} if value else {"action": "store_true"}
        group.addoption(f"--{flag}", dest=name, default=NOT_GIVEN, help=text, **more)
        kind: Literal["string", "bool"] = "string" if value else "bool"
        parser.addini(name, f"--{flag}: {text}", type=kind, default=None)
    for name, text in PATHS.items():
        parser.addini(name, text, type="paths", default=[])


def ini_is_ours(config: pytest.Config) -> bool:
    """Whether the ini file sets an option of ours."""
    return any(name.startswith("schedspec_") for name in config._inicfg)


def ini_name(flag: str) -> str:
    """Return the name of an option in the ini file."""
    return "schedspec_" + flag.replace("-", "_")
