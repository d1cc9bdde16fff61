"""Read and check the options of a run, before anything starts. No cluster is contacted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from .. import distribution
from ..ci import sharding
from ..clusters import ClusterError, Settings
from ..clusters.protocol import ClusterKind
from ..schedulers import ADAPTERS, Adapter, AdapterError, Own, find
from . import values
from .flags import NOT_GIVEN, READ_BY, RECORDS, ini_name
from .run_options import Options


def read(config: pytest.Config) -> Options:
    """Return the options of this run.

    Raises:
        pytest.UsageError: An option is invalid; the text names the option, its value and what to do next.
    """
    kind_config, binaries, policy = (
        values.file(config, "kind-config"),
        values.folder(config, "binaries"),
        values.file(config, "policy"),
    )
    settings = _settings(config, kind_config, binaries)
    scale = values.text(config, "timeout-scale") or "1"
    adapter = _adapter(config, settings)
    if adapter.in_pods:
        settings = replace(settings, kind="kind")
    if settings.kind == "simulated" and (type(adapter) is not Own or adapter.gang_api != adapter.gang_apis[0]):
        todo = "leave --scheduler and --gang-api out, or name another cluster"
        raise values.refusal("cluster", "simulated", "runs our own scheduler only, with Volcano's PodGroups", todo)
    _refuse_unread(config, settings)
    shard, durations = _shard(config)
    out, named = _out(config)
    programs = values.folder(config, "scheduler-binaries")
    if programs is not None and (missing := adapter.missing_parts(programs)):
        do_next = f"put {', '.join(missing)} there, or leave the option out"
        raise values.refusal("scheduler-binaries", str(programs), f"has no {', '.join(missing)}", do_next)
    return Options(
        settings=settings,
        adapter=adapter,
        scheduler_binaries=programs,
        policy=policy,
        timeout_scale=_factor(scale),
        out=out,
        out_is_named=named,
        cucumber_messages=values.path(config, "cucumber-messages"),
        runs=_count(values.text(config, "runs") or str(adapter.runs)),
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


def _refuse_unread(config: pytest.Config, settings: Settings) -> None:
    """Refuse what the command line gives and this kind of cluster never reads. An ini file serves several kinds."""
    for flag, kinds in READ_BY.items():
        given = config.getoption(ini_name(flag))
        if given is not NOT_GIVEN and given and settings.kind not in ("auto", *kinds):
            do_next = f"leave --{flag} out, or add --cluster {kinds[0]}"
            raise values.refusal(flag, str(given), f"is read by no cluster of kind {settings.kind!r}", do_next)
    messages = values.path(config, "cucumber-messages")
    if messages is not None and messages.suffix != ".ndjson":
        todo = f"write {messages.with_suffix('.ndjson').name}: no other file of the project is overwritten by mistake"
        raise values.refusal("cucumber-messages", messages.name, "does not end with .ndjson", todo)


def _settings(config: pytest.Config, kind_config: Path | None, binaries: Path | None) -> Settings:
    """Return the settings of the cluster; the context of an existing cluster is checked now."""
    try:
        settings = Settings(
            kind=cast(ClusterKind, values.text(config, "cluster") or "auto"),  # Settings checks the name
            kube_context=values.text(config, "kube-context"),
            reuse=bool(values.value(config, "reuse-cluster")),
            keep=bool(values.value(config, "keep-cluster")),
            kind_image=values.text(config, "kind-image"),
            kind_config=kind_config,
            binaries=binaries,
            kubernetes_version=values.text(config, "kubernetes-version"),
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
    named = values.text(config, "adopt-nodes") or ""
    if named and settings.kind != "existing":
        what = f"is for an existing cluster, but the cluster of this run is {settings.kind!r}"
        raise values.refusal("adopt-nodes", named, what, "add --cluster existing, or leave --adopt-nodes out")
    return tuple(dict.fromkeys(filter(None, map(str.strip, named.split(",")))))


def _record(config: pytest.Config) -> str:
    named = values.text(config, "record") or ""
    if named and named not in RECORDS:
        raise values.refusal("record", named, "is not known", f"name one of: {', '.join(RECORDS)}")
    return named


def _pause(config: pytest.Config) -> bool:
    if not values.value(config, "pause-on-failure"):
        return False
    if hasattr(config, "workerinput") or config.getoption("numprocesses", None):
        raise pytest.UsageError("--pause-on-failure waits for Enter, which workers of xdist cannot read: leave -n out")
    return True


def _shard(config: pytest.Config) -> tuple[sharding.Shard | None, dict[str, float]]:
    named, file = values.text(config, "shard"), values.file(config, "shard-durations")
    try:
        shard = sharding.parse(named) if named else None
    except sharding.ShardError as problem:
        raise values.refusal("shard", str(named), *str(problem).split(": ", 1)) from None
    try:
        return shard, sharding.read_durations(file) if file else {}
    except sharding.ShardError as problem:
        todo = f"name a {sharding.DURATIONS_FILE} that a run has written"
        raise values.refusal("shard-durations", str(file), str(problem), todo) from None


def _adapter(config: pytest.Config, settings: Settings) -> Adapter:
    named = values.text(config, "scheduler") or Own.name
    images = tuple(filter(None, map(str.strip, (values.text(config, "scheduler-image") or "").split(","))))
    in_pods = bool(images) or bool(values.value(config, "scheduler-in-cluster"))
    if in_pods and settings.kind not in ("auto", "kind"):
        option = "--scheduler-image" if images else "--scheduler-in-cluster"
        raise pytest.UsageError(
            f"{option} needs a Kind cluster: a cluster of kind {settings.kind} cannot load its image"
        )
    try:
        adapter = _with_gang_api(config, find(named))
    except AdapterError as problem:
        do_next = f"name one of: {', '.join(ADAPTERS)}, MODULE:CLASS, or a program by path or on the PATH"
        raise values.refusal("scheduler", named, str(problem), do_next) from None
    if in_pods:
        try:
            adapter.run_in_pods(images)
        except AdapterError as problem:
            do_next = "leave --scheduler-in-cluster and --scheduler-image out, or name schedspec, kueue or volcano"
            raise values.refusal("scheduler", named, str(problem), do_next) from None
    return adapter


def _with_gang_api(config: pytest.Config, adapter: Adapter) -> Adapter:
    named = values.text(config, "gang-api")
    if named is not None:
        if named not in adapter.gang_apis:
            do_next = f"name one of: {', '.join(adapter.gang_apis)}"
            raise values.refusal("gang-api", named, f"is not a gang API of {adapter}", do_next)
        adapter.gang_api = named
    return adapter


def _own(config: pytest.Config, name: str) -> tuple[Path, ...]:
    """Return the user's folders `name`: the one that the option names, else those that belong to the features.

    Folders of the root belong to the features unless the setting `schedspec_features` names other folders: a repository
    may have `templates/` of its own there.
    """
    chosen = values.folder(config, name)
    features = [Path(path) for path in config.getini("schedspec_features")]
    home = values.home(config)
    beside = [folder for path in features for folder in (path, path.parent) if folder != home]
    found = [chosen] if chosen is not None else [folder / name for folder in (beside if features else [home])]
    if home / name not in found and chosen is None:
        _refuse_unread_files(home / name, name)
    return tuple(dict.fromkeys(folder for folder in found if folder.is_dir() and folder != distribution.folder(name)))


def _refuse_unread_files(folder: Path, name: str) -> None:
    """Refuse a file in a folder of the root that is not read although it is meant to replace one of ours."""
    templates = distribution.folder("templates")
    ours = templates if name == "templates" else templates / name
    for file in sorted(folder.glob("*.yaml.j2" if name == "templates" else "*.yaml")) if folder != ours else ():
        if (ours / file.name).is_file() and (file.suffix == ".j2" or "tiers:" in file.read_text("utf-8", "replace")):
            what = f"is not read, and {file.name} is a file of ours"
            do_next = f"name the folder (schedspec_{name} = {folder.name} in the ini file), or rename the file"
            raise values.refusal(name, str(file), what, do_next)


def _factor(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1000:
        raise values.refusal("timeout-scale", text, "is not a factor above 0", "name a number, for instance 2")
    return value


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 1000:
        raise values.refusal("runs", text, "is not a number above 0", "name a number, for instance 3")
    return int(text)


def _out(config: pytest.Config) -> tuple[Path, bool]:
    """Return the folder of the reports, and whether the user named it."""
    for flag, named in (("out", values.text(config, "out")), ("junitxml", config.getoption("xmlpath", None))):
        if not named:
            continue
        out = values.absolute(config, named)
        out = out.with_suffix("") if flag == "junitxml" else out
        if out.is_file() and flag == "out":
            raise values.refusal("out", named, "is a file", "name a folder for the results")
        if config.rootpath.is_relative_to(out) or any(out.glob("*.feature")):
            what = f"'{named}' would write its results into {out}, which has features"
            raise pytest.UsageError(f"{what}\n  where: --{flag}\n  do next: name another one")
        return out, True
    return values.absolute(config, "out/run"), False
