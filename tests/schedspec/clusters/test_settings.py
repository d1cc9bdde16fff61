"""Invalid settings are rejected early with a clear error, and an existing cluster is never used by accident."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from schedspec.clusters import ClusterError, Settings, provide
from schedspec.clusters.existing import ExistingCluster, only_context, source
from schedspec.clusters.protocol import SettingsError, UnsupportedError

KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "production",
    "contexts": [
        {"name": "production", "context": {"cluster": "production", "user": "me"}},
        {"name": "lab", "context": {"cluster": "lab", "user": "me", "namespace": "team"}},
        {"name": "torn", "context": {"cluster": "gone", "user": "me"}},
    ],
    "clusters": [
        {"name": "production", "cluster": {"server": "https://127.0.0.1:1"}},
        {"name": "lab", "cluster": {"server": "https://127.0.0.1:2", "certificate-authority": "pki/ca.crt"}},
    ],
    "users": [{"name": "me", "user": {"token": "secret", "client-key": "/abs/key"}}],
}


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(KUBECONFIG))
    return path


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"kind": "minikube"}, "unknown kind of cluster 'minikube'"),
        ({"kind": "existing"}, "needs the name of its context"),
        ({"kind": "kind", "kube_context": "lab"}, r"a context \(lab\) is only used with an existing cluster"),
        ({"kube_context": "lab"}, r"a context \(lab\) is only used with an existing cluster"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(wrong: dict[str, str], what: str) -> None:
    with pytest.raises(SettingsError, match=what) as caught:
        Settings(**wrong)  # type: ignore[arg-type]
    assert caught.value.where
    assert caught.value.do_next


def test_an_error_names_the_problem_the_place_and_the_next_step() -> None:
    assert str(ClusterError("it broke", "in the cellar", "look there")) == (
        "it broke\n  where: in the cellar\n  do next: look there"
    )
    assert str(ClusterError("it broke")) == "it broke"


def test_only_the_named_context_is_copied(kubeconfig: Path) -> None:
    only = only_context(kubeconfig, "lab")
    assert only["current-context"] == "lab"
    assert [entry["name"] for kind in ("contexts", "clusters", "users") for entry in only[kind]] == ["lab", "lab", "me"]
    assert only["clusters"][0]["cluster"]["certificate-authority"] == str(kubeconfig.parent / "pki/ca.crt")
    assert only["users"][0]["user"]["client-key"] == "/abs/key"
    assert "production" not in yaml.safe_dump(only)


@pytest.mark.parametrize(
    ("context", "what"),
    [
        ("Lab", "no context is called 'Lab'; there are: lab, production, torn"),
        ("torn", "clusters has no entry called 'gone'"),
    ],
)
def test_a_missing_or_incomplete_context_is_rejected(kubeconfig: Path, context: str, what: str) -> None:
    with pytest.raises(SettingsError, match=what):
        only_context(kubeconfig, context)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (None, "cannot be read: No such file"),
        (b"{", "cannot be read: while parsing"),
        (b"\xff\xfe\x00", "cannot be read"),
        (b"- a list", "not a kubeconfig"),
    ],
)
def test_a_kubeconfig_that_cannot_be_read_is_an_error(tmp_path: Path, text: bytes | None, what: str) -> None:
    path = tmp_path / "config"
    if text is not None:
        path.write_bytes(text)
    with pytest.raises(SettingsError, match=what) as caught:
        only_context(path, "lab")
    assert caught.value.where == str(path)


def test_the_kubeconfig_is_the_named_file_then_kubeconfig_then_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/a/file")
    assert source(Path("/named")) == Path("/named")
    assert source(None) == Path("/a/file")
    monkeypatch.setenv("KUBECONFIG", "/a/file:/another")
    with pytest.raises(SettingsError, match="several files"):
        source(None)
    monkeypatch.delenv("KUBECONFIG")
    assert source(None) == Path.home() / ".kube/config"


def test_a_cluster_that_does_not_answer_is_an_error_and_no_file_remains(
    kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    cluster = provide(Settings(kind="existing", kube_context="production", kubeconfig=kubeconfig))
    assert isinstance(cluster, ExistingCluster)
    with pytest.raises(ClusterError, match="the API server does not answer") as caught:
        cluster.up(print)
    assert caught.value.where == "context production"
    assert list((tmp_path / "temporary").iterdir()) == []
    cluster.down()


def test_an_image_cannot_be_loaded_into_an_existing_cluster(kubeconfig: Path) -> None:
    cluster = provide(Settings(kind="existing", kube_context="lab", kubeconfig=kubeconfig))
    with pytest.raises(UnsupportedError, match=r"worker\.tar"):
        cluster.load_image(Path("worker.tar"))
