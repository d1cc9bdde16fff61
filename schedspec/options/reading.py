"""Read and check the options of a run, before anything starts. No cluster is contacted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from .. import distribution
from ..ci import sharding
from ..clusters import ClusterError, Settings
from ..clusters.programs.pinned import kubernetes_versions
from ..clusters.protocol import ClusterKind
from ..schedulers import ADAPTERS, Adapter, AdapterError, Own, find
from ..terminal import short_path
from .flags import ALWAYS, FEW, NOT_GIVEN, READ_BY, RECORDS, ini_name
from .misnamed import misnamed


@dataclass(frozen=True, slots=True)
class Options:
    """The checked options of a run."""

    settings: Settings
    adapter: Adapter
    """The scheduler under test."""
    scheduler_binaries: Path | None
    """A folder with the programs of the scheduler."""
    policy: Path | None
    timeout_scale: float
    out: Path
    out_is_named: bool = False
    """True if the user set `--out` or `--junitxml`."""
    runs: int = 1
    """The number of runs of each scenario."""
    cucumber_messages: Path | None = None
    templates: tuple[Path, ...] = ()
    """Folders of templates; the first folder that has a template wins, and ours is the last."""
    policies: tuple[Path, ...] = ()
    """Folders of the user's own policies, beside `policies/` of the folders of templates."""
    unread: tuple[Path, ...] = ()
    """Templates in a folder of the root that is not read, although they are named like ours."""
    record: str = ""
    """`always` or `failed`; empty if the number of scenarios decides."""
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
        settings = self.settings
        parts = [f"cluster {settings.kind}", f"scheduler {self.adapter}"]
        usual = self.adapter.gang_api == self.adapter.gang_apis[0]
        parts += [] if usual else [f"gang API {self.adapter.gang_api}"]
        parts += [f"scheduler programs {self.scheduler_binaries}"] if self.scheduler_binaries else []
        parts += [f"context {settings.kube_context}"] if settings.kube_context else []
        parts += [f"adopted nodes {', '.join(self.adopt_nodes)}"] if self.adopt_nodes else []
        parts += ["reused"] if settings.reuse else []
        parts += ["kept"] if settings.keep else []
        parts += [f"node image {settings.kind_image}"] if settings.kind_image else []
        parts += [f"kind configuration {settings.kind_config}"] if settings.kind_config else []
        parts += [f"binaries {settings.binaries}"] if settings.binaries else []
        parts += [f"policy {self.policy}"] if self.policy else []
        parts += [f"each scenario {self.runs} times"] if self.runs > 1 else []
        parts += [f"shard {self.shard}"] if self.shard else []
        parts += [f"timeouts x {self.timeout_scale:g}"] if self.timeout_scale != 1 else []
        replaced = "".join(f"\nschedspec: own {file}" for file in self._replaced())
        if self.unread:
            names, folder = ", ".join(file.name for file in self.unread), self.unread[0].parent.name
            replaced += f"\nschedspec: not read: {folder}/{names} (name the folder: schedspec_templates = {folder})"
        replaced += "".join(f"\nschedspec: no run reads {text}" for text in self.misnamed)
        return f"schedspec: {', '.join(parts)}; reports in {short_path(self.out)}{replaced}"

    @property
    def misnamed(self) -> list[str]:
        """The user's files that no run reads, each with the name that is read."""
        return [*misnamed(self.templates[:-1], self.policies)]

    def _replaced(self) -> Iterator[str]:
        """Yield the templates and policies of ours that the user's own files replace."""
        *own, ours = self.templates
        for what, folders, known in (
            ("templates", own, ours),
            ("policies", [*self.policies, *(folder / "policies" for folder in own)], ours / "policies"),
        ):
            names = sorted(
                {file.name for folder in folders for file in folder.glob("*") if (known / file.name).is_file()}
            )
            if names:
                yield f"{what} replace ours: {', '.join(names)}"


def value(config: pytest.Config, flag: str) -> Any:
    """Return the value of the command line; if it has none (for a switch: False), the value of the ini file."""
    given = config.getoption(ini_name(flag))
    return config.getini(ini_name(flag)) if given is NOT_GIVEN or given is False else given


