"""A dump contains all objects that influence decisions, and the policy of the cluster's scheduler."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from schedspec.scheduler.kube import Client
from schedspec.virtual.cluster import VirtualCluster
from schedspec.virtual.cluster.virtual_cluster import VirtualHttp
from schedspec.virtual.state import State, read_state
from schedspec.virtual.state.dump import summary, take_state, write_state

POLICY = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}]\n'


def post(cluster: VirtualCluster, path: str, body: dict[str, Any]) -> None:
    status, answer = cluster.request("POST", path, json.dumps(body).encode())
    assert status < 300, answer


def taken(cluster: VirtualCluster) -> State:
    async def take() -> State:
        return await take_state(Client(VirtualHttp(cluster._server)), "here")  # type: ignore[arg-type]

    return asyncio.run(take())


def test_a_dump_is_read_from_the_api_and_written(tmp_path: Path) -> None:
    cluster = VirtualCluster()
    try:
        has = {"cpu": "4", "memory": "8Gi", "pods": "9"}
        post(cluster, "/api/v1/nodes", {"metadata": {"name": "n"}, "status": {"allocatable": has}})
        for name in ("volcano-system", "team"):
            post(cluster, "/api/v1/namespaces", {"metadata": {"name": name}})
        config = {"metadata": {"name": "volcano-scheduler-configmap"}, "data": {"volcano-scheduler.conf": POLICY}}
        post(cluster, "/api/v1/namespaces/volcano-system/configmaps", config)
        container = {"name": "x", "image": "secret", "resources": {"requests": {"cpu": "1"}}}
        template = {"spec": {"schedulerName": "schedspec", "containers": [container]}}
        job = {"schedulerName": "schedspec", "minAvailable": 2, "tasks": [{"replicas": 2, "template": template}]}
        path = "/apis/batch.volcano.sh/v1alpha1/namespaces/team/jobs"
        post(cluster, path, {"metadata": {"name": "j"}, "spec": job})
        cluster.advance(30)
        state = taken(cluster)
    finally:
        cluster.close()
    write_state(state, tmp_path / "state.jsonl.gz")
    again = read_state(tmp_path / "state.jsonl.gz")
    assert again.digest == state.digest
    assert again.scheduler_names == ["schedspec"]
    assert again.policy is not None
    assert again.policy.text == POLICY
    assert [len(pods) for pods in again.of_job().values()] == [2]
    assert all(pod.spec.node_name == "n" for pods in again.of_job().values() for pod in pods)
    assert again.digest[:16] in summary(again, tmp_path)
