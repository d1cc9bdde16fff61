"""The options of a run: each on the command line and in the ini file, all in one group, all checked before anything
starts. Nothing here talks to a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import pytest

from . import distribution
from .ci import sharding
from .clusters import ClusterError, Settings
from .clusters.programs.pinned import kubernetes_versions
from .clusters.protocol import ClusterKind
from .schedulers import ADAPTERS, Adapter, AdapterError, InCluster, Own, find

_NONE = object()
"""Not given on the command line; then the ini file is asked."""

FLAGS: dict[str, tuple[str, str]] = {
    "cluster": (
        "KIND",
        "auto, embedded, kind or existing (default: auto: kind where Docker and a node image are, else embedded)",
    ),
    "kube-context": ("NAME", "the context of an existing cluster; never the current one by accident"),
    "adopt-nodes": ("NAMES", "an existing cluster's own nodes that scenarios may use: NAME,NAME (put back at the end)"),
    "reuse-cluster": ("", "take a running cluster of the same configuration and leave it running"),
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
        "how gangs are written where the scheduler takes both: volcano, or kubernetes (PodGroups of scheduling.k8s.io)",
    ),
    "scheduler-binaries": ("DIR", "a folder with the programs of the scheduler"),
    "scheduler-in-cluster": ("", "run the scheduler as deploy/ has it, in pods of a Kind cluster, not as a process"),
    "policy": ("FILE", "the policy of scenarios that name none (default: templates/policies/default.yaml)"),
    "runs": ("N", "how often each scenario is run (default: 1; 3 where a scheduler's order is not deterministic)"),
    "pause-on-failure": ("", "when a scenario fails, leave everything as it is until Enter is pressed"),
    "templates": ("DIR", "own templates, found before ours of the same name (default: templates/ of the project)"),
    "policies": ("DIR", "own policies, found before ours of the same name (default: policies/ of the project)"),
    "timeout-scale": ("FACTOR", "stretches every timeout (default: 1)"),
    "cucumber-messages": ("FILE", "write the run as Cucumber Messages (NDJSON) too"),
    "shard": ("N/OF", "run one part of the suite, for instance 2/5: the second of five machines"),
    "shard-durations": ("FILE", "durations.json of earlier runs: shards then take about as long (default: none)"),
    "out": (
        "DIR",
        "where logs, dumps and reports go (default: beside the JUnit file, else out/run or the first that is free)",
    ),
}
"""Name, placeholder of the value (none: a switch), what it is for."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for, checked."""

    settings: Settings
    adapter: Adapter
    """Who schedules."""
    scheduler_binaries: Path | None
    """A folder with its programs."""
    policy: Path | None
    timeout_scale: float
    out: Path
    out_is_named: bool = False
    """Whether the user named it, or a JUnit file beside which it stands."""
    runs: int = 1
    """How often each scenario is run."""
    cucumber_messages: Path | None = None
    templates: tuple[Path, ...] = ()
    """Folders of templates; the first that has a name wins, ours are in the last."""
    policies: tuple[Path, ...] = ()
    """Folders of the user's own policies, beside `policies/` of the folders of templates."""
    shard: sharding.Shard | None = None
    shard_durations: dict[str, float] = field(default_factory=dict)
    """Seconds by node id."""
    pause: bool = False
    """Wait for Enter when a scenario has failed."""
    adopt_nodes: tuple[str, ...] = ()
    """Of an existing cluster the nodes that scenarios may use."""

    @property
    def kubernetes_version(self) -> str:
        """The minor version of Kubernetes, as far as it is known before there is a cluster; else empty."""
        pinned = next(iter(kubernetes_versions())) if self.settings.kind == "embedded" else ""
        return self.settings.kubernetes_version or pinned

    def header(self) -> str:
        """One line for the top of the run."""
        it = self.settings
        said = [f"cluster {it.kind}", f"scheduler {self.adapter}"]
        usual = self.adapter.gang_api == self.adapter.gang_apis[0]
        said += [] if usual else [f"gangs of {self.adapter.gang_api}"]
        said += [f"its programs {self.scheduler_binaries}"] if self.scheduler_binaries else []
        said += [f"context {it.kube_context}"] if it.kube_context else []
        said += [f"its nodes {', '.join(self.adopt_nodes)}"] if self.adopt_nodes else []
        said += ["reused"] if it.reuse else []
        said += ["kept"] if it.keep else []
        said += [f"node image {it.kind_image}"] if it.kind_image else []
        said += [f"kind configuration {it.kind_config}"] if it.kind_config else []
        said += [f"binaries {it.binaries}"] if it.binaries else []
        said += [f"policy {self.policy}"] if self.policy else []
        said += [f"each scenario {self.runs} times"] if self.runs > 1 else []
        said += [f"shard {self.shard}"] if self.shard else []
        said += [f"timeouts x {self.timeout_scale:g}"] if self.timeout_scale != 1 else []
        hides = "".join(f"\nschedspec: own {it}" for it in self._hidden())
        return f"schedspec: {', '.join(said)}; reports in {_shown(self.out)}{hides}"

    def _hidden(self) -> Iterator[str]:
        """What the user's own files hide of ours, said once a run."""
        *own, ours = self.templates
        for what, folders, known in (
            ("templates", own, ours),
            ("policies", [*self.policies, *(folder / "policies" for folder in own)], ours / "policies"),
        ):
            names = sorted({it.name for folder in folders for it in folder.glob("*") if (known / it.name).is_file()})
            if names:
                yield f"{what} in the place of ours: {', '.join(names)}"