def text(config: pytest.Config, flag: str) -> str | None:
    """Return the value as a text, or None if it is empty or not given."""
    given = value(config, flag)
    return str(given).strip() or None if given is not None else None


def path(config: pytest.Config, flag: str) -> Path | None:
    """Return a path: relative to the working directory on the command line, to the ini file's folder in that file."""
    named = text(config, flag)
    if not named:
        return None
    given = config.getoption(ini_name(flag)) is not NOT_GIVEN
    return absolute(config, named) if given else (home(config) / named).absolute()


def home(config: pytest.Config) -> Path:
    """Return the folder of the ini file, else the root of the run."""
    return config.inipath.parent if config.inipath is not None else config.rootpath


def absolute(config: pytest.Config, relative: str) -> Path:
    """Return the absolute path of a path on the command line."""
    return (config.invocation_params.dir / relative).absolute()


def file(config: pytest.Config, flag: str) -> Path | None:
    """Return the path of an existing file. Raises pytest.UsageError."""
    named = path(config, flag)
    if named is not None and not named.is_file():
        raise refusal(flag, str(named), "is not a file", "name a file that exists")
    return named


def folder(config: pytest.Config, flag: str) -> Path | None:
    """Return the path of an existing folder. Raises pytest.UsageError."""
    named = path(config, flag)
    if named is not None and not named.is_dir():
        raise refusal(flag, str(named), "is not a folder", "name a folder that exists")
    return named


def refusal(flag: str, given: str, what: str, do_next: str) -> pytest.UsageError:
    """Return the error about an invalid value: what is wrong, where, and what to do next."""
    problem = what if repr(given) in what else f"{given!r} {what}"
    return pytest.UsageError(f"{problem}\n  where: --{flag} ({ini_name(flag)} in the ini file)\n  do next: {do_next}")


def read(config: pytest.Config) -> Options:
    """Return the options of this run.

    Raises:
        pytest.UsageError: An option is invalid; the text names the option, its value and what to do next.
    """
    kind_config, binaries, policy = (
        file(config, "kind-config"),
        folder(config, "binaries"),
        file(config, "policy"),
    )
    settings = _settings(config, kind_config, binaries)
    scale = text(config, "timeout-scale") or "1"
    adapter = _adapter(config, settings)
    if adapter.in_pods:
        settings = replace(settings, kind="kind")
    if settings.kind == "simulated" and (type(adapter) is not Own or adapter.gang_api != adapter.gang_apis[0]):
        todo = "leave --scheduler and --gang-api out, or name another cluster"
        raise refusal("cluster", "simulated", "runs our own scheduler only, with Volcano's PodGroups", todo)
    _refuse_unread(config, settings)
    shard, durations = _shard(config)
    out, named = _out(config)
    programs = folder(config, "scheduler-binaries")
    if programs is not None and (missing := adapter.missing_parts(programs)):
        do_next = f"put {', '.join(missing)} there, or leave the option out"
        raise refusal("scheduler-binaries", str(programs), f"has no {', '.join(missing)}", do_next)
    return Options(
        settings=settings,
        adapter=adapter,
        scheduler_binaries=programs,
        policy=policy,
        timeout_scale=_factor(scale),
        out=out,
        out_is_named=named,
        cucumber_messages=path(config, "cucumber-messages"),
        runs=_count(text(config, "runs") or str(adapter.runs)),
        templates=(*_own(config, "templates"), distribution.folder("templates")),
        policies=_own(config, "policies"),
        unread=_unread_templates(config),
        record=_record(config),
        shard=shard,
        shard_durations=durations,
        pause=_pause(config),
        adopt_nodes=_adopt_nodes(config, settings),
        features=_paths(config, "schedspec_features"),
        steps=_paths(config, "schedspec_steps"),
    )


