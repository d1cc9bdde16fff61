"""What a scenario borrows of the cluster is put back, by the scenario or by the run after one that was killed."""

from __future__ import annotations

import copy
from typing import Any, cast

from schedspec.api.client import JSON_PATCH, MERGE, Api
from schedspec.api.errors import RejectedError
from schedspec.api.kinds import Kind, Ref
from schedspec.scenario.restore import WAS, borrow, give_back
from schedspec.scenario.sweep import sweep

DEFAULT = Ref(Kind.QUEUE, "default")


class OneQueue:
    """An API server with one object, the queue `default`."""

    def __init__(self) -> None:
        self.object: dict[str, Any] = {"metadata": {"name": "default", "labels": {"a": "1"}}, "spec": {"weight": 1}}

    def call(self, verb: str, path: str, *, body: Any = None, content_type: str = "", query: Any = None) -> Any:
        if query is not None:
            return {"items": []}
        if not path.endswith("/queues/default"):
            raise RejectedError("not found", 404, "NotFound")
        match verb, content_type:
            case "PATCH", kind if kind == MERGE:
                self.object["metadata"].setdefault("annotations", {}).update(body["metadata"]["annotations"])
            case "PATCH", kind if kind == JSON_PATCH:
                for change in body:
                    *parents, last = change["path"].strip("/").split("/")
                    place = self.object
                    for parent in parents:
                        place = place[parent]
                    place[last] = change["value"]
        return copy.deepcopy(self.object)


def changed() -> tuple[OneQueue, Api, dict[str, Any]]:
    server = OneQueue()
    api = cast("Api", server)
    before = copy.deepcopy(server.object)
    borrow(api, DEFAULT, copy.deepcopy(server.object))
    server.object["spec"] = {"weight": 7, "reclaimable": False}
    server.object["metadata"]["labels"]["b"] = "2"
    return server, api, before


def test_what_was_borrowed_is_what_it_was_and_says_no_more_that_it_is_borrowed() -> None:
    server, api, before = changed()
    assert WAS in server.object["metadata"]["annotations"]
    assert give_back(api, DEFAULT)
    assert server.object == {**before, "metadata": {**before["metadata"], "annotations": {}}}
    assert not give_back(api, DEFAULT)


def test_the_run_after_a_killed_one_puts_it_back() -> None:
    server, api, before = changed()
    assert sweep(api)
    assert server.object["spec"] == before["spec"]
    assert not sweep(api)
