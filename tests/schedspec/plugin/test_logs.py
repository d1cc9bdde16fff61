"""Logs of pods: only pods with a kubelet have one, and an unreadable log fails no scenario."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from schedspec.api.errors import ClusterUnreachableError
from schedspec.api.kinds import Kind, Ref
from schedspec.observe.history import History
from schedspec.plugin.report_plugin import logs_of

LOGS = {"real": b"epoch 1\n", "silent": b""}


def answer(_method: str, path: str, **_more: Any) -> SimpleNamespace:
    name = path.split("/")[-2]
    if name == "unreachable":
        raise ClusterUnreachableError("no")
    return SimpleNamespace(status=200 if name in LOGS else 404, data=LOGS.get(name, b"gone"))


def test_only_pods_on_real_nodes_have_a_log() -> None:
    history = History("ns")
    for node, notes in (("kind-1", {}), ("fake-1", {"kwok.x-k8s.io/node": "fake"})):
        history.record(Ref(Kind.NODE, node), "added", {"metadata": {"name": node, "annotations": notes}, "spec": {}})
    places = {"real": "kind-1", "silent": "kind-1", "lost": "kind-1", "unreachable": "kind-1", "played": "fake-1"}
    for name, node in places.items():
        pod = {"metadata": {"name": name, "namespace": "ns", "uid": name}, "spec": {"nodeName": node}}
        history.record(Ref(Kind.POD, name, "ns"), "added", {**pod, "status": {"phase": "Running"}})
    assert logs_of(cast("Any", SimpleNamespace(raw=answer)), history) == {"real": "epoch 1\n"}