def _refuse_unread(config: pytest.Config, settings: Settings) -> None:
    """Refuse what the command line gives and this kind of cluster never reads. An ini file serves several kinds."""
    for flag, kinds in READ_BY.items():
        given = config.getoption(ini_name(flag))
        if given is not NOT_GIVEN and given and settings.kind not in ("auto", *kinds):
            do_next = f"leave --{flag} out, or add --cluster {kinds[0]}"
            raise refusal(flag, str(given), f"is read by no cluster of kind {settings.kind!r}", do_next)
    messages = path(config, "cucumber-messages")
    if messages is not None and messages.suffix != ".ndjson":
        todo = f"write {messages.with_suffix('.ndjson').name}: no other file of the project is overwritten by mistake"
        raise refusal("cucumber-messages", messages.name, "does not end with .ndjson", todo)


def _settings(config: pytest.Config, kind_config: Path | None, binaries: Path | None) -> Settings:
    """Return the settings of the cluster; the context of an existing cluster is checked now."""
    try:
        settings = Settings(
            kind=cast(ClusterKind, text(config, "cluster") or "auto"),  # Settings checks the name
            kube_context=text(config, "kube-context"),
            reuse=bool(value(config, "reuse-cluster")),
            keep=bool(value(config, "keep-cluster")),
            kind_image=text(config, "kind-image"),
            kind_config=kind_config,
            binaries=binaries,
            kubernetes_version=text(config, "kubernetes-version"),
        )
        if settings.kind == "existing" and settings.kube_context:
            from ..clusters import existing  # noqa: PLC0415 - only for this option

            existing.only_context(existing.source(settings.kubeconfig), settings.kube_context)
    except ClusterError as problem:
        raise pytest.UsageError(str(problem)) from None
    return settings


def _paths(config: pytest.Config, name: str) -> tuple[Path, ...]:
    found = tuple(Path(path) for path in config.getini(name))
    for path in found:
        if not path.exists():
            raise pytest.UsageError(
                f"there is no {path}\n  where: {name} in {config.inipath}\n  do next: name a path that exists"
            )
    return found


def _adopt_nodes(config: pytest.Config, settings: Settings) -> tuple[str, ...]:
    named = text(config, "adopt-nodes") or ""
    if named and settings.kind != "existing":
        what = f"is for an existing cluster, but the cluster of this run is {settings.kind!r}"
        raise refusal("adopt-nodes", named, what, "add --cluster existing, or leave --adopt-nodes out")
    return tuple(dict.fromkeys(filter(None, map(str.strip, named.split(",")))))


def _record(config: pytest.Config) -> str:
    named = text(config, "record") or ""
    if named and named not in RECORDS:
        raise refusal("record", named, "is not known", f"name one of: {', '.join(RECORDS)}")
    return named


def _pause(config: pytest.Config) -> bool:
    if not value(config, "pause-on-failure"):
        return False
    if hasattr(config, "workerinput") or config.getoption("numprocesses", None):
        raise pytest.UsageError("--pause-on-failure waits for Enter, which workers of xdist cannot read: leave -n out")
    return True


def _shard(config: pytest.Config) -> tuple[sharding.Shard | None, dict[str, float]]:
    named, durations = text(config, "shard"), file(config, "shard-durations")
    try:
        shard = sharding.parse(named) if named else None
    except sharding.ShardError as problem:
        raise refusal("shard", str(named), *str(problem).split(": ", 1)) from None
    try:
        return shard, sharding.read_durations(durations) if durations else {}
    except sharding.ShardError as problem:
        todo = f"name a {sharding.DURATIONS_FILE} that a run has written"
        raise refusal("shard-durations", str(durations), str(problem), todo) from None


