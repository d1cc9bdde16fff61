"""Read and check the options of a run, before anything starts.

Each option exists on the command line and in the ini file; all are in one group of `pytest --help`. This module does
not connect to a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import pytest

from . import distribution
from .api.capabilities import Capability
from .ci import sharding
from .clusters import ClusterError, Settings
from .clusters.programs.pinned import kubernetes_versions
from .clusters.protocol import ClusterKind
from .schedulers import ADAPTERS, Adapter, AdapterError, InCluster, Own, find

_NONE = object()
"""The default of each option on the command line: the option is not given, so the ini file applies."""

ALWAYS = "always"
RECORDS = (ALWAYS, "failed")
"""Which scenarios keep the recording of their scheduler."""
FEW = 20
"""A run of fewer scenarios keeps the recordings of all of them."""
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
    "templates": ("DIR", "own templates, found before ours of the same name (default: templates/ beside the features)"),
    "policies": ("DIR", "own policies, found before ours of the same name (default: policies/ beside the features)"),
    "timeout-scale": ("FACTOR", "stretches every timeout (default: 1)"),
    "cucumber-messages": ("FILE", "write the run as Cucumber Messages (NDJSON) too"),
    "record": (
        "WHEN",
        f"keep recordings for explain and replay: {' or '.join(RECORDS)} (default: always below {FEW} scenarios)",
    ),
    "shard": ("N/OF", "run one part of the suite, for instance 2/5: the second of five machines"),
    "shard-durations": ("FILE", "durations.json of earlier runs: shards then take about as long (default: none)"),
    "out": (
        "DIR",
        "where logs, dumps and reports go (default: beside the JUnit file, else out/run or the first that is free)",
    ),
}
"""Name, placeholder of the value (none: a switch), purpose."""

PATHS = {
    "schedspec_features": "folders and files whose .feature files are ours (default: the folder of the ini file)",
    "schedspec_steps": "Python files, and folders of them, with sentences of your own (default: none)",
}
"""Settings of the ini file alone: paths, relative to that file."""


@dataclass(frozen=True, slots=True)
class Options:
    """The checked options of a run."""

    settings: Settings
    adapter: Adapter
    """The scheduler under test."""
    scheduler_binaries: Path | None
    """A folder with its programs."""
    policy: Path | None
    timeout_scale: float
    out: Path
    out_is_named: bool = False
    """Whether the user named it, or a JUnit file beside which it stands."""
    runs: int = 1
    """The number of runs of each scenario."""
    cucumber_messages: Path | None = None
    templates: tuple[Path, ...] = ()
    """Folders of templates; the first that has a name wins, ours are in the last."""
    policies: tuple[Path, ...] = ()
    """Folders of the user's own policies, beside `policies/` of the folders of templates."""
    record: str = ""
    """`always` or `failed`; empty where the number of scenarios decides."""
    shard: sharding.Shard | None = None
    shard_durations: dict[str, float] = field(default_factory=dict)
    """Seconds by node id."""
    pause: bool = False
    """Wait for Enter when a scenario has failed."""
    adopt_nodes: tuple[str, ...] = ()
    """The nodes of an existing cluster that scenarios may use."""
    features: tuple[Path, ...] = ()
    """The files and folders that the setting `schedspec_features` names."""
    steps: tuple[Path, ...] = ()
    """Files and folders with sentences of the user's own."""

    def records(self, scenarios: int) -> bool:
        """Return True if passed scenarios keep their recordings in a run of this many scenarios."""
        return self.record == ALWAYS or (not self.record and scenarios < FEW)

    @property
    def kubernetes_version(self) -> str:
        """The minor version of Kubernetes if it is known before the cluster exists; else empty."""
        pinned = next(iter(kubernetes_versions())) if self.settings.kind == "embedded" else ""
        return self.settings.kubernetes_version or pinned

    def header(self) -> str:
        """Return the line on cluster, scheduler and options at the top of the run."""
        it = self.settings
        parts = [f"cluster {it.kind}", f"scheduler {self.adapter}"]
        usual = self.adapter.gang_api == self.adapter.gang_apis[0]
        parts += [] if usual else [f"gangs of {self.adapter.gang_api}"]
        parts += [f"its programs {self.scheduler_binaries}"] if self.scheduler_binaries else []
        parts += [f"context {it.kube_context}"] if it.kube_context else []
        parts += [f"its nodes {', '.join(self.adopt_nodes)}"] if self.adopt_nodes else []
        parts += ["reused"] if it.reuse else []
        parts += ["kept"] if it.keep else []
        parts += [f"node image {it.kind_image}"] if it.kind_image else []
        parts += [f"kind configuration {it.kind_config}"] if it.kind_config else []
        parts += [f"binaries {it.binaries}"] if it.binaries else []
        parts += [f"policy {self.policy}"] if self.policy else []
        parts += [f"each scenario {self.runs} times"] if self.runs > 1 else []
        parts += [f"shard {self.shard}"] if self.shard else []
        parts += [f"timeouts x {self.timeout_scale:g}"] if self.timeout_scale != 1 else []
        hides = "".join(f"\nschedspec: own {it}" for it in self._hidden())
        return f"schedspec: {', '.join(parts)}; reports in {_shown(self.out)}{hides}"

    def _hidden(self) -> Iterator[str]:
        """Yield the templates and policies of ours that the user's own files hide."""
        *own, ours = self.templates
        for what, folders, known in (
            ("templates", own, ours),
            ("policies", [*self.policies, *(folder / "policies" for folder in own)], ours / "policies"),
        ):
            names = sorted({it.name for folder in folders for it in folder.glob("*") if (known / it.name).is_file()})
            if names:
                yield f"{what} replace ours: {', '.join(names)}"


