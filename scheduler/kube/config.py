"""Read how to reach the API server, from a kubeconfig or the service account of a pod, with the official client.

Nothing here talks to the API server. The result is a `Connection` for the thin client.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from .errors import ConfigError, Unreachable


@dataclass(frozen=True, slots=True)
class Connection:
    """The address of the API server and our credentials.

    Args:
        authorization: Returns the value of the `Authorization` header, or None. It may read a file or run a credential
            plugin, so the client calls it in a thread and keeps the value for some seconds. It raises Unreachable if
            there is no value now, for example while a token is rotated; the client calls it again.
    """

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    base: str = ""
    """Path prefix of the server, without a slash at the end."""
    authorization: Callable[[], str | None] = lambda: None

    @property
    def netloc(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def connect(kubeconfig: str | Path | None = None, context: str | None = None) -> Connection:
    """Return the connection of a kubeconfig file and context; without a file, of the pod that this process runs in.

    Raises:
        ConfigError: The file does not exist or is not a kubeconfig, the context does not exist, the process is not in a
            cluster, or a proxy is configured.
    """
    if kubeconfig is not None and not Path(kubeconfig).is_file():
        raise ConfigError(str(kubeconfig), "no such kubeconfig file; name one with --kubeconfig")
    return _of_files([] if kubeconfig is None else [Path(kubeconfig)], context)


def _current_context(file: Path) -> str | None:
    """Return the current context of one file: the first that names one counts, not the last as in the library."""
    try:
        content = yaml.safe_load(file.read_text("utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return None  # the library says what is wrong with the file
    return content.get("current-context") if isinstance(content, dict) else None


def _of_files(files: Sequence[Path], context: str | None) -> Connection:
    """Return the connection of kubeconfig files, merged as kubectl merges them; without a file, of the pod."""
    # imported here: the library costs 0.3 s and 15 MB, and `lint`, `replay` and `explain` do not need it
    from kubernetes import config as official  # noqa: PLC0415
    from kubernetes.client.configuration import Configuration  # noqa: PLC0415

    configuration = Configuration()
    source = os.pathsep.join(map(str, files)) or "service account"
    try:
        if not files:
            official.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            official.load_kube_config(  # type: ignore[no-untyped-call]
                config_file=source, context=context, client_configuration=configuration, persist_config=False
            )
    except official.ConfigException as error:
        hint = "" if files else "; outside of a cluster, set --kubeconfig"
        raise ConfigError(source, f"{error}{hint}") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError) as error:
        raise ConfigError(source, f"not a usable kubeconfig: {error}") from error
    return _connection(source, configuration)


def connect_as_kubectl(kubeconfig: str | Path | None = None, context: str | None = None) -> Connection:
    """Return the connection that kubectl would use: of the named file, $KUBECONFIG, `~/.kube/config`, or of the pod.

    Only commands that read use this connection: the current context must not decide where something is written.

    Args:
        kubeconfig: The file; None: the files that `$KUBECONFIG` lists, merged, else `~/.kube/config`.
        context: The context; None: the current one.

    Raises:
        ConfigError: as `connect`; or no kubeconfig exists and the process is not in a pod.
    """
    if kubeconfig is not None:
        return connect(kubeconfig, context)
    variable = os.environ.get("KUBECONFIG", "")
    listed = variable.split(os.pathsep) if variable else ["~/.kube/config"]
    files = [path for path in (Path(name).expanduser() for name in listed if name) if path.is_file()]
    if files:
        return _of_files(files, context or next(filter(None, map(_current_context, files)), None))
    if variable:
        raise ConfigError(f"KUBECONFIG={variable}", "no such kubeconfig file; name one with --kubeconfig")
    if context is not None:
        raise ConfigError("~/.kube/config", f"no such file, so no context {context}; name one with --kubeconfig")
    return connect()


def _connection(source: str, configuration: Any) -> Connection:
    url = urlsplit(configuration.host)
    try:
        port = url.port
    except ValueError as error:
        raise ConfigError(source, f"the server's address {configuration.host!r}: {error}; correct it") from error
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ConfigError(source, f"the server's address is not a URL: {configuration.host!r}")
    if configuration.proxy and not _bypassed(url.hostname, configuration.no_proxy):
        raise ConfigError(source, f"a proxy is configured ({configuration.proxy}); reach the API server directly")
    tls = _context(source, configuration) if url.scheme == "https" else None

    def authorization() -> str | None:
        try:
            token: str | None = configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
            return token or configuration.get_api_key_with_prefix("authorization") or None
        except Exception as error:  # a file or a credential plugin may fail in any way
            raise Unreachable(source, f"no credentials: {error!r}", sent=False) from error

    return Connection(
        host=url.hostname,
        port=port or (443 if tls else 80),
        tls=tls,
        server_name=configuration.tls_server_name or None,
        base=url.path.rstrip("/"),
        authorization=authorization,
    )


def _bypassed(host: str, no_proxy: str | None) -> bool:
    from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # noqa: PLC0415

    is_local = host in {"localhost", "::1"} or host.startswith("127.")
    return is_local or bool(proxy_bypass_environment(host, {"no": no_proxy or ""}))


def _context(source: str, configuration: Any) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert or None)
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, configuration.key_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(source, f"the certificates cannot be loaded: {error}") from error
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