def _adapter(config: pytest.Config, settings: Settings) -> Adapter:
    named = text(config, "scheduler") or Own.name
    images = tuple(filter(None, map(str.strip, (text(config, "scheduler-image") or "").split(","))))
    in_pods = bool(images) or bool(value(config, "scheduler-in-cluster"))
    if in_pods and settings.kind not in ("auto", "kind"):
        option = "--scheduler-image" if images else "--scheduler-in-cluster"
        raise pytest.UsageError(
            f"{option} needs a Kind cluster: a cluster of kind {settings.kind} cannot load its image"
        )
    try:
        adapter = _with_gang_api(config, find(named))
    except AdapterError as problem:
        do_next = f"name one of: {', '.join(ADAPTERS)}, MODULE:CLASS, or a program by path or on the PATH"
        raise refusal("scheduler", named, str(problem), do_next) from None
    if in_pods:
        try:
            adapter.run_in_pods(images)
        except AdapterError as problem:
            do_next = "leave --scheduler-in-cluster and --scheduler-image out, or name schedspec, kueue or volcano"
            raise refusal("scheduler", named, str(problem), do_next) from None
    return adapter


def _with_gang_api(config: pytest.Config, adapter: Adapter) -> Adapter:
    named = text(config, "gang-api")
    if named is not None:
        if named not in adapter.gang_apis:
            do_next = f"name one of: {', '.join(adapter.gang_apis)}"
            raise refusal("gang-api", named, f"is not a gang API of {adapter}", do_next)
        adapter.gang_api = named
    return adapter


def _own(config: pytest.Config, name: str) -> tuple[Path, ...]:
    """Return the user's folders `name`: the one that the option names, else those that belong to the features.

    Folders of the root belong to the features unless the setting `schedspec_features` names other folders: a repository
    may have `templates/` of its own there.
    """
    chosen = folder(config, name)
    features = [Path(path) for path in config.getini("schedspec_features")]
    root = home(config)
    beside = [folder for path in features for folder in (path, path.parent) if folder != root]
    found = [chosen] if chosen is not None else [folder / name for folder in (beside if features else [root])]
    if name == "policies" and root / name not in found and chosen is None:
        _refuse_unread_policies(root / name)
    return tuple(dict.fromkeys(folder for folder in found if folder.is_dir() and folder != distribution.folder(name)))


def _refuse_unread_policies(folder: Path) -> None:
    """Refuse a policy in a folder of the root that is not read although it is meant to replace one of ours."""
    for file in _like_ours(folder, distribution.folder("templates") / folder.name):
        if "tiers:" in file.read_text("utf-8", "replace"):
            what = f"is not read, and {file.name} is a file of ours"
            do_next = "name the folder (schedspec_policies = policies in the ini file), or rename the file"
            raise refusal(folder.name, str(file), what, do_next)


def _unread_templates(config: pytest.Config) -> tuple[Path, ...]:
    """Return the templates of the root that are not read. They may be another program's, and so are not refused."""
    folder = home(config) / "templates"
    return () if folder in _own(config, folder.name) else _like_ours(folder, distribution.folder(folder.name))


def _like_ours(folder: Path, ours: Path) -> tuple[Path, ...]:
    """Return the files of a folder that are named like ours."""
    return tuple(file for file in sorted(folder.glob("*")) if (ours / file.name).is_file()) if folder != ours else ()


def _factor(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1000:
        raise refusal("timeout-scale", text, "is not a factor above 0", "name a number, for instance 2")
    return value


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 1000:
        raise refusal("runs", text, "is not a number above 0", "name a number, for instance 3")
    return int(text)


def _out(config: pytest.Config) -> tuple[Path, bool]:
    """Return the folder of the reports, and whether the user named it."""
    for flag, named in (("out", text(config, "out")), ("junitxml", config.getoption("xmlpath", None))):
        if not named:
            continue
        out = absolute(config, named)
        if flag == "junitxml" and out.is_file() and out.read_bytes()[:5] not in (b"", b"<?xml"):
            raise refusal(flag, named, "is a file of another kind, which the report would replace", "write NAME.xml")
        out = out.with_suffix("") if flag == "junitxml" else out
        if out.is_file() and flag == "out":
            raise refusal("out", named, "is a file", "name a folder for the results")
        if config.rootpath.is_relative_to(out) or any(out.glob("*.feature")):
            what = f"'{named}' would write its results into {out}, which has features"
            raise pytest.UsageError(f"{what}\n  where: --{flag}\n  do next: name another one")
        return out, True
    return absolute(config, "out/run"), False