def declare(parser: pytest.Parser) -> None:
    """Declare the options and their ini settings (`--kind-image` is `schedspec_kind_image`)."""
    group = parser.getgroup("schedspec", "schedspec: specifications of a scheduler on a live cluster")
    for flag, (value, text) in FLAGS.items():
        name = ini_name(flag)
        more: dict[str, Any] = {"metavar": value} if value else {"action": "store_true"}
        group.addoption(f"--{flag}", dest=name, default=_NONE, help=text, **more)
        kind: Literal["string", "bool"] = "string" if value else "bool"
        parser.addini(name, f"--{flag}: {text}", type=kind, default=None)
    for name, text in PATHS.items():
        parser.addini(name, text, type="paths", default=[])


def ini_is_ours(config: pytest.Config) -> bool:
    """Whether the ini file sets an option of ours."""
    return any(name.startswith("schedspec_") for name in config._inicfg)


def read(config: pytest.Config) -> Options:
    """Return the options of this run.

    Raises:
        pytest.UsageError: An option is invalid; the text names the option, its value and what to do next.
    """
    kind_config, binaries, policy = _file(config, "kind-config"), _folder(config, "binaries"), _file(config, "policy")
    try:
        settings = Settings(
            kind=cast(ClusterKind, _text(config, "cluster") or "auto"),  # it checks the name itself
            kube_context=_text(config, "kube-context"),
            reuse=bool(_value(config, "reuse-cluster")),
            keep=bool(_value(config, "keep-cluster")),
            kind_image=_text(config, "kind-image"),
            kind_config=kind_config,
            binaries=binaries,
            kubernetes_version=_text(config, "kubernetes-version"),
        )
        if settings.kind == "existing" and settings.kube_context:
            from .clusters import existing  # noqa: PLC0415 - only for this option

            existing.only_context(existing.source(settings.kubeconfig), settings.kube_context)
    except ClusterError as problem:
        raise pytest.UsageError(str(problem)) from None
    scale = _text(config, "timeout-scale") or "1"
    adapter = _adapter(config, settings)
    if settings.kind == "simulated":
        if type(adapter) is not Own or adapter.gang_api != adapter.gang_apis[0]:
            todo = "leave --scheduler and --gang-api out, or name another cluster"
            raise _refusal("cluster", "simulated", "runs our own scheduler only, with Volcano's PodGroups", todo)
        adapter.lacks_here = {Capability.VALIDATION: "a simulated cluster checks no schema"}
    shard, durations = _shard(config)
    out, named = _out(config)
    programs = _folder(config, "scheduler-binaries")
    if programs is not None and (missing := adapter.missing_programs(programs)):
        do_next = f"put {', '.join(adapter.programs)} there, or leave the option out"
        raise _refusal("scheduler-binaries", str(programs), f"has no program {', '.join(missing)}", do_next)
    return Options(
        settings=settings,
        adapter=adapter,
        scheduler_binaries=programs,
        policy=policy,
        timeout_scale=_factor(scale),
        out=out,
        out_is_named=named,
        cucumber_messages=_path(config, "cucumber-messages"),
        runs=_count(_text(config, "runs") or str(adapter.runs)),
        templates=(*_own(config, "templates"), distribution.folder("templates")),
        policies=_own(config, "policies"),
        record=_record(config),
        shard=shard,
        shard_durations=durations,
        pause=_pause(config),
        adopt_nodes=_adopt_nodes(config, settings),
        features=_paths(config, "schedspec_features"),
        steps=_paths(config, "schedspec_steps"),
    )


