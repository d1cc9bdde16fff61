"""Kubeconfigs: good ones yield a connection, bad ones an error with a remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from kubernetes.client.configuration import Configuration

from schedspec.scheduler.kube import ConfigError, Unreachable, connect, connect_as_kubectl


def kubeconfig(folder: Path, server: str = "http://127.0.0.1:8001", **user: str) -> Path:
    file = folder / "kubeconfig"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file.write_text(yaml.safe_dump(content))
    return file


def test_a_kubeconfig_names_the_server_and_the_token(tmp_path: Path) -> None:
    connection = connect(kubeconfig(tmp_path, "https://10.0.0.1:6443/prefix/", token="secret"))
    assert (connection.host, connection.port, connection.base) == ("10.0.0.1", 6443, "/prefix")
    assert connection.tls is not None
    assert connection.authorization() == "Bearer secret"


def test_without_token_there_is_no_authorization(tmp_path: Path) -> None:
    connection = connect(kubeconfig(tmp_path))
    assert connection.authorization() is None
    assert (connection.tls, connection.netloc) == (None, "127.0.0.1:8001")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing: no such kubeconfig file; name one with --kubeconfig"):
        connect(tmp_path / "nothing")


def test_a_missing_context_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="elsewhere"):
        connect(kubeconfig(tmp_path), "elsewhere")


def test_a_file_that_is_no_kubeconfig_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "k"
    file.write_text("[1, 2")
    with pytest.raises(ConfigError, match="not a usable kubeconfig"):
        connect(file)


@pytest.mark.parametrize("port", ["99999", "port"])
def test_a_server_with_a_malformed_port_is_refused(tmp_path: Path, port: str) -> None:
    with pytest.raises(ConfigError, match=rf"https://10.0.0.1:{port}'.*[Pp]ort"):
        connect(kubeconfig(tmp_path, f"https://10.0.0.1:{port}"))


def test_outside_of_a_cluster_a_kubeconfig_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(ConfigError, match="outside of a cluster, set --kubeconfig"):
        connect()


def contexts(file: Path, current: str, *names: str) -> Path:
    """Write a kubeconfig in which each context is the host of its cluster."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": f"http://{name}:1"}} for name in names],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "u"}} for name in names],
        "current-context": current,
    }
    file.parent.mkdir(exist_ok=True)
    file.write_text(yaml.safe_dump(content))
    return file


CHOICES = {
    "the named file": ("{named}", "{a}", "named"),
    "the first of several files has the current context": (None, "{a}:{b}", "a"),
    "a file that does not exist is skipped": (None, "{missing}:{b}", "b"),
    "no variable: the file of the user": (None, "", "home"),
}


@pytest.mark.parametrize("context", [None, "x"])
@pytest.mark.parametrize(("named", "variable", "host"), CHOICES.values(), ids=CHOICES)
def test_a_reading_command_uses_the_cluster_that_kubectl_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str | None, variable: str, host: str, context: str | None
) -> None:
    files = {name: contexts(tmp_path / name, name, name, "x") for name in ("named", "a", "b")}
    files["missing"] = tmp_path / "missing"
    contexts(tmp_path / ".kube" / "config", "home", "home", "x")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", variable.format(**files))
    found = connect_as_kubectl(None if named is None else named.format(**files), context)
    assert found.host == (context or host)


@pytest.mark.parametrize(
    ("variable", "context", "why"),
    [
        ("/missing", None, "KUBECONFIG=/missing: no such kubeconfig file"),
        ("", "staging", "no context staging; name one with --kubeconfig"),
        ("", None, "outside of a cluster, set --kubeconfig"),
    ],
)
def test_without_any_kubeconfig_the_error_says_what_to_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, context: str | None, why: str
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", variable)
    with pytest.raises(ConfigError, match=why):
        connect_as_kubectl(context=context)


def test_a_proxy_is_refused_and_not_silently_bypassed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(ConfigError, match="a proxy is configured"):
        connect(kubeconfig(tmp_path, "https://10.0.0.1:6443"))
    assert connect(kubeconfig(tmp_path, "https://127.0.0.1:6443")).host == "127.0.0.1"


def test_unreadable_credentials_raise_unreachable_and_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"

    def rotate(configuration: Configuration) -> None:
        configuration.api_key["authorization"] = f"Bearer {token.read_text()}"

    def from_the_pod(client_configuration: Configuration) -> None:
        client_configuration.host = "http://127.0.0.1:1"
        client_configuration.refresh_api_key_hook = rotate

    monkeypatch.setattr("kubernetes.config.load_incluster_config", from_the_pod)
    authorization = connect().authorization
    with pytest.raises(Unreachable, match=r"service account: no credentials: FileNotFoundError") as caught:
        authorization()
    assert not caught.value.sent
    token.write_text("new")
    assert authorization() == "Bearer new"