def declare(parser: pytest.Parser) -> None:
    """The options and their ini twins (`--kind-image` is `schedspec_kind_image`)."""
    group = parser.getgroup("schedspec", "schedspec: specifications of a scheduler on a live cluster")
    for flag, (value, text) in FLAGS.items():
        name = ini_name(flag)
        more: dict[str, Any] = {"metavar": value} if value else {"action": "store_true"}
        group.addoption(f"--{flag}", dest=name, default=_NONE, help=text, **more)
        kind: Literal["string", "bool"] = "string" if value else "bool"
        parser.addini(name, f"--{flag}: {text}", type=kind, default=None)


def read(config: pytest.Config) -> Options:
    """The options of this run. Raises pytest.UsageError, which says what, where and what to do."""
    kind_config, binaries, policy = _file(config, "kind-config"), _folder(config, "binaries"), _file(config, "policy")
    try:
        settings = Settings(
            kind=cast(ClusterKind, _text(config, "cluster") or "auto"),  # which checks the name itself
            kube_context=_text(config, "kube-context"),
            reuse=bool(_value(config, "reuse-cluster")),
            keep=bool(_value(config, "keep-cluster")),
            kind_image=_text(config, "kind-image"),
            kind_config=kind_config,
            binaries=binaries,
            kubernetes_version=_text(config, "kubernetes-version"),
        )
        if settings.kind == "existing" and settings.kube_context:
            from .clusters import existing  # noqa: PLC0415 - only where it is asked for

            existing.only_context(existing.source(settings.kubeconfig), settings.kube_context)
    except ClusterError as problem:
        raise pytest.UsageError(str(problem)) from None
    scale = _text(config, "timeout-scale") or "1"
    adapter = _adapter(config, settings)
    shard, durations = _shard(config)
    out, named = _out(config)
    return Options(
        settings=settings,
        adapter=adapter,
        scheduler_binaries=_folder(config, "scheduler-binaries"),
        policy=policy,
        timeout_scale=_factor(scale),
        out=out,
        out_is_named=named,
        cucumber_messages=_path(config, "cucumber-messages"),
        runs=_count(_text(config, "runs") or str(adapter.runs)),
        templates=(*_own(config, "templates"), distribution.folder("templates")),
        policies=_own(config, "policies"),
        shard=shard,
        shard_durations=durations,
        pause=_pause(config),
        adopt_nodes=_adopt_nodes(config, settings),
    )


def _adopt_nodes(config: pytest.Config, settings: Settings) -> tuple[str, ...]:
    named = _text(config, "adopt-nodes") or ""
    if named and settings.kind != "existing":
        what = f"is for an existing cluster, and this run is to use {settings.kind!r}"
        raise _refusal("adopt-nodes", named, what, "add --cluster existing, or leave --adopt-nodes out")
    return tuple(dict.fromkeys(filter(None, map(str.strip, named.split(",")))))


def _pause(config: pytest.Config) -> bool:
    if not _value(config, "pause-on-failure"):
        return False
    if hasattr(config, "workerinput") or config.getoption("numprocesses", None):
        raise pytest.UsageError("--pause-on-failure needs somebody to press Enter: leave -n out")
    return True


