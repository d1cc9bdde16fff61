"""Adapters: one for each scheduler, and their shared parts. `find` returns the adapter that a user names.

An `Adapter` (`adapter`) describes a scheduler and returns the `Scheduler` to start: a process beside the cluster
(`process`, `…_process`, `…_processes`), pods that the run deploys (`in_cluster`, `from_images`), or an installed one
(`deployed`). `known` reads the differences that are known of a scheduler.
"""

from __future__ import annotations

import difflib
import importlib
import re

from .adapter import KUBERNETES, VOLCANO, Adapter, AdapterError, NoAdapter, Scheduler, Site, UnsuitableClusterError
from .kai import Kai
from .kube_scheduler import KubeScheduler
from .kueue import Kueue
from .own import Command, Own
from .volcano import Volcano
from .yunikorn import YuniKorn

__all__ = [
    "ADAPTERS",
    "KUBERNETES",
    "VOLCANO",
    "Adapter",
    "AdapterError",
    "Own",
    "Scheduler",
    "Site",
    "UnsuitableClusterError",
    "find",
]

ADAPTERS: dict[str, type[Adapter]] = {
    adapter.name: adapter for adapter in (Own, Volcano, Kueue, Kai, YuniKorn, KubeScheduler, NoAdapter)
}
"""The adapters by the names that `--scheduler` accepts."""

_VERSION = re.compile(r"v?\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?")
_MODULE_CLASS = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def find(text: str) -> Adapter:
    """Return the adapter that `--scheduler` names: NAME[+CONFIGURATION][@VERSION], MODULE:CLASS, or a command line.

    Raises:
        AdapterError: the text names no adapter.
    """
    if text in ADAPTERS:
        return ADAPTERS[text]()
    plain, at, version = text.partition("@")
    name, plus, configuration = plain.partition("+")
    if (at or plus) and name in ADAPTERS:
        adapter = ADAPTERS[name]
        _require_configuration(text, adapter, configuration if plus else None)
        return adapter(_version(text, adapter, version) if at else "", configuration)
    if _MODULE_CLASS.fullmatch(text):
        return _load(text)
    try:
        return Command(text)
    except AdapterError as problem:
        near = difflib.get_close_matches(text.lower(), ADAPTERS, n=1)
        hint = f" (is {near[0]!r} meant?)" if near else ""
        raise AdapterError(f"{problem}{hint}; schedulers are {', '.join(ADAPTERS)}") from None


def _require_configuration(text: str, adapter: type[Adapter], configuration: str | None) -> None:
    found = adapter.configurations()
    if configuration is not None and configuration not in found:
        near = difflib.get_close_matches(configuration, found, n=1)
        hint = f" (is {near[0]!r} meant?)" if near else ""
        raise AdapterError(
            f"{text!r}: {adapter.name} has no configuration {configuration!r}{hint}; there are: "
            f"{', '.join(found) or 'none'}"
        )


def _version(text: str, adapter: type[Adapter], version: str) -> str:
    """Return the version that a user names, as Go writes it: `v0.19.1`."""
    if not adapter.has_versions:
        having = ", ".join(name for name, found in ADAPTERS.items() if found.has_versions)
        raise AdapterError(f"{text!r}: {adapter.name} has no versions to choose from; {having} have")
    if not _VERSION.fullmatch(version):
        raise AdapterError(f"{text!r}: {version!r} is no version; write for instance {adapter.name}@v1.2.3")
    return f"v{version.removeprefix('v')}"


def _load(text: str) -> Adapter:
    module, _, name = text.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as problem:
        raise AdapterError(f"{text!r} cannot be imported: {problem}") from None
    if not (isinstance(found, type) and issubclass(found, Adapter) and found.name):
        raise AdapterError(
            f"{text!r} is not an adapter: it must be a subclass of {Adapter.__module__}.Adapter with a name"
        )
    return found()
