"""The controllers on definitions that lack some of our fields, as Volcano's own definitions do."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator

import pytest
import yaml

from schedspec.api.client import APPLY, Api
from schedspec.api.crds import install
from schedspec.scheduler.controllers.runtime.objects import QUEUES
from schedspec.scheduler.kube import Client, Http, Patch, connect
from tests.scheduler.controllers.conftest import CRDS
from tests.support.controllers.live_controllers import Controllers, LiveControllers, renewed, task, until

pytestmark = pytest.mark.embedded

LACKING = {
    "jobs.batch.volcano.sh": ("observedGeneration", "lastCommand", "delayed", "restarting"),
    "queues.scheduling.volcano.sh": ("deserved",),
}
"""Definition → the fields of its status that Volcano v1.14.1 does not have."""


@pytest.fixture
def volcanos(live: tuple[Api, Controllers], place: LiveControllers) -> Iterator[LiveControllers]:
    """The namespace of a test while the definitions are those of Volcano."""
    api, controllers = live
    controllers.stop()
    for name, path in ((name, f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}") for name in LACKING):
        found = next(one for file in CRDS.glob("*.yaml") for one in yaml.safe_load_all(file.read_text())
                     if one and one["metadata"]["name"] == name)  # fmt: skip
        pruned = copy.deepcopy(found)
        for version in pruned["spec"]["versions"]:
            for field in LACKING[name]:
                del version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"][field]
        api.call("PATCH", path, body=pruned, query={"fieldManager": "t", "force": "true"}, content_type=APPLY)
    controllers.start()
    yield place
    controllers.stop()
    install(api, CRDS)
    controllers.start()


def test_a_job_completes_and_its_restarted_pods_come_back(volcanos: LiveControllers) -> None:
    place = volcanos
    policies = [{"event": "PodFailed", "action": "RestartPod", "timeout": "1s"}]
    place.create("Job", "j", {"tasks": [task()], "policies": policies})
    place.run(3)
    until(lambda: place.phase("j") == "Running", "the job to run")
    before = place.pods()
    place.finish("j-a-1", exit_code=1)
    until(lambda: renewed(place, before, "j-a-1"), "another pod j-a-1")
    place.bind(3)
    place.finish("j-a-0", "j-a-1", "j-a-2")
    until(lambda: place.phase("j") == "Completed", "the job to complete")
    status = (place.get("Job", "j") or {})["status"]
    assert status["succeeded"] == 3
    assert not {"observedGeneration", "delayed", "restarting"} & status.keys()


def test_a_queue_gets_what_its_definition_has(volcanos: LiveControllers) -> None:
    place = volcanos
    place.create("Queue", "q", {"weight": 1})

    async def write() -> None:
        http = Http(connect(place.controllers.cluster.kubeconfig, place.controllers.cluster.context))
        head = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "metadata": {"name": "q"}}
        body = {**head, "status": {"allocated": {"cpu": "2"}, "deserved": {"cpu": "4"}}}
        try:
            await Client(http).patch(
                QUEUES.bare, "q", body, kind=Patch.APPLY, sub="status", manager="scheduler", force=True
            )
        finally:
            await http.close()

    asyncio.run(write())
    status = (place.get("Queue", "q") or {})["status"]
    assert (status["allocated"], status.get("deserved")) == ({"cpu": "2"}, None)
