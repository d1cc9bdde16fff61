"""A configuration that kind could not use is rejected with file, line and field before a container starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedspec.clusters.kind.cluster import read_config
from schedspec.clusters.paths import kind_config
from schedspec.clusters.protocol import SettingsError

HEAD = "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n"
BAD = {
    "no such file": (None, "x.yaml", "cannot be read: No such file or directory"),
    "not YAML": ("kind: [", "x.yaml:1", "the file is not YAML"),
    "a control character": ("kind: Cluster\n# \x01\n", "x.yaml:2", "the file is not YAML: character #x0001"),
    "empty": ("", "x.yaml:1", "kind must be Cluster"),
    "another kind": ("kind: Pod\n", "x.yaml:1", "kind must be Cluster and is 'Pod'"),
    "an old version": (
        "kind: Cluster\napiVersion: kind.sigs.k8s.io/v1alpha3\n",
        "x.yaml:2",
        "apiVersion must be kind.x-k8s.io/v1alpha4 and is 'kind.sigs.k8s.io/v1alpha3'",
    ),
    "nodes that are no list": (HEAD + "nodes: 3\n", "x.yaml:3", "nodes must be a list of nodes and is '3'"),
    "a node that is a word": (HEAD + "nodes:\n- worker\n", "x.yaml:4", "nodes[0] must be a mapping"),
    "only workers": (HEAD + "nodes:\n- role: worker\n", "x.yaml:4", "no node with role control-plane"),
    "a role that does not exist": (
        HEAD + "nodes:\n- role: control-plane\n- role: wrker\n",
        "x.yaml:5",
        "nodes[1].role must be one of: control-plane, worker and is 'wrker'",
    ),
    "cards that are no number": (
        HEAD + 'nodes:\n- role: control-plane\n  labels:\n    nvidia.com/gpu.count: "many"\n',
        "x.yaml:6",
        "nodes[0].labels[nvidia.com/gpu.count] must be a number of cards, 1 or more and is 'many'",
    ),
    "cards without quotes": (
        HEAD + "nodes:\n- labels:\n    nvidia.com/gpu.count: 8\n",
        "x.yaml:5",
        'nodes[0].labels[nvidia.com/gpu.count] must be a string: "8"',
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_an_invalid_configuration_is_rejected_with_line_and_field(case: str, tmp_path: Path) -> None:
    text, where, what = BAD[case]
    path = tmp_path / "x.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SettingsError) as caught:
        read_config(path)
    assert what in caught.value.what
    assert caught.value.where == str(tmp_path / where)
    assert caught.value.do_next


@pytest.mark.parametrize(
    ("name", "roles"),
    [
        ("one-node", ["control-plane"]),
        ("three-nodes", ["control-plane", "worker", "worker"]),
        ("cards", ["control-plane", "worker"]),
    ],
)
def test_the_configurations_of_this_project_are_valid(name: str, roles: list[str]) -> None:
    assert list(read_config(kind_config() / f"{name}.yaml").roles) == roles


def test_a_configuration_without_nodes_means_one_node(tmp_path: Path) -> None:
    path = tmp_path / "plain.yaml"
    path.write_text(HEAD)
    assert read_config(path).roles == ("control-plane",)
