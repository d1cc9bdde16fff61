"""Use a cluster that the user provides: one context of a kubeconfig, named explicitly.

Programs receive a new kubeconfig with only this context, so that none of them can act on another cluster by accident.
Only this file is created and removed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from .protocol import (
    SCENARIO,
    BinaryError,
    ClusterError,
    ClusterFacts,
    ClusterKind,
    Progress,
    Served,
    Settings,
    SettingsError,
    UnsupportedError,
    nobody_waits,
)

if TYPE_CHECKING:
    from .kwok import Kwok

_ANSWER_SECONDS = 10


class ExistingCluster:
    kind: ClusterKind = "existing"
    simulated = False

    def __init__(self, settings: Settings) -> None:
        if not settings.kube_context:
            raise SettingsError("an existing cluster needs the name of its context", "--kube-context", "name it")
        self._settings = settings
        self.name = self.context = settings.kube_context
        self._source = source(settings.kubeconfig)
        self._home: Path | None = None
        self._version = ""
        self._kwok: Kwok | None = None
        self._kwok_fact = "KWOK for nodes of scenarios"

    @property
    def kubeconfig(self) -> Path:
        if self._home is None:
            raise ClusterError("the cluster is not up", self.name, "call up() first")
        return self._home / "kubeconfig.yaml"

    def up(self, progress: Progress, served: Served = nobody_waits) -> None:
        if self._home is not None:
            return
        only = only_context(self._source, self.context)
        self._home = Path(tempfile.mkdtemp(prefix="schedspec-existing-"))
        try:
            self.kubeconfig.touch(mode=0o600)
            self.kubeconfig.write_text(yaml.safe_dump(only), "utf-8")
            progress(f"{self.context}: reading its version")
            self._version = server_version(self.kubeconfig, self.context)
            served()
            self._simulate(progress)
        except BaseException:
            self.down()
            raise

    def down(self) -> None:
        if self._kwok is not None:
            self._kwok.stop()
            self._kwok = None
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)
            self._home = None

    def facts(self) -> ClusterFacts:
        return ClusterFacts(self._version, (f"context {self.context} of {self._source}", self._kwok_fact))

    def load_image(self, archive: Path) -> None:
        raise UnsupportedError(
            f"cannot load an image into an existing cluster ({archive.name})",
            self.name,
            "push the image to a registry that the nodes reach, and name it in the templates",
        )

    def _simulate(self, progress: Progress) -> None:
        """Start KWOK for the nodes of scenarios. KWOK plays no other node, not even one with KWOK's annotation.

        Without KWOK the cluster remains usable; `facts` then lists what is missing.
        """
        from .kwok import Kwok  # noqa: PLC0415 - after the cluster has answered

        home, folder = self.kubeconfig.parent, self._settings.binaries
        kwok = Kwok(self.kubeconfig, home, progress=progress, folder=folder, label=SCENARIO)
        try:
            kwok.start()
        except BinaryError as error:
            self._kwok_fact = f"no KWOK nodes: {error.what}"
            progress(f"{self.context}: {self._kwok_fact}")
        else:
            self._kwok = kwok


def source(named: Path | None) -> Path:
    """Return the kubeconfig file: the named one, $KUBECONFIG if it is one file, else ~/.kube/config."""
    if named is not None:
        return named
    variable = os.environ.get("KUBECONFIG", "")
    if os.pathsep in variable:
        raise SettingsError(
            "KUBECONFIG names several files",
            f"KUBECONFIG={variable}",
            "name one file: KUBECONFIG=FILE",
        )
    return Path(variable) if variable else Path.home() / ".kube" / "config"


def only_context(path: Path, context: str) -> dict[str, Any]:
    """Return the kubeconfig reduced to one context, with absolute paths.

    Raises:
        SettingsError: the file is not a kubeconfig, or has no such context.
    """
    try:
        whole = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        why = " ".join(str(getattr(error, "strerror", None) or error).split())
        raise SettingsError(
            f"the kubeconfig cannot be read: {why}", str(path), "set KUBECONFIG to the right file"
        ) from error
    if not isinstance(whole, dict):
        raise SettingsError("the file is not a kubeconfig", str(path), "set KUBECONFIG to the right file")
    names = [entry.get("name") for entry in whole.get("contexts") or []]
    if context not in names:
        known = ", ".join(sorted(map(str, names))) or "none"
        raise SettingsError(f"no context is called {context!r}; there are: {known}", str(path), "name one of them")
    chosen = _entry(whole, "contexts", context, path)
    cluster = _entry(whole, "clusters", chosen["context"].get("cluster"), path)
    user = _entry(whole, "users", chosen["context"].get("user"), path)
    _make_absolute(cluster.get("cluster") or {}, ("certificate-authority",), path.parent)
    _make_absolute(user.get("user") or {}, ("client-certificate", "client-key", "tokenFile"), path.parent)
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "contexts": [chosen],
        "clusters": [cluster],
        "users": [user],
    }


def server_version(kubeconfig: Path, context: str) -> str:
    """Return the version of the API server, for instance `v1.36.3`.

    Raises:
        ClusterError: no API server answers.
    """
    from kubernetes import client, config  # noqa: PLC0415 - heavy; supports every way to authenticate

    try:
        api = config.new_client_from_config(str(kubeconfig), context=context)  # type: ignore[no-untyped-call]
        return str(client.VersionApi(api).get_code(_request_timeout=_ANSWER_SECONDS).git_version)
    except Exception as error:  # every authentication plugin has exceptions of its own
        why = " ".join(str(error).split())[:300]
        raise ClusterError(
            f"the API server does not answer: {why}", f"context {context}", f"try: kubectl --context {context} version"
        ) from error


def _entry(whole: dict[str, Any], kind: str, name: object, path: Path) -> dict[str, Any]:
    for entry in whole.get(kind) or []:
        if isinstance(entry, dict) and entry.get("name") == name:
            return entry
    raise SettingsError(f"{kind} has no entry called {name!r}", str(path), "repair the kubeconfig")


def _make_absolute(fields: dict[str, Any], names: tuple[str, ...], folder: Path) -> None:
    for name in names:
        if fields.get(name):
            fields[name] = str((folder / fields[name]).absolute())