def _paths(config: pytest.Config, name: str) -> tuple[Path, ...]:
    found = tuple(Path(it) for it in config.getini(name))
    for path in found:
        if not path.exists():
            raise pytest.UsageError(
                f"there is no {path}\n  where: {name} in {config.inipath}\n  do next: name a path that exists"
            )
    return found


def _adopt_nodes(config: pytest.Config, settings: Settings) -> tuple[str, ...]:
    named = _text(config, "adopt-nodes") or ""
    if named and settings.kind != "existing":
        what = f"is for an existing cluster, but the cluster of this run is {settings.kind!r}"
        raise _refusal("adopt-nodes", named, what, "add --cluster existing, or leave --adopt-nodes out")
    return tuple(dict.fromkeys(filter(None, map(str.strip, named.split(",")))))


def _record(config: pytest.Config) -> str:
    named = _text(config, "record") or ""
    if named and named not in RECORDS:
        raise _refusal("record", named, "is not known", f"name one of: {', '.join(RECORDS)}")
    return named


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
                f"--scheduler-in-cluster needs a Kind cluster: a cluster of kind {settings.kind} cannot load its image"
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
            raise _refusal("gang-api", named, f"is no gang API of {adapter}", do_next)
        adapter.gang_api = named
    return adapter


def _own(config: pytest.Config, name: str) -> tuple[Path, ...]:
    """Return the user's folders of that name: the named one, else those that belong to the features.

    Folders of the root belong to the features unless the setting `schedspec_features` names other folders: a repository
    may have `templates/` of its own there.
    """
    chosen = _folder(config, name)
    features = [Path(it) for it in config.getini("schedspec_features")]
    beside = [folder for it in features for folder in (it, it.parent) if folder != config.rootpath]
    found = [chosen] if chosen is not None else [it / name for it in (beside if features else [config.rootpath])]
    return tuple(dict.fromkeys(it for it in found if it.is_dir() and it != distribution.folder(name)))


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
    """Return the folder of the reports, and whether the user named it."""
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
    """Return a path: one of the command line is relative to the working directory, one of the ini file to that file."""
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
    """Return the name of an option in the ini file."""
    return "schedspec_" + flag.replace("-", "_")


def _refusal(flag: str, value: str, what: str, do_next: str) -> pytest.UsageError:
    problem = what if repr(value) in what else f"{value!r} {what}"
    return pytest.UsageError(f"{problem}\n  where: --{flag} ({ini_name(flag)} in the ini file)\n  do next: {do_next}")


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