def _shard(config: pytest.Config) -> tuple[sharding.Shard | None, dict[str, float]]:
    named, file = _text(config, "shard"), _file(config, "shard-durations")
    try:
        shard = sharding.parse(named) if named else None
    except sharding.ShardError as problem:
        raise _refusal("shard", str(named), *str(problem).split(": ", 1)) from None
    try:
        return shard, sharding.read_durations(file) if file else {}
    except sharding.ShardError as problem:
        todo = f"name a {sharding.DURATIONS_FILE} that a run has written"
        raise _refusal("shard-durations", str(file), str(problem), todo) from None


def _adapter(config: pytest.Config, settings: Settings) -> Adapter:
    named = _text(config, "scheduler") or Own.name
    if _value(config, "scheduler-in-cluster"):
        if named != Own.name:
            raise pytest.UsageError("--scheduler-in-cluster needs our own scheduler: leave --scheduler out")
        if settings.kind not in ("auto", "kind"):
            raise pytest.UsageError(
                f"--scheduler-in-cluster needs a Kind cluster: no image can be brought into one of kind {settings.kind}"
            )
        return _with_gang_api(config, InCluster())
    try:
        return _with_gang_api(config, find(named))
    except AdapterError as problem:
        do_next = f"name one of: {', '.join(ADAPTERS)}, MODULE:CLASS, or a program by path or on the PATH"
        raise _refusal("scheduler", named, str(problem), do_next) from None


def _with_gang_api(config: pytest.Config, adapter: Adapter) -> Adapter:
    named = _text(config, "gang-api")
    if named is not None:
        if named not in adapter.gang_apis:
            do_next = f"name one of: {', '.join(adapter.gang_apis)}"
            raise _refusal("gang-api", named, f"is no API that {adapter} takes gangs in", do_next)
        adapter.gang_api = named
    return adapter


def _own(config: pytest.Config, name: str) -> tuple[Path, ...]:
    """The user's folder of that name: the one that is named, else the project's if it has one."""
    found = _folder(config, name) or config.rootpath / name
    return (found,) if found.is_dir() and found != distribution.folder(name) else ()


def _factor(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1000:
        raise _refusal("timeout-scale", text, "is not a factor above 0", "name a number, for instance 2")
    return value


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 1000:
        raise _refusal("runs", text, "is not a number above 0", "name a number, for instance 3")
    return int(text)


def _out(config: pytest.Config) -> tuple[Path, bool]:
    """Where reports go, and whether that was named."""
    named = _text(config, "out")
    if named:
        return _absolute(config, named), True
    junit = config.getoption("xmlpath", None)
    if junit:
        return _absolute(config, junit).with_suffix(""), True
    return config.rootpath / "out" / "run", False


def _file(config: pytest.Config, flag: str) -> Path | None:
    path = _path(config, flag)
    if path is not None and not path.is_file():
        raise _refusal(flag, str(path), "is not a file", "name a file that exists")
    return path


def _folder(config: pytest.Config, flag: str) -> Path | None:
    path = _path(config, flag)
    if path is not None and not path.is_dir():
        raise _refusal(flag, str(path), "is not a folder", "name a folder that exists")
    return path


def _path(config: pytest.Config, flag: str) -> Path | None:
    """A path of the command line is relative to the working directory, one of the ini file to that file."""
    named = _text(config, flag)
    if not named:
        return None
    given = config.getoption(ini_name(flag)) is not _NONE
    return _absolute(config, named) if given else (config.rootpath / named).absolute()


def _absolute(config: pytest.Config, path: str) -> Path:
    return (config.invocation_params.dir / path).absolute()


def _text(config: pytest.Config, flag: str) -> str | None:
    value = _value(config, flag)
    return str(value).strip() or None if value is not None else None


def _value(config: pytest.Config, flag: str) -> Any:
    given = config.getoption(ini_name(flag))
    return config.getini(ini_name(flag)) if given is _NONE or given is False else given


def ini_name(flag: str) -> str:
    """The name of an option in the ini file."""
    return "schedspec_" + flag.replace("-", "_")


def _refusal(flag: str, value: str, what: str, do_next: str) -> pytest.UsageError:
    said = what if repr(value) in what else f"{value!r} {what}"
    return pytest.UsageError(f"{said}\n  where: --{flag} ({ini_name(flag)} in the ini file)\n  do next: {do_next}")


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
